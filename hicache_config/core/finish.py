"""From a stage's own offer and the agreement to its final sizes, with where each number came from.

Nothing is exchanged any more. Must not import anything of the project but its floor.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from .agree import Agreement
from .capacity import TotalSize
from .offers import Offer, PoolOffer
from .pools import DevicePool, Group, Stage
from .ratios import ratio_for
from .sizes import HostPoolSize, StagePlan
from .terms import Terms


def finish(stage: Stage, offer: Offer, agreement: Agreement, terms: Terms, *, index: int = 0) -> StagePlan:
    """The final sizes of a rank of one stage, from its own offer and the agreement."""
    offers = {pool.name: pool for pool in offer.pools}
    pools = []
    for pool in stage.pools:
        group = stage.group_of(pool.name)
        leader_offer = offers[group.leader.name]
        pages, steps = _final_pages(group, leader_offer, agreement, terms)
        pools.append(_host_pool(pool, group, pages, steps, offer=leader_offer, terms=terms))
    size = terms.capacity.bytes if isinstance(terms.capacity, TotalSize) else None
    return StagePlan(index, stage.layers, tuple(pools), size)


def _final_pages(group: Group, offer: PoolOffer, agreement: Agreement, terms: Terms) -> tuple[int | None, list[str]]:
    """Pages of an independent pool after the agreement, with the steps of the arithmetic in words."""
    page, capacity = group.leader.page_size, terms.capacity
    if not isinstance(capacity, TotalSize):
        assert agreement.ratio is not None  # ratio mode agrees on a ratio
        if group.leader.slots is None:
            return None, [f"device slots are not known; {agreement.ratio} host slots per device slot"]
        pages = group.pages_at_ratio(agreement.ratio)
        return pages, [_ratio_step(group, agreement.ratio, pages)]
    if terms.accounting == "sglang":
        return _sglang_pages(group, offer, agreement)
    steps = [f"{capacity.size_gb} GB per rank = {capacity.bytes:,} bytes for all host pools of the rank"]
    name = group.leader.name
    if name in agreement.pages:
        pages = agreement.pages[name]
        if offer.own_pages is not None:
            steps.append(
                f"alone: ({capacity.bytes:,} - {group.fixed_bytes:,}) // {group.page_bytes:,} bytes a page with "
                f"followers = {offer.own_pages:,} pages"
            )
        steps.append(f"agreed: {pages:,} pages on every stage that has the pool")
        return pages, steps
    if agreement.scale is None or group.leader.slots is None:
        return None, [*steps, "device slots of all independent pools are needed to share the size and are not known"]
    pages = group.pages_below(agreement.scale)
    if offer.own_pages is not None:
        steps.append(f"alone: {offer.own_pages:,} pages")
    steps.append(
        f"agreed: below a scale of {float(agreement.scale):.9g} host slots per device slot, "
        f"{group.leader.slots:,} device slots make {pages:,} pages of {page}"
    )
    return pages, steps


def _sglang_pages(group: Group, offer: PoolOffer, agreement: Agreement) -> tuple[int | None, list[str]]:
    page = group.leader.page_size
    if group.is_empty:
        return None, ["the pool holds no bytes on this stage, and gets nothing of the size"]
    if offer.raw_slots is None:
        return None, ["the device bytes of the independent pools are needed to split the size and are not known"]
    steps = [f"int({offer.share_gb!r} * 1e9 // {group.leader.bytes_per_slot:,}) = {offer.raw_slots:,} slots"]
    raw = agreement.raw_slots.get(group.leader.name, offer.raw_slots)
    if raw != offer.raw_slots:
        steps.append(f"minimum over the stages: {raw:,} slots")
    pages = raw // page + 1
    steps.append(f"{raw:,} // {page} + 1 = {pages:,} pages")
    return pages, steps


def _ratio_step(group: Group, ratio: float, pages: int) -> str:
    slots, page = group.known_slots, group.leader.page_size
    if group.leader.page_rule == "whole":
        return f"int({-(-slots // page):,} device pages * {ratio!r}) = {pages:,} pages"
    return f"int({slots:,} device slots * {ratio!r}) // {page} + 1 = {pages:,} pages"


def _host_pool(
    pool: DevicePool,
    group: Group,
    pages: int | None,
    steps: Sequence[str],
    *,
    offer: PoolOffer,
    terms: Terms,
) -> HostPoolSize:
    is_leader = pool is group.leader
    own_pages = offer.own_pages
    trace = list(steps) if is_leader else [f"pages of {group.leader.name}" + ("" if pages is None else f": {pages:,}")]
    if not is_leader and pool.follow_rule == "ratio":
        trace, pages, own_pages = _by_ratio(pool, group, pages, own_pages)
    allocated = None if pages is None else (pages + pool.extra_pages) * pool.bytes_per_page
    if pages is None and group.is_empty:
        allocated = 0
    if pages is not None:
        count = f"({pages:,} + {pool.extra_pages} extra)" if pool.extra_pages else f"{pages:,}"
        trace.append(f"{count} pages * {pool.bytes_per_page:,} bytes = {allocated:,} bytes per rank")
    inside: bool | None = None
    if isinstance(terms.capacity, TotalSize):
        inside = terms.accounting == "total" or is_leader or pool.carved
        if not inside:
            trace.append(
                f"outside the size: SGLang {terms.release.name} sizes it by the pages of {group.leader.name} alone"
            )
    return HostPoolSize(
        name=pool.name,
        follows=pool.follows,
        page_size=pool.page_size,
        bytes_per_slot=pool.bytes_per_slot,
        page_bytes=pool.bytes_per_page,
        device_slots=pool.slots if is_leader else (pool.slots or group.leader.slots),
        extra_pages=pool.extra_pages,
        slots=None if pages is None else pages * pool.page_size,
        pages=pages,
        bytes=allocated,
        own_slots=None if own_pages is None else own_pages * pool.page_size,
        share_gb=offer.share_gb if is_leader else None,
        host_size_gb=host_size_gb(pool, pages) if is_leader else None,
        inside_size=inside,
        trace=tuple(trace),
    )


def _by_ratio(
    pool: DevicePool, group: Group, pages: int | None, own_pages: int | None
) -> tuple[list[str], int | None, int | None]:
    """The trace, the pages and the stage's own pages of a follower that takes its leader's slots by a float ratio."""
    leader = group.leader
    slots = pool.slots or leader.slots
    if slots is None:
        return [f"device slots are not known; slots of {leader.name} through a ratio"], None, None
    if pages is None:
        return [f"slots of {leader.name} through a ratio"], None, None
    made = pool.pages_following(pages, leader)
    step = (
        f"int({slots:,} device slots * ({pages * pool.page_size:,} host slots of {leader.name} / {slots:,})) "
        f"// {pool.page_size} + 1 = {made:,} pages"
    )
    return [step], made, None if own_pages is None else pool.pages_following(own_pages, leader)


def host_size_gb(pool: DevicePool, pages: int | None) -> float | None:
    """The size in GB that makes SGLang's constructor build exactly `pages` pages, aimed at the middle of a page.

    None where no size does: unknown pages, a pool without bytes per slot, and pools of whole pages (DeepSeek V4).
    """
    if pages is None or not pool.bytes_per_slot or pool.page_rule == "whole":
        return None
    slots = Fraction((pages - 1) * pool.page_size) + Fraction(pool.page_size, 2)
    return float(slots * pool.bytes_per_slot / 10**9)


def agreed_ratio(offers: Sequence[Offer], agreement: Agreement, terms: Terms) -> float | None:
    """The ratio of a plan: the one in force, or under `total` the one that a size equals (None where none does).

    It takes the offers of all stages, so that every rank finds the same ratio, whatever pools its own stage has.
    """
    if agreement.ratio is not None:
        return agreement.ratio
    if terms.accounting != "total":
        return None
    owned: dict[str, PoolOffer] = {}
    for pool in (pool for offer in offers for pool in offer.owned):
        if pool.device_slots is not None or pool.name not in owned:
            owned[pool.name] = pool
    groups: dict[str, tuple[Group, int]] = {}
    for name, pool in owned.items():
        leader = DevicePool(name, pool.device_slots, page_size=pool.page_size, page_rule=pool.page_rule)
        group = Group(leader, (leader,))
        pages = agreement.pages.get(name)
        if pages is None and agreement.scale is not None and pool.device_slots is not None:
            pages = group.pages_below(agreement.scale)
        if pages is None:
            return None
        groups[name] = (group, pages)
    return ratio_for(groups)
