"""Accounting `total`, as laws over any set of pools, sizes and stages."""

from __future__ import annotations

import math
from fractions import Fraction

from hypothesis import given, settings
from hypothesis import strategies as st

from hicache_config.core.agree import agree
from hicache_config.core.capacity import TotalSize
from hicache_config.core.plan import Plan, plan
from hicache_config.core.pools import Stage
from hicache_config.core.ratios import ratio_for
from hicache_config.core.releases import Release
from hicache_config.core.resolve import resolve
from hicache_config.core.terms import Terms
from hicache_config.core.total_size import largest_scale, least_bytes
from tests.core.strategies import pipelines, sizes

NEWEST = Release.of("0.5.23")


def total(stages: list[Stage], size: TotalSize) -> Plan:
    return plan(stages, Terms(size, "total", NEWEST))


def cost_of(stage: Stage, plan_: Plan, number: int) -> int:
    """Bytes of a stage, from the pages alone."""
    sizes_ = plan_.stage(number)
    return sum(
        (sizes_[pool.name].pages + pool.extra_pages) * pool.bytes_per_page
        for pool in stage.pools
        if pool.bytes_per_page
    )


@given(pipelines(), sizes)
def test_no_stage_ever_exceeds_the_size(stages: list[Stage], size: TotalSize) -> None:
    made = total(stages, size)
    for number, planned in enumerate(made.stages):
        assert planned.bytes == cost_of(stages[number], made, number)
        assert planned.bytes <= size.bytes
        assert planned.over_size_bytes == 0
        assert planned.unused_bytes == size.bytes - planned.bytes


@given(pipelines(), sizes)
def test_what_is_refused_can_not_be_had(stages: list[Stage], size: TotalSize) -> None:
    """A refusal says that a stage's smallest pools are larger than the size, or that there is nothing to size."""
    made = total(stages, size)
    if made.stages:
        return
    codes = {finding.code for finding in made.findings}
    assert codes <= {"HC301", "HC302"}
    if "HC301" in codes:
        finding = next(finding for finding in made.findings if finding.code == "HC301")
        assert finding.detail["least_bytes"] == max(least_bytes(stage) for stage in stages)
        assert finding.detail["least_bytes"] > size.bytes
        again = total(stages, TotalSize(finding.detail["least_gb"]))
        assert "HC301" not in {finding.code for finding in again.findings}


@given(pipelines(), sizes)
def test_on_the_deciding_stage_less_than_a_page_of_each_pool_is_unused(stages: list[Stage], size: TotalSize) -> None:
    """One more page of each independent pool, with its followers, would not fit on a stage that decides."""
    made = total(stages, size)
    for number in made.decided_by:
        one_page_each = sum(group.page_bytes for group in stages[number].owned)
        assert made.stage(number).unused_bytes < one_page_each


@given(pipelines(), sizes)
def test_brute_force_finds_no_larger_scale(stages: list[Stage], size: TotalSize) -> None:
    """No scale at which any pool has more pages fits on every stage: the next step of each pool is tried."""
    made = total(stages, size)
    owned = {group.leader.name: group for stage in stages for group in stage.owned}
    for name, group in owned.items():
        if not made.stages:
            continue
        number = next(n for n, stage in enumerate(stages) if name in {owned_.leader.name for owned_ in stage.owned})
        pages = made.stage(number)[name].pages
        assert pages is not None
        step = group.scale_for(pages + 1)
        assert any(_cost_at(stage, step) > size.bytes for stage in stages)


def _cost_at(stage: Stage, scale: Fraction) -> int:
    """Bytes at a scale, by the definition and nothing else."""
    bytes_ = 0
    for group in stage.owned:
        slots, page = group.leader.slots, group.leader.page_size
        assert slots is not None
        if group.leader.page_rule == "whole":
            pages = math.floor(math.ceil(slots / page) * scale)
        else:
            pages = math.floor(slots * scale / page) + 1
        bytes_ += pages * group.page_bytes + group.fixed_bytes
    return bytes_


@given(pipelines(max_stages=1), st.integers(1, 500))
@settings(max_examples=60)
def test_brute_force_by_stepping_through_every_page(stages: list[Stage], pages: int) -> None:
    """On small budgets the bound is the first step, of any pool, whose cost is too high, found by walking up."""
    groups = stages[0].owned
    if not groups:
        return
    budget = least_bytes(stages[0]) + pages * max(group.page_bytes for group in groups) // 7
    steps = (
        sorted({group.scale_for(count) for group in groups for count in range(1, budget // group.page_bytes + 3)})
        if (sum(budget // group.page_bytes for group in groups) < 3_000)
        else []
    )
    walked = next((step for step in steps if _cost_at(stages[0], step) > budget), None)
    if walked is not None:
        assert largest_scale(groups, budget) == walked


@given(pipelines(), sizes, st.integers(0, 50))
def test_slots_are_monotone_in_the_size(stages: list[Stage], size: TotalSize, more: int) -> None:
    small, large = total(stages, size), total(stages, TotalSize(size.size_gb + more))
    for before, after in zip(small.stages, large.stages, strict=False):
        for pool, grown in zip(before.pools, after.pools, strict=True):
            assert (pool.pages or 0) <= (grown.pages or 0)


@given(pipelines(), sizes)
def test_a_pool_has_the_same_pages_on_every_stage_that_has_it(stages: list[Stage], size: TotalSize) -> None:
    pages: dict[str, set[int | None]] = {}
    for planned in total(stages, size).stages:
        for pool in planned.pools:
            if pool.follows is None and pool.page_bytes:
                pages.setdefault(pool.name, set()).add(pool.pages)
    assert all(len(found) == 1 for found in pages.values())


@given(pipelines(), sizes)
def test_followers_have_the_pages_of_their_leader(stages: list[Stage], size: TotalSize) -> None:
    for planned in total(stages, size).stages:
        for pool in planned.pools:
            if pool.follows:
                assert pool.pages == planned[pool.follows].pages
                assert pool.host_size_gb is None
            if pool.pages is not None:
                assert pool.bytes == (pool.pages + pool.extra_pages) * pool.page_bytes


@given(pipelines(), sizes, st.randoms(use_true_random=False))
def test_agreeing_does_not_depend_on_the_order_of_the_stages(
    stages: list[Stage], size: TotalSize, random: object
) -> None:
    terms = Terms(size, "total", NEWEST)
    offers = [resolve(stage, terms) for stage in stages]
    order = list(range(len(offers)))
    random.shuffle(order)  # type: ignore[attr-defined]
    straight, shuffled = agree(offers, terms), agree([offers[index] for index in order], terms)
    assert straight.scale == shuffled.scale
    assert straight.pages == shuffled.pages
    assert {order[index] for index in shuffled.decided_by} == set(straight.decided_by)


@given(pipelines(), sizes)
def test_a_stage_that_is_there_twice_changes_nothing(stages: list[Stage], size: TotalSize) -> None:
    once, twice = total(stages, size), total([*stages, *stages], size)
    assert [stage.as_dict()["pools"] for stage in once.stages] == [
        stage.as_dict()["pools"] for stage in twice.stages[: len(once.stages)]
    ]


@given(pipelines(), sizes)
def test_the_plan_is_the_ratio_that_it_equals(stages: list[Stage], size: TotalSize) -> None:
    """With the plan's ratio SGLang's own expression makes exactly the planned pages of every pool."""
    made = total(stages, size)
    if made.ratio is None:
        return
    for number, stage in enumerate(stages):
        for group in stage.owned:
            assert group.pages_at_ratio(made.ratio) == made.stage(number)[group.leader.name].pages


@given(pipelines(max_stages=3), st.integers(1, 200).map(TotalSize))
def test_a_ratio_is_found_for_ordinary_pools(stages: list[Stage], size: TotalSize) -> None:
    """With fewer than 10**7 slots a pool, the range of scales is wide enough for a float whenever it isn't empty."""
    made = total(stages, size)
    if made.stages:
        assert made.ratio is not None


def test_a_ratio_that_no_float_can_hit_is_none() -> None:
    from hicache_config.core.pools import DevicePool, Group

    one, two = DevicePool("kv", 2**61 - 1, 1), DevicePool("mamba", 2**61 - 3, 1)
    groups = {"kv": (Group(one, (one,)), 2**60 + 1), "mamba": (Group(two, (two,)), 2**60 + 3)}
    assert ratio_for(groups) is None
    assert ratio_for({}) is None


@given(pipelines(), sizes)
def test_host_size_gb_makes_sglang_build_exactly_the_planned_pages(stages: list[Stage], size: TotalSize) -> None:
    """SGLang: int(host_size * 1e9 // bytes_per_slot) // page + 1 (0.5.23, pool_host/base.py)."""
    for planned in total(stages, size).stages:
        for pool in planned.pools:
            if pool.host_size_gb is None or not pool.host_size_gb > 0:
                continue
            assert pool.bytes_per_slot
            assert int(pool.host_size_gb * 1e9 // pool.bytes_per_slot) // pool.page_size + 1 == pool.pages
