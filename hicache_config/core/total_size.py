"""A size under accounting `total`: the largest scale at which all host pools of a rank stay within it.

Exact integers and fractions only. Must not import anything of the project but its floor.
"""

from __future__ import annotations

from fractions import Fraction

from .capacity import TotalSize
from .findings import Finding
from .offers import Offer, offer_of
from .pools import Group, Stage
from .releases import Release
from .sglang_size import shares_gb
from .units import GB, format_bytes


def largest_scale(groups: tuple[Group, ...], budget: int) -> Fraction | None:
    """The bound below which the groups together cost at most `budget` bytes; None when there is no group.

    Costs are a step function of the scale that never falls, and each step is one more page of some group. The bound
    is the first step that costs more than the budget: it is the least, over the groups, of the group's own first
    step at which the cost of all is too high. Needs known slots; the cost of the smallest pools must be within budget.
    """
    return min((group.scale_for(_first_pages_over(group, groups, budget)) for group in groups), default=None)


def _first_pages_over(group: Group, groups: tuple[Group, ...], budget: int) -> int:
    """The fewest pages (at least 2) of `group` at whose scale all groups together cost more than the budget."""
    low, high = 2, max(2, budget // group.page_bytes + 1)
    while low < high:
        middle = (low + high) // 2
        if _cost_at(groups, group.scale_for(middle)) > budget:
            high = middle
        else:
            low = middle + 1
    return low


def _cost_at(groups: tuple[Group, ...], scale: Fraction) -> int:
    """Bytes of all groups at exactly this scale (a page that begins at it is there)."""
    total = 0
    for group in groups:
        slots, page = group.known_slots, group.leader.page_size
        if group.leader.page_rule == "whole":
            pages = -(-slots // page) * scale.numerator // scale.denominator
        else:
            pages = slots * scale.numerator // (scale.denominator * page) + 1
        total += group.cost(pages)
    return total


def least_bytes(stage: Stage) -> int:
    """Bytes of a rank of the stage with the smallest pools that there can be: a page of each independent pool.

    Pools of whole pages grow together, so the one with more device pages already has several when the other has one.
    """
    if any(group.leader.slots is None for group in stage.owned):
        return sum(group.cost(1) for group in stage.owned)
    whole = [group.scale_for(1) for group in stage.owned]
    return _cost_at(stage.owned, max(whole, default=Fraction(0)))


def resolve_total(stage: Stage, capacity: TotalSize, release: Release, index: int | None) -> Offer:
    """What a rank of the stage could have alone within the size; errors in `Offer.findings`."""
    owned = stage.owned
    shares = shares_gb(stage, capacity, release)
    unknown = tuple(group.leader.name for group in owned if group.leader.slots is None)
    if not owned:
        # It takes part: a stage of empty pools is one without pools. That all stages are empty is for agree to say.
        return Offer(tuple(offer_of(group) for group in stage.groups))
    least = least_bytes(stage)
    if least > capacity.bytes:
        return Offer(
            tuple(offer_of(group) for group in stage.groups), findings=(size_too_small(capacity, least, index),)
        )
    scale: Fraction | None = None
    own: dict[str, int | None] = {}
    if not unknown:
        scale = largest_scale(owned, capacity.bytes)
        assert scale is not None  # there is a group
        own = {group.leader.name: group.pages_below(scale) for group in owned}
    elif len(owned) == 1:
        own = {owned[0].leader.name: (capacity.bytes - owned[0].fixed_bytes) // owned[0].page_bytes}
    pools = tuple(
        offer_of(group, share_gb=shares.get(group.leader.name), own_pages=own.get(group.leader.name))
        for group in stage.groups
    )
    return Offer(pools, scale=scale, unknown=unknown)


def size_too_small(capacity: TotalSize, least: int, index: int | None) -> Finding:
    """The error for a size that can't hold one page of each pool; it names the least size in whole GB."""
    where = "" if index is None else f" on stage {index}"
    least_gb = -(-least // GB)
    return Finding(
        "HC301",
        "size-too-small",
        "error",
        f"--hicache-size {capacity.size_gb} (GB per rank) can't hold one page of each host pool{where}: "
        f"that takes {format_bytes(least)} per rank",
        f"The least size is {least_gb} (GB per rank).",
        argument="hicache_size",
        asked=capacity.size_gb,
        stage=index,
        detail={"least_bytes": least, "least_gb": least_gb},
    )
