"""`plan` as a function: the shipped examples, refusals, what fits, and that what is printed has its published shape."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from hicache_config.app.checking import validate
from hicache_config.app.options import Options, OptionsError
from hicache_config.app.planning import plan
from hicache_config.reference.schemas import schema_of
from hicache_config.reports.planned import PlanReport
from hicache_config.reports.printing import to_json
from hicache_config.sources import read

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def planned(source: object, **options: Any) -> PlanReport:
    """The plan of an example by name, or of arguments."""
    if isinstance(source, str):
        return plan(read(str(EXAMPLES / f"{source}.json")), Options(sglang="0.5.23", **options))
    return plan(read("args.json", text=json.dumps(source)), Options(sglang="0.5.23", **options))


def shaped(report: PlanReport) -> dict[str, Any]:
    """The report as JSON, after it has been held against its schema."""
    written: dict[str, Any] = json.loads(to_json(report.as_dict()))
    Draft202012Validator(schema_of("plan")).validate(written)
    return written


def test_glm_over_four_stages_under_both_accountings() -> None:
    sglang = shaped(planned("glm-5.2-pp4"))
    assert [stage["pools"][0]["own_slots"] for stage in sglang["stages"]] == [
        8_023_168,
        8_023_168,
        7_621_952,
        7_621_952,
    ]
    assert [stage["pools"][0]["slots"] for stage in sglang["stages"]] == [7_621_952] * 4
    assert [stage["pools"][1]["bytes_per_slot"] for stage in sglang["stages"]] == [132 * n for n in (7, 4, 5, 5)]
    assert [stage["pools"][1]["inside_size"] for stage in sglang["stages"]] == [False] * 4
    assert sglang["stock_size_gb"] == 95
    assert sglang["model"] == "zai-org/GLM-5.2-FP8"
    assert sglang["ranks_per_node"] == 8
    assert sglang["node_bytes"] == [stage["bytes"] * 8 for stage in sglang["stages"]]
    assert sglang["cluster_bytes"] == sum(sglang["node_bytes"])
    assert sglang["fits"] is None
    total = shaped(planned("glm-5.2-pp4", accounting="total"))
    assert [stage["pools"][0]["slots"] for stage in total["stages"]] == [7_256_832] * 4
    assert all(stage["bytes"] <= 100 * 10**9 for stage in total["stages"])
    assert all(pool["inside_size"] for stage in total["stages"] for pool in stage["pools"])


def test_a_dense_model_on_eight_ranks() -> None:
    (stage,) = shaped(planned("dense-tp8"))["stages"]
    (pool,) = stage["pools"]
    assert (pool["bytes_per_slot"], pool["slots"], stage["over_size_bytes"]) == (40_960, 2_441_408, 71_680)


def test_two_pools_share_a_size() -> None:
    written = shaped(planned("pair-75-25", pools=str(EXAMPLES / "pair-75-25.pools.json")))
    assert [pool["share_gb"] for pool in written["stages"][0]["pools"]] == [75.0, 25.0]


def test_a_mamba_hybrid_whose_first_stage_has_no_attention() -> None:
    pools = str(EXAMPLES / "mamba-hybrid.pools.json")
    refused = planned("mamba-hybrid", pools=pools)
    assert refused.is_refused
    assert refused.fails()
    written = shaped(refused)
    assert written["stages"] == []
    assert "HC401" in [finding["code"] for finding in written["findings"]]
    total = shaped(planned("mamba-hybrid", pools=pools, accounting="total"))
    assert [stage["pools"][-1]["slots"] for stage in total["stages"]] == [1_256, 1_256]
    assert total["stages"][1]["pools"][0]["slots"] == 4_186_688
    assert total["ratio"] is not None


@pytest.mark.parametrize(("memory", "fits"), [(1_500 * 10**9, True), (860 * 10**9, True), (850 * 10**9, False)])
def test_whether_every_node_has_room(memory: int, fits: bool) -> None:
    report = planned("glm-5.2-pp4", host_memory_bytes=memory)
    assert report.fits is fits
    assert report.fails() is not fits
    host = shaped(report)["host"]
    assert host["allowance_bytes_per_rank"] == (memory - 10 * 2**30) // 8


def test_ranks_per_node_replace_the_placement() -> None:
    written = shaped(planned("glm-5.2-pp4", ranks_per_node=16))
    bytes_ = [stage["bytes"] for stage in written["stages"]]
    assert written["node_bytes"] == [8 * (bytes_[0] + bytes_[1]), 8 * (bytes_[2] + bytes_[3])]
    assert written["ranks_per_node"] == 16


def test_replicas_lie_on_the_node_too() -> None:
    one = shaped(
        planned(
            {
                "model_path": "meta-llama/Meta-Llama-3.1-70B",
                "tp_size": 2,
                "enable_hierarchical_cache": True,
                "hicache_size": 10,
            }
        )
    )
    two = shaped(
        planned(
            {
                "model_path": "meta-llama/Meta-Llama-3.1-70B",
                "tp_size": 2,
                "dp_size": 2,
                "enable_hierarchical_cache": True,
                "hicache_size": 10,
            }
        )
    )
    assert two["node_bytes"] == [2 * one["node_bytes"][0]]


def test_without_a_model_nothing_can_be_planned() -> None:
    report = planned({"enable_hierarchical_cache": True, "hicache_size": 10})
    assert [placed.finding.code for placed in report.findings if placed.finding.severity == "error"] == ["HC600"]
    assert report.is_refused


def test_a_source_that_is_broken_still_has_a_report() -> None:
    report = plan(read("args.json", text="{"), Options(sglang="0.5.23"))
    assert report.is_refused
    assert shaped(report)["findings"]


def test_device_slots_decide_a_ratio() -> None:
    args = {
        "model_path": "meta-llama/Meta-Llama-3.1-70B",
        "tp_size": 8,
        "page_size": 64,
        "hicache_ratio": 2.0,
        "enable_hierarchical_cache": True,
    }
    unknown = shaped(planned(args))
    assert unknown["stages"][0]["pools"][0]["slots"] is None
    assert unknown["node_bytes"] is None
    assert any("--device-slots" in text for text in unknown["assumptions"])
    known = shaped(planned(args, device_slots={"kv": 600_000}))
    assert known["stages"][0]["pools"][0]["slots"] == 1_200_064


def test_another_release_is_compared() -> None:
    report = planned("glm-5.2-pp4", compare="0.5.14")
    notes = [placed.finding.message for placed in report.findings if placed.finding.code == "HC110"]
    assert any("8,023,168 slots of kv on stage 0" in note for note in notes)
    assert planned("glm-5.2-pp4", compare="0.5.23").findings == planned("glm-5.2-pp4").findings


@pytest.mark.parametrize("options", [{"sglang": "0.4.9"}, {"sglang": "latest"}, {"compare": "x", "sglang": "0.5.23"}])
def test_versions_that_are_none(options: dict[str, str]) -> None:
    with pytest.raises(OptionsError, match=r"--sglang|--compare"):
        validate([read(str(EXAMPLES / "dense-tp8.json"))], Options(**options))


def test_an_unknown_newer_release_is_taken_as_the_newest() -> None:
    report = validate([read(str(EXAMPLES / "dense-tp8.json"))], Options(sglang="0.9.1"))
    assert report.sglang == "0.5.23"
    assert "HC109" in [placed.finding.code for source in report.sources for placed in source.findings]


def test_the_same_input_gives_the_same_bytes() -> None:
    assert to_json(planned("glm-5.2-pp4").as_dict()) == to_json(planned("glm-5.2-pp4").as_dict())


def test_a_refusal_says_why_whatever_findings_are_selected() -> None:
    args = {
        "model_path": "deepseek-ai/DeepSeek-V4-Flash",
        "tp_size": 8,
        "enable_hierarchical_cache": True,
        "hicache_size": 100,
    }
    report = planned(args, select=("HC9",))
    assert report.is_refused
    assert "HC304" in [placed.finding.code for placed in report.findings]


def test_it_is_said_when_the_fit_is_not_known() -> None:
    args = {"model_path": "meta-llama/Meta-Llama-3.1-8B", "hicache_ratio": 2.0, "enable_hierarchical_cache": True}
    report = planned(args, host_memory_bytes=10**12)
    assert report.fits is None
    assert "HC505" in [placed.finding.code for placed in report.findings]
