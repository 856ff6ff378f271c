"""One stage's own answer: what this rank could have alone, as an offer to the pipeline.

The door to the two accountings of a size (`total_size`, `sglang_size`) and to ratios. Returns values; nothing is
raised for a person's mistake. Must not import anything of the project but its floor.
"""

from __future__ import annotations

from .capacity import TotalSize
from .offers import Offer, offer_of
from .pools import Stage
from .ratios import ratio_in_force
from .sglang_size import mapped_zero_bytes, resolve_size
from .terms import Terms
from .total_size import resolve_total


def resolve(stage: Stage, terms: Terms, *, allowance_bytes: int | None = None, index: int | None = None) -> Offer:
    """What one rank of `stage` could have alone, under the terms.

    `allowance_bytes` is the host memory that a rank may claim (only HostFraction uses it); `index` is the stage's
    number, for messages. Errors come back in `Offer.findings`.
    """
    capacity = terms.capacity
    if isinstance(capacity, TotalSize):
        if terms.accounting == "total":
            return resolve_total(stage, capacity, terms.release, index)
        return resolve_size(stage, capacity, terms.release, index)
    ratio, assumptions, findings = ratio_in_force(stage, capacity, allowance_bytes, index)
    if terms.accounting == "sglang":
        findings += mapped_zero_bytes(stage, index, allows_states=terms.release.at_least("0.5.15"))
    pools = tuple(
        offer_of(group, own_pages=None if group.leader.slots is None else group.pages_at_ratio(ratio))
        for group in stage.groups
    )
    unknown = tuple(pool.name for pool in pools if pool.device_slots is None and not pool.is_empty)
    return Offer(pools, ratio=ratio, unknown=unknown, findings=tuple(findings), assumptions=assumptions)
