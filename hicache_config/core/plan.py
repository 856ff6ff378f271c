"""The plan: concrete host sizes for every pool of a stage, with where each number came from.

`plan` does the whole road for a pipeline whose stages are all at hand; on a real rank `resolve`, the exchange and
`finish` do the same for one stage. Must not import anything of the project but its floor.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeVar

from .agree import Agreement, agree
from .capacity import TotalSize
from .findings import Finding, has_errors
from .pools import DevicePool, Group, Stage
from .resolve import Offer, PoolOffer, ratio_for, resolve
from .terms import Terms

Host = TypeVar("Host")


@dataclass(frozen=True)
class HostPoolSize:
    """The size of one host pool on one rank; all that a constructor needs.

    `pages` of `page_size` slots make `slots`; `bytes` is what is allocated, `(pages + extra_pages) * page_bytes`.
    `own_slots` is what the stage would have alone. `share_gb` is the pool's part of the size as SGLang splits it,
    `host_size_gb` the float that makes SGLang's own constructor build exactly these pages (independent pools only).
    `inside_size`: whether the size counts these bytes (None with a ratio). None stands for what is not known.
    """

    name: str
    follows: str | None
    page_size: int
    bytes_per_slot: int | None
    page_bytes: int
    device_slots: int | None
    extra_pages: int
    slots: int | None
    pages: int | None
    bytes: int | None
    own_slots: int | None
    share_gb: float | None
    host_size_gb: float | None
    inside_size: bool | None
    trace: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """The pool as plan files write it."""
        names = (
            "name", "follows", "page_size", "bytes_per_slot", "page_bytes", "device_slots", "share_gb", "own_slots",
            "slots", "pages", "extra_pages", "bytes", "inside_size", "host_size_gb",
        )  # fmt: skip
        return {**{name: getattr(self, name) for name in names}, "trace": list(self.trace)}


@dataclass(frozen=True)
class StagePlan:
    """Host pools of one stage; amounts are per rank. `size_bytes` is the size asked for (None with a ratio)."""

    stage: int
    layers: int | None
    pools: tuple[HostPoolSize, ...]
    size_bytes: int | None

    def __getitem__(self, name: str) -> HostPoolSize:
        for pool in self.pools:
            if pool.name == name:
                return pool
        raise KeyError(name)

    @property
    def bytes(self) -> int | None:
        """Host bytes of all pools of a rank, or None when one of them is not known."""
        known = [pool.bytes for pool in self.pools if pool.bytes is not None]
        return sum(known) if len(known) == len(self.pools) else None

    @property
    def over_size_bytes(self) -> int | None:
        """Bytes of a rank beyond the size."""
        return None if self.size_bytes is None or self.bytes is None else max(0, self.bytes - self.size_bytes)

    @property
    def unused_bytes(self) -> int | None:
        """Bytes of the size that a rank leaves unused."""
        return None if self.size_bytes is None or self.bytes is None else max(0, self.size_bytes - self.bytes)

    def as_dict(self) -> dict[str, Any]:
        """The stage as plan files write it."""
        return {
            "stage": self.stage,
            "layers": self.layers,
            "pools": [pool.as_dict() for pool in self.pools],
            "bytes": self.bytes,
            "size_bytes": self.size_bytes,
            "over_size_bytes": self.over_size_bytes,
            "unused_bytes": self.unused_bytes,
        }


@dataclass(frozen=True)
class Plan:
    """Host sizes of a pipeline, or of this rank's stage of it.

    `plan["kv"]` and `plan.pools` are those of `own_stage`, the stage of this rank (the first one where all are given).
    `ratio` is one with which SGLang's own constructors build these pages, where there is one.
    """

    terms: Terms
    stages: tuple[StagePlan, ...]
    own_stage: int = 0
    ratio: float | None = None
    decided_by: tuple[int, ...] = ()
    stock_size_gb: int | None = None
    assumptions: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()

    def stage(self, number: int) -> StagePlan:
        """The plan of one stage; raises KeyError for a stage that is not in this plan."""
        for stage in self.stages:
            if stage.stage == number:
                return stage
        raise KeyError(number)

    @property
    def pools(self) -> tuple[HostPoolSize, ...]:
        """The pools of this rank's stage, in the order given."""
        return self.stage(self.own_stage).pools

    def __getitem__(self, name: str) -> HostPoolSize:
        return self.stage(self.own_stage)[name]

    def __iter__(self) -> Iterator[HostPoolSize]:
        return iter(self.pools)

    def build(self, constructors: Mapping[str, Callable[[HostPoolSize], Host]]) -> dict[str, Host]:
        """Build this rank's host pools: each constructor is called with its HostPoolSize, leaders before followers.

        Raises KeyError when a pool has no constructor or a constructor no pool, and ValueError when a size is not
        known, before anything is built.
        """
        names = [pool.name for pool in self.pools]
        if missing := [name for name in names if name not in constructors]:
            raise KeyError(f"no constructor is given for {', '.join(missing)}")
        if unknown := [name for name in constructors if name not in names]:
            raise KeyError(f"the plan has no pool named {', '.join(unknown)}; it has {', '.join(names)}")
        if unsized := [pool.name for pool in self.pools if pool.pages is None]:
            raise ValueError(f"the size of {', '.join(unsized)} is not known: give the device slots")
        independent_first = sorted(self.pools, key=lambda pool: pool.follows is not None)
        built = {pool.name: constructors[pool.name](pool) for pool in independent_first}
        return {name: built[name] for name in names}


def plan(stages: Sequence[Stage], terms: Terms, *, allowance_bytes: int | Sequence[int] | None = None) -> Plan:
    """The plan of a pipeline whose stages are all given, in their order; a refused one has findings and no stages.

    `allowance_bytes` is the host memory that a rank may claim: one number, or one a stage (HostFraction only).
    """
    allowances = allowance_bytes if isinstance(allowance_bytes, Sequence) else [allowance_bytes] * len(stages)
    offers = [
        resolve(stage, terms, allowance_bytes=allowance, index=index if len(stages) > 1 else None)
        for index, (stage, allowance) in enumerate(zip(stages, allowances, strict=True))
    ]
    agreement = agree(offers, terms)
    if has_errors(agreement.findings):
        return Plan(terms, (), findings=agreement.findings)
    planned = _finish_all(stages, offers, agreement, terms)
    return Plan(
        terms,
        planned,
        ratio=agreed_ratio(offers, agreement, terms),
        decided_by=agreement.decided_by,
        stock_size_gb=stock_size_gb(stages, terms),
        assumptions=assumptions_of(offers, agreement),
        findings=agreement.findings,
    )


def _finish_all(
    stages: Sequence[Stage], offers: Sequence[Offer], agreement: Agreement, terms: Terms
) -> tuple[StagePlan, ...]:
    return tuple(
        finish(stage, offer, agreement, terms, index=index)
        for index, (stage, offer) in enumerate(zip(stages, offers, strict=True))
    )


def finish(stage: Stage, offer: Offer, agreement: Agreement, terms: Terms, *, index: int = 0) -> StagePlan:
    """The final sizes of a rank of one stage, from its own offer and the agreement. Nothing is exchanged any more."""
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
        f"int({slots:,} device slots * ({pages * leader.page_size:,} host slots of {leader.name} / {slots:,})) "
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


def assumptions_of(offers: Sequence[Offer], agreement: Agreement) -> tuple[str, ...]:
    """What a plan assumes or does not know, each once."""
    texts = [text for offer in offers for text in offer.assumptions]
    if agreement.unknown:
        names = ", ".join(agreement.unknown)
        texts.append(
            f"the device slots of {names} are not known, so the sizes that depend on them are null; "
            "give them with --device-slots, --max-total-tokens or a /server_info file"
        )
    return tuple(dict.fromkeys(texts))


def stock_size_gb(stages: Sequence[Stage], terms: Terms) -> int | None:
    """The largest whole `--hicache-size` with which SGLang alone stays within the budget on every rank.

    None with a ratio, where no whole size does, and where SGLang refuses a size or its pools are not known.
    """
    capacity = terms.capacity
    if not isinstance(capacity, TotalSize):
        return None
    budget = capacity.bytes

    def fits(size_gb: int) -> bool | None:
        asked = Terms(TotalSize(size_gb), "sglang", terms.release)
        offers = [resolve(stage, asked) for stage in stages]
        agreement = agree(offers, asked)
        if has_errors(agreement.findings) or agreement.unknown:
            return None
        planned = _finish_all(stages, offers, agreement, asked)
        return all(sizes.bytes is not None and sizes.bytes <= budget for sizes in planned)

    low, high = 0, int(capacity.size_gb)
    if high < 1 or fits(1) is None:
        return None
    while low < high:
        middle = (low + high + 1) // 2
        if fits(middle):
            low = middle
        else:
            high = middle - 1
    return low or None
