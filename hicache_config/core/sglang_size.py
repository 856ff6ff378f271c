"""A size under accounting `sglang`: how a release shares it over the host pools, float by float.

Must not import anything of the project but its floor.
"""

from __future__ import annotations

from collections.abc import Sequence

from .capacity import TotalSize
from .findings import Finding, stage_numbers
from .offers import Offer, offer_of
from .pools import Group, Stage
from .releases import Release


def resolve_size(stage: Stage, capacity: TotalSize, release: Release, index: int | None) -> Offer:
    """What SGLang makes of the size on one rank of the stage before its minimum; errors in `Offer.findings`."""
    findings = mapped_zero_bytes(stage, index, allows_states=release.at_least("0.5.17"))
    if not stage.owned and stage.groups:
        findings = [_all_zero(index)]
    whole = [group.leader.name for group in stage.owned if group.leader.page_rule == "whole"]
    if whole:
        findings.append(_size_refused(capacity))
    shares = shares_gb(stage, capacity, release)
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
        pools.append(offer_of(group, raw_slots=raw, share_gb=share, own_pages=own))
    return Offer(tuple(pools), unknown=unknown, findings=tuple(findings))


def shares_gb(stage: Stage, capacity: TotalSize, release: Release) -> dict[str, float]:
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


def mapped_zero_bytes(stage: Stage, index: int | None, *, allows_states: bool) -> list[Finding]:
    """Pools whose host buffer would have length 0: SGLang can't map one.

    `allows_states`: states without bytes are built by a tensor that maps nothing, by a ratio since 0.5.15, by a size
    since it is split (0.5.23, mem_cache/pool_host/mamba.py:MambaPoolHost.init_kv_buffer; before, it divides by 0).
    """
    return [
        zero_bytes(group.leader.name, () if index is None else (index,))
        for group in stage.groups
        # DeepSeek V4's anchor is logical: it maps nothing and its followers hold the bytes.
        if group.leader.bytes_per_page == 0 and group.leader.page_rule == "added"
        if not (allows_states and group.leader.name == "mamba" and group.is_empty)
    ]


def zero_bytes(pool: str, stages: Sequence[int]) -> Finding:
    """The error for a host pool without bytes on these stages (none: the only one)."""
    where = f"{stage_numbers(stages)}: " if stages else ""
    return Finding(
        "HC303",
        "pool-of-zero-bytes",
        "error",
        f"{where}host pool {pool!r} would hold no bytes; SGLang maps a buffer of length 0 and stops with EINVAL while "
        "the other stages wait",
        "Give every stage a layer of each kind: change --pp-size or SGLANG_PP_LAYER_PARTITION.",
        argument="pp_size",
        stage=stages[0] if len(stages) == 1 else None,
        pool=pool,
    )


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


def _size_refused(capacity: TotalSize) -> Finding:
    return Finding(
        "HC304",
        "size-refused-for-pages",
        "error",
        "--hicache-size is refused by SGLang for DeepSeek V4, after the weights are loaded",
        "Write --hicache-ratio; `hicache-config plan --accounting total` prints the ratio that a size equals.",
        argument="hicache_size",
        asked=capacity.size_gb,
    )
