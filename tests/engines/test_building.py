"""The plan at build time on several ranks, with stand-ins for SGLang's settings and its constructors.

The ranks are threads; their agreement is the real one. The constructors compute pages as SGLang's do
(`int(D * r) // P + 1`), so what they build under the plan's ratio can be compared with it.
"""

from __future__ import annotations

import logging
import sys
import threading
from collections.abc import Callable
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from hicache_config.core.findings import ConfigurationError
from hicache_config.engines.sglang import building
from hicache_config.sync import run_on_threads

from . import fakes

_here = threading.local()


@pytest.fixture(autouse=True)
def engine(monkeypatch: pytest.MonkeyPatch) -> None:
    """SGLang's settings are those of the thread."""
    context = ModuleType("sglang.srt.runtime_context")
    context.get_memory = lambda: _here.process.memory  # type: ignore[attr-defined]
    context.get_parallel = lambda: _here.process.parallel  # type: ignore[attr-defined]
    context.get_context = lambda: _here.process.context  # type: ignore[attr-defined]
    context.get_disagg = lambda: SimpleNamespace(  # type: ignore[attr-defined]
        disaggregation_decode_retraction_backup=_here.process.retraction
    )
    for name in ("sglang", "sglang.srt"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    monkeypatch.setitem(sys.modules, "sglang.srt.runtime_context", context)
    monkeypatch.setattr(building, "installed_sglang", lambda: "0.5.23")
    monkeypatch.setattr(building, "world_group", lambda parallel: parallel.world_group)
    monkeypatch.setattr(building, "_rank", lambda: _here.process.pp_rank)


def constructors(kvcache: Any, beside: Any, process: fakes.Process, *, lose_a_page: bool = False) -> Any:
    """A tree with host pools as SGLang would build them by the ratio in force; by a size, one page each."""
    ratio = process.memory.hicache_ratio if process.memory.hicache_size == 0 else 0.0
    sources = {"kv": (kvcache, 16)} if hasattr(kvcache, "layer_num") else {}
    if hasattr(kvcache, "swa_kv_pool"):
        sources = {"kv": (kvcache.full_kv_pool, 16), "swa": (kvcache.swa_kv_pool, 16)}
    elif hasattr(kvcache, "full_kv_pool"):
        sources = {"kv": (kvcache.full_kv_pool, 16)}
    entries = {}
    address = 1
    for name, (pool, page) in sources.items():
        pages = int(pool.size * ratio) // page + 1 - lose_a_page
        size = pages * page * pool.layer_num * 128
        entries[name] = SimpleNamespace(
            host_pool=SimpleNamespace(page_num=pages, kv_buffer=fakes.Tensor(size, dtype=fakes.BYTE, at=address))
        )
        address += size
    if beside is not None:
        pages = int(beside.size * ratio) + 1
        size = pages * fakes.STATE_BYTES * beside.mamba_cache.temporal.shape[0]
        buffer = fakes.Tensor(size, dtype=fakes.BYTE, at=address)
        entries["mamba"] = SimpleNamespace(host_pool=SimpleNamespace(page_num=pages, temporal_buffer=buffer))
    group = SimpleNamespace(entry_map=entries)
    return SimpleNamespace(cache_controller=SimpleNamespace(mem_pool_host=group))


def start(process: fakes.Process, kvcache: Any, beside: Any = None, **more: Any) -> dict[str, int]:
    """Both hooks around stand-ins; the pages of the pools that were built."""
    _here.process = process
    ctx = fakes.tree_context(kvcache, beside=beside, swa_model=hasattr(kvcache, "swa_kv_pool"), **more)

    def original(*, hicache_draft_plan: Any = None) -> Any:
        make = lambda ctx: constructors(kvcache, beside, process, lose_a_page=more.get("lose_a_page", False))  # noqa: E731
        return SimpleNamespace(tree_cache=building.create(make, ctx, (), {}))

    result = building.build(original, (), {"hicache_draft_plan": more.get("draft_plan")})
    entries = result.tree_cache.cache_controller.mem_pool_host.entry_map
    return {name: entry.host_pool.page_num for name, entry in entries.items()}


def on_ranks(*stages: Callable[[], tuple[Any, ...]], size: float = 0.01, **more: Any) -> list[Any]:
    def work(group: Any) -> dict[str, int]:
        process = fakes.Process(fakes.Memory(hicache_size=size), pp_rank=group.rank, pp_size=len(stages), group=group)
        kvcache, *beside = stages[group.rank]()
        return start(process, kvcache, *beside, **more)

    return run_on_threads(len(stages), work, timeout_s=120)


def linear(full: int, layers: int) -> tuple[Any, ...]:
    return fakes.pool("HybridLinearKVPool", full_kv_pool=fakes.mha(full), size=1000), fakes.states(layers)


@pytest.fixture
def enforce(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HICACHE_CONFIG", "enforce")


@pytest.fixture
def check(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HICACHE_CONFIG", "check")


@pytest.mark.usefixtures("enforce")
def test_one_rank_gets_all_of_the_size_that_whole_pages_allow() -> None:
    process = fakes.Process(fakes.Memory(hicache_size=0.01))
    assert start(process, fakes.mha(4)) == {"kv": 10_000_000 // (4 * 128 * 16)}
    assert process.memory.hicache_size == 0


@pytest.mark.usefixtures("enforce")
def test_uneven_stages_hold_the_same_pages() -> None:
    assert on_ranks(lambda: (fakes.mha(3),), lambda: (fakes.mha(1),)) == [{"kv": 10_000_000 // (3 * 128 * 16)}] * 2


@pytest.mark.usefixtures("enforce")
def test_a_hybrid_shares_one_scale() -> None:
    first, second = on_ranks(lambda: (fakes.swa(2, 1),), lambda: (fakes.swa(1, 2),))
    assert first == second
    assert (first["kv"] * 2 + first["swa"]) * 128 * 16 <= 10_000_000
    assert (first["kv"] * 2 + first["swa"] + 3) * 128 * 16 > 10_000_000


@pytest.mark.usefixtures("enforce")
def test_a_pool_that_only_some_stages_have_is_agreed_among_them() -> None:
    """SGLang alone pairs the wrong collectives of these two stages."""
    with_states, without = on_ranks(lambda: linear(2, 3), lambda: linear(3, 0))
    assert with_states["kv"] == without["kv"]


@pytest.mark.usefixtures("enforce")
def test_a_stage_without_attention_is_an_error_on_every_rank() -> None:
    results = on_ranks(lambda: linear(2, 3), lambda: linear(0, 3))
    assert all(isinstance(result, ConfigurationError) for result in results)
    assert {finding.code for result in results for finding in result.findings} == {"HC303"}
    assert all("stage 1" in str(result) for result in results)


@pytest.mark.usefixtures("enforce")
def test_a_fault_on_one_rank_ends_all_with_its_message() -> None:
    broken = fakes.mha(2)
    del broken.head_num
    results = on_ranks(lambda: (fakes.mha(2),), lambda: (broken,))
    assert all(isinstance(result, ConfigurationError) for result in results)
    assert all("rank 1" in str(result) for result in results)
    assert all("head_num" in str(result) for result in results)


@pytest.mark.usefixtures("enforce")
def test_pools_that_are_not_known_on_one_rank_leave_all_ranks_to_sglang(caplog: pytest.LogCaptureFixture) -> None:
    """A stated fall back: no rank may enforce alone."""
    fp4 = fakes.pool("MHATokenToKVPoolFP4", layer_num=2, size=1000)
    with caplog.at_level(logging.WARNING, "sglang.hicache_config"):
        results = on_ranks(lambda: (fakes.mha(2),), lambda: (fp4,))
    assert results == [{"kv": 1}, {"kv": 1}]  # SGLang's own way by a size, as these constructors have it
    assert sum("HC453" in record.message for record in caplog.records) == 2


@pytest.mark.usefixtures("check")
def test_check_ends_no_server_by_pools_that_can_not_be_read(caplog: pytest.LogCaptureFixture) -> None:
    """The same fault ends all ranks under enforce (above). Every rank says which one it was."""
    broken = fakes.mha(2)
    del broken.head_num
    with caplog.at_level(logging.WARNING, "sglang.hicache_config"):
        results = on_ranks(lambda: (fakes.mha(2),), lambda: (broken,))
    assert results == [{"kv": 1}, {"kv": 1}]
    told = [record.message for record in caplog.records if "HC406" in record.message]
    assert len(told) == 2
    assert all("rank 1" in line and "head_num" in line for line in told)


@pytest.mark.parametrize("mode", ["check", "enforce"])
def test_host_pools_that_can_not_be_looked_at_end_a_server_under_enforce_alone(
    mode: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("HICACHE_CONFIG", mode)
    monkeypatch.setattr(building, "_mirrors_by_size", lambda: False)
    entries = {"kv": SimpleNamespace(host_pool=SimpleNamespace(page_num="many"))}
    controller = SimpleNamespace(mem_pool_host=SimpleNamespace(entry_map=entries))
    built = SimpleNamespace(tree_cache=SimpleNamespace(cache_controller=controller))
    if mode == "enforce":
        with pytest.raises(ValueError, match="many"):
            building.build(lambda: built, (), {})
        return
    with caplog.at_level(logging.ERROR, "sglang.hicache_config"):
        assert building.build(lambda: built, (), {}) is built
    assert "could not be looked at (ValueError" in caplog.text


@pytest.mark.usefixtures("enforce")
def test_a_size_that_holds_no_page_is_an_error_with_the_least_size() -> None:
    with pytest.raises(ConfigurationError, match="HC301"):
        start(fakes.Process(fakes.Memory(hicache_size=0.000001)), fakes.mha(4))


@pytest.mark.usefixtures("enforce")
def test_other_pools_than_planned_are_an_error() -> None:
    with pytest.raises(ConfigurationError, match="HC455"):
        start(fakes.Process(fakes.Memory(hicache_size=0.01)), fakes.mha(4), lose_a_page=True)


@pytest.mark.usefixtures("enforce")
def test_without_a_size_nothing_is_changed() -> None:
    process = fakes.Process(fakes.Memory(hicache_size=0, hicache_ratio=2.0))
    assert start(process, fakes.mha(4)) == {"kv": 126}
    assert process.memory == fakes.Memory(hicache_size=0, hicache_ratio=2.0)


@pytest.mark.usefixtures("enforce")
def test_without_hicache_nothing_is_changed() -> None:
    process = fakes.Process(fakes.Memory(hicache_size=1))
    start(process, fakes.mha(4), enabled=False)
    assert process.memory.hicache_size == 1


@pytest.mark.usefixtures("enforce")
def test_a_retraction_pool_is_sized_too() -> None:
    process = fakes.Process(fakes.Memory(hicache_size=0.01), retraction="host_pool")
    start(process, fakes.mha(4), enabled=False)
    assert process.memory.hicache_size == 0


@pytest.mark.usefixtures("enforce")
@pytest.mark.parametrize(
    ("memory", "code"),
    [
        (fakes.Memory(hicache_size=1, radix_cache_backend="mine"), None),
        (fakes.Memory(hicache_size=1, enable_unified_memory=True), None),
    ],
)
def test_other_trees_and_shared_arenas_fall_back(memory: fakes.Memory, code: None) -> None:
    process = fakes.Process(memory)
    start(process, fakes.mha(4))
    assert process.memory.hicache_size == 1


@pytest.mark.usefixtures("enforce")
def test_a_stage_with_sliding_windows_alone_is_an_error() -> None:
    with pytest.raises(ConfigurationError, match="HC454"):
        start(fakes.Process(fakes.Memory(hicache_size=1)), fakes.swa(1, 2), full_tokens=0)


@pytest.mark.usefixtures("enforce")
def test_a_fused_draft_falls_back() -> None:
    process = fakes.Process(fakes.Memory(hicache_size=1))
    plan = SimpleNamespace(mode=SimpleNamespace(value="fused"), device_pools=(fakes.mha(1),))
    start(process, fakes.mha(4), draft_plan=plan)
    assert process.memory.hicache_size == 1


@pytest.mark.usefixtures("check")
def test_check_changes_nothing_and_tells_where_sglang_differs_from_its_account(
    caplog: pytest.LogCaptureFixture,
) -> None:
    process = fakes.Process(fakes.Memory(hicache_size=0.01))
    with caplog.at_level(logging.WARNING, "sglang.hicache_config"):
        start(process, fakes.mha(4))
    assert process.memory == fakes.Memory(hicache_size=0.01)
    # These constructors build one page by a size, which SGLang does not: a warning, never an error.
    assert any("HC455" in record.message for record in caplog.records)


@pytest.mark.usefixtures("check")
def test_check_refuses_stages_that_would_hang() -> None:
    results = on_ranks(lambda: linear(2, 3), lambda: linear(3, 0))
    assert all(isinstance(result, ConfigurationError) for result in results)
    assert {finding.code for result in results for finding in result.findings} <= {"HC303", "HC401"}


def test_ranks_with_other_modes_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """One node enforces, another does not: without this the second would build other sizes."""
    modes = iter(("enforce", "check"))
    lock = threading.Lock()

    def read_mode(environment: Any) -> building.Mode:
        with lock:
            if not hasattr(_here, "mode"):
                _here.mode = building.Mode(next(modes))
        return _here.mode

    monkeypatch.setattr(building, "read_mode", read_mode)
    results = on_ranks(lambda: (fakes.mha(2),), lambda: (fakes.mha(2),))
    assert all(isinstance(result, ConfigurationError) for result in results)
    assert all("HICACHE_CONFIG" in str(result) for result in results)


@pytest.mark.parametrize("mode", ["off", "check", "enforce"])
def test_without_host_pools_nothing_is_said(mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HICACHE_CONFIG", mode)
    _here.process = fakes.Process()
    assert building.build(lambda: "no tree", (), {}) == "no tree"
