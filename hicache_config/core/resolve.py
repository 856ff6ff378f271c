"""One stage's own answer: what this rank could have alone, as an offer to the pipeline.

Two accountings. `total` looks for the largest scale (host slots per device slot, one for all pools) at which all
host pools of the rank together stay within the size. `sglang` repeats what a release does, float by float. Both
return values; nothing is raised for a person's mistake. Must not import anything of the project but its floor.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from .capacity import DeviceRatio, HostFraction, TotalSize
from .findings import Finding
from .pools import Group, PageRule, Stage
from .releases import Release
from .terms import Terms
from .units import GB, format_bytes, format_gb

#: The part of the budget that SGLang uses when it sizes by a fraction (0.5.23, hicache_auto_size.py: 5 % slack).
_FRACTION_USED = 1 - 0.05


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


def resolve(stage: Stage, terms: Terms, *, allowance_bytes: int | None = None, index: int | None = None) -> Offer:
    """What one rank of `stage` could have alone, under the terms.

    `allowance_bytes` is the host memory that a rank may claim (only HostFraction uses it); `index` is the stage's
    number, for messages. Errors come back in `Offer.findings`.
    """
    capacity = terms.capacity
    if isinstance(capacity, TotalSize):
        if terms.accounting == "total":
            return _resolve_total(stage, capacity, terms.release, index)
        return _resolve_size(stage, capacity, terms.release, index)
    ratio, assumptions, findings = _ratio(stage, capacity, allowance_bytes, index)
    if terms.accounting == "sglang":
        findings += _mapped_zero_bytes(stage, index)
    pools = tuple(
        _offer(group, own_pages=None if group.leader.slots is None else group.pages_at_ratio(ratio))
        for group in stage.groups
    )
    unknown = tuple(pool.name for pool in pools if pool.device_slots is None and not pool.is_empty)
    return Offer(pools, ratio=ratio, unknown=unknown, findings=tuple(findings), assumptions=assumptions)


# --- accounting "total" -------------------------------------------------------------------------------------------


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


def _resolve_total(stage: Stage, capacity: TotalSize, release: Release, index: int | None) -> Offer:
    owned = stage.owned
    shares = _shares(stage, capacity, release)
    unknown = tuple(group.leader.name for group in owned if group.leader.slots is None)
    if not owned:
        # It takes part: a stage of empty pools is one without pools. That all stages are empty is for agree to say.
        return Offer(tuple(_offer(group) for group in stage.groups))
    least = least_bytes(stage)
    if least > capacity.bytes:
        return Offer(tuple(_offer(group) for group in stage.groups), findings=(size_too_small(capacity, least, index),))
    scale: Fraction | None = None
    own: dict[str, int | None] = {}
    if not unknown:
        scale = largest_scale(owned, capacity.bytes)
        assert scale is not None  # there is a group
        own = {group.leader.name: group.pages_below(scale) for group in owned}
    elif len(owned) == 1:
        own = {owned[0].leader.name: (capacity.bytes - owned[0].fixed_bytes) // owned[0].page_bytes}
    pools = tuple(
        _offer(group, share_gb=shares.get(group.leader.name), own_pages=own.get(group.leader.name))
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


# --- accounting "sglang" ------------------------------------------------------------------------------------------


def _resolve_size(stage: Stage, capacity: TotalSize, release: Release, index: int | None) -> Offer:
    findings = _mapped_zero_bytes(stage, index)
    if not stage.owned and stage.groups:
        findings = [_all_zero(index)]
    whole = [group.leader.name for group in stage.owned if group.leader.page_rule == "whole"]
    if whole:
        findings.append(_size_refused(capacity, index))
    shares = _shares(stage, capacity, release)
    unshared = [group.leader for group in stage.owned if group.leader.name not in shares]
    # One pool whose device slots are not known keeps the others from their shares; only it is to be given.
    unknown = tuple(pool.name for pool in unshared if pool.weight is None) or tuple(pool.name for pool in unshared)
    pools = []
    for group in stage.groups:
        share = shares.get(group.leader.name)
        raw = None
        if share is not None and not group.is_empty and not whole and group.leader.bytes_per_slot:
            raw = int(share * 1e9 // group.leader.bytes_per_slot)
        own = None if raw is None else raw // group.leader.page_size + 1
        pools.append(_offer(group, raw_slots=raw, share_gb=share, own_pages=own))
    return Offer(tuple(pools), unknown=unknown, findings=tuple(findings))


def _shares(stage: Stage, capacity: TotalSize, release: Release) -> dict[str, float]:
    """GB of the size for each independent pool, in SGLang's order of float operations; empty where weights miss.

    A single pool gets the whole size. Since 0.5.17 several share it by device bytes, before each got the whole.
    Pools of another stack share a size of their own. Source: 0.5.23, hybrid_pool_assembler.py:_split_hicache_size.
    """
    shares: dict[str, float] = {}
    for stack in dict.fromkeys(group.leader.stack for group in stage.groups):
        groups = [group for group in stage.groups if group.leader.stack == stack]
        if len(groups) == 1 or not release.splits_a_size:
            shares |= {group.leader.name: float(capacity.size_gb) for group in groups}
            continue
        weights = {group.leader.name: group.leader.weight for group in groups}
        if any(weight is None for weight in weights.values()):
            continue
        total = sum(weight for weight in weights.values() if weight)
        if total:
            shares |= {name: capacity.size_gb * (weight or 0) / total for name, weight in weights.items()}
    return {name: _carve(stage.group_of(name), share) for name, share in shares.items()}


def _carve(group: Group, share: float) -> float:
    """What is left of a share after the followers that SGLang takes out of it, in its order of float operations.

    A follower of pages is taken out by one factor (0.5.23, build_hybrid_mamba_stack for QSA's compressed index,
    build_minimax_sparse_hicache_stack for packed 4-bit rows); followers by ratio are split off beside the pool and its
    packed drafts (build_hybrid_swa_group, since 0.5.22).
    """
    carved = [member for member in group.members if member.carved and member is not group.leader]
    if not carved:
        return share
    weighed = [group.leader, *carved]
    weights = [member.weight for member in weighed]
    if any(weight is None for weight in weights):  # in proportion the same: all have the same slots
        weights = [member.bytes_per_page for member in weighed]
    own, *rest = (weight or 0 for weight in weights)
    if all(member.follow_rule == "pages" for member in carved):
        return share * (own / (own + sum(rest)))
    kept = (own, *group.leader.packed_bytes)
    total = sum(kept) + sum(rest)
    return sum((share * weight / total for weight in kept), 0.0)


def _mapped_zero_bytes(stage: Stage, index: int | None) -> list[Finding]:
    where = "" if index is None else f"stage {index}: "
    return [
        Finding(
            "HC303",
            "pool-of-zero-bytes",
            "error",
            f"{where}host pool {group.leader.name!r} would hold no bytes; SGLang maps a buffer of length 0 and stops "
            "with EINVAL while the other stages wait",
            "Give every stage a layer of each kind: change --pp-size or SGLANG_PP_LAYER_PARTITION.",
            argument="pp_size",
            stage=index,
            pool=group.leader.name,
        )
        for group in stage.groups
        # DeepSeek V4's anchor is logical: it maps nothing and its followers hold the bytes.
        if group.leader.bytes_per_page == 0 and group.leader.page_rule == "added"
    ]


def _all_zero(index: int | None) -> Finding:
    where = "" if index is None else f" of stage {index}"
    return Finding(
        "HC302",
        "all-pools-empty",
        "error",
        f"all host pools{where} have zero bytes per slot, so there is nothing to size",
        "Check bytes_per_slot in the pools, or the layers that the stage owns.",
        stage=index,
    )


def _size_refused(capacity: TotalSize, index: int | None) -> Finding:
    return Finding(
        "HC304",
        "size-refused-for-pages",
        "error",
        "--hicache-size is refused by SGLang for DeepSeek V4, after the weights are loaded",
        "Write --hicache-ratio; `hicache-config plan --accounting total` prints the ratio that a size equals.",
        argument="hicache_size",
        asked=capacity.size_gb,
        stage=index,
    )


def _fraction_refused(index: int | None) -> Finding:
    return Finding(
        "HC306",
        "fraction-refused-for-pages",
        "error",
        "without --hicache-ratio SGLang sizes by a share of the host's memory, and it refuses that for DeepSeek V4, "
        "after the weights are loaded; its message proposes --hicache-size too, which is refused as well",
        "Write --hicache-ratio 2.0, or the ratio that `hicache-config plan --accounting total` prints for a size.",
        argument="hicache_ratio",
        gets="an error",
        stage=index,
    )


# --- a ratio ------------------------------------------------------------------------------------------------------


def _ratio(
    stage: Stage, capacity: DeviceRatio | HostFraction, allowance_bytes: int | None, index: int | None
) -> tuple[float, tuple[str, ...], list[Finding]]:
    if isinstance(capacity, DeviceRatio):
        return capacity.ratio, (), []
    if any(group.leader.page_rule == "whole" for group in stage.owned):
        return capacity.ratio, (), [_fraction_refused(index)]
    if allowance_bytes is None:
        text = (
            f"the host's memory is not given, so the ratio is taken as {capacity.ratio}, the most that SGLang "
            "would use; it may use less"
        )
        return capacity.ratio, (text,), []
    device_bytes = mirrored_device_bytes(stage)
    if device_bytes is None:
        text = f"device slots are not known, so the ratio is taken as {capacity.ratio}, the most that SGLang would use"
        return capacity.ratio, (text,), []
    if device_bytes == 0:
        return capacity.ratio, (), []
    budget = int(allowance_bytes * capacity.fraction)
    ratio = min(capacity.ratio, budget * _FRACTION_USED / device_bytes)
    if ratio > 0:
        return ratio, (), []
    finding = Finding(
        "HC305",
        "no-host-memory-left",
        "error",
        f"after the reserve of 10 GiB no host memory is left for a rank (allowance {format_gb(allowance_bytes)})",
        "Give the host more memory, start fewer ranks on it, or turn HiCache off.",
        argument="hicache_host_memory_fraction",
        stage=index,
    )
    return ratio, (), [finding]


def mirrored_device_bytes(stage: Stage) -> int | None:
    """Device bytes that SGLang scales by the ratio when it sizes by a fraction; None where slots are not known.

    Packed drafts count too. Followers count where their own device bytes are given or their leader's are not (a
    leader's `device_bytes` holds what SGLang counts for it, an indexer included).
    Source: 0.5.23, hicache_auto_size.py:_estimate_hicache_bytes.
    """
    total = 0
    for group in stage.groups:
        for pool in group.members:
            if pool.fraction_bytes is not None:
                total += pool.fraction_bytes
                continue
            if pool is not group.leader and pool.device_bytes is None and group.leader.device_bytes is not None:
                continue
            weight = pool.weight
            if weight is None and pool is not group.leader and group.leader.slots is not None:
                weight = -(-group.leader.slots // group.leader.page_size) * pool.bytes_per_page
            if weight is None:
                return None
            total += weight + sum(pool.packed_bytes)
    return total


def _offer(
    group: Group, *, raw_slots: int | None = None, share_gb: float | None = None, own_pages: int | None = None
) -> PoolOffer:
    leader = group.leader
    return PoolOffer(
        leader.name, leader.slots, leader.page_size, group.is_empty, raw_slots, share_gb, own_pages, leader.page_rule
    )


def ratio_for(groups: Mapping[str, tuple[Group, int]]) -> float | None:
    """A float ratio with which SGLang's constructors make exactly the given pages, or None when there is none.

    Aims at the middle of the range of scales that make these pages and evaluates the constructors' own expression.
    """
    if not groups or any(group.leader.slots is None for group, _ in groups.values()):
        return None
    low = max(group.scale_for(pages) for group, pages in groups.values())
    high = min(group.scale_for(pages + 1) for group, pages in groups.values())
    for part in (Fraction(1, 2), Fraction(1, 4), Fraction(3, 4)):
        ratio = float(low + (high - low) * part)
        if all(group.pages_at_ratio(ratio) == pages for group, pages in groups.values()):
            return ratio
    return None
