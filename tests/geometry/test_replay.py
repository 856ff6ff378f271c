"""What the real SGLang came to, replayed: no difference is allowed."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

REPLAY = Path(__file__).parents[2] / "tools" / "replay.py"


@pytest.fixture(scope="module")
def replay() -> ModuleType:
    spec = importlib.util.spec_from_file_location("replay_of_recordings", REPLAY)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def tallies(replay: ModuleType) -> dict[str, Any]:
    found: dict[str, Any] = replay.replay()
    return found


def test_no_case_differs(tallies: dict[str, Any]) -> None:
    assert [text for tally in tallies.values() for text in tally.differences] == []


def test_each_kind_of_family_is_compared(tallies: dict[str, Any]) -> None:
    """A recording that is lost, or a replay that skips everything, is noticed."""
    for family in (
        "mha", "mha_asymmetric", "mxfp8", "mla", "dsa", "swa", "swa_two_shapes", "linear", "mamba_swa", "packed",
    ):  # fmt: skip
        tally = tallies[f"pools: {family}"]
        assert tally.cases - sum(tally.skipped.values()) >= 50, family
    for family in ("dense", "mla", "dsa", "swa", "linear", "refused"):
        assert tallies[f"model: {family}"].cases >= 2, family


@pytest.mark.parametrize("minor", range(10, 23))
def test_each_older_release_is_compared(tallies: dict[str, Any], minor: int) -> None:
    """Every family that a release has, in more than half of its cases."""
    first = {"swa": 12, "swa_two_shapes": 12, "mha_asymmetric": 14, "mamba_swa": 16, "mxfp8": 21}
    for family in ("mha", "mla", "dsa", "linear", "hazard", *(name for name, since in first.items() if minor >= since)):
        tally = tallies[f"0.5.{minor} pools: {family}"]
        assert tally.cases - sum(tally.skipped.values()) >= 25, family


@pytest.mark.parametrize("release", ["0.5.21", "0.5.22"])
def test_whole_models_of_older_releases_are_compared(tallies: dict[str, Any], release: str) -> None:
    for family, count in {"dense": 25, "mla": 10, "dsa": 15, "swa": 2, "linear": 20}.items():
        tally = tallies[f"{release} model: {family}"]
        assert tally.cases - sum(tally.skipped.values()) >= count, family


def test_a_host_pool_that_an_older_release_refuses_is_foreseen(replay: ModuleType) -> None:
    """Up to 0.5.14 a host pool no larger than its device pool is an assertion: it is told from all others."""
    geometry = {"heads": 1, "head_dim": 64, "v_head_dim": 64}
    stage = {"kv": {"layers": 1, "slots": 4096}}
    case = {"family": "mha", "page_size": 16, "dtype": "bfloat16", "kv": geometry, "stages": [stage]}
    refused = {
        "error": {"message": "The host memory should be larger than the device memory with the current protocol"}
    }
    small, large = ({**case, "capacity": {"ratio": ratio}} for ratio in (0.5, 2.0))
    assert replay.generated_case(small, refused, "0.5.14") == ""
    assert "refuses a host pool" in replay.generated_case(large, refused, "0.5.14")


def test_a_wrong_byte_is_a_difference(replay: ModuleType) -> None:
    """The comparison itself sees a slot too many."""
    model, _ = replay.load_model("deepseek-ai/DeepSeek-V3.2")
    case = next(
        case
        for case in replay.json.loads((REPLAY.parents[1] / "tests/geometry/truth-0.5.23.json").read_text())["cases"]
        if case["model"] == "deepseek-ai/DeepSeek-V3.2"
    )
    case["stages"][0]["pools"][1]["bytes"] += 1
    _, outcome = replay.whole_model(model, case["args"], case["gpu"], {}, case)
    assert "indexer: bytes" in outcome
