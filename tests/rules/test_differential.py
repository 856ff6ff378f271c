"""Every recorded argument set: our verdict and our values are those of the real SGLang."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.rules.differential import differences, errors_of, explanation, judge, write_models
from tests.rules.judging import recordings, wide_cases

RECORDED = recordings.FOLDER / "resolution.jsonl"
WIDE = recordings.FOLDER / "wide-resolution.jsonl"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("models")
    write_models(made)
    return made


def test_all_recorded_sets_agree(folder: Path) -> None:
    header, entries = recordings.read(RECORDED)
    assert header["what"] == "resolution"
    assert len(entries) >= 5000
    assert unexplained(entries, folder) == []


def test_wider_sets_of_several_releases_agree(folder: Path) -> None:
    header, entries = recordings.read(WIDE)
    assert header["what"] == "wide-resolution"
    assert {entry["case"]["sglang"] for entry in entries} == {"0.5.20", "0.5.21", "0.5.22", "0.5.23"}
    assert unexplained(entries, folder) == []


def test_the_recorded_wider_sets_are_those_of_their_seeds() -> None:
    _, entries = recordings.read(WIDE)
    made: dict[str, Any] = {}
    for release in sorted({entry["case"]["sglang"] for entry in entries}):
        seed = f"v{release.rpartition('.')[2]}"
        made |= {entry["id"]: entry["case"] for entry in wide_cases(600, seed, release)}
    assert {entry["id"]: entry["case"] for entry in entries}.items() <= made.items()


def unexplained(entries: list[dict[str, Any]], folder: Path) -> list[str]:
    return [
        f"{entry['id']} {entry['case']}: {difference}"
        for entry in entries
        for difference in differences(entry["case"], entry["result"], folder)
        if explanation(difference) is None
    ]


def test_differences_are_seen(folder: Path) -> None:
    """The comparison itself notices a verdict or a value that is not ours."""
    case = {"model": "mha", "gpu": "sm90", "args": {"enable_hierarchical_cache": True}}
    assert errors_of(judge(case, folder)) == ()
    changed = {"hicache_ratio": 2.0, "page_size": 1, "swa_full_tokens_ratio": 0.8}
    assert differences(case, {"changed": changed}, folder) == []
    assert differences(case, {"changed": {**changed, "hicache_ratio": 1.2}}, folder)
    told = {"type": "ValueError", "message": "no", "where": "somewhere"}
    assert [each.kind for each in differences(case, {"refused": told}, folder)] == ["missed"]
    both = {**case, "args": {**case["args"], "disable_radix_cache": True}}
    assert [each.kind for each in differences(both, {"changed": changed}, folder)] == ["refused"]
