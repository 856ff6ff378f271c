"""Accounting `sglang`, as laws: the release's own order of operations, written down once more and apart."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hicache_config.core.capacity import DeviceRatio, TotalSize
from hicache_config.core.plan import plan
from hicache_config.core.pools import DevicePool, Stage
from hicache_config.core.releases import Release
from hicache_config.core.terms import Terms
from tests.core.strategies import pipelines, sizes

RELEASES = ["0.5.10", "0.5.14", "0.5.15", "0.5.16", "0.5.17", "0.5.23"]


@given(pipelines(), sizes, st.sampled_from(RELEASES))
def test_a_size_comes_to_what_the_release_computes(stages: list[Stage], size: TotalSize, version: str) -> None:
    release = Release.of(version)
    made = plan(stages, Terms(size, "sglang", release))
    if not made.stages:
        assert made.findings
        return
    raw: dict[str, list[int]] = {}
    for stage in stages:
        leaders = [pool for pool in stage.pools if pool.follows is None]
        weights = [pool.slots * pool.bytes_per_slot for pool in leaders]  # type: ignore[operator]
        for pool, weight in zip(leaders, weights, strict=True):
            share: float = size.size_gb
            if len(leaders) > 1 and version >= "0.5.17":
                share = size.size_gb * weight / sum(weights)
            if pool.bytes_per_slot:
                raw.setdefault(pool.name, []).append(int(share * 1e9 // pool.bytes_per_slot))
    for number, stage in enumerate(stages):
        for pool in stage.pools:
            if pool.bytes_per_slot == 0 and pool.follows is None:  # states alone may be empty, and on every stage
                assert (pool.name, made.stage(number)[pool.name].bytes) == ("mamba", 0)
                assert version >= "0.5.17"
            elif pool.follows is None:
                own = raw[pool.name][number]
                slots = min(raw[pool.name]) if version >= "0.5.15" else own
                got = made.stage(number)[pool.name]
                assert got.own_slots == (own // pool.page_size + 1) * pool.page_size
                assert got.slots == (slots // pool.page_size + 1) * pool.page_size
                assert got.inside_size is True
            else:
                assert made.stage(number)[pool.name].inside_size is False


@given(pipelines(), st.floats(0.001, 50, allow_nan=False), st.sampled_from(["sglang", "total"]))
def test_a_ratio_is_applied_as_sglang_does(stages: list[Stage], ratio: float, accounting: str) -> None:
    made = plan(stages, Terms(DeviceRatio(ratio), accounting, Release.of("0.5.23")))  # type: ignore[arg-type]
    for number, planned in enumerate(made.stages):
        assert planned.size_bytes is None
        assert planned.over_size_bytes is None
        assert planned.unused_bytes is None
        for pool in stages[number].pools:
            if pool.follows is None:
                slots, page = pool.slots or 0, pool.page_size
                expected = (
                    int(-(-slots // page) * ratio) if pool.page_rule == "whole" else int(slots * ratio) // page + 1
                )
                assert planned[pool.name].pages == expected
                assert planned[pool.name].inside_size is None


@given(pipelines(), st.integers(1, 400), st.sampled_from(RELEASES))
def test_the_stock_size_holds_and_one_more_does_not(stages: list[Stage], size_gb: int, version: str) -> None:
    release = Release.of(version)
    stock = plan(stages, Terms(TotalSize(size_gb), "total", release)).stock_size_gb
    if stock is None:
        return

    def bytes_of(size: int) -> int:
        return max(stage.bytes or 0 for stage in plan(stages, Terms(TotalSize(size), "sglang", release)).stages)

    assert bytes_of(stock) <= size_gb * 10**9
    assert bytes_of(stock + 1) > size_gb * 10**9


def test_a_size_smaller_than_a_page_still_makes_one_page() -> None:
    stage, _ = Stage.of([DevicePool("kv", None, 12_464, 64)])
    made = plan([stage], Terms(TotalSize(1e-6), "sglang", Release.of("0.5.23")))
    assert made["kv"].pages == 1


@pytest.mark.parametrize(("version", "kv", "swa"), [("0.5.16", 100.0, 100.0), ("0.5.17", 75.0, 25.0)])
def test_a_pair_shares_a_size_since_0_5_17(version: str, kv: float, swa: float) -> None:
    stage, _ = Stage.of([DevicePool("kv", 3_000_000, 1000), DevicePool("swa", 1_000_000, 1000)])
    made = plan([stage], Terms(TotalSize(100), "sglang", Release.of(version)))
    assert (made["kv"].share_gb, made["swa"].share_gb) == (kv, swa)


def test_a_carved_follower_takes_its_bytes_out_of_the_leaders_share() -> None:
    stage, _ = Stage.of(
        [
            DevicePool("kv", 1000, 300, device_bytes=300_000),
            DevicePool("indexer", follows="kv", bytes_per_slot=100, device_bytes=100_000, carved=True),
        ]
    )
    made = plan([stage], Terms(TotalSize(1), "sglang", Release.of("0.5.23")))
    assert made["kv"].share_gb == 1 * (300_000 / (300_000 + 100_000))
    assert made["indexer"].inside_size is True
