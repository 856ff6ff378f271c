"""Size, ratio and fraction: which one counts, and what the others are taken for.

Source: SGLang 0.5.23, arg_groups/hicache_hook.py and mem_cache/pool_host/base.py.
Must not import anything above this floor.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..core.findings import Fix
from .case import Case
from .common import HICACHE_VALUES, flag, hicache, mode, words
from .registry import Seen, rule

ON = {"enable_hierarchical_cache": True}
#: GB. No common machine has so much memory: a size times the ranks of a node beyond it was meant as a total.
IMPLAUSIBLE_NODE_GB = 4096


@rule(
    "HC120",
    "both-size-and-ratio",
    "warning",
    covers=(7,),
    why="A positive --hicache-size wins over --hicache-ratio and nothing is said about it. The dead ratio stays in "
    "launch files and misleads the next reader. Source: SGLang 0.5.23, mem_cache/pool_host/base.py.",
    bad={**ON, "hicache_size": 100, "hicache_ratio": 2.0},
    good={**ON, "hicache_size": 100},
)
def both_size_and_ratio(case: Case) -> Iterator[Seen]:
    """Size and ratio together."""
    given = case.gave("hicache_ratio") and case.args.hicache_ratio is not None
    if given and case.gave("hicache_size") and case.args.hicache_size > 0:
        yield Seen(
            "hicache_ratio",
            f"{flag(case, 'hicache_ratio', case.args.hicache_ratio)} has no effect because "
            f"{flag(case, 'hicache_size', case.args.hicache_size)} (GB per rank) is set",
            f"Take {flag(case, 'hicache_ratio')} out, or set {flag(case, 'hicache_size')} to 0 to size by ratio.",
            asked=case.args.hicache_ratio,
            fix=Fix({"hicache_ratio": None}, safe=True),
        )


@rule(
    "HC121",
    "fraction-ignored",
    "warning",
    since="0.5.21",
    covers=(3,),
    why="SGLang looks at free host memory only when neither a size nor a ratio is given; with one of them the "
    "fraction is set to nothing, also when it was written. Source: SGLang 0.5.23, arg_groups/hicache_hook.py.",
    bad={**ON, "hicache_size": 100, "hicache_host_memory_fraction": 0.5},
    good={**ON, "hicache_host_memory_fraction": 0.5},
)
def fraction_ignored(case: Case) -> Iterator[Seen]:
    """A fraction beside a size or a ratio."""
    if not case.gave("hicache_host_memory_fraction") or case.args.hicache_host_memory_fraction is None:
        return
    for other in ("hicache_size", "hicache_ratio"):
        if case.gave(other) and (getattr(case.args, other) or 0) > 0:
            asked = case.args.hicache_host_memory_fraction
            yield Seen(
                "hicache_host_memory_fraction",
                f"{flag(case, 'hicache_host_memory_fraction', asked)} is ignored because "
                f"{flag(case, other, getattr(case.args, other))} is set",
                f"Take one of the two out: the fraction counts only without {flag(case, 'hicache_size')} and "
                f"{flag(case, 'hicache_ratio')}.",
                asked=asked,
                fix=Fix({"hicache_host_memory_fraction": None}, safe=True),
            )
            return


@rule(
    "HC122",
    "hicache-off",
    "warning",
    covers=(11,),
    why="Without --enable-hierarchical-cache (and without decode offload or a host pool for retraction) SGLang never "
    "reads these values, and says nothing. Source: SGLang 0.5.23, arg_groups/hicache_hook.py:handle_hicache.",
    bad={"hicache_size": 100},
    good={**ON, "hicache_size": 100},
)
def hicache_off(case: Case) -> Iterator[Seen]:
    """HiCache values while HiCache is off."""
    if case.resolution.host_pools or hicache(case) or "enable_hierarchical_cache" in case.invalid:
        return
    dead = [name for name in HICACHE_VALUES if case.gave(name) and case.raw(name) is not None]
    if case.raw("enable_unified_cache_external_linker"):
        # The linker falls back to these settings; a storage backend beside it is refused by a rule of its own.
        dead = [
            name for name in dead if name not in ("hicache_storage_backend_extra_config", "hicache_storage_backend")
        ]
    if dead:
        yield Seen(
            dead[0],
            f"{words([flag(case, name) for name in dead], 'and')} {'is' if len(dead) == 1 else 'are'} never read: "
            f"HiCache is off",
            f"Add {flag(case, 'enable_hierarchical_cache')}, or take {'it' if len(dead) == 1 else 'them'} out.",
            asked=case.raw(dead[0]),
            fix=Fix({"enable_hierarchical_cache": True}),
        )


@rule(
    "HC123",
    "size-looks-like-a-total",
    "warning",
    why="--hicache-size is GB (10**9 bytes) per rank: a node pins the size times its ranks. People who write the "
    "memory of the machine there ask for several times of it. Source: SGLang 0.5.23, "
    "mem_cache/pool_host/base.py; the limit of 4,096 GB for a node is this program's own.",
    bad={**ON, "tp_size": 8, "hicache_size": 1024},
    good={**ON, "tp_size": 8, "hicache_size": 128},
)
def size_looks_like_a_total(case: Case) -> Iterator[Seen]:
    """A size that, times the ranks of a node, no machine has."""
    size = case.args.hicache_size
    ranks = max(case.args.tp_size * case.args.pp_size // max(case.args.nnodes, 1), 1)
    if hicache(case) and case.gave("hicache_size") and ranks > 1 and size * ranks >= IMPLAUSIBLE_NODE_GB:
        yield Seen(
            "hicache_size",
            f"{flag(case, 'hicache_size', size)} is per rank: {size} GB x {ranks} ranks on a node = "
            f"{size * ranks:,} GB",
            f"If {size} GB is what the node may give, write {flag(case, 'hicache_size', size // ranks)}.",
            asked=size,
            fix=Fix({"hicache_size": size // ranks}),
        )


@rule(
    "HC124",
    "host-smaller-than-device",
    "warning",
    why="With a ratio below 1 the host tier holds less than the device tier and keeps nearly nothing that the device "
    "has not. Up to 0.5.14 SGLang asserts that it is larger and does not start; since 0.5.15 it only logs a "
    "warning. Source: the wheels of 0.5.14 and 0.5.15, mem_cache/pool_host/base.py.",
    bad={**ON, "hicache_ratio": 0.5},
    good={**ON, "hicache_ratio": 2.0},
    late="mem_cache/pool_host/base.py:HostKVCache.__init__",
)
def host_smaller_than_device(case: Case) -> Iterator[Seen]:
    """A ratio below 1."""
    ratio = case.args.hicache_ratio
    if not (hicache(case) and case.gave("hicache_ratio") and ratio is not None and ratio < 1):
        return
    if case.args.hicache_size > 0 or case.raw("hicache_host_memory_mode") == "buffer_only":
        return
    refused = case.release.refuses_small_host_pools
    yield Seen(
        "hicache_ratio",
        f"{flag(case, 'hicache_ratio', ratio)} makes the host tier smaller than the device tier"
        + (f"; SGLang {case.release.name} refuses that when it builds the pools" if refused else ""),
        "Write a ratio above 1, or use --hicache-host-memory-mode buffer_only with a storage backend."
        if case.release.at_least("0.5.19")
        else "Write a ratio above 1.",
        asked=ratio,
        severity="error" if refused else None,
    )


@rule(
    "HC125",
    "default-ratio-may-shrink",
    "note",
    since="0.5.21",
    covers=(2,),
    why="With neither size nor ratio SGLang takes 2.0 (1.2 in mode buffer_only) and lowers it, without a lower "
    "limit, until all pools of all ranks fit into the fraction of free host memory. Before 0.5.21 it takes the "
    "default as it is. Source: SGLang 0.5.23, mem_cache/hicache_auto_size.py.",
    bad=ON,
    good={**ON, "hicache_ratio": 2.0},
)
def default_ratio_may_shrink(case: Case) -> Iterator[Seen]:
    """Neither size nor ratio; one whose value could not be read was meant to be given."""
    if {"hicache_size", "hicache_ratio", "hicache_host_memory_fraction"} & set(case.invalid):
        return
    if hicache(case) and case.resolved("hicache_host_memory_fraction") is not None and mode(case) != "decode":
        fraction, ratio = case.resolved("hicache_host_memory_fraction"), case.resolved("hicache_ratio")
        yield Seen(
            "enable_hierarchical_cache",
            f"neither {flag(case, 'hicache_size')} nor {flag(case, 'hicache_ratio')} is given: SGLang takes ratio "
            f"{ratio} "
            f"and lowers it until the pools of all ranks of a host fit into {fraction:g} of its free memory",
            f"Write {flag(case, 'hicache_ratio')} or {flag(case, 'hicache_size')} for the same size on every machine.",
            gets=ratio,
        )


@rule(
    "HC126",
    "ratio-left-to-the-decode-server",
    "note",
    since="0.5.18",
    covers=(8,),
    why="A decode server settles its ratio only when the pools are built: 2.0 with HiCache, else (a host pool for "
    "retraction alone) at least 0.2 and at least one request. Source: SGLang 0.5.23, "
    "mem_cache/kv_cache_builder.py:resolve_decode_retraction_backup.",
    bad={**ON, "disaggregation_mode": "decode", "disaggregation_decode_enable_radix_cache": True},
    good={
        **ON,
        "disaggregation_mode": "decode",
        "disaggregation_decode_enable_radix_cache": True,
        "hicache_ratio": 2.0,
    },
)
def ratio_left_to_the_decode_server(case: Case) -> Iterator[Seen]:
    """A decode server without a ratio."""
    if (
        mode(case) == "decode"
        and hicache(case)
        and case.resolved("hicache_ratio") is None
        and case.args.hicache_size <= 0
    ):
        yield Seen(
            "disaggregation_mode",
            f"a decode server settles {flag(case, 'hicache_ratio')} when its pools are built: 2.0 with HiCache",
            f"Write {flag(case, 'hicache_ratio')} or {flag(case, 'hicache_size')} to be sure of the size.",
            gets=2.0,
        )


#: Layouts that lay pages first and whose constructor still counts layers along the pages, by family of pools.
_LAYERS_ALONG_PAGES = {"mla": "page_first_direct", "dsa": "page_first_direct", "dense": "page_head"}


@rule(
    "HC246",
    "fewer-pages-than-layers",
    "error",
    needs=("plan",),
    why="With page_first_direct for latent rows and page_head for keys and values, the constructor of the host pool "
    "looks for one entry a layer along the axis of pages: a host pool with fewer pages than the stage has layers ends "
    "in an IndexError after the weights are loaded. Seen with real pools. Source: SGLang 0.5.23, "
    "mem_cache/pool_host/mla.py and mha.py:_initialize_transfer_views; older releases were not run.",
    since="0.5.23",
    late="mem_cache/pool_host/mla.py:_initialize_transfer_views",
    bad={
        "enable_hierarchical_cache": True,
        "hicache_size": 1,
        "page_size": 512,
        "hicache_mem_layout": "page_first_direct",
        "hicache_io_backend": "direct",
        "tp_size": 8,
    },
    good={
        "enable_hierarchical_cache": True,
        "hicache_size": 100,
        "page_size": 64,
        "hicache_mem_layout": "page_first_direct",
        "hicache_io_backend": "direct",
        "tp_size": 8,
    },
    settings={"model": "moonshotai/Kimi-K2-Instruct"},
)
def fewer_pages_than_layers(case: Case) -> Iterator[Seen]:
    """A host pool too small for the way in which its layout is taken apart."""
    layout = case.resolved("hicache_mem_layout")
    if case.pipeline is None or case.plan is None or _LAYERS_ALONG_PAGES.get(case.pipeline.family) != layout:
        return
    for stage in case.plan.stages:
        pages = next((pool.pages for pool in stage.pools if pool.name == "kv"), None)
        if pages is not None and stage.layers is not None and pages < stage.layers:
            yield Seen(
                "hicache_size" if case.gave("hicache_size") else "hicache_ratio",
                f"stage {stage.stage} would get a host pool of {pages:,} pages, fewer than its {stage.layers} layers; "
                f"with {flag(case, 'hicache_mem_layout', layout)} SGLang then fails while it builds the pool",
                f"Ask for more host memory, or write {flag(case, 'hicache_mem_layout', 'page_first')}.",
            )
            return
