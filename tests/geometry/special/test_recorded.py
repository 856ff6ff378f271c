"""What the real SGLang came to for the special families, drafts and decode servers, replayed without a difference."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from hicache_config.core.capacity import DeviceRatio, HostFraction

from . import replaying
from .replaying import Case, differences, planned

ENTRIES = {entry["id"]: entry for entry in replaying.recorded("special")}
TRUTH = json.loads((Path(__file__).parent / "truth-v4-0.5.23.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", sorted(ENTRIES))
def test_recorded(name: str) -> None:
    case, result = ENTRIES[name]["case"], ENTRIES[name]["result"]
    answer = replaying.answer(case)
    capacity = replaying.capacity_of(case, answer)
    if isinstance(capacity, HostFraction):  # the recording machine's memory is not ours: both at the least ratio
        capacity = DeviceRatio(capacity.ratio)
    if "error" in result:
        assert not (answer.stages and planned(case, answer, capacity=capacity).stages), result["error"]
        return
    pools = result["stages"][0]["pools"]
    if {pool["host_pool"] for pool in pools} == {"UnifiedPageEnvelopeHostPool"}:  # refused, with the arena's bytes
        (finding,) = answer.findings
        assert finding.code == "HC668"
        assert f"{sum(pool['bytes'] for pool in pools):,} bytes" in finding.message
        return
    assert answer.stages, answer.findings
    decode = result.get("decode")
    if decode and not case["args"].get("hicache_size"):
        assert capacity == DeviceRatio(decode["ratio"])
    assert differences(planned(case, answer, capacity=capacity), result["stages"]) == []


def test_each_family_is_there() -> None:
    """A recording that is lost or refused throughout is noticed."""
    sized = Counter(name.rpartition("-")[0] for name, entry in ENTRIES.items() if "error" not in entry["result"])
    least = {"deepseek_v4": 40, "drafts": 20, "minimax": 10, "qsa": 6, "inkling": 3, "decode": 5}
    assert {family: sized[family] for family, count in least.items() if sized[family] < count} == {}


@pytest.mark.parametrize("case", TRUTH, ids=lambda case: json.dumps(case["args"]))
def test_truth_of_deepseek_v4(case: Case) -> None:
    answer = replaying.answer(case)
    made = planned(case, answer)
    if "refused" in case:
        (finding,) = made.findings
        assert (made.stages, finding.code, finding.argument) == ((), "HC304", "hicache_size")
        return
    assert [stage.layers for stage in answer.stages] == [stage["layers"] for stage in case["stages"]]
    assert differences(made, case["stages"]) == []
    anchors = {pool.name: pool.device_slots for pool in made.stages[0].pools if pool.name in case["device_slots"]}
    assert anchors == case["device_slots"]
