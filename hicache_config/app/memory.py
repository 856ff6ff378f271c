"""What SGLang lets a rank claim of a host's memory. Must not import anything above this floor."""

from __future__ import annotations

from ..arguments import ServerArgs
from ..core.releases import Release
from ..core.units import RESERVE_BYTES


def allowance_of(available_bytes: int, args: ServerArgs, release: Release, ranks_per_node: int | None = None) -> int:
    """Bytes that SGLang lets one rank claim on a node with so much available memory; negative when there is too little.

    Since 0.5.19 what is left after the reserve is divided by the ranks of the host, replicas not counted; before, each
    rank saw all of it. Source: 0.5.23, mem_cache/pool_host/base.py:host_memory_budget_bytes, ranks_per_host.
    """
    room = available_bytes - RESERVE_BYTES
    if not release.divides_host_memory:
        return room
    ranks = ranks_per_node or max(args.tp_size * args.pp_size // args.nnodes, 1)
    return room // ranks
