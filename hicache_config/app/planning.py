"""`plan`: concrete host sizes of one engine. Must not import anything above this floor."""

from __future__ import annotations

from dataclasses import replace

from ..arguments import ServerArgs
from ..core.findings import Finding, has_errors
from ..core.plan import Plan
from ..core.terms import Terms
from ..reports.planned import PlanReport
from ..reports.report import in_order
from ..sources.document import Document
from .comparing import compare
from .examining import Examined, examine
from .options import Options
from .placing import at, placed

#: Errors about the machine: the numbers stand, they just don't fit.
_ABOUT_THE_HOST = "HC5"


def plan(document: Document, options: Options | None = None, *, engine: int = 0) -> PlanReport:
    """The plan of one engine of a document (the first by default).

    A configuration that is refused has no stages in its plan, and the findings say why. Raises OptionsError.
    """
    options = options or Options()
    if document.is_broken:
        return _nothing_parsed(document, options)
    examined = examine(document.engines[engine], document.format, options, document.source)
    made = examined.plans.get(options.accounting)
    if made is None:
        made = Plan(Terms(examined.capacity, options.accounting, examined.release), ())
    extra = [*made.findings, *_nothing_to_plan(examined, options)]
    if options.compare is not None:
        extra += compare(document, document.engines[engine], options, examined, options.compare)
    findings = placed(document, examined, extra, options)
    refused = any(
        each.finding.severity == "error" and not each.finding.code.startswith(_ABOUT_THE_HOST) for each in findings
    )
    if refused:
        made = replace(made, stages=(), ratio=None, stock_size_gb=None)
    elif not made.stages:
        # Whoever left the reason out of sight still has to see why there is no plan.
        everything = placed(document, examined, extra, replace(options, select=(), ignore=()))
        findings = tuple(each for each in everything if each.finding.severity == "error") or findings
    other = examined.plans.get("total" if options.accounting == "sglang" else "sglang")
    return PlanReport(
        plan=made,
        other=None if refused or other is None or has_errors(other.findings) else other,
        gpu=options.gpu,
        model=examined.staged.model_name,
        family=examined.staged.pipeline.family if examined.staged.pipeline else None,
        nodes=examined.machines.nodes,
        available_bytes=examined.machines.available_bytes,
        allowance_bytes=examined.machines.allowance_bytes,
        assumptions=_assumptions(examined, options, made),
        findings=findings,
        source=document.source,
        text=document.text,
    )


def _assumptions(examined: Examined, options: Options, made: Plan) -> tuple[str, ...]:
    """What the numbers stand on, each once."""
    of_the_engine = (*examined.staged.assumptions, *examined.machines.assumptions)
    return tuple(dict.fromkeys((*_off(examined), *_unused(examined, options), *of_the_engine, *made.assumptions)))


def _off(examined: Examined) -> list[str]:
    """What a plan of a server without host pools assumes."""
    if examined.resolution.host_pools or not examined.staged.stages:
        return []
    return ["HiCache is off, so SGLang builds no host pool; the sizes are those with --enable-hierarchical-cache"]


def _unused(examined: Examined, options: Options) -> list[str]:
    """Device slots that were given for pools which no stage has."""
    known = dict.fromkeys(pool.name for stage in examined.staged.stages for pool in stage.pools)
    unused = [name for name in options.device_slots if known and name not in known]
    return [f"--device-slots {name} is not used: the stages have {', '.join(known)}" for name in unused]


def _nothing_to_plan(examined: Examined, options: Options) -> list[Finding]:
    if examined.staged.stages or has_errors(examined.findings) or options.pools is not None:
        return []
    named = examined.reading.args.model_path
    unknown = f"; model_path {named!r} is neither a local folder nor a catalogue name" if named else ""
    return [
        Finding(
            "HC600",
            "model-not-given",
            "error",
            f"a plan needs the model or its pools{unknown}",
            "Give --model with a config.json, its folder or a catalogue name, or --pools with a pools file.",
            argument="model_path",
        )
    ]


def _nothing_parsed(document: Document, options: Options) -> PlanReport:
    release = options.release()
    terms = Terms(ServerArgs().capacity(release.name).capacity, options.accounting, release)
    notes = [at(document, noted.finding, noted.place) for noted in document.notes if options.wants(noted.finding.code)]
    return PlanReport(
        plan=Plan(terms, ()),
        other=None,
        gpu=options.gpu,
        model=None,
        family=None,
        nodes=(),
        findings=in_order(notes),
        source=document.source,
        text=document.text,
    )
