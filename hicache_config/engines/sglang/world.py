"""All ranks of an SGLang replica as the group of the agreement, with a limit to waiting of its own.

SGLang gives its CPU groups two hours (0.5.23, distributed/parallel_state.py: GroupCoordinator's gloo_timeout), whatever
--dist-timeout says. A node without the plugin, or with another HICACHE_CONFIG, never comes; the others should not wait
so long. Imports torch only inside functions.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

#: The ranks have met seconds before, when they agreed on their device slots; graphs may be captured in between.
LIMIT = timedelta(minutes=20)


class WorldGroup:
    """A torch process group as the agreement uses one (rank, size, allgather), where a gather ends within `limit`."""

    def __init__(self, group: Any, limit: timedelta = LIMIT) -> None:
        self._group = group
        self._limit = limit

    def rank(self) -> int:
        """This process's place among the ranks."""
        return int(self._group.rank())

    def size(self) -> int:
        """How many ranks there are."""
        return int(self._group.size())

    def allgather(self, outputs: Any, inputs: Any) -> Any:
        """The group's own, with the limit."""
        from torch.distributed.distributed_c10d import AllgatherOptions

        options = AllgatherOptions()
        options.timeout = self._limit
        return self._group.allgather(outputs, inputs, options)


def world_group(parallel: Any) -> WorldGroup | None:
    """The CPU group of all ranks of this replica: an error then reaches tensor ranks too. None for a single rank."""
    import torch

    if not (torch.distributed.is_available() and torch.distributed.is_initialized()):
        return None
    world = parallel.world_group
    return WorldGroup(world.cpu_group) if world.world_size > 1 else None
