"""The ranks that agree with each other, as the one operation that the agreement needs.

Must not import torch, nor anything of the project but what stands beside it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable


class GroupError(RuntimeError):
    """The ranks could not exchange their messages: one of them died, is too late or never came.

    `missing` are the ranks that did not take part, where the group can tell; `help` says what to do about it.
    """

    def __init__(self, message: str, *, missing: Sequence[int] = (), help_: str = "") -> None:
        super().__init__(message)
        self.missing = tuple(missing)
        self.help = help_


@runtime_checkable
class RankGroup(Protocol):
    """The ranks of an agreement, as one of them sees it: the pipeline group, or the world.

    Anything with these three members will do (an engine over MPI or Ray writes its own in a few lines).
    """

    @property
    def rank(self) -> int:
        """This rank's place in the group, from 0."""
        ...

    @property
    def size(self) -> int:
        """How many ranks the group has."""
        ...

    def gather(self, message: bytes) -> Sequence[bytes]:
        """The messages of all ranks, in rank order, on every rank.

        All ranks give the same length, a multiple of 8 bytes. It must end within the group's own timeout: raises
        GroupError (or whatever the transport raises) when a rank does not take part.
        """
        ...


class SingleRank:
    """A group of one: an engine without a pipeline."""

    rank = 0
    size = 1

    def gather(self, message: bytes) -> list[bytes]:
        """Its own message."""
        return [message]


def as_group(group: object) -> RankGroup:
    """A RankGroup from a torch process group, a RankGroup or None (a single rank).

    Raises TypeError for anything else, and for the placeholder that torch gives to ranks outside a group.
    """
    if group is None:
        return SingleRank()
    # A torch process group has methods called rank, size and gather too, so it is looked for first, and by its
    # methods: torch need not be imported to tell.
    if all(callable(getattr(group, name, None)) for name in ("rank", "size", "allgather")):
        from .torch_group import TorchGroup

        return TorchGroup(group)
    if isinstance(group, RankGroup) and isinstance(group.rank, int) and isinstance(group.size, int):
        return group
    raise TypeError(
        f"group is {group!r}, which is no rank group: give a torch.distributed process group that this rank belongs "
        "to, an object with rank, size and gather(message), or None for a single rank"
    )
