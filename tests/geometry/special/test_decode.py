"""Decode servers: which host pools there are, by what ratio, and how releases differ (SGLANG.md rule 8)."""

from __future__ import annotations

from typing import Any

import pytest

from hicache_config.arguments import ServerArgs
from hicache_config.core.capacity import Capacity, DeviceRatio, HostFraction
from hicache_config.geometry import Model, Pipeline, Question, pipeline_of

from .replaying import config

QWEN, SPARSE = "Qwen--Qwen3-8B", "zai-org--GLM-5.2-FP8"
CONTEXT = 40_960  # max_position_embeddings of Qwen3-8B


def answer(model: str = QWEN, release: str = "0.5.23", **given: Any) -> Pipeline:
    base = {"disaggregation_mode": "decode", "page_size": 64, "tp_size": 4, "max_total_tokens": 1_000_000}
    args = ServerArgs.model_validate({**base, "enable_hierarchical_cache": False, **given})
    return pipeline_of(Model(model, config(model)), args, Question(release, "sm90", {}))


def capacity(release: str = "0.5.23", **given: Any) -> Capacity | None:
    return answer(release=release, **given).capacity


def ratio(release: str = "0.5.23", **given: Any) -> float | None:
    """The ratio of the capacity, with or without a share of host memory that may lower it."""
    found = capacity(release, **given)
    return found.ratio if isinstance(found, DeviceRatio | HostFraction) else None


@pytest.mark.parametrize(
    ("release", "expected"), [("0.5.18", 1.0), ("0.5.19", 0.2), ("0.5.20", 0.2), ("0.5.21", 0.2), ("0.5.23", 0.2)]
)
def test_the_ratio_of_a_pool_for_retracted_requests(release: str, expected: float) -> None:
    assert ratio(release) == expected


def test_before_0_5_18_there_is_no_such_pool() -> None:
    assert capacity("0.5.17") is None


def test_one_longest_request_fits_since_0_5_21() -> None:
    """The floor: pages of min(context + 4 - 1, device slots) over the device slots."""
    slots = 60_032
    pages = -(-(CONTEXT + 4 - 1) // 64)
    assert ratio("0.5.20", max_total_tokens=slots) == 0.2
    assert ratio("0.5.21", max_total_tokens=slots) == pages * 64 / slots
    assert ratio(max_total_tokens=slots, context_length=8192) == 0.2


def test_two_where_requests_are_received_into_host_memory() -> None:
    slots = 60_032
    pages = -(-(CONTEXT + 4 - 1) // 64)
    assert ratio(max_total_tokens=slots, disaggregation_decode_host_receive_threshold=0.5) == pages * 64 * 2 / slots
    assert ratio(max_total_tokens=slots, disaggregation_decode_host_receive_threshold=1.0) == pages * 64 / slots


def test_drafts_need_more_room() -> None:
    """A page of more than one slot keeps twice the draft's slots and a page but one beyond the context."""
    slots = 60_032
    beyond = max(4 + 4, 2 * max(3, 4) + 64 - 1)
    drafting = ratio(
        max_total_tokens=slots, speculative_algorithm="EAGLE", speculative_num_steps=3, speculative_eagle_topk=1,
        speculative_num_draft_tokens=4,
    )  # fmt: skip
    assert drafting == -(-(CONTEXT + beyond - 1) // 64) * 64 / slots


def test_what_is_written_is_kept() -> None:
    """A ratio, a size or HiCache itself leave the capacity to the arguments."""
    for given in ({"hicache_ratio": 0.7}, {"hicache_size": 20}, {"enable_hierarchical_cache": True}):
        assert capacity(disaggregation_decode_retraction_backup="host_pool", **given) is None


def test_a_share_of_host_memory_stops_at_the_ratio() -> None:
    found = capacity(hicache_host_memory_fraction=0.5)
    assert isinstance(found, HostFraction)
    assert (found.fraction, found.ratio) == (0.5, 0.2)
    assert capacity("0.5.20") == DeviceRatio(0.2)


def test_without_device_slots_the_floor_is_an_assumption() -> None:
    found = answer(max_total_tokens=None)
    assert isinstance(found.capacity, HostFraction)
    assert found.capacity.ratio == 0.2
    assert any("longest context" in note for note in found.assumptions)


@pytest.mark.parametrize(
    "given",
    [
        {"disaggregation_decode_retraction_backup": "cpu_tensor"},
        {"disaggregation_decode_enable_radix_cache": True},
        {"enable_priority_scheduling": True},
        {"disaggregation_mode": "prefill"},
        {"disaggregation_mode": "null"},
    ],
)
def test_no_pool_for_retracted_requests(given: dict[str, Any]) -> None:
    assert capacity(**given) is None


def test_latents_keep_retracted_requests_in_tensors() -> None:
    """Only plain and sliding pools can hold them."""
    assert answer("deepseek-ai--DeepSeek-V3").capacity is None
    assert ratio(model="openai--gpt-oss-120b") == 0.2


# --- offload ------------------------------------------------------------------------------------------------------


def rows(found: Pipeline) -> list[tuple[str, int | None, int]]:
    assert found.stages, found.findings
    return [(pool.name, pool.bytes_per_slot, pool.stack) for pool in found.stages[0].pools]


OFFLOAD = {"disaggregation_decode_enable_offload_kvcache": True, "hicache_size": 50}


def test_offload_alone_is_one_pool() -> None:
    assert rows(answer(**OFFLOAD)) == [("offload_kv", 36_864, 1)]


def test_beside_hicache_it_is_a_second_stack() -> None:
    both = answer(**OFFLOAD, enable_hierarchical_cache=True, disaggregation_decode_enable_radix_cache=True)
    assert rows(both) == [("kv", 36_864, 0), ("offload_kv", 36_864, 1)]


def test_index_keys_are_not_offloaded() -> None:
    assert [name for name, _, _ in rows(answer(SPARSE, **OFFLOAD))] == ["offload_kv"]


def test_packed_drafts_are_not_offloaded() -> None:
    chain = {
        "speculative_algorithm": "EAGLE",
        "speculative_num_steps": 3,
        "speculative_eagle_topk": 1,
        "speculative_num_draft_tokens": 4,
        "max_running_requests": 64,
    }
    given = {**OFFLOAD, "enable_hierarchical_cache": True, "disaggregation_decode_enable_radix_cache": True, **chain}
    assert rows(answer("deepseek-ai--DeepSeek-V3", **given)) == [("kv", 62 * 1152, 0), ("offload_kv", 61 * 1152, 1)]
