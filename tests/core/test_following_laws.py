"""Followers that are not simply pages of their leader: by a float ratio, carved out of its share; and stacks."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hicache_config.core.capacity import DeviceRatio, HostFraction, TotalSize
from hicache_config.core.plan import Plan, plan
from hicache_config.core.pools import DevicePool, Stage, pool_as_dict
from hicache_config.core.ratios import mirrored_device_bytes
from hicache_config.core.releases import Release
from hicache_config.core.terms import Accounting, Terms
from tests.core.strategies import PAGE_SIZES, sizes

NEWEST = Release.of("0.5.23")


def planned(pools: list[DevicePool], capacity: object, accounting: Accounting = "sglang") -> Plan:
    stage, problems = Stage.of(pools)
    assert problems == []
    return plan([stage], Terms(capacity, accounting, NEWEST))  # type: ignore[arg-type]


@st.composite
def drafted(draw: st.DrawFn) -> list[DevicePool]:
    """Full and sliding slots, and a draft that follows the sliding ones by ratio, with slots of its own or theirs."""
    page = draw(PAGE_SIZES)
    full = draw(st.integers(1, 5_000_000))
    window = draw(st.integers(1, full))
    draft = draw(st.one_of(st.none(), st.just(window), st.integers(1, 5_000_000)))
    row = st.integers(1, 100_000)
    return [
        DevicePool("kv", full, draw(row), page),
        DevicePool("swa", window, draw(row), page),
        DevicePool("draft_swa", draft, draw(row), page, follows="swa", follow_rule="ratio"),
    ]


@given(drafted(), sizes)
def test_a_follower_by_ratio_has_the_slots_that_sglang_computes(pools: list[DevicePool], size: TotalSize) -> None:
    """SGLang: `int(device_slots * (leader_host_slots / device_slots)) // page + 1` (0.5.23, build_swa_draft_pools)."""
    made = planned(pools, size)
    slots, leader = pools[2].slots or pools[1].slots, made["swa"]
    assert slots is not None
    assert leader.slots is not None
    ratio = leader.slots / slots
    assert made["draft_swa"].pages == int(slots * ratio) // pools[2].page_size + 1
    assert made["draft_swa"].pages in (leader.pages, (leader.pages or 0) + 1)
    assert made["draft_swa"].inside_size is False


@given(drafted(), sizes)
def test_with_a_follower_by_ratio_a_total_is_never_exceeded(pools: list[DevicePool], size: TotalSize) -> None:
    made = planned(pools, size, "total")
    for stage in made.stages:
        assert stage.bytes is not None
        assert stage.bytes <= size.bytes
        assert stage.bytes == sum((pool.pages or 0) * pool.page_bytes for pool in stage.pools)


def test_without_device_slots_a_follower_by_ratio_is_unknown() -> None:
    made = planned(
        [
            DevicePool("kv", None, 1000, 64),
            DevicePool("draft_swa", None, 10, 64, follows="kv", follow_rule="ratio"),
        ],
        TotalSize(1),
    )
    assert made["kv"].pages == 15_626
    assert (made["draft_swa"].pages, made["draft_swa"].bytes, made["draft_swa"].own_slots) == (None, None, None)
    assert "not known" in made["draft_swa"].trace[0]


@given(st.integers(1, 10**6), st.integers(1, 10**6), st.integers(1, 500))
def test_carving_is_the_same_without_device_slots(own: int, other: int, size_gb: int) -> None:
    """With the same slots, bytes per page are in the proportion of device bytes, and so is the float."""

    def made(slots: int | None) -> Plan:
        indexer = DevicePool("indexer", slots, other, 128, follows="kv", carved=True)
        return planned([DevicePool("kv", slots, own, 128), indexer], TotalSize(size_gb))

    assert made(None)["kv"].share_gb == made(128_000)["kv"].share_gb == size_gb * (own / (own + other))


@given(
    st.integers(1, 10**12), st.lists(st.integers(1, 10**12), max_size=4), st.integers(1, 10**12), st.integers(1, 500)
)
def test_a_draft_by_ratio_is_split_off_beside_packed_drafts(
    own: int, packed: list[int], draft: int, size_gb: int
) -> None:
    """SGLang 0.5.23, build_hybrid_swa_group: the full pool's share is split once more, over it and all its drafts."""
    kv = DevicePool("kv", 1000, 10, device_bytes=own, packed_bytes=tuple(packed))
    swa = DevicePool("draft_swa", 1000, 10, follows="kv", follow_rule="ratio", carved=True, device_bytes=draft)
    made = planned([kv, swa], TotalSize(size_gb))
    total = own + sum(packed) + draft
    parts = [size_gb * weight / total for weight in (own, *packed)]
    assert made["kv"].share_gb == sum(parts)
    assert made["draft_swa"].inside_size is True


@given(sizes, st.integers(1, 10**6), st.integers(1, 10**6))
def test_each_stack_gets_the_whole_size(size: TotalSize, one: int, two: int) -> None:
    cache = [DevicePool("kv", 1000, 10, 1, device_bytes=one), DevicePool("swa", 1000, 10, 1, device_bytes=two)]
    offload = DevicePool("offload_kv", 1000, 10, 1, stack=1)
    alone, both = planned(cache, size), planned([*cache, offload], size)
    assert [pool.share_gb for pool in both.pools[:2]] == [pool.share_gb for pool in alone.pools]
    assert both["offload_kv"].share_gb == size.size_gb
    total = planned([*cache, offload], size, "total")
    assert not total.stages or (total.stages[0].bytes or 0) <= size.bytes


def test_packed_drafts_count_in_a_fraction_and_not_in_a_split() -> None:
    kv = DevicePool("kv", 1000, 12, 1, device_bytes=10_000, packed_bytes=(1_000, 1_000))
    stage, _ = Stage.of([kv, DevicePool("mamba", 10, 100, 1, device_bytes=30_000)])
    assert mirrored_device_bytes(stage) == 42_000
    made = plan([stage], Terms(TotalSize(4), "sglang", NEWEST))
    assert made["kv"].share_gb == 1.0


@given(
    st.integers(1, 10**6), st.integers(1, 10**6), st.one_of(st.none(), st.integers(0, 10**12)),
    st.lists(st.integers(0, 10**6), max_size=3),
)  # fmt: skip
def test_bytes_for_a_fraction_stand_for_a_pool_alone(
    slots: int, row: int, counted: int | None, packed: list[int]
) -> None:
    """`fraction_bytes` replaces all that would be counted of its pool, packed drafts too, and nothing of another."""
    kv = DevicePool("kv", slots, row, 1, packed_bytes=tuple(packed), fraction_bytes=counted)
    swa = DevicePool("swa", 10, 100, 1)
    (alone, _), (both, _) = Stage.of([swa]), Stage.of([kv, swa])
    total, rest = mirrored_device_bytes(both), mirrored_device_bytes(alone)
    assert total is not None
    assert rest is not None
    assert total - rest == ((kv.weight or 0) + sum(packed) if counted is None else counted)
    (plain,) = (pool for pool in plan([both], Terms(TotalSize(4), "sglang", NEWEST)).pools if pool.name == "kv")
    counts = DevicePool("kv", slots, row, 1, packed_bytes=tuple(packed))
    (other,) = (pool for pool in planned([counts, swa], TotalSize(4)).pools if pool.name == "kv")
    assert (plain.slots, plain.share_gb) == (other.slots, other.share_gb)


@pytest.mark.parametrize("accounting", ["sglang", "total"])
def test_a_fraction_is_refused_for_pools_of_whole_pages(accounting: Accounting) -> None:
    pools = [
        DevicePool("kv", 999_936, 0, 256, page_rule="whole"),
        DevicePool("deepseek_v4_c4", page_bytes=786_240, page_size=256, follows="kv"),
    ]
    made = planned(pools, HostFraction(0.8, 2.0), accounting)
    assert [finding.code for finding in made.findings] == ["HC306"]
    assert made.stages == ()
    assert planned(pools, DeviceRatio(2.0), accounting)["deepseek_v4_c4"].pages == 7812


def test_the_new_fields_are_written_where_they_differ_from_their_default() -> None:
    pool = DevicePool("draft_swa", follows="kv", bytes_per_slot=1, follow_rule="ratio", packed_bytes=(1, 2), stack=1)
    written = pool_as_dict(pool)
    assert (written["follow_rule"], written["packed_bytes"], written["stack"]) == ("ratio", [1, 2], 1)
    assert not {"follow_rule", "packed_bytes", "stack"} & set(pool_as_dict(DevicePool("kv", 1, 1)))


@pytest.mark.parametrize("wrong", [{"packed_bytes": (-1,)}, {"packed_bytes": (2**63,)}, {"stack": -1}])
def test_impossible_amounts_are_found(wrong: dict[str, object]) -> None:
    _, problems = Stage.of([DevicePool("kv", 1, 1, **wrong)])  # type: ignore[arg-type]
    assert [problem.code for problem in problems] == ["HC310"]
