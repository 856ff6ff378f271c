"""The examples of the readers' findings do what their pages say, when a file is read and nothing else is done."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from hicache_config.rules.examples.sources import SOURCES
from hicache_config.rules.registry import all_rules
from hicache_config.sources import read
from hicache_config.sources.notes import KINDS


def found(files: Mapping[str, str | None], folder: Path) -> list[str]:
    """The codes of what a reader finds in an example: its first file is the source, the others lie beside it."""
    for name, text in files.items():
        if text is not None:
            (folder / name).write_text(text, "utf-8")
    document = read(str(folder / next(iter(files))))
    notes = [*document.notes, *(noted for engine in document.engines for noted in engine.notes)]
    return [noted.finding.code for noted in notes]


@pytest.mark.parametrize("code", KINDS)
def test_an_example_has_its_finding_and_its_repair_has_none(code: str, tmp_path: Path) -> None:
    example = SOURCES[code]
    for name in ("bad", "good"):
        (tmp_path / name).mkdir()
    assert code in found(example["bad_files"], tmp_path / "bad")
    assert found(example["good_files"], tmp_path / "good") == []


def test_every_finding_has_its_page() -> None:
    pages = {rule.code: (rule.name, rule.severity) for rule in all_rules()}
    assert {code: pages.get(code) for code in KINDS} == dict(KINDS)
