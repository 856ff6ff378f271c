"""The plugin's reading of device pools against real host pools, stage by stage, over cases of tests/oracle.

As recorded (`recorded/readings.json` counts stages by the class of their device pool), and live over some of each.
`python -m tests.engines.test_readings` records them anew.
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from .live.servers import ROOT, python_of

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


def cases(what: str, every: int) -> str:
    """One recorded case in so many of tests/recorded, as JSON lines."""
    paths = sorted((ROOT / "tests" / "recorded").glob(f"{what}*.jsonl"))
    return "\n".join(line for path in paths for line in path.read_text("utf-8").splitlines()[1::every])


def run(python: Path, folder: Path, what: str, every: int) -> list[Reading]:
    """The readings of a driver of tests/oracle over one case in so many."""
    (folder / f"{what}.jsonl").write_text(cases(what, every), encoding="utf-8")
    driver = Path(__file__).parent / "live" / "reading_driver.py"
    words = [str(driver), what, str(folder / f"{what}.out"), str(folder / f"{what}.jsonl")]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "SGLANG_PLUGINS": "none"}
    subprocess.run([str(python), "-W", "ignore", *words], env=environment, check=True, stdout=subprocess.DEVNULL)
    return [json.loads(line) for line in (folder / f"{what}.out").read_text("utf-8").splitlines()]


@pytest.fixture(scope="module", params=["recorded", pytest.param("live", marks=pytest.mark.live)])
def counts(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, int]]:
    if request.param == "recorded":
        recorded: dict[str, dict[str, int]] = json.loads(RECORDS.read_text("utf-8"))
        return recorded
    find: Callable[[str], Path] = request.getfixturevalue("sglang_python")
    return summary(run(find("0.5.23"), tmp_path_factory.mktemp("readings"), "pools", every=40))


def test_every_reading_explains_the_real_pools(counts: dict[str, dict[str, int]]) -> None:
    assert sum(kinds.get("right", 0) for kinds in counts.values()) > 100
    assert not sum(kinds.get("wrong", 0) for kinds in counts.values())


def test_only_known_classes_are_left_to_sglang(counts: dict[str, dict[str, int]]) -> None:
    assert {name for name, kinds in counts.items() if "HC453" in kinds} <= LEFT


def main() -> None:
    """Record the counts over all generated geometries and special families, and some of the whole models."""
    python, readings = python_of("0.5.23"), list[Reading]()
    with tempfile.TemporaryDirectory() as folder:
        for what, every in (("pools", 1), ("special", 1), ("models", 5)):
            readings += run(python, Path(folder), what, every)
            print(f"{what}: {len(readings)} readings so far", flush=True)
    for reading in (one for one in readings if one["differences"]):
        print(f"{reading['pool']}: {'; '.join(reading['differences'])}")
    RECORDS.write_text(json.dumps(summary(readings), indent=1) + "\n", encoding="utf-8")
    wrong = sum(bool(one["differences"]) for one in readings)
    print(f"{len(readings)} cases, {wrong} differences")


if __name__ == "__main__":
    main()
