"""The shared host arena of unified memory: one stretch of bytes that full and sliding pages grow into from both ends.

It has a formula of its own, outside the algebra of pools: it is refused here, with its bytes where a size says them.
Source: SGLang 0.5.23, mem_cache/pool_host/unified.py. Must not import anything above this floor.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..core.pools import DevicePool
from ..core.units import format_bytes
from .family import Case
from .model import refuse

_STORAGE = frozenset({None, "mori"})


def arena_bytes(size_gb: float, sides: Sequence[tuple[int, int]]) -> int:
    """Bytes of the arena that `--hicache-size` makes; each side is its slots a page and its bytes a page."""
    return max((int(size_gb * 1e9 * slots // bytes_) // slots + 1) * bytes_ for slots, bytes_ in sides)


def check_envelope(case: Case, pools: Sequence[DevicePool]) -> None:
    """Refuse a hybrid sliding window under unified memory whose host pools are one arena."""
    args = case.args
    named = {pool.name: pool for pool in pools}
    if not args.enable_unified_memory or not case.settings.sliding or set(named) != {"kv", "swa"}:
        return
    if args.speculative_algorithm is not None or args.hicache_storage_backend not in _STORAGE:
        return
    known = ""
    if args.hicache_size > 0:
        sides = [(pool.page_size, pool.bytes_per_page) for pool in named.values()]
        known = f" of {format_bytes(arena_bytes(args.hicache_size, sides))} a rank"
    raise refuse(
        "HC668",
        "shared-arena-not-planned",
        f"with --enable-unified-memory both pools share one host arena{known}, which pages of both kinds grow into "
        "from its two ends; plans by pool don't hold for it",
        "Leave --enable-unified-memory out to plan pools, or take the arena's bytes from this message.",
        argument="enable_unified_memory",
    )
