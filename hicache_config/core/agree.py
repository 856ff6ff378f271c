"""All stages' offers in, one agreement out: the same pages for a pool wherever it exists.

A pure function that every rank can compute for itself; neither the order of the stages nor agreeing twice changes
the result. Must not import anything of the project but its floor.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from .capacity import TotalSize
from .findings import Finding, has_errors, stage_numbers
from .offers import Offer, PoolOffer
from .releases import Release
from .sglang_size import zero_bytes
from .terms import Accounting, Terms


@dataclass(frozen=True)
class Agreement:
    """What all stages hold to.

    Under `total` with a size: `scale`, the bound below which every stage fits (None where slots are not known), and
    `pages`, by independent pool. Under `sglang` with a size: `raw_slots` by pool (empty where a release takes no
    minimum). With a ratio: `ratio`. `decided_by` are the stages whose offer decided, smallest first; `unknown` the
    pools whose device slots are needed and not known. With errors in `findings` the rest must not be used.
    """

    scale: Fraction | None = None
    pages: Mapping[str, int] = field(default_factory=dict)
    raw_slots: Mapping[str, int] = field(default_factory=dict)
    ratio: float | None = None
    decided_by: tuple[int, ...] = ()
    unknown: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()


def agree(offers: Sequence[Offer], terms: Terms) -> Agreement:
    """The agreement of all stages' offers, in the order of the stages (a single stage is a pipeline of one)."""
    findings = _once_a_pool(worst_only([finding for offer in offers for finding in offer.findings]))
    has_size = isinstance(terms.capacity, TotalSize)
    if terms.accounting == "sglang" and has_size:
        findings += _differing_pools(offers, terms.release)
    else:
        findings += _differing_facts(offers, terms.accounting)
    if has_size and not has_errors(findings) and not any(offer.owned for offer in offers):
        findings.append(
            Finding(
                "HC302", "all-pools-empty", "error", "no stage has a host pool that holds bytes", "Check the pools."
            )
        )
    if has_errors(findings):
        return Agreement(findings=tuple(findings))
    unknown = tuple(dict.fromkeys(name for offer in offers for name in offer.unknown))
    if not has_size:
        ratios = [offer.ratio for offer in offers if offer.ratio is not None]
        ratio = min(ratios)
        decided = _where(ratio, [offer.ratio for offer in offers]) if len(set(ratios)) > 1 else ()
        return Agreement(ratio=ratio, decided_by=decided, unknown=unknown, findings=tuple(findings))
    if terms.accounting == "sglang":
        raw, decided = _minimum(offers, terms.release)
        return Agreement(raw_slots=raw, decided_by=decided, unknown=unknown, findings=tuple(findings))
    return _agree_on_scale(offers, tuple(findings))


def worst_only(findings: Sequence[Finding]) -> list[Finding]:
    """The findings with one HC301, that of the stage which needs the largest size."""
    small = [finding for finding in findings if finding.code == "HC301"]
    worst = max(small, key=lambda finding: int(finding.detail["least_bytes"]), default=None)
    return [finding for finding in findings if finding.code != "HC301" or finding is worst]


def _once_a_pool(findings: Sequence[Finding]) -> list[Finding]:
    """The findings, each once, with one HC303 for each pool, which names all stages that have no bytes of it."""
    stages: dict[str | None, list[int]] = {}
    for finding in findings:
        if finding.code == "HC303" and finding.stage is not None:
            stages.setdefault(finding.pool, []).append(finding.stage)
    told: list[Finding] = []
    for finding in findings:
        each = finding
        if finding.code == "HC303" and finding.stage is not None:
            each = zero_bytes(str(finding.pool), stages[finding.pool])
        if each not in told:
            told.append(each)
    return told


def _agree_on_scale(offers: Sequence[Offer], findings: tuple[Finding, ...]) -> Agreement:
    names = tuple(dict.fromkeys(pool.name for offer in offers for pool in offer.owned))
    known = {pool.name for offer in offers for pool in offer.owned if pool.device_slots is not None}
    if len(names) == 1:
        own = [next((pool.own_pages for pool in offer.owned), None) for offer in offers]
        pages = min(value for value in own if value is not None)
        scales = [offer.scale for offer in offers if offer.scale is not None]
        return Agreement(
            scale=min(scales) if scales and names[0] in known else None,
            pages={names[0]: pages},
            decided_by=_where(pages, own),
            findings=findings,
        )
    unknown = tuple(name for name in names if name not in known)
    needed = tuple(dict.fromkeys((*unknown, *(name for offer in offers for name in offer.unknown))))
    if needed:
        return Agreement(unknown=needed, findings=findings)
    all_scales = [offer.scale for offer in offers]
    scale = min(value for value in all_scales if value is not None)
    return Agreement(scale=scale, decided_by=_where(scale, all_scales), findings=findings)


def _minimum(offers: Sequence[Offer], release: Release) -> tuple[dict[str, int], tuple[int, ...]]:
    """The smallest raw slots of each pool over the stages, as SGLang takes it since 0.5.15, and who had them."""
    if not release.takes_the_minimum:
        return {}, ()
    smallest: dict[str, int] = {}
    deciders: set[int] = set()
    for name, having in _by_name(offers).items():
        raw = [(index, pool.raw_slots) for index, pool in having if pool.raw_slots is not None]
        if raw:
            smallest[name] = min(slots for _, slots in raw)
            deciders.update(index for index, slots in raw if slots == smallest[name])
    return smallest, tuple(sorted(deciders))


def _by_name(offers: Sequence[Offer], *, owned: bool = False) -> dict[str, list[tuple[int, PoolOffer]]]:
    """Each independent pool with the stages that have it (`owned`: that have bytes of it), in order of appearance."""
    having: dict[str, list[tuple[int, PoolOffer]]] = {}
    for index, offer in enumerate(offers):
        for pool in offer.owned if owned else offer.pools:
            having.setdefault(pool.name, []).append((index, pool))
    return having


def _where(value: object, values: Iterable[object]) -> tuple[int, ...]:
    return tuple(index for index, other in enumerate(values) if other == value)


# --- what must not differ -----------------------------------------------------------------------------------------


def _differing_pools(offers: Sequence[Offer], release: Release) -> list[Finding]:
    """Stages whose independent pools differ: SGLang pairs the wrong collectives (or none) and hangs."""
    sets = [tuple(pool.name for pool in offer.owned) for offer in offers]
    if len(set(sets)) <= 1:
        return []
    listed = "; ".join(
        f"{stage_numbers(where)}: {', '.join(names) or 'none'}"
        for names in dict.fromkeys(sets)
        for where in [_where(names, sets)]
    )
    if release.takes_the_minimum:
        why = "SGLang takes a minimum pool by pool, pairs the wrong pools of these stages and then hangs"
    else:
        why = f"SGLang {release.name} gives these stages different capacities and its schedulers break apart"
    return [
        Finding(
            "HC401",
            "stages-with-different-pools",
            "error",
            f"the pipeline stages own different independent host pools ({listed}): {why}",
            "Choose --pp-size or SGLANG_PP_LAYER_PARTITION so that every stage owns layers of every kind, "
            "or size by --hicache-ratio.",
            argument="pp_size",
        )
    ]


def _differing_facts(offers: Sequence[Offer], accounting: Accounting) -> list[Finding]:
    """Device slots, page sizes and page rules of a pool that differ between the stages that have it."""
    found = []
    for name, having in _by_name(offers, owned=True).items():
        if accounting == "total":
            slots = [(index, _number(pool.device_slots)) for index, pool in having if pool.device_slots is not None]
            found += _differing(name, "device slots", "HC402", slots)
        found += _differing(name, "page sizes", "HC403", [(index, _number(pool.page_size)) for index, pool in having])
        found += _differing(name, "page rules", "HC404", [(index, pool.page_rule) for index, pool in having])
    return found


_DIFFERENCES = {"HC402": "device-slots-differ", "HC403": "page-sizes-differ", "HC404": "page-rules-differ"}


def _differing(name: str, what: str, code: str, values: Sequence[tuple[int, str]]) -> list[Finding]:
    stages_by_value: dict[str, list[int]] = {}
    for index, value in values:
        stages_by_value.setdefault(value, []).append(index)
    if len(stages_by_value) <= 1:
        return []
    listed = "; ".join(
        f"{value} on {stage_numbers(where)}"
        for value, where in sorted(stages_by_value.items(), key=lambda item: (len(item[0]), item[0]))
    )
    return [
        Finding(
            code,
            _DIFFERENCES[code],
            "error",
            f"the {what} of pool {name!r} differ between the stages: {listed}",
            "SGLang makes them equal on all stages before host pools are built; give the same for each.",
            pool=name,
        )
    ]


def _number(value: int) -> str:
    return f"{value:,}"
