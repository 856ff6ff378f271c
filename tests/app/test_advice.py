"""Who writes what HC501 says gets pools that fit, and not much smaller ones than there is room for."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from hicache_config.app.options import Options
from hicache_config.app.planning import plan
from hicache_config.reports.planned import PlanReport
from hicache_config.sources import read

SLOTS = {"kv": 2_000_000, "swa": 400_000, "mamba": 600}
SEGMENT = '{"master_server_address": "m:1", "global_segment_size": "900gb"}'
MODELS = [
    "Qwen/Qwen3-8B", "zai-org/GLM-5.2-FP8", "openai/gpt-oss-120b", "Qwen/Qwen3.5-397B-A17B",
    "deepseek-ai/DeepSeek-V4-Flash", "MiniMaxAI/MiniMax-M3",
]  # fmt: skip


def planned(arguments: dict[str, Any], sglang: str, memory: int) -> PlanReport:
    document = read("a.json", text=json.dumps({"enable_hierarchical_cache": True, "tp_size": 8, **arguments}))
    return plan(document, Options(sglang=sglang, host_memory_bytes=memory, device_slots=SLOTS))


@pytest.mark.parametrize("memory", [150 * 10**9, 700 * 10**9, 1_000 * 10**9])
@pytest.mark.parametrize("asked", [{"hicache_size": 900}, {"hicache_ratio": 40.0}])
@pytest.mark.parametrize("sglang", ["0.5.14", "0.5.16", "0.5.23"])
@pytest.mark.parametrize("model", MODELS)
def test_what_is_advised_fits(model: str, sglang: str, asked: dict[str, Any], memory: int) -> None:
    arguments = {"model_path": model, "page_size": 64, **asked}
    before = planned(arguments, sglang, memory)
    advised = [each.finding.help for each in before.findings if each.finding.code == "HC501"]
    if not before.plan.stages:
        assert any(each.finding.severity == "error" for each in before.findings)
        return
    (help_,) = advised
    found = re.fullmatch(r"Write at most --(hicache-size|hicache-ratio) ([\d.]+)(?: \(GB per rank\))?\.", help_)
    if found is None:
        assert help_ == "Add memory, or use fewer ranks."
        return
    name = found[1].replace("-", "_")
    assert name in asked, "advice in the terms that were asked in"
    value = int(found[2]) if name == "hicache_size" else float(found[2])
    after = planned({**arguments, name: value}, sglang, memory)
    assert after.fits is True
    (stage,) = after.plan.stages
    allowed = (memory - 10 * 2**30) // 8
    a_page = sum(pool.page_bytes * (1 + pool.extra_pages) for pool in stage.pools)
    step = (before.plan.stages[0].bytes or 0) * (1 if name == "hicache_size" else 0.01) / asked[name]
    assert (stage.bytes or 0) > allowed - 3 * a_page - 1.1 * step


@pytest.mark.parametrize(
    ("arguments", "memory"),
    [
        ({"hicache_size": 900}, 12 * 10**9),
        ({"hicache_ratio": 40.0}, 11 * 10**9),
        # A share of free memory always fits; what a storage backend takes beside it may not.
        ({"hicache_storage_backend": "mooncake", "hicache_storage_backend_extra_config": SEGMENT}, 100 * 10**9),
    ],
)
def test_where_nothing_fits_memory_is_asked_for(arguments: dict[str, Any], memory: int) -> None:
    report = planned({"model_path": "Qwen/Qwen3-8B", "page_size": 64, **arguments}, "0.5.23", memory)
    (help_,) = (each.finding.help for each in report.findings if each.finding.code == "HC501")
    assert help_ == "Add memory, or use fewer ranks."


@pytest.mark.parametrize(
    ("model", "says"),
    [
        ("Qwen/Qwen3-8B", "--hicache-size 20 is per rank: 20 GB x 8 = 160 GB on a node"),
        ("openai/gpt-oss-120b", "--hicache-size 20 is per rank, which takes 40 GB: 40 GB x 8 = 320 GB on a node"),
        ("zai-org/GLM-5.1", "--hicache-size 20 is per rank, which takes 22 GB: 22 GB x 8 = 176 GB on a node"),
    ],
)
def test_a_node_is_said_to_take_what_its_ranks_take(model: str, says: str) -> None:
    report = planned({"model_path": model, "page_size": 64, "hicache_size": 20}, "0.5.16", 10**13)
    (message,) = (each.finding.message for each in report.findings if each.finding.code == "HC684")
    assert message.startswith(says)
