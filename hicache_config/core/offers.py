"""What a stage brings into the agreement: an offer for each of its independent pools.

Must not import anything of the project but its floor.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from .findings import Finding
from .pools import Group, PageRule


@dataclass(frozen=True)
class PoolOffer:
    """What one independent pool of a stage brings into the agreement.

    `device_slots` and `page_size` must be equal wherever the pool exists. `raw_slots` is what SGLang computes from
    the size before its minimum, `share_gb` the part of the size that the pool gets; `own_pages` what the stage alone
    would have. `is_empty`: the pool costs nothing here and counts as absent. `page_rule` must be equal too: with the
    same slots another rule makes other pages.
    """

    name: str
    device_slots: int | None
    page_size: int
    is_empty: bool = False
    raw_slots: int | None = None
    share_gb: float | None = None
    own_pages: int | None = None
    page_rule: PageRule = "added"


@dataclass(frozen=True)
class Offer:
    """A stage's own result. `scale` is the bound below which everything fits (accounting `total`, a size, slots known).

    `ratio` is in force in ratio mode. `unknown` names independent pools whose slots would be needed and are not known.
    """

    pools: tuple[PoolOffer, ...]
    scale: Fraction | None = None
    ratio: float | None = None
    unknown: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()
    assumptions: tuple[str, ...] = ()

    @property
    def owned(self) -> tuple[PoolOffer, ...]:
        """The pools that cost bytes on the stage."""
        return tuple(pool for pool in self.pools if not pool.is_empty)


def offer_of(
    group: Group, *, raw_slots: int | None = None, share_gb: float | None = None, own_pages: int | None = None
) -> PoolOffer:
    """The offer of one group of pools, by its leader."""
    leader = group.leader
    return PoolOffer(
        leader.name, leader.slots, leader.page_size, group.is_empty, raw_slots, share_gb, own_pages, leader.page_rule
    )
