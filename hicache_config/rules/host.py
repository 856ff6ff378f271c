"""Whether host memory holds the pools: a rank's allowance, a node, storage beside it, one registration.

Needs the plan and what the host has. Source: SGLang 0.5.23, mem_cache/pool_host/base.py, mem_cache/host_memory.py,
mem_cache/pool_host/common.py. Must not import anything above this floor.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from ..core.capacity import DeviceRatio, TotalSize
from ..core.sizes import StagePlan
from ..core.units import GIB, RESERVE_BYTES, format_gb, format_gib
from .backends.memory import host_bytes_per_rank
from .case import Case
from .common import flag
from .registry import Seen, rule

ON = {"enable_hierarchical_cache": True}
LLAMA = {"architecture": "LlamaForCausalLM"}
#: One registration above this fails on some drivers (16 bytes a page of 4 KiB overflow 32 bits at 2**39 bytes).
DRIVER_LIMIT = 2**39


def _largest(case: Case) -> StagePlan | None:
    stages = [stage for stage in (case.plan.stages if case.plan is not None else ()) if stage.bytes is not None]
    return max(stages, key=lambda stage: stage.bytes or 0, default=None)


def _beside(case: Case) -> int:
    backend = case.raw("hicache_storage_backend")
    return (
        host_bytes_per_rank(backend, case.raw("hicache_storage_backend_extra_config"), case.args, case.environment) or 0
    )


def _what_fits(case: Case, stage: StagePlan, allowed: int) -> str:
    """What to write so that a rank takes at most `allowed` bytes: the size or the ratio in proportion, rounded down.

    A page of each pool is taken off first: constructors add one, whatever was asked for.
    """
    least = sum(pool.page_bytes * (1 + pool.extra_pages) for pool in stage.pools)
    share = Fraction(max(allowed - least, 0), stage.bytes or 1)
    capacity = case.plan.terms.capacity if case.plan is not None else None
    if isinstance(capacity, TotalSize):
        size = int(Fraction(capacity.size_gb) * share)
        if size:
            return f"Write at most {flag(case, 'hicache_size', size)} (GB per rank)."
    elif isinstance(capacity, DeviceRatio):
        ratio = int(Fraction(capacity.ratio) * share * 100) / 100
        if ratio > (1 if case.release.refuses_small_host_pools else 0):
            return f"Write at most {flag(case, 'hicache_ratio', ratio)}."
    return "Add memory, or use fewer ranks."


@rule(
    "HC501",
    "host-memory-exceeded",
    "error",
    covers=("5 allowance",),
    why="Every rank pins its own pools. SGLang keeps 10 GiB of a host free, divides the rest by the ranks on it "
    "(since 0.5.19; before, each rank saw all of it, so that every check passed and the machine was killed "
    "later), and refuses a pool that is larger. Replicas (--dp-size) and other engines are not counted by it, "
    "but are here.",
    bad={**ON, "tp_size": 4, "hicache_size": 40},
    good={**ON, "tp_size": 4, "hicache_size": 30},
    needs=("plan", "host"),
    settings={**LLAMA, "host_memory": "150GB"},
    late="mem_cache/pool_host/base.py:HostKVCache.__init__",
)
def host_memory_exceeded(case: Case) -> Iterator[Seen]:
    """More than the ranks of a node may take together."""
    stage = _largest(case)
    if stage is None or stage.bytes is None or case.host is None:
        return
    ranks = case.host.ranks_per_node
    usable = case.host.available_bytes - RESERVE_BYTES
    needed = (stage.bytes + _beside(case)) * ranks
    if needed <= usable:
        return
    name = "hicache_size" if case.args.hicache_size > 0 else "hicache_ratio"
    yield Seen(
        name if case.gave(name) else "enable_hierarchical_cache",
        f"{format_gb(stage.bytes)} per rank x {ranks} {'rank' if ranks == 1 else 'ranks'} on a node = "
        f"{format_gb(stage.bytes * ranks)}"
        + (f", and {format_gb(_beside(case) * ranks)} of storage" if _beside(case) else "")
        + f"; the node has {format_gb(case.host.available_bytes)}, of which SGLang keeps 10 GiB free: "
        f"{format_gb(max(usable, 0))}, or {format_gb(max(usable, 0) // ranks)} per rank",
        _what_fits(case, stage, usable // ranks - _beside(case)),
        asked=case.raw(name),
    )


@rule(
    "HC502",
    "node-nearly-full",
    "warning",
    covers=("5 reserve",),
    why="Pinned memory cannot be swapped or reclaimed; a node needs room for weights being read, for processes and "
    "for transfer engines. The limit of 90 % of what is available is this program's own. Source of the reserve: "
    "SGLang 0.5.23, mem_cache/pool_host/base.py.",
    bad={**ON, "tp_size": 4, "hicache_size": 35},
    good={**ON, "tp_size": 4, "hicache_size": 20},
    needs=("plan", "host"),
    settings={**LLAMA, "host_memory": "155GB"},
)
def node_nearly_full(case: Case) -> Iterator[Seen]:
    """Nearly all of a node's memory in host pools."""
    stage = _largest(case)
    if stage is None or stage.bytes is None or case.host is None:
        return
    needed = (stage.bytes + _beside(case)) * case.host.ranks_per_node
    if case.host.available_bytes * 9 // 10 < needed <= case.host.available_bytes - RESERVE_BYTES:
        share = needed * 100 // case.host.available_bytes
        yield Seen(
            "hicache_size" if case.gave("hicache_size") else "enable_hierarchical_cache",
            f"the ranks of a node pin {format_gb(needed)}, {share} % of the {format_gb(case.host.available_bytes)} "
            "that it has",
            "Leave room for the processes themselves, weights being loaded and transfer engines.",
        )


@rule(
    "HC503",
    "one-registration-too-large",
    "warning",
    covers=("5 registration",),
    why="Since 0.5.19 host memory is registered with the driver in pieces (SGLANG_HICACHE_HOST_REGISTER_CHUNK_GB, "
    "256 GB by default); before, a pool is registered as a whole, and some drivers refuse 512 GiB and more. "
    "Source: SGLang 0.5.23, mem_cache/pool_host/common.py; the limit is from reports, not from a run.",
    until="0.5.18",
    bad={**ON, "hicache_size": 600},
    good={**ON, "hicache_size": 500},
    needs=("plan",),
    settings={**LLAMA, "sglang": "0.5.18"},
)
def one_registration_too_large(case: Case) -> Iterator[Seen]:
    """A pool of 512 GiB or more."""
    for stage in case.plan.stages if case.plan is not None else ():
        for pool in stage.pools:
            if pool.bytes is not None and pool.bytes >= DRIVER_LIMIT:
                yield Seen(
                    "hicache_size" if case.gave("hicache_size") else "enable_hierarchical_cache",
                    f"the {pool.name} pool of a rank is {format_gib(pool.bytes)} in one registration; some drivers "
                    "refuse "
                    f"{DRIVER_LIMIT // GIB} GiB and more",
                    "Use more ranks with less each, or a release that registers in pieces.",
                )
                return


@rule(
    "HC504",
    "huge-pages-not-counted",
    "note",
    covers=("1.4 huge pages",),
    why="Free memory as SGLang reads it does not contain reserved huge pages, so with SGLANG_HUGEPAGE_SIZE its check "
    "refuses pools that would lie in them. Source: SGLang 0.5.23, mem_cache/host_memory.py.",
    bad=ON,
    good=ON,
    settings={"environment": {"SGLANG_HUGEPAGE_SIZE": "1GB"}},
    good_settings={"environment": {}},
)
def huge_pages_not_counted(case: Case) -> Iterator[Seen]:
    """Huge pages that SGLang's check does not see."""
    size = case.environment.get("SGLANG_HUGEPAGE_SIZE")
    if size and case.resolution.host_pools and case.raw("enable_hierarchical_cache"):
        yield Seen(
            "enable_hierarchical_cache",
            f"SGLANG_HUGEPAGE_SIZE={size}: SGLang's memory check does not count reserved huge pages as free",
            "Leave as much plain memory free as the pools take, or the check refuses them.",
        )


@rule(
    "HC505",
    "fit-not-known",
    "warning",
    covers=(),
    why="A size that depends on device slots that nobody named can't be held against the host's memory, so a plan says "
    "neither that it fits nor that it does not. SGLang itself knows its device slots when it checks: this warning is "
    "this program's own.",
    bad={**ON, "tp_size": 4, "hicache_ratio": 2.0},
    good={**ON, "tp_size": 4, "hicache_ratio": 2.0, "max_total_tokens": 100_000},
    needs=("plan", "host"),
    settings={**LLAMA, "host_memory": "155GB"},
)
def fit_not_known(case: Case) -> Iterator[Seen]:
    """Host memory is given, and a pool's bytes are not known."""
    stages = case.plan.stages if case.plan is not None else ()
    if any(stage.bytes is None for stage in stages):
        yield Seen(
            "hicache_ratio" if case.gave("hicache_ratio") else "enable_hierarchical_cache",
            "whether the host's memory is enough is not known, because the device slots are not",
            f"Give them with --device-slots, {flag(case, 'max_total_tokens')} or a /server_info file.",
        )
