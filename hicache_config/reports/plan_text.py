"""A plan for people: what each stage takes, what is inside the size and what comes on top, who decided, what fits.

Every amount names its unit and its scope. Legible at 80 columns and without colour: bars use distinct glyphs.
Must not import anything above this floor.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence

from ..core.capacity import DeviceRatio, HostFraction, TotalSize
from ..core.plan import Plan
from ..core.sizes import HostPoolSize, StagePlan
from ..core.units import RESERVE_BYTES, format_bytes, format_gb, format_gib
from .bars import bar_lines, node_bar
from .planned import PlanReport
from .screen import Line, plain, render, wants_color
from .text import finding_lines

_LABEL = 11
_WIDTH = 80
#: Columns of a pool's name and of its slots; a name that would touch them stands on a line of its own.
_NAME = 18
_SLOTS = 13
#: Below half a thousandth of a GB an amount would be printed as 0.000 GB.
_SMALL = 500_000


def plan_text(report: PlanReport, *, explain: bool = False, color: bool = True) -> str:
    """The plan as text; `explain` adds the arithmetic of every number."""
    return render(_lines(report, explain=explain), color=wants_color(color))


def _lines(report: PlanReport, *, explain: bool) -> Iterator[Line]:
    for placed in report.findings:
        yield from finding_lines(placed, report.source, report.text)
        yield plain()
    if report.is_refused:
        yield plain("refused: no host pool can be planned for this configuration")
        return
    yield from _head(report)
    for stages in _alike(report.plan.stages):
        yield plain()
        yield from _stage(stages, explain=explain)
    yield plain()
    yield from _agreement(report.plan)
    yield from _nodes(report)
    yield from _side_by_side(report)
    if report.assumptions:
        yield plain()
        yield plain("not known or taken for granted:")
        for text in report.assumptions:
            yield from _wrapped(f"- {text}", indent=2)


def _field(label: str, text: str) -> Iterator[Line]:
    """A label and its text, broken into lines of 80 columns."""
    pieces = textwrap.wrap(text, _WIDTH - _LABEL) or [""]
    for number, piece in enumerate(pieces):
        yield ((f"{'' if number else label:<{_LABEL}}", "bold"), (piece, ""))


def _head(report: PlanReport) -> Iterator[Line]:
    plan = report.plan
    meaning = "what it allocates" if plan.terms.accounting == "sglang" else "never more than the size on a rank"
    yield from _field(
        "plan", f"SGLang {plan.terms.release.name}, {report.gpu}, accounting {plan.terms.accounting}: {meaning}"
    )
    if report.model:
        yield from _field("model", f"{report.model} ({report.family})")
    capacity = plan.terms.capacity
    if isinstance(capacity, TotalSize):
        yield from _field("asked", f"a size of {_number(capacity.size_gb)} GB per rank ({format_gib(capacity.bytes)})")
    elif isinstance(capacity, DeviceRatio):
        yield from _field("asked", f"a ratio of {_number(capacity.ratio)} host slots per device slot")
    elif isinstance(capacity, HostFraction):
        yield from _field(
            "asked",
            f"at most {_number(capacity.fraction)} of the host's memory, and a ratio of {_number(capacity.ratio)}",
        )
    if plan.ratio is not None and not isinstance(capacity, DeviceRatio):
        yield from _field("ratio", f"{plan.ratio!r} makes exactly these pages")


def _alike(stages: Sequence[StagePlan]) -> list[list[StagePlan]]:
    """Neighbouring stages with the same pools, so that a pipeline of 16 equal stages is shown once."""
    groups: list[list[StagePlan]] = []
    for stage in stages:
        if groups and (groups[-1][0].layers, groups[-1][0].pools) == (stage.layers, stage.pools):
            groups[-1].append(stage)
        else:
            groups.append([stage])
    return groups


def _stage(stages: Sequence[StagePlan], *, explain: bool) -> Iterator[Line]:
    stage = stages[0]
    numbers = f"stage {stage.stage}" if len(stages) == 1 else f"stages {stage.stage} to {stages[-1].stage}"
    layers = "" if stage.layers is None else f", {stage.layers} layers"
    each = "" if len(stages) == 1 else " each"
    yield ((f"{numbers}{layers}{each}: per rank", "bold underline"),)
    yield ((f"  {_row('pool', 'slots', 'pages', 'bytes/slot', 'GB')}", "dim"),)
    for pool in stage.pools:
        yield from _pool(pool, explain=explain)
    total = "not known" if stage.bytes is None else f"{_gb(stage.bytes):>10}"
    yield ((f"  {'all host pools':<55}", "bold"), (total, "bold"))
    balance = _balance(stage)
    if balance:
        yield plain(f"  {balance}")
    yield from bar_lines(stage)


def _pool(pool: HostPoolSize, *, explain: bool) -> Iterator[Line]:
    slots = "not known" if pool.slots is None else f"{pool.slots:,}"
    pages = "" if pool.pages is None else f"{pool.pages:,}" + (f"+{pool.extra_pages}" if pool.extra_pages else "")
    row = "by page" if pool.bytes_per_slot is None else f"{pool.bytes_per_slot:,}"
    bytes_ = "" if pool.bytes is None else _gb(pool.bytes)
    name = pool.name if pool.follows is None else f"  {pool.name}"
    if len(name) + len(slots) >= _NAME + _SLOTS:
        yield plain(f"  {name}")
        name = ""
    where = {True: "in the size", False: "on top", None: ""}[pool.inside_size]
    yield ((f"  {_row(name, slots, pages, row, bytes_)}  {where}", ""),)
    if pool.follows is None and pool.own_slots is not None and pool.slots is not None and pool.own_slots != pool.slots:
        left = (pool.own_slots - pool.slots) // pool.page_size * pool.page_bytes
        alone = f"slots alone; agreeing gives up {_amount(left)}" if left > 0 else "slots alone"
        yield ((f"  {_row('', f'{pool.own_slots:,}')}  {alone}", "dim"),)
    if explain:
        for step in pool.trace:
            for piece in textwrap.wrap(step, _WIDTH - 6):
                yield ((f"      {piece}", "dim"),)


def _row(name: str, slots: str, *others: str) -> str:
    """A row of the table, numbers right-aligned; one that is too wide still stands apart from its neighbour."""
    first = f"{name}{slots:>{_NAME + _SLOTS - len(name)}}"
    return first + "".join(f" {text:>{width}}" for text, width in zip(others, (11, 11, 9), strict=False))


def _number(value: float) -> str:
    """A number as it was asked for: nothing is rounded, 2.0 is 2."""
    return f"{value:,}".removesuffix(".0")


def _gb(amount: int) -> str:
    """GB without the unit, for a column that names it; what would round to nothing is shown in bytes."""
    return format_gb(amount).removesuffix(" GB") if amount >= _SMALL or amount == 0 else f"{amount:,} B"


def _amount(amount: int) -> str:
    """GB, or bytes where it is too small for GB."""
    return format_gb(amount) if amount >= _SMALL else format_bytes(amount)


def _balance(stage: StagePlan) -> str:
    if stage.over_size_bytes:
        return f"{_amount(stage.over_size_bytes)} per rank over the size"
    if stage.unused_bytes:
        return f"{_amount(stage.unused_bytes)} of the size unused per rank"
    return ""


def _agreement(plan: Plan) -> Iterator[Line]:
    if len(plan.stages) < 2:
        return
    agreed = [
        f"{pool.slots:,} slots of {pool.name}"
        for pool in {pool.name: pool for stage in plan.stages for pool in stage.pools}.values()
        if pool.follows is None and pool.slots is not None
    ]
    if not agreed:
        return
    deciders = ", ".join(map(str, plan.decided_by))
    many = len(plan.decided_by) > 1
    who = f"; stage{'s' if many else ''} {deciders} decide{'' if many else 's'}" if plan.decided_by else ""
    yield from _field("agreed", f"{' and '.join(agreed)} on every stage that has the pool{who}")


def _nodes(report: PlanReport) -> Iterator[Line]:
    node_bytes = report.node_bytes
    if node_bytes is None:
        yield from _field("node", "not known, because a stage's bytes are not")
        return
    room = None if report.available_bytes is None else max(0, report.available_bytes - RESERVE_BYTES)
    for node, bytes_ in zip(report.nodes, node_bytes, strict=True):
        held = ", ".join(f"{_ranks(count)} of stage {stage}" for stage, count in node.ranks_by_stage.items())
        yield from _field(
            f"node {node.node}", f"{_amount(bytes_)} ({format_gib(bytes_)}) per node: {held or 'no rank'}"
        )
        if room:
            yield from node_bar(bytes_, room)
    if len(node_bytes) > 1:
        yield from _field("cluster", f"{_amount(sum(node_bytes))} ({format_gib(sum(node_bytes))})")
    if report.available_bytes is None or report.allowance_bytes is None:
        return
    verdict = "fits" if report.fits else "does not fit"
    yield from _field(
        "host",
        f"{verdict}: {format_gb(report.available_bytes)} available per node less 10 GiB reserve; "
        f"SGLang allows {format_gb(report.allowance_bytes)} per rank",
    )


def _ranks(count: int) -> str:
    return "1 rank" if count == 1 else f"{count} ranks"


def _side_by_side(report: PlanReport) -> Iterator[Line]:
    """Both accountings for the stage that takes most, and the size that keeps within the budget without the plugin."""
    plans = [plan for plan in (report.plan, report.other) if plan is not None and _largest(plan) is not None]
    if not isinstance(report.plan.terms.capacity, TotalSize) or len(plans) < 2:
        return
    yield plain()
    yield (("side by side, the stage that takes most: per rank", "bold underline"),)
    for plan in sorted(plans, key=lambda plan: plan.terms.accounting):
        largest = _largest(plan)
        if largest is None or largest.bytes is None:
            continue
        slots = [f"{pool.slots:,} {pool.name}" for pool in largest.pools if pool.follows is None and pool.slots]
        yield plain(f"  {plan.terms.accounting:<8}{_gb(largest.bytes):>10} GB  {_balance(largest)}")
        yield plain(f"  {'':<8}{', '.join(slots)} slots")
    if report.plan.stock_size_gb is not None:
        size = report.plan.terms.capacity.size_gb
        yield plain(f"  to stay within {_number(size)} GB per rank without the plugin:")
        yield plain(f"  --hicache-size {report.plan.stock_size_gb}")


def _largest(plan: Plan) -> StagePlan | None:
    """The stage that takes most; None where no bytes are known."""
    known = [stage for stage in plan.stages if stage.bytes is not None]
    return max(known, key=lambda stage: stage.bytes or 0, default=None)


def _wrapped(text: str, *, indent: int) -> Iterator[Line]:
    for line in textwrap.wrap(text, _WIDTH, initial_indent=" " * indent, subsequent_indent=" " * (indent + 2)):
        yield plain(line)
