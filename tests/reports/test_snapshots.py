"""Whole runs of the command line, as files: `NAME.out` holds what a run prints, its exit status in the last line.

`UPDATE_SNAPSHOTS=1 pytest tests/reports/test_snapshots.py` writes them anew; read the difference before you commit it.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from click.testing import CliRunner

from hicache_config.cli.main import group

HERE = Path(__file__).resolve().parent / "snapshots"
ROOT = Path(__file__).resolve().parents[2]

RUNS = {
    "validate-broken": "validate examples/broken.json",
    "validate-broken-json": "validate examples/broken.json --format json",
    "validate-broken-sarif": "validate examples/broken.json --format sarif",
    "validate-broken-github": "validate examples/broken.json --format github",
    "validate-broken-junit": "validate examples/broken.json --format junit",
    "validate-broken-quiet": "validate examples/broken.json --quiet",
    "validate-select": "validate examples/broken.json --select HC1 --ignore HC103",
    "validate-glm": "validate examples/glm-5.2-pp4.json",
    "validate-old-knobs": "validate tests/reports/snapshots/old-knobs.yaml",
    "validate-old-knobs-diff": "validate tests/reports/snapshots/old-knobs.yaml --diff",
    "validate-launch": "validate tests/reports/snapshots/launch.sh",
    "validate-suppressed": "validate tests/reports/snapshots/suppressed.yaml",
    "validate-v4-size": "validate tests/reports/snapshots/v4-size.json",
    "validate-command": "validate -- sglang serve --model-path openai/gpt-oss-120b --tp 8 --enable-hierarchical-cache --hicache-size=100 --hicache-ratio 2",
    "validate-compare": "validate examples/dense-tp8.json --compare 0.5.14",
    "validate-missing": "validate no/such/file.json",
    "plan-glm": "plan examples/glm-5.2-pp4.json",
    "plan-glm-total": "plan examples/glm-5.2-pp4.json --accounting total --explain",
    "plan-glm-host": "plan examples/glm-5.2-pp4.json --host-memory 830GB",
    "plan-glm-json": "plan examples/glm-5.2-pp4.json --format json",
    "plan-dense": "plan examples/dense-tp8.json",
    "plan-pair": "plan examples/pair-75-25.json --pools examples/pair-75-25.pools.json --explain",
    "plan-mamba": "plan examples/mamba-hybrid.json --pools examples/mamba-hybrid.pools.json",
    "plan-mamba-total": "plan examples/mamba-hybrid.json --pools examples/mamba-hybrid.pools.json --accounting total",
    "plan-v4-total": "plan tests/reports/snapshots/v4-size.json --accounting total",
    "plan-unknown-slots": "plan -- sglang serve --model-path openai/gpt-oss-120b --tp 8 --enable-hierarchical-cache --hicache-ratio 2",
    "explain-rule": "explain HC120",
    "explain-argument": "explain --sglang 0.5.14 hicache_mem_layout",
}


def run(words: str) -> str:
    """What a command prints, standard error behind standard output, and its exit status."""
    result = CliRunner().invoke(group, words.split(), catch_exceptions=False)
    return f"{result.stdout}{result.stderr}exit status {result.exit_code}\n"


@pytest.mark.parametrize("name", RUNS)
def test_a_run_prints_what_it_printed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    words = RUNS[name] if "--sglang" in RUNS[name] else RUNS[name].replace(" ", " --sglang 0.5.23 ", 1)
    printed = f"$ hicache-config {words}\n{run(words)}"
    file = HERE / f"{name}.out"
    if os.environ.get("UPDATE_SNAPSHOTS"):
        file.write_text(printed, encoding="utf-8")
    assert printed == file.read_text(encoding="utf-8")


def test_there_is_no_snapshot_without_a_run() -> None:
    assert {path.stem for path in HERE.glob("*.out")} == set(RUNS)


@pytest.mark.parametrize("name", [name for name in RUNS if name.startswith("plan-") and not name.endswith("json")])
def test_a_plan_fits_into_80_columns(name: str) -> None:
    """Findings and the lines of a source may be longer; the plan itself is not."""
    lines = (HERE / f"{name}.out").read_text(encoding="utf-8").splitlines()
    start = next((number for number, line in enumerate(lines) if line.startswith("plan ")), len(lines))
    assert [line for line in lines[start:] if len(line) > 80] == []
