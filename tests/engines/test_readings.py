"""The plugin's reading of device pools against real host pools, stage by stage, over cases of tests/oracle.

As recorded (`recorded/readings.json` counts stages by the class of their device pool), and live over a few of each.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from .conftest import ROOT

RECORDS = Path(__file__).parent / "recorded" / "readings.json"
Reading = dict[str, Any]

#: Device pools that the plugin leaves to SGLang, each with a reason in its finding (HC453).
LEFT = {"MiniMaxM3Nvfp4KVPool", "UnifiedSWAKVPool"}


def summary(readings: Iterable[Reading]) -> dict[str, dict[str, int]]:
    """Stages by class: read as built, read otherwise, refused by code."""
    found: dict[str, Counter[str]] = {}
    for reading in readings:
        counts = found.setdefault(reading["pool"], Counter())
        kinds = sorted({code for code, _ in reading["refused"]}) or ["wrong" if reading["differences"] else "right"]
        counts.update(kinds)
    return {name: dict(sorted(counts.items())) for name, counts in sorted(found.items())}


def cases(per_family: int) -> str:
    """Some generated geometries of each family, as JSON lines."""
    sys.path.insert(0, str(ROOT / "tests" / "oracle"))
    try:
        import generate
    finally:
        sys.path.pop(0)
    chosen = [entry for family in generate.FAMILIES for entry in generate.cases(family)[:per_family]]
    return "\n".join(map(json.dumps, chosen))


@pytest.fixture(scope="module", params=["recorded", pytest.param("live", marks=pytest.mark.live)])
def counts(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, int]]:
    if request.param == "recorded":
        recorded: dict[str, dict[str, int]] = json.loads(RECORDS.read_text("utf-8"))
        return recorded
    find: Callable[[str], Path] = request.getfixturevalue("sglang_python")
    folder = tmp_path_factory.mktemp("readings")
    (folder / "cases.jsonl").write_text(cases(5), encoding="utf-8")
    driver = Path(__file__).parent / "live" / "reading_driver.py"
    command = [
        str(find("0.5.23")),
        "-W",
        "ignore",
        str(driver),
        "pools",
        str(folder / "out"),
        str(folder / "cases.jsonl"),
    ]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "SGLANG_PLUGINS": "none"}
    subprocess.run(["nice", *command], env=environment, check=True, capture_output=True)
    return summary(json.loads(line) for line in (folder / "out").read_text("utf-8").splitlines())


def test_every_reading_explains_the_real_pools(counts: dict[str, dict[str, int]]) -> None:
    assert sum(kinds.get("right", 0) for kinds in counts.values()) > 100
    assert not sum(kinds.get("wrong", 0) for kinds in counts.values())


def test_only_known_classes_are_left_to_sglang(counts: dict[str, dict[str, int]]) -> None:
    assert {name for name, kinds in counts.items() if "HC453" in kinds} <= LEFT
