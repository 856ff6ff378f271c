"""Layout of host memory and what moves it: rewrites, and pairs that a host pool cannot be built or moved with.

Source: SGLang 0.5.23, arg_groups/hicache_hook.py, hardware_backend/npu/utils.py and mem_cache/pool_host/*.py.
Must not import anything above this floor.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..core.findings import Fix
from .case import Case
from .common import flag, hicache
from .host_pools import MATRIX, Pool, best_pair, main_pools_of_any_model, pools_of, why_not
from .registry import Seen, rule
from .resolution import Rewrite

ON = {"enable_hierarchical_cache": True}
UNIFIED = {**ON, "enable_unified_memory": True}
MOONCAKE = {
    **ON,
    "hicache_storage_backend": "mooncake",
    "hicache_storage_backend_extra_config": '{"master_server_address": "10.0.0.1:50051"}',
}
_ASKED = ("hicache_mem_layout", "hicache_io_backend")


def _rewritten(case: Case, number: int) -> Iterator[Rewrite]:
    """Rewrites by one rule, where the person asked for layout or io backend."""
    if any(case.gave(name) for name in _ASKED):
        yield from (rewrite for rewrite in case.resolution.rewrites if number in rewrite.rules)


def _seen(case: Case, rewrite: Rewrite) -> Seen:
    final = {name: case.resolved(name) for name in _ASKED if case.resolved(name) != case.raw(name)}
    return Seen(
        rewrite.argument if case.gave(rewrite.argument) else next(name for name in _ASKED if case.gave(name)),
        f"{flag(case, rewrite.argument, rewrite.asked)} becomes {rewrite.gets}: {rewrite.why}",
        "Write " + " ".join(flag(case, name, value) for name, value in final.items()) + ", which is what runs."
        if final
        else "",
        asked=rewrite.asked,
        gets=rewrite.gets,
        fix=Fix(final, safe=True) if final else None,
    )


@rule(
    "HC203",
    "layout-io-rewritten",
    "warning",
    covers=(34,),
    why="Kernel copies cannot move the layout page_first_direct, so SGLang takes direct copies. Source: SGLang "
    "0.5.23, arg_groups/hicache_hook.py:resolve_layout_io_compatibility (the same since 0.5.10).",
    bad={**ON, "hicache_mem_layout": "page_first_direct", "hicache_io_backend": "kernel"},
    good={**ON, "hicache_mem_layout": "page_first_direct", "hicache_io_backend": "direct"},
)
def layout_io_rewritten(case: Case) -> Iterator[Seen]:
    """The io backend follows the layout."""
    yield from (_seen(case, rewrite) for rewrite in _rewritten(case, 34))


@rule(
    "HC204",
    "layout-rewritten-for-direct",
    "warning",
    covers=(35,),
    why="Direct copies cannot move the layout page_first, so SGLang takes page_first_direct (not layer_first, as an "
    "older page of its documentation says). Source: SGLang 0.5.23, "
    "arg_groups/hicache_hook.py:resolve_layout_io_compatibility.",
    bad={**ON, "hicache_mem_layout": "page_first", "hicache_io_backend": "direct"},
    good={**ON, "hicache_mem_layout": "page_first", "hicache_io_backend": "kernel"},
)
def layout_rewritten_for_direct(case: Case) -> Iterator[Seen]:
    """The layout follows the io backend."""
    yield from (_seen(case, rewrite) for rewrite in _rewritten(case, 35))


@rule(
    "HC205",
    "layout-rewritten-for-storage",
    "warning",
    covers=(36,),
    why="Mooncake (and npu_memcache, since 0.5.20) cannot store layer_first, so SGLang takes page_first or, with "
    "direct copies, page_first_direct. With kernel_ascend it keeps layer_first and only logs. Source: SGLang "
    "0.5.23, arg_groups/hicache_hook.py:resolve_storage_layout_compatibility.",
    bad={**MOONCAKE, "hicache_mem_layout": "layer_first"},
    good={**MOONCAKE, "hicache_mem_layout": "page_first"},
)
def layout_rewritten_for_storage(case: Case) -> Iterator[Seen]:
    """The layout follows the storage backend."""
    yield from (_seen(case, rewrite) for rewrite in _rewritten(case, 36))


@rule(
    "HC206",
    "layout-rewritten-for-unified-memory",
    "warning",
    since="0.5.23",
    covers=(38,),
    why="Rows of unified memory are strided and direct copies cannot read them, so SGLang takes page_first and "
    "kernel. Source: SGLang 0.5.23, arg_groups/hicache_hook.py:resolve_unified_memory_layout_io.",
    bad={**UNIFIED, "hicache_mem_layout": "page_first_direct", "hicache_io_backend": "direct"},
    good={**UNIFIED, "hicache_mem_layout": "page_first", "hicache_io_backend": "kernel"},
)
def layout_rewritten_for_unified_memory(case: Case) -> Iterator[Seen]:
    """Layout and io backend follow unified memory."""
    yield from (_seen(case, rewrite) for rewrite in _rewritten(case, 38))


@rule(
    "HC207",
    "layout-for-receiving-on-the-host",
    "warning",
    since="0.5.21",
    covers=(39,),
    why="KV that a decode server receives into host memory comes layer by layer, so SGLang takes layer_first and "
    "stops where a storage backend needs another layout. Source: SGLang 0.5.23, "
    "arg_groups/hicache_hook.py:handle_hicache.",
    bad={"disaggregation_mode": "decode", "disaggregation_decode_host_receive_threshold": 0.5,
         "hicache_mem_layout": "page_first"},
    good={"disaggregation_mode": "decode", "disaggregation_decode_host_receive_threshold": 0.5,
          "hicache_mem_layout": "layer_first"},
)  # fmt: skip
def layout_for_receiving_on_the_host(case: Case) -> Iterator[Seen]:
    """layer_first for received KV, or the storage backend that cannot have it."""
    rewrites = case.resolution.of("hicache_mem_layout")
    if not any(39 in rewrite.rules for rewrite in rewrites) and not _receives(case):
        return
    if case.resolution.host_pools and case.resolved("hicache_mem_layout") != "layer_first":
        yield Seen(
            "hicache_storage_backend",
            f"{flag(case, 'hicache_storage_backend', case.raw('hicache_storage_backend'))} makes the layout "
            f"{case.resolved('hicache_mem_layout')}, and KV received into host memory needs layer_first",
            f"Take another storage backend, or {flag(case, 'disaggregation_decode_host_receive_threshold', 1)}.",
            severity="error",
        )
        return
    yield from (_seen(case, rewrite) for rewrite in _rewritten(case, 39))


@rule(
    "HC208",
    "layout-of-an-npu",
    "warning",
    covers=(40,),
    why="On an Ascend NPU SGLang sets io backend and layout itself, whatever was asked: kernel_ascend, with "
    "page_first_kv_split for latent attention and page_first_direct for the rest. Source: SGLang 0.5.23, "
    "hardware_backend/npu/utils.py:set_default_server_args.",
    bad={**ON, "device": "npu", "hicache_io_backend": "kernel"},
    good={**ON, "device": "npu", "hicache_io_backend": "kernel_ascend"},
)
def layout_of_an_npu(case: Case) -> Iterator[Seen]:
    """Layout and io backend of an NPU."""
    for rewrite in _rewritten(case, 40):
        if case.gave(rewrite.argument):
            yield _seen(case, rewrite)


@rule(
    "HC209",
    "layout-not-for-this-pool",
    "error",
    covers=(41, "matrix 2.6"),
    why="Each kind of host pool can be built with some layouts only; SGLang checks that when it builds the pool, "
    "after the weights are loaded. Mamba states, for example, never take layer_first (and in 0.5.14 and 0.5.15 "
    "page_first_direct alone). Source: SGLang 0.5.23, mem_cache/pool_host/*.py.",
    bad={**ON, "hicache_mem_layout": "layer_first"},
    good={**ON, "hicache_mem_layout": "page_first"},
    settings={"architecture": "Qwen3NextForCausalLM"},
    late="mem_cache/pool_host/mamba.py:__init__",
)
def layout_not_for_this_pool(case: Case) -> Iterator[Seen]:
    """A layout that one of the model's host pools cannot be built with."""
    yield from _unfit(case, "build")


@rule(
    "HC210",
    "pair-not-moved",
    "error",
    covers=(41, "matrix 2.6"),
    why="Some pairs of layout and io backend can be built but not moved: the server starts and the first transfer "
    "raises, while requests run. Source: SGLang 0.5.23, mem_cache/pool_host/*.py (load_to_device_per_layer, "
    "backup_from_device_all_layer).",
    bad={**ON, "hicache_mem_layout": "page_head", "hicache_io_backend": "direct"},
    good={**ON, "hicache_mem_layout": "page_head", "hicache_io_backend": "kernel"},
    settings={"architecture": "LlamaForCausalLM"},
    late="mem_cache/pool_host/mha.py:load_to_device_per_layer",
)
def pair_not_moved(case: Case) -> Iterator[Seen]:
    """A pair with which no transfer works."""
    yield from _unfit(case, "move")


def _unfit(case: Case, wanted: str) -> Iterator[Seen]:
    if not hicache(case) and not case.resolved("disaggregation_decode_enable_offload_kvcache"):
        return
    if not case.resolved("enable_hierarchical_cache") and hicache(case):
        return
    layout, io_backend = case.resolved("hicache_mem_layout"), case.resolved("hicache_io_backend")
    if not all(name not in case.invalid for name in _ASKED):
        return
    pools = pools_of(case)
    problems: list[tuple[Pool | None, str]] = []
    if pools is not None:
        problems += [(pool, kind) for pool in pools if (kind := why_not(case.release, pool, layout, io_backend))]
    elif not any((layout, io_backend) in MATRIX[pool] for pool in main_pools_of_any_model()):
        problems.append((None, "build" if layout == "page_first_kv_split" else "move"))
    for pool, kind in problems:
        if kind == wanted:
            yield _unfit_seen(
                case, pool, kind, best_pair(case.release, pools or main_pools_of_any_model()[:1], io_backend)
            )


def _unfit_seen(case: Case, pool: Pool | None, kind: str, better: tuple[str, str]) -> Seen:
    layout, io_backend = case.resolved("hicache_mem_layout"), case.resolved("hicache_io_backend")
    what = f"the host pool of {pool.words}" if pool is not None else "any model's host pool"
    where = case.traits.architecture if case.traits is not None else ""
    owner = f"{what} ({where})" if where and pool is not None else what
    pair = f"{flag(case, 'hicache_mem_layout', layout)} with {flag(case, 'hicache_io_backend', io_backend)}"
    message = (
        f"{flag(case, 'hicache_mem_layout', layout)} cannot build {owner}; SGLang finds out after loading the weights"
        if kind == "build"
        else f"{pair} cannot move {owner}; the server starts and fails at the first transfer"
    )
    asked = next((name for name in _ASKED if case.gave(name)), "enable_hierarchical_cache")
    fix = {name: value for name, value in zip(_ASKED, better, strict=True) if value != case.raw(name)}
    told = " ".join(flag(case, name, value) for name, value in zip(_ASKED, better, strict=True))
    return Seen(asked, message, f"Write {told}.", asked=case.raw(asked), fix=Fix(fix))


@rule(
    "HC230",
    "io-rewritten-for-fa3",
    "warning",
    until="0.5.13",
    covers=("fa3",),
    why="Up to 0.5.13 kernel copies disturb decoding with fa3, so SGLang takes direct copies where fa3 is named as "
    "the decode backend (and decodes with flashinfer or triton where it would take fa3 by itself). Source: the "
    "wheels of 0.5.13 and 0.5.14, server_args.py:_resolve_io_decode_attention_compatibility.",
    bad={**ON, "decode_attention_backend": "fa3"},
    good={**ON, "decode_attention_backend": "flashinfer"},
)
def io_rewritten_for_fa3(case: Case) -> Iterator[Seen]:
    """Direct copies because of fa3 decoding."""
    for rewrite in case.resolution.rewrites:
        if "fa3" in rewrite.rules:
            yield Seen(
                rewrite.argument if case.gave(rewrite.argument) else "decode_attention_backend",
                f"{flag(case, rewrite.argument, rewrite.asked)} becomes {rewrite.gets}: {rewrite.why}",
                f"Write {flag(case, 'hicache_io_backend', 'direct')}, another decode backend, or run 0.5.14 or later.",
                asked=rewrite.asked,
                gets=rewrite.gets,
            )


@rule(
    "HC231",
    "kernel-ascend-without-an-npu",
    "warning",
    covers=(41,),
    why="kernel_ascend calls copies that exist on Ascend NPUs alone; elsewhere the first transfer fails. Source: "
    "SGLang 0.5.23, mem_cache/pool_host/mha.py and mla.py.",
    bad={**ON, "hicache_io_backend": "kernel_ascend", "hicache_mem_layout": "page_first_direct"},
    good={**ON, "hicache_io_backend": "kernel_ascend", "hicache_mem_layout": "page_first_direct", "device": "npu"},
    late="mem_cache/pool_host/mha.py:load_to_device_per_layer",
)
def kernel_ascend_without_an_npu(case: Case) -> Iterator[Seen]:
    """kernel_ascend where no NPU is named."""
    npu = str(case.raw("device") or "").startswith("npu")
    if hicache(case) and case.raw("hicache_io_backend") == "kernel_ascend" and not npu:
        yield Seen(
            "hicache_io_backend",
            f"{flag(case, 'hicache_io_backend', 'kernel_ascend')} works on Ascend NPUs alone, and "
            f"{flag(case, 'device')} does not name one",
            f"Write {flag(case, 'hicache_io_backend', 'kernel')}, or {flag(case, 'device', 'npu')} on an NPU.",
            asked="kernel_ascend",
            fix=Fix({"hicache_io_backend": "kernel"}),
        )


def _receives(case: Case) -> bool:
    return case.resolution.value("disaggregation_decode_retraction_backup") == "host_pool" and any(
        62 in rewrite.rules for rewrite in case.resolution.rewrites
    )
