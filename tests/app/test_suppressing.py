"""Comments that answer findings in place."""

from __future__ import annotations

import pytest

from hicache_config.app.checking import check_document
from hicache_config.app.options import Options
from hicache_config.app.planning import plan
from hicache_config.sources import read

BASE = "enable-hierarchical-cache: true\nhicache-size: 100\n"


def codes(text: str, name: str = "args.yaml", **options: object) -> list[str]:
    entries = check_document(read(name, text=text), Options(sglang="0.5.23", **options))  # type: ignore[arg-type]
    return [placed.finding.code for entry in entries for placed in entry.findings]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (BASE + "hicache-ratio: 2.0\n", ["HC120"]),
        (BASE + "hicache-ratio: 2.0 # hicache: ignore HC120 staging\n", []),
        (BASE + "hicache-ratio: 2.0 #hicache:ignore HC120 staging\n", []),
        (BASE + "# hicache: ignore HC120 staging\nhicache-ratio: 2.0\n", []),
        (BASE + "# hicache: ignore HC120 staging\n\n# more\nhicache-ratio: 2.0\n", []),
        (BASE + "hicache-ratio: 2.0\n# hicache: ignore-file HC1 a template\n", []),
        (BASE + "hicache-ratio: 2.0 # hicache: ignore HC120, HC121 staging\n", []),
        (BASE + "hicache-ratio: 2.0 # hicache: ignore HC120\n", ["HC022"]),
        (BASE + "hicache-ratio: 2.0 # hicache: ignore HC203 no\n", ["HC120", "HC021"]),
        (BASE + "hicache-ratio: 2.0 # hicache: ignore all of it\n", ["HC120", "HC021"]),
        (BASE + "# hicache: ignore HC120 above\n", ["HC021"]),
        (BASE + "hicache-ratio: 2.0 # ignore HC120\n", ["HC120"]),
    ],
)
def test_what_a_comment_answers(text: str, found: list[str]) -> None:
    assert codes(text) == found


def test_json_has_no_comments() -> None:
    assert "HC120" in codes(
        '{"hicache_size": 1, "hicache_ratio": 2.0, "enable_hierarchical_cache": true, "x # hicache: ignore HC120": 1}',
        "args.json",
    )


def test_complaints_can_be_ignored_too() -> None:
    assert codes(BASE + "# hicache: ignore HC120 x\n", ignore=("HC02",)) == []


def test_a_plan_heeds_comments() -> None:
    text = BASE + "hicache-ratio: 2.0 # hicache: ignore HC120 staging\nmodel-path: meta-llama/Meta-Llama-3.1-8B\n"
    report = plan(read("args.yaml", text=text), Options(sglang="0.5.23"))
    assert [placed.finding.code for placed in report.findings] == []
