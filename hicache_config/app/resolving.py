"""The public `resolve`: device pools in, host sizes out, agreed with every rank. Must not import anything above.

It is what an engine calls while it builds its pools; it reads nothing but its arguments.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from ..core.findings import ConfigurationError, Finding, has_errors
from ..core.plan import Plan
from ..core.plan import plan as plan_stages
from ..core.pools import DevicePool, Stage
from ..core.releases import NEWEST, Release
from ..core.terms import Accounting, Terms

if TYPE_CHECKING:
    from ..arguments import ServerArgs
    from ..sync import RankGroup


def resolve(
    args: ServerArgs,
    pools: Iterable[DevicePool] | None = None,
    group: object = None,
    *,
    stages: Sequence[Iterable[DevicePool]] | None = None,
    accounting: Accounting = "total",
    sglang: str = NEWEST,
    stage_index: int | None = None,
    allowance_bytes: int | None = None,
) -> Plan:
    """Concrete host sizes for the device pools of this rank's pipeline stage.

    `args` say what was asked for, `pools` what this rank's accelerator holds, in the order of construction. `group` is
    a torch process group (the pipeline group or the world), any RankGroup, or None for a single stage; with it the
    call is collective, one exchange, and `stage_index` is the rank's pipeline stage (default: with `pp_size` given the
    ranks of a stage lie side by side, as SGLang starts them, else each rank is a stage).
    Without a group all stages of a pipeline may be given in `stages` instead of `pools`. `allowance_bytes` is the host
    memory that a rank may claim; only a host-memory fraction uses it.

    Under accounting `total` all host pools of a rank together stay within `hicache_size * 10**9` bytes; `sglang` says
    what that release allocates. Raises ConfigurationError with all findings, the same on every rank of the group.
    """
    if (pools is None) == (stages is None):
        raise TypeError("give either pools, those of this rank's stage, or stages, those of every stage")
    if group is not None:
        if pools is None:
            raise TypeError("stages are for planning without a group; with a group give this rank's pools")
        return _resolve_with(
            group,
            args,
            pools,
            accounting=accounting,
            sglang=sglang,
            stage_index=stage_index,
            allowance_bytes=allowance_bytes,
        )
    terms = _terms(args, accounting, sglang)
    if stages is not None:
        return _resolve_all([tuple(stage) for stage in stages], args, terms, allowance_bytes)
    assert pools is not None  # one of the two is given
    if args.pp_size > 1:
        raise ConfigurationError([_stages_missing(args.pp_size)])
    return _resolve_all([tuple(pools)], args, terms, allowance_bytes)


def _terms(args: ServerArgs, accounting: Accounting, sglang: str) -> Terms:
    return Terms(args.capacity(sglang).capacity, accounting, Release.of(sglang))


def _resolve_with(
    group: object,
    args: ServerArgs,
    pools: Iterable[DevicePool],
    *,
    accounting: Accounting,
    sglang: str,
    stage_index: int | None,
    allowance_bytes: int | None,
) -> Plan:
    from ..sync import as_group, report_failure, resolve_with

    # An engine that does not say how many stages it has gets a stage a rank: equal tensor ranks agree all the same.
    stages = args.pp_size if "pp_size" in args.written else None
    if stage_index is None and stages is not None:
        stage_index = _stage_of(as_group(group), stages)
    try:
        terms, own = _terms(args, accounting, sglang), Stage(tuple(pools))
    except Exception as error:  # the other ranks must hear of it, or they wait for this one
        report_failure(group, error, stage=stage_index)
    return resolve_with(
        group,
        own,
        terms,
        stage_index=stage_index,
        stage_count=stages,
        allowance_bytes=allowance_bytes,
        must_equal={"tp_size": args.tp_size, "nnodes": args.nnodes},
    )


def _stage_of(group: RankGroup, stages: int) -> int | None:
    """The stage of this rank where the ranks of a stage lie side by side, as SGLang's do; None where they can't."""
    return None if group.size % stages else group.rank // (group.size // stages)


def _resolve_all(
    stages: Sequence[tuple[DevicePool, ...]], args: ServerArgs, terms: Terms, allowance_bytes: int | None
) -> Plan:
    if len(stages) == 1 and args.pp_size > 1:
        stages = [stages[0]] * args.pp_size
    if len(stages) != args.pp_size:
        raise ConfigurationError([stage_count_differs(len(stages), args.pp_size)])
    checked = [Stage.of(pools) for pools in stages]
    problems = [finding for _, found in checked for finding in found]
    if has_errors(problems):
        raise ConfigurationError(problems)
    made = plan_stages([stage for stage, _ in checked], terms, allowance_bytes=allowance_bytes)
    if has_errors(made.findings):
        raise ConfigurationError(made.findings)
    return made


def _stages_missing(pp_size: int) -> Finding:
    return Finding(
        "HC438",
        "group-missing",
        "error",
        f"--pp-size {pp_size}: the sizes of one stage depend on the others, and no group was given to agree with them",
        "Pass group= (the pipeline group or the world), or all stages as stages=.",
        argument="pp_size",
        asked=pp_size,
    )


def stage_count_differs(given: int, pp_size: int) -> Finding:
    """The error for pools of another number of stages than the pipeline has; one stage may stand for each."""
    return Finding(
        "HC439",
        "stage-count-differs",
        "error",
        f"pools of {given} stages are given, and --pp-size is {pp_size}",
        "Give one entry a stage, or a single one that stands for each.",
        argument="pp_size",
        asked=pp_size,
    )
