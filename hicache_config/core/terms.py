"""What every stage must be asked alike: the capacity, the accounting, the SGLang release.

Must not import anything of the project but its floor.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from .capacity import Capacity
from .releases import Release

#: "sglang": what that release really allocates; "total": never more than the size on any rank.
Accounting = Literal["sglang", "total"]


@dataclass(frozen=True)
class Terms:
    """The question that a plan answers; equal on all ranks."""

    capacity: Capacity
    accounting: Accounting
    release: Release
