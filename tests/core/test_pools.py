"""Pools as an algebra: what is a sound pool, a sound stage, a group."""

from __future__ import annotations

import pytest

from hicache_config.core.pools import DevicePool, Group, Stage, check, pool_as_dict


def codes(*pools: DevicePool) -> list[str]:
    return [finding.code for finding in check(pools)]


@pytest.mark.parametrize(
    "pool",
    [
        DevicePool("", 1, 1),
        DevicePool("kv", 0, 1),
        DevicePool("kv", -5, 1),
        DevicePool("kv", 1, -1),
        DevicePool("kv", 1, 1, page_size=0),
        DevicePool("kv", 5.5, 1),  # type: ignore[arg-type]
        DevicePool("kv", "5", 1),  # type: ignore[arg-type]
        DevicePool("kv", 1, 64.0),  # type: ignore[arg-type]
        DevicePool("kv", 1, 1, page_size=None),  # type: ignore[arg-type]
        DevicePool("kv", 1, 1, page_size="64", device_bytes=0),  # type: ignore[arg-type]
        DevicePool("kv", 1, 1, device_bytes=float("nan")),  # type: ignore[arg-type]
        DevicePool("kv", 1, 1, extra_pages=-1),
        DevicePool("kv", 1, 1, device_bytes=-1),
        DevicePool("kv", 1, 1, device_bytes=0),
        DevicePool("kv", None, None, page_bytes=1, device_bytes=0),
        DevicePool("kv", 1, None, page_bytes=-1),
        DevicePool("kv", 2**63, 1),
        DevicePool("kv", 1, None),
    ],
)
def test_impossible_pools_are_findings(pool: DevicePool) -> None:
    assert "HC310" in [finding.code for finding in pool.problems()]


def test_only_a_pool_that_holds_nothing_weighs_nothing() -> None:
    assert DevicePool("kv", 1, 0, device_bytes=0).problems() == []
    assert DevicePool("draft", None, 1, follows="kv", device_bytes=0).problems() == []


def test_all_problems_of_a_set_are_found_at_once() -> None:
    pools = (
        DevicePool("kv", 1, 1),
        DevicePool("kv", 1, 1),
        DevicePool("indexer", follows="kw", bytes_per_slot=1),
        DevicePool("a", follows="b", bytes_per_slot=1),
        DevicePool("b", follows="a", bytes_per_slot=1),
        DevicePool("self", follows="self", bytes_per_slot=1),
    )
    messages = [finding.message for finding in check(pools)]
    assert len(messages) == 5
    assert any("'kw'" in message for message in messages)
    assert "kv" in check(pools)[1].help


def test_a_lone_follower_names_no_others() -> None:
    (finding,) = check([DevicePool("indexer", follows="kv", bytes_per_slot=1)])
    assert "none" in finding.help


def test_a_follower_may_follow_a_follower() -> None:
    stage, problems = Stage.of(
        [
            DevicePool("kv", 100, 10),
            DevicePool("draft", follows="kv", bytes_per_slot=1),
            DevicePool("draft_indexer", follows="draft", bytes_per_slot=2, extra_pages=1),
        ]
    )
    assert problems == []
    (group,) = stage.groups
    assert [pool.name for pool in group.members] == ["kv", "draft", "draft_indexer"]
    assert (group.page_bytes, group.fixed_bytes) == (13, 2)
    assert stage.group_of("draft_indexer") is not None
    assert group.cost(3) == 41


def test_the_weight_is_given_or_counted() -> None:
    assert DevicePool("kv", 10, 7, device_bytes=99).weight == 99
    assert DevicePool("kv", 10, 7).weight == 70
    assert DevicePool("kv", None, 7).weight is None
    assert DevicePool("kv", None, 0).weight == 0
    assert DevicePool("v4", 10, None, page_size=4, page_bytes=100).weight == 300


def test_slots_that_are_not_known_can_not_be_counted_with() -> None:
    pool = DevicePool("kv", None, 7)
    with pytest.raises(ValueError, match="not known"):
        _ = Group(pool, (pool,)).known_slots


def test_a_pool_is_written_without_its_defaults() -> None:
    pool = DevicePool("indexer", follows="kv", bytes_per_slot=132, page_size=64, extra_pages=1)
    assert pool_as_dict(pool) == {
        "name": "indexer",
        "follows": "kv",
        "bytes_per_slot": 132,
        "page_size": 64,
        "extra_pages": 1,
    }


def test_a_follower_takes_pages_or_slots_by_a_float_ratio() -> None:
    leader = DevicePool("swa", 1000, 10, 4)
    assert DevicePool("draft", follows="swa", bytes_per_slot=1, page_size=4).pages_following(7, leader) == 7
    by_ratio = DevicePool("draft_swa", 500, 1, 4, follows="swa", follow_rule="ratio")
    assert by_ratio.pages_following(7, leader) == int(500 * (28 / 500)) // 4 + 1
    with pytest.raises(ValueError, match="not known"):
        DevicePool("draft_swa", None, 1, 4, follows="swa", follow_rule="ratio").pages_following(
            7, DevicePool("swa", None, 10, 4)
        )
