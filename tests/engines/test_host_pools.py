"""Real bytes of host pools, and how they are compared with a plan; torch's own tensors on the CPU."""

from __future__ import annotations

import warnings
from enum import Enum
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hicache_config.core.capacity import TotalSize
from hicache_config.core.plan import Plan, plan
from hicache_config.core.pools import DevicePool, Stage
from hicache_config.core.releases import Release
from hicache_config.core.terms import Terms
from hicache_config.engines.sglang.host_pools import BuiltPool, buffer_bytes, built_pools, differ, differences
from hicache_config.engines.sglang.modes import Mode
from hicache_config.engines.sglang.texts import beyond_size, built_line

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # torch warns where there is no numpy
    import torch


def host_pool(**attributes: Any) -> Any:
    return SimpleNamespace(**attributes)


@given(pages=st.integers(1, 9), layers=st.integers(1, 5), width=st.integers(1, 7))
def test_views_of_one_buffer_count_once(pages: int, layers: int, width: int) -> None:
    buffer = torch.zeros(2, pages, layers, width, dtype=torch.bfloat16)
    pool = host_pool(kv_buffer=buffer, k_buffer=buffer[0], v_buffer=buffer[1])
    assert buffer_bytes(pool) == buffer.numel() * 2


@given(sizes=st.lists(st.integers(1, 50), min_size=1, max_size=6))
def test_buffers_of_their_own_add_up_in_any_list(sizes: list[int]) -> None:
    buffers = [torch.zeros(size, dtype=torch.uint8) for size in sizes]
    assert buffer_bytes(host_pool(temporal_buffer=buffers[0], conv_buffer=buffers[1:])) == sum(sizes)


def test_staging_and_bookkeeping_do_not_count() -> None:
    pool = host_pool(
        kv_buffer=torch.zeros(10, dtype=torch.uint8), staging_buffer=torch.zeros(99), mem_state=torch.zeros(99),
        device_buffers=[torch.zeros(99)], free_slots=torch.zeros(99),
    )  # fmt: skip
    assert buffer_bytes(pool) == 10


def test_an_empty_buffer_and_a_logical_pool_hold_nothing() -> None:
    assert buffer_bytes(host_pool(kv_buffer=None)) == 0
    assert buffer_bytes(host_pool(temporal_buffer=torch.empty(0, 3))) == 0


@pytest.mark.parametrize("tree", [None, SimpleNamespace(), SimpleNamespace(cache_controller=None)])
def test_a_tree_without_host_pools_is_none(tree: Any) -> None:
    assert built_pools(tree) is None


def test_pages_are_read_from_every_kind_of_pool() -> None:
    names = Enum("PoolName", {"KV": "kv", "SWA": "swa"})
    entries = {
        names.KV: SimpleNamespace(host_pool=host_pool(page_num=3)),
        names.SWA: SimpleNamespace(host_pool=host_pool(num_host_pages=4)),
        "anchor": SimpleNamespace(host_pool=host_pool(size=80, page_size=16)),
    }
    tree = SimpleNamespace(cache_controller=SimpleNamespace(mem_pool_host=SimpleNamespace(entry_map=entries)))
    pools = built_pools(tree)
    assert pools is not None
    assert [(pool.name, pool.pages) for pool in pools] == [("kv", 3), ("swa", 4), ("anchor", 5)]


def planned(accounting: Any = "total", size: float = 0.001) -> Plan:
    stage = Stage(
        (
            DevicePool("kv", 1000, 64, page_size=16),
            DevicePool("indexer", bytes_per_slot=8, page_size=16, follows="kv", extra_pages=1),
        )
    )
    return plan([stage], Terms(TotalSize(size), accounting, Release.of("0.5.23")))


def as_built(made: Plan) -> list[BuiltPool]:
    return [BuiltPool(pool.name, pool.pages or 0, pool.bytes or 0) for pool in made.pools]


def test_pools_as_planned_do_not_differ() -> None:
    made = planned()
    assert not differences(made.pools, as_built(made))


@pytest.mark.parametrize("page", [-1, 1])
def test_a_page_more_or_less_is_told_with_both_figures(page: int) -> None:
    made = planned()
    kv, indexer = as_built(made)
    other = BuiltPool("kv", kv.pages + page, kv.bytes + page * 1024)
    (text,) = differences(made.pools, [other, indexer])
    assert f"{other.bytes:,}" in text
    assert f"{kv.bytes:,}" in text
    assert differ(2, [text]).code == "HC455"


def test_missing_and_added_pools_are_told() -> None:
    made = planned()
    texts = differences(made.pools, [as_built(made)[0], BuiltPool("draft", 1, 1)])
    assert texts == ["draft was built, which is not in the plan", "indexer was not built"]


def test_what_sglang_takes_beyond_a_size_is_told_with_the_way_out() -> None:
    made = planned("sglang")
    text = beyond_size(as_built(made), made)
    assert text is not None
    assert "indexer" in text
    assert "HICACHE_CONFIG=enforce" in text
    over = sum(pool.bytes for pool in as_built(made)) - 1_000_000
    assert f"{over:,} bytes" in text


def test_nothing_is_told_where_nothing_is_taken() -> None:
    made = planned()
    assert beyond_size(as_built(made), made) is None


def test_the_line_of_a_rank_has_pages_bytes_and_the_sum() -> None:
    line = built_line([BuiltPool("kv", 3, 3072), BuiltPool("swa", 2, 1000)], None, Mode.CHECK)
    assert "kv 3 pages 3,072 bytes" in line
    assert "4,072 bytes" in line
