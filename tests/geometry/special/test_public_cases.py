"""Public cases on index keys, drafts and DeepSeek V4, with the figures that people posted (research/CASES.md)."""

from __future__ import annotations

from typing import Any

import pytest

from hicache_config.arguments import ServerArgs
from hicache_config.core.plan import Plan, plan
from hicache_config.core.releases import Release
from hicache_config.core.terms import Accounting, Terms
from hicache_config.geometry import Question, load_model, pipeline_of

GLM = "nvidia/GLM-5.2-NVFP4"
FLASH, PRO = "deepseek-ai/DeepSeek-V4-Flash", "nvidia/DeepSeek-V4-Pro-NVFP4"
ONE_DRAFT = {
    "speculative_algorithm": "EAGLE",
    "speculative_num_steps": 1,
    "speculative_eagle_topk": 1,
    "speculative_num_draft_tokens": 2,
    "max_running_requests": 64,
}


def planned(
    name: str, gpu: str = "sm90", accounting: Accounting = "sglang", release: str = "0.5.23", **given: Any
) -> Plan:
    model, problems = load_model(name)
    assert model is not None, problems
    args = ServerArgs.model_validate({"enable_hierarchical_cache": True, "max_total_tokens": 1_000_000, **given})
    answer = pipeline_of(model, args, Question(release, gpu, {}))
    assert answer.stages, answer.findings
    return plan(answer.stages, Terms(args.capacity(release).capacity, accounting, Release.of(release)))


def glm(**given: Any) -> dict[str, Any]:
    """Pools of GLM-5.2 on four ranks of a GPU with plain fp8 rows, by name."""
    made = planned(GLM, "sm100", **{"tp_size": 4, "kv_cache_dtype": "fp8_e4m3", "hicache_size": 150, **given})
    return {pool.name: pool for pool in made.pools}


# --- index keys on top of the size (#29263, #30581, #38426) -------------------------------------------------------


def test_index_keys_come_on_top_of_the_size() -> None:
    """150 GB of KV and 34.375 GB of index keys a rank: 184.375, and 737.5 on the node of four."""
    pools = glm(release="0.5.20")
    kv, index = pools["kv"].bytes / 1e9, pools["indexer"].bytes / 1e9
    assert (round(kv, 3), round(index, 3)) == (150.001, 34.376)
    assert kv + index == pytest.approx(184.375, abs=0.002)
    assert 4 * (kv + index) == pytest.approx(737.5, abs=0.01)
    assert index / kv == pytest.approx(10_296 / 44_928, rel=1e-4)  # the index has a page more
    assert [pools[name].inside_size for name in ("kv", "indexer")] == [True, False]


def test_index_keys_of_every_layer_until_0_5_22() -> None:
    """The pull request's table: 44,928 KV, 10,296 index, 576 draft; compacted 48,276 for the three."""
    before, after = glm(release="0.5.21"), glm(release="0.5.22")
    assert [before[name].bytes_per_slot for name in ("kv", "indexer")] == [78 * 576, 78 * 132] == [44_928, 10_296]
    assert [after[name].bytes_per_slot for name in ("kv", "indexer")] == [44_928, 21 * 132]
    with_draft = glm(release="0.5.21", **ONE_DRAFT)["kv"].bytes_per_slot
    assert with_draft - 44_928 == 576
    assert with_draft + 10_296 == 55_800
    assert glm(release="0.5.22", **ONE_DRAFT)["kv"].bytes_per_slot + 21 * 132 == 48_276
    wasted = (10_296 - 21 * 132) / 55_800
    assert wasted == pytest.approx(0.135, abs=0.0005)


def test_the_packed_draft_has_index_keys_too() -> None:
    """What the table leaves out: the draft layer's own index keys, 132 bytes more."""
    assert glm(**ONE_DRAFT)["indexer"].bytes_per_slot == 22 * 132


def test_a_size_for_everything_counts_them() -> None:
    """Under accounting `total` the same 150 GB hold both pools."""
    pools = glm(accounting="total", **ONE_DRAFT)
    assert 149.99e9 < sum(pool.bytes for pool in pools.values()) <= 150e9
    assert all(pool.inside_size for pool in pools.values())


def test_drafts_are_inside_the_size_or_outside() -> None:
    """Packed drafts lie in the rows of kv and in its size; index keys don't, with a draft or without."""
    plain, drafting = glm(), glm(**ONE_DRAFT)
    assert drafting["kv"].slots < plain["kv"].slots
    for pools in (plain, drafting):
        assert pools["kv"].bytes == pytest.approx(150e9, rel=1e-4)
        assert [pools[name].inside_size for name in ("kv", "indexer")] == [True, False]


# --- DeepSeek V4 by ratio and by size (InferenceX #1709, #24691) --------------------------------------------------


@pytest.mark.parametrize(
    ("name", "ratio", "pages", "window_pages", "gigabytes"),
    [(FLASH, 2, 7812, 780, 14.163), (FLASH, 8, 31248, 3120, 56.651), (PRO, 2, 7812, 780, 20.215),
     (PRO, 8, 31248, 3120, 80.861)],
)  # fmt: skip
def test_v4_by_ratio(name: str, ratio: int, pages: int, window_pages: int, gigabytes: float) -> None:
    """The same sweep, two ratios: full pages are int(ceil(device / page) x ratio), sliding pages likewise."""
    made = planned(name, tp_size=8, hicache_ratio=ratio)
    assert {pool.name: pool.pages for pool in made.pools} == {
        "kv": pages,
        "swa": window_pages,
        "deepseek_v4_c4": pages,
        "deepseek_v4_c4_indexer": pages,
        "deepseek_v4_c4_state": window_pages,
        "deepseek_v4_c4_indexer_state": window_pages,
        "deepseek_v4_c128": pages,
    }
    assert made.pools[0].bytes == 0
    assert round(sum(pool.bytes for pool in made.pools) / 1e9, 3) == gigabytes


@pytest.mark.parametrize("name", [FLASH, PRO])
def test_v4_refuses_a_size(name: str) -> None:
    made = planned(name, tp_size=8, hicache_size=100)
    (finding,) = made.findings
    assert (made.stages, finding.code, finding.argument) == ((), "HC304", "hicache_size")


@pytest.mark.parametrize(("name", "ratio"), [(FLASH, 14.12), (PRO, 9.89)])
@pytest.mark.parametrize("stages", [1, 2])
def test_v4_by_size_is_a_ratio(name: str, ratio: float, stages: int) -> None:
    """A size for everything becomes a ratio; the plan of that ratio is the same, and one more page is too much."""
    shape = {"tp_size": 8 // stages, "pp_size": stages}
    sized = planned(name, accounting="total", hicache_size=100, **shape)
    assert sized.ratio is not None
    if stages == 1:
        assert sized.ratio == pytest.approx(ratio, abs=0.01)
    again = planned(name, hicache_ratio=sized.ratio, **shape)
    for mine, other in zip(sized.stages, again.stages, strict=True):
        assert [(p.name, p.pages, p.bytes) for p in mine.pools] == [(p.name, p.pages, p.bytes) for p in other.pools]
        assert sum(pool.bytes for pool in mine.pools) <= 100e9
    assert max(sum(pool.bytes for pool in stage.pools) for stage in sized.stages) > 99.99e9
    pages, device = sized.stages[0].pools[0].pages, -(-sized.stages[0].pools[0].device_slots // 256)
    more = planned(name, hicache_ratio=(pages + 1) / device, **shape)
    assert more.stages[0].pools[0].pages == pages + 1
    assert max(sum(pool.bytes for pool in stage.pools) for stage in more.stages) > 100e9


# --- a state pool and a draft (#33713) ----------------------------------------------------------------------------


def test_a_hybrid_with_a_draft_layer() -> None:
    """1,136,724 tokens of 17,408 bytes are 19.79 GB: 16 attention layers and one draft layer on two ranks."""
    given = {"tp_size": 2, "kv_cache_dtype": "fp8_e4m3", "max_mamba_cache_size": 50}
    plain = planned("Qwen/Qwen3.5-27B", hicache_size=30, **given)
    drafting = planned("Qwen/Qwen3.5-27B", hicache_size=30, **given, **ONE_DRAFT)
    assert plain.pools[0].bytes_per_slot == 16 * 1024
    assert drafting.pools[0].bytes_per_slot == 17 * 1024 == 17_408
    assert round(1_136_724 * 17_408 / 1e9, 2) == 19.79
    assert sum(pool.bytes for pool in drafting.pools) == pytest.approx(30.03e9, rel=0.01)
