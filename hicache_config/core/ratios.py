"""Ratios: the one in force, a share of the host's memory turned into one, and the one that given pages equal.

Must not import anything of the project but its floor.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from .capacity import DeviceRatio, HostFraction
from .findings import Finding
from .pools import Group, Stage
from .units import format_gb

#: The part of the budget that SGLang uses when it sizes by a fraction (0.5.23, hicache_auto_size.py: 5 % slack).
_FRACTION_USED = 1 - 0.05


def ratio_in_force(
    stage: Stage, capacity: DeviceRatio | HostFraction, allowance_bytes: int | None, index: int | None
) -> tuple[float, tuple[str, ...], list[Finding]]:
    """Host slots per device slot on one rank of the stage, with what had to be assumed and what is wrong."""
    if isinstance(capacity, DeviceRatio):
        return capacity.ratio, (), []
    if any(group.leader.page_rule == "whole" for group in stage.owned):
        return capacity.ratio, (), [_fraction_refused()]
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


def _fraction_refused() -> Finding:
    return Finding(
        "HC306",
        "fraction-refused-for-pages",
        "error",
        "without --hicache-ratio SGLang sizes by a share of the host's memory, and it refuses that for DeepSeek V4, "
        "after the weights are loaded; its message proposes --hicache-size too, which is refused as well",
        "Write --hicache-ratio 2.0, or the ratio that `hicache-config plan --accounting total` prints for a size.",
        argument="hicache_ratio",
        gets="an error",
    )
