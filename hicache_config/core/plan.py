"""The plan: host sizes for every pool of a pipeline, or of this rank's stage of it.

`plan` does the whole road for a pipeline whose stages are all at hand; on a real rank `resolve`, the exchange and
`finish` do the same for one stage. Must not import anything of the project but its floor.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from .agree import Agreement, agree
from .capacity import TotalSize
from .findings import Finding, has_errors
from .finish import agreed_ratio, finish
from .offers import Offer
from .pools import LARGEST, Stage
from .resolve import resolve
from .sizes import HostPoolSize, StagePlan
from .terms import Terms
from .units import GB

Host = TypeVar("Host")


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

    None with a ratio, where no whole size does or every size would, and where SGLang refuses a size or its pools are
    not known.
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

    if fits(1) is None:
        return None
    # SGLang's minimum can leave part of a size unused on every stage, so the largest one may be above the budget.
    low, high = 0, 1
    while fits(high):
        low, high = high, 2 * high
        if high * GB > LARGEST:  # pools that weigh next to nothing keep every stage at one page
            return None
    while high - low > 1:
        middle = (low + high) // 2
        if fits(middle):
            low = middle
        else:
            high = middle
    return low or None
