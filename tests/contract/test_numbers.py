"""The promised numbers: golden figures, and each rule of the arithmetic checked by another reading of its words."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hicache_config import DevicePool, ServerArgs, resolve
from tests.contract.support import INDEXED, LAYERS, RATIO, SIZED, glm, plan, pool, slots

PIPELINE = {**SIZED, "pp_size": 4}


@pytest.mark.parametrize("known", [2_000_000, None])
def test_golden_figures(tmp_path: Path, known: int | None) -> None:
    status, written = plan(tmp_path, PIPELINE, glm(indexer=True, slots=known))
    assert status == 0
    assert slots(written, key="own_slots") == [8_023_168, 8_023_168, 7_621_952, 7_621_952]
    assert slots(written) == [7_621_952] * 4
    assert slots(written, "indexer", "inside_size") == [False] * 4
    _, alone = plan(tmp_path, PIPELINE, glm(indexer=False, slots=known), "--accounting", "total")
    assert slots(alone) == [7_621_888] * 4
    _, total = plan(tmp_path, PIPELINE, glm(indexer=True, slots=known), "--accounting", "total")
    assert slots(total) == slots(total, "indexer") == [7_256_832] * 4
    assert all(stage["bytes"] <= 100 * 10**9 for stage in total["stages"])


def test_the_golden_model_by_its_name(tmp_path: Path) -> None:
    arguments = {**PIPELINE, "model_path": "zai-org/GLM-5.2-FP8", "tp_size": 8, "kv_cache_dtype": "fp8_e4m3"}
    _, written = plan(tmp_path, arguments)
    assert slots(written) == [7_621_952] * 4
    assert slots(written, key="bytes_per_slot") == [656 * layers for layers in LAYERS]
    assert slots(written, "indexer", "bytes_per_slot") == [132 * owned for owned in INDEXED]
    assert [stage["layers"] for stage in written["stages"]] == list(LAYERS)


def test_a_pair_shares_by_device_bytes(tmp_path: Path) -> None:
    pair = [[pool("kv", 4096, 3_000_000), pool("swa", 4096, 1_000_000)]]
    _, written = plan(tmp_path, SIZED, pair)
    assert (slots(written, key="share_gb"), slots(written, "swa", "share_gb")) == ([75.0], [25.0])
    # `device_bytes` is the weight where it is given.
    weighed = [[pool("kv", 4096, 3_000_000, device_bytes=1), pool("swa", 4096, 1_000_000, device_bytes=1)]]
    _, even = plan(tmp_path, SIZED, weighed)
    assert (slots(even, key="share_gb"), slots(even, "swa", "share_gb")) == ([50.0], [50.0])
    assert slots(even) == [int(50.0 * 1e9 // 4096) // 64 * 64 + 64]


def test_the_size_is_split_and_the_minimum_taken_by_the_releases_that_do(tmp_path: Path) -> None:
    pair = [[pool("kv", 4096, 3_000_000), pool("swa", 4096, 1_000_000)]]
    for release, share in (("0.5.16", [100.0, 100.0]), ("0.5.17", [75.0, 25.0])):
        _, written = plan(tmp_path, SIZED, pair, "--sglang", release)
        assert [each["share_gb"] for each in written["stages"][0]["pools"]] == share
    _, levelled = plan(tmp_path, PIPELINE, glm(indexer=False), "--sglang", "0.5.15")
    assert slots(levelled) == [7_621_952] * 4
    status, refused = plan(tmp_path, PIPELINE, glm(indexer=False), "--sglang", "0.5.14")
    assert (status, refused["stages"]) == (1, [])
    assert any("7,621,952 and 8,023,168" in finding["message"] for finding in refused["findings"])


def test_stages_with_other_pools_are_refused_by_sglang_and_cost_nothing_under_total(tmp_path: Path) -> None:
    stages = [[pool("mamba", 38_633_472, 600, 1)], [pool("kv", 12_288, 2_000_000), pool("mamba", 38_633_472, 600, 1)]]
    status, refused = plan(tmp_path, {**SIZED, "pp_size": 2}, stages)
    assert (status, refused["stages"]) == (1, [])
    assert any(finding["severity"] == "error" for finding in refused["findings"])
    status, written = plan(tmp_path, {**SIZED, "pp_size": 2}, stages, "--accounting", "total")
    assert status == 0
    first, second = slots(written, "mamba")
    assert first == second
    assert all(stage["bytes"] <= 10**11 for stage in written["stages"])


def test_a_ratio_is_applied_as_sglang_does(tmp_path: Path) -> None:
    _, written = plan(tmp_path, {**RATIO, "hicache_ratio": 1.37}, [[pool("kv", 1000, 123_457)]])
    assert slots(written) == [int(123_457 * 1.37) // 64 * 64 + 64]
    assert slots(written, key="inside_size") == [None]
    assert written["capacity"] == {"kind": "ratio", "ratio": 1.37}
    assert (written["ratio"], written["stock_size_gb"]) == (1.37, None)


def test_a_size_on_deepseek_v4_is_a_ratio(tmp_path: Path) -> None:
    arguments = {**SIZED, "model_path": "deepseek-ai/DeepSeek-V4-Flash", "tp_size": 8}
    status, refused = plan(tmp_path, arguments, None, "--device-slots", "kv=1000000")
    assert (status, refused["stages"]) == (1, [])
    _, total = plan(tmp_path, arguments, None, "--device-slots", "kv=1000000", "--accounting", "total")
    (stage,) = total["stages"]
    assert stage["bytes"] <= 10**11
    by_ratio = {**arguments, "hicache_size": 0, "hicache_ratio": total["ratio"]}
    _, built = plan(tmp_path, by_ratio, None, "--device-slots", "kv=1000000")
    assert [each["pages"] for each in built["stages"][0]["pools"]] == [each["pages"] for each in stage["pools"]]
    assert built["stages"][0]["bytes"] == stage["bytes"]


def test_the_stock_size_holds_and_one_more_does_not(tmp_path: Path) -> None:
    _, written = plan(tmp_path, PIPELINE, glm(indexer=True))
    stock = written["stock_size_gb"]
    for size, fits in ((stock, True), (stock + 1, False)):
        _, made = plan(tmp_path, {**PIPELINE, "hicache_size": size}, glm(indexer=True))
        assert all(stage["bytes"] <= 10**11 for stage in made["stages"]) is fits


def test_217_for_270(tmp_path: Path) -> None:
    stage = [
        pool("kv", 44_928, 2_000_000), pool("indexer", 10_296, follows="kv", extra_pages=1),
        pool("draft", 576, follows="kv"),
    ]  # fmt: skip
    _, written = plan(tmp_path, {**SIZED, "hicache_size": 270}, [stage])
    assert written["stock_size_gb"] == 217


@pytest.mark.parametrize("accounting", ["sglang", "total"])
def test_a_host_size_builds_exactly_the_planned_pages(tmp_path: Path, accounting: str) -> None:
    for stages in (glm(indexer=True), [[pool("kv", 4097, 3_000_001, 7), pool("mamba", 38_633_471, 601, 1)]]):
        _, written = plan(tmp_path, {**SIZED, "pp_size": len(stages)}, stages, "--accounting", accounting)
        for each in (each for stage in written["stages"] for each in stage["pools"]):
            if each["follows"] is not None:
                assert each["host_size_gb"] is None
                continue
            assert int(each["host_size_gb"] * 1e9 // each["bytes_per_slot"]) // each["page_size"] + 1 == each["pages"]


def test_a_size_that_is_too_small_names_the_least(tmp_path: Path) -> None:
    stage = [pool("kv", 100_000_000, 1000), pool("indexer", 1_000_000, follows="kv", extra_pages=1)]
    status, refused = plan(tmp_path, {**SIZED, "hicache_size": 6}, [stage], "--accounting", "total")
    assert (status, refused["stages"]) == (1, [])
    (finding,) = (each for each in refused["findings"] if each["severity"] == "error")
    assert "7" in finding["help"]
    assert f"{100_000_000 * 64 + 1_000_000 * 64 * 2:,}" in finding["message"]
    status, _ = plan(tmp_path, {**SIZED, "hicache_size": 7}, [stage], "--accounting", "total")
    assert status == 0


@pytest.mark.parametrize("accounting", ["sglang", "total"])
@pytest.mark.parametrize("stage", [[], [pool("kv", 0, 1000)]])
def test_nothing_but_empty_pools_is_an_error(tmp_path: Path, accounting: str, stage: list[dict[str, Any]]) -> None:
    status, refused = plan(tmp_path, SIZED, [stage], "--accounting", accounting)
    assert (status, refused["stages"]) == (1, [])


def test_under_total_a_pool_of_zero_bytes_counts_as_absent(tmp_path: Path) -> None:
    full, empty = [pool("kv", 1000, 5000)], [pool("kv", 1000, 5000), pool("swa", 0, 5000)]
    plans = [plan(tmp_path, SIZED, [stage], "--accounting", "total")[1] for stage in (full, empty)]
    assert slots(plans[0]) == slots(plans[1])


# --- one scale for all, read again from the words of the rule ------------------------------------------------------


@st.composite
def pipelines(draw: st.DrawFn) -> tuple[int, list[list[DevicePool]]]:
    """A size in GB and stages: each independent pool has the same slots and page on every stage that has it."""
    names = draw(st.lists(st.sampled_from(["kv", "swa", "mamba"]), min_size=1, max_size=3, unique=True))
    facts = {name: (draw(st.integers(1, 5000)), draw(st.sampled_from([1, 7, 64]))) for name in names}
    stages = []
    for _ in range(draw(st.integers(1, 3))):
        pools: list[DevicePool] = []
        for name in names:
            size, page = facts[name]
            pools.append(DevicePool(name, size, draw(st.integers(0, 200_000)), page))
            if draw(st.booleans()):
                extra = draw(st.integers(0, 2))
                pools.append(DevicePool(f"{name}_index", None, draw(st.integers(0, 9000)), page, name, extra))
        stages.append(pools)
    if all(each.bytes_per_page == 0 for stage in stages for each in stage):
        stages[0][0] = DevicePool(names[0], facts[names[0]][0], 1, facts[names[0]][1])
    return draw(st.integers(1, 40)), stages


def cost(stage: list[DevicePool], pages: dict[str, int]) -> int:
    return sum((pages[each.follows or each.name] + each.extra_pages) * each.bytes_per_page for each in stage)


def owned(stages: list[list[DevicePool]]) -> Iterator[DevicePool]:
    """Independent pools that hold bytes, their own or a follower's, on some stage."""
    for stage in stages:
        for each in stage:
            held = sum(other.bytes_per_page for other in stage if (other.follows or other.name) == each.name)
            if each.follows is None and held:
                yield each


@settings(max_examples=60, deadline=None)
@given(pipelines())
def test_total_is_the_largest_scale_at_which_no_stage_goes_over(case: tuple[int, list[list[DevicePool]]]) -> None:
    size, stages = case
    args = ServerArgs.model_validate({"hicache_size": size, "pp_size": len(stages)})
    made = resolve(args, stages=stages, accounting="total")
    leaders = {each.name: each for each in owned(stages)}
    pages = {each.name: each.pages for stage in made.stages for each in stage.pools if each.name in leaders}
    for stage in made.stages:
        for each in stage.pools:
            assert each.pages is not None
            if each.name in leaders:
                assert each.pages == pages[each.name]
    # One scale makes all of these pages: their ranges of scales have a part in common.
    low = max(Fraction((count - 1) * leaders[name].page_size, leaders[name].slots) for name, count in pages.items())
    high = min(Fraction(count * leaders[name].page_size, leaders[name].slots) for name, count in pages.items())
    assert low < high
    bare = {each.name: 0 for stage in stages for each in stage if each.follows is None}
    assert all(cost(stage, {**bare, **pages}) <= size * 10**9 for stage in stages)
    # The next larger scale is too much for some stage.
    more = {name: int(leaders[name].slots * high / leaders[name].page_size) + 1 for name in pages}
    assert any(cost(stage, {**bare, **more}) > size * 10**9 for stage in stages)
