"""What every stage must be asked alike: the capacity, the accounting, the SGLang release.

Must not import anything of the project but its floor.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from .capacity import Capacity
from .releases import Release

#: "sglang": what that release really allocates; "total": never more than the size on any rank.
Accounting = Literal["sglang", "total"]


@dataclass(frozen=True)
class Terms:
    """The question that a plan answers; equal on all ranks. Raises ValueError for an accounting that is none."""

    capacity: Capacity
    accounting: Accounting
    release: Release

    def __post_init__(self) -> None:
        if self.accounting not in get_args(Accounting):
            raise ValueError(f"accounting is {self.accounting!r}; write one of {', '.join(get_args(Accounting))}")
