"""The plugin's lines in SGLang's log and on the command line. Amounts are per rank. Must not import sglang."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ...core.capacity import TotalSize
from ...core.findings import Finding
from ...core.plan import Plan
from ...core.units import format_bytes, format_gb
from .host_pools import BuiltPool
from .modes import VARIABLE, Mode


def planned_line(plan: Plan, mode: Mode) -> str:
    """What was agreed, before anything is built."""
    pools = ", ".join(f"{pool.name} {pool.pages:,} pages" for pool in plan.pools if pool.pages is not None)
    own = plan.stage(plan.own_stage)
    total = "" if own.bytes is None else f" = {format_bytes(own.bytes)}"
    how = f"as ratio {plan.ratio!r}" if mode is Mode.ENFORCE else "SGLang's own sizes, nothing is changed"
    return f"hicache-config ({mode.value}): {_size(plan)}, stage {plan.own_stage}: {pools}{total}; {how}"


def built_line(built: Sequence[BuiltPool], plan: Plan | None, mode: Mode) -> str:
    """What SGLang really built on this rank."""
    pools = ", ".join(f"{pool.name} {pool.pages:,} pages {format_bytes(pool.bytes)}" for pool in built)
    total = sum(pool.bytes for pool in built)
    against = "" if plan is None else f" of {_size(plan)}"
    return f"hicache-config ({mode.value}): built {pools}; together {format_bytes(total)}{against}"


def beyond_size(built: Sequence[BuiltPool], plan: Plan) -> str | None:
    """What SGLang took beyond the size, pool by pool, and how to make the size a total; None where it took nothing."""
    if not isinstance(plan.terms.capacity, TotalSize):
        return None
    over = sum(pool.bytes for pool in built) - plan.terms.capacity.bytes
    if over <= 0:
        return None
    outside = [pool for pool in built if _is_outside(plan, pool.name)]
    parts = ", ".join(f"{pool.name} {format_bytes(pool.bytes)}" for pool in outside)
    why = f"not counted by SGLang: {parts}" if outside else "the page that SGLang adds to each pool"
    return (
        f"hicache-config: this rank's host pools take {format_bytes(over)} ({format_gb(over)}) more than {_size(plan)} "
        f"({why}). With {VARIABLE}={Mode.ENFORCE.value} the size is a total for all host pools of a rank."
    )


def _is_outside(plan: Plan, name: str) -> bool:
    return any(pool.name == name and pool.inside_size is False for pool in plan.pools)


def _size(plan: Plan) -> str:
    capacity = plan.terms.capacity
    return f"--hicache-size {capacity.size_gb} GB" if isinstance(capacity, TotalSize) else "the ratio"


def refusal(findings: Iterable[Finding]) -> str:
    """The text with which a launch command ends: every finding with its flag and what to write instead."""
    shown = list(findings)
    errors = sum(finding.severity == "error" for finding in shown)
    lines = [f"hicache-config: these server arguments are refused ({errors} error{'s' if errors != 1 else ''})"]
    for finding in shown:
        flag = f" (--{finding.argument.replace('_', '-')})" if finding.argument else ""
        lines.append(f"{finding.severity} {finding.code} {finding.name}{flag}: {finding.message}")
        if finding.help:
            lines.append(f"    {finding.help}")
    lines.append(f"Nothing was loaded. {VARIABLE}={Mode.OFF.value} starts SGLang without these checks.")
    return "\n".join(lines)
