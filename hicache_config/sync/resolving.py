"""A rank's way from its own device pools to its final plan: resolve, agree with the others, finish.

Must not import torch, nor anything of the project but core.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ..core.findings import ConfigurationError, has_errors
from ..core.finish import agreed_ratio, finish
from ..core.offers import Offer
from ..core.plan import Plan, assumptions_of
from ..core.pools import Stage, check
from ..core.resolve import resolve
from ..core.terms import Terms
from .group import as_group
from .step import exchange


def resolve_with(
    group: object,
    stage: Stage | Callable[[], Stage],
    terms: Terms,
    *,
    stage_index: int | None = None,
    stage_count: int | None = None,
    allowance_bytes: int | None = None,
    must_equal: Mapping[str, Any] | None = None,
) -> Plan:
    """The final plan of this rank's stage, agreed with every rank of the group (a collective call).

    `group`: a torch process group, any RankGroup, or None; `stage`: the device pools of this rank's stage, or a
    function that reads them: what it raises reaches every rank. `stage_index` is the number of the stage (default:
    the rank), `stage_count` how many there must be, `allowance_bytes` the host memory that this rank may claim
    (HostFraction only), `must_equal` further arguments by SGLang's field name that all ranks must share.

    The plan holds one stage, with what the agreement leaves unused on it; `ratio` and `decided_by` are those of the
    pipeline. Raises ConfigurationError, with the same findings on every rank that could take part. No collective
    happens after it returns.
    """
    ranks = as_group(group)
    index = ranks.rank if stage_index is None else stage_index
    own: Stage | None = None
    result: Offer | Exception
    try:
        own = stage() if callable(stage) else stage
        result = _offer(own, terms, allowance_bytes, index if ranks.size > 1 else None)
    except Exception as error:  # a rank that fails must tell the others, or they wait for it
        result = error
    agreed = exchange(ranks, result, terms, stage=index, stage_count=stage_count, must_equal=must_equal)
    assert isinstance(result, Offer)
    assert own is not None  # a rank that failed has raised
    return Plan(
        terms,
        (finish(own, result, agreed.agreement, terms, index=index),),
        own_stage=index,
        ratio=agreed_ratio(agreed.offers, agreed.agreement, terms),
        decided_by=agreed.agreement.decided_by,
        assumptions=assumptions_of([result], agreed.agreement),
        findings=(*result.findings, *agreed.agreement.findings),
    )


def _offer(stage: Stage, terms: Terms, allowance_bytes: int | None, index: int | None) -> Offer:
    problems = check(stage.pools)
    if has_errors(problems):
        raise ConfigurationError(problems)
    return resolve(stage, terms, allowance_bytes=allowance_bytes, index=index)
