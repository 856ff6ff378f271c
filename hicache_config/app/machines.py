"""The machines that an engine runs on: which ranks lie on each, and what SGLang lets a rank claim of its memory.

Must not import anything above this floor.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..arguments import ServerArgs
from ..core.releases import Release
from ..core.units import RESERVE_BYTES, format_gb
from ..geometry.parallel import NodeRanks, placement
from ..rules.case import HostMemory
from ..sources.document import Engine
from .options import Options


@dataclass(frozen=True)
class Machines:
    """The nodes with their ranks, and their memory.

    `available_bytes` is what a node has for host pools, `allowance_bytes` what SGLang lets a rank claim of it; both
    are None where no memory is given. `assumptions` say where the memory is from.
    """

    nodes: tuple[NodeRanks, ...] = ()
    available_bytes: int | None = None
    allowance_bytes: int | None = None
    assumptions: tuple[str, ...] = ()

    @property
    def memory(self) -> HostMemory | None:
        """What the rules about host memory need: the node with the most ranks decides."""
        if self.available_bytes is None:
            return None
        return HostMemory(self.available_bytes, max((node.ranks for node in self.nodes), default=1))


def machines_of(engine: Engine, options: Options, args: ServerArgs, release: Release, stages: int) -> Machines:
    """The machines of an engine of so many pipeline stages (0: not known, then as many as the arguments say).

    A node has for host pools what the caller says, at most the limit of the engine's container.
    """
    limit, said = engine.memory_limit_bytes, options.host_memory_bytes
    available = min((each for each in (said, limit) if each is not None), default=None)
    texts = []
    if limit is not None and (said is None or limit < said):
        texts.append(
            f"the container's memory limit, {format_gb(limit)}, is taken as what is available when pools are built; "
            "what else runs in the container comes off it"
        )
    return Machines(
        _nodes(args, stages, options.ranks_per_node),
        available,
        None if available is None else allowance_of(available, args, release, options.ranks_per_node),
        tuple(texts),
    )


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


def _nodes(args: ServerArgs, stages: int, ranks_per_node: int | None) -> tuple[NodeRanks, ...]:
    """Which ranks lie on which machine: as SGLang places them, or so many on each as the caller says."""
    replicas = 1 if args.enable_dp_attention else args.dp_size
    if ranks_per_node is None:
        return placement(args.tp_size, stages or args.pp_size, args.nnodes, replicas)
    owners = [stage for _ in range(replicas) for stage in range(stages or args.pp_size) for _ in range(args.tp_size)]
    nodes = []
    for number, first in enumerate(range(0, len(owners), ranks_per_node)):
        held = owners[first : first + ranks_per_node]
        nodes.append(NodeRanks(number, {stage: held.count(stage) for stage in sorted(set(held))}))
    return tuple(nodes)
