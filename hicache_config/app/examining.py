"""One engine's configuration, examined: typed, resolved as SGLang would, given a model, planned, judged.

Both `validate` and `plan` stand on this, so that they can never disagree. Must not import anything above this floor.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from ..arguments import Given, Place, ServerArgs
from ..arguments.reading import Reading, read_arguments
from ..core.capacity import Capacity
from ..core.findings import Finding, has_errors
from ..core.plan import Plan
from ..core.plan import plan as plan_stages
from ..core.pools import Stage
from ..core.releases import Release
from ..core.terms import Accounting, Terms
from ..core.units import format_gb
from ..geometry import load_model, pipeline_of
from ..geometry.model import Model
from ..geometry.parallel import NodeRanks, placement
from ..geometry.pipeline import Pipeline, Question
from ..reports.report import Placed, in_order
from ..rules import registry
from ..rules.case import Case, HostMemory
from ..rules.registry import Skipped
from ..rules.resolution import Resolution, resolve_arguments
from ..rules.traits import traits_of
from ..sources.document import Document, Engine, Noted
from .memory import allowance_of
from .observing import observed
from .options import Options
from .settings_file import settings_files
from .suppressing import Suppressions

#: Formats whose keys are not all arguments.
_MIXED_FORMATS = ("server-info", "log")


@dataclass(frozen=True)
class Examined:
    """All that is known of one engine. `plans` holds the plan of each accounting where stages are known."""

    given: tuple[Given, ...]
    reading: Reading
    release: Release
    resolution: Resolution
    capacity: Capacity
    environment: Mapping[str, str]
    model_name: str | None = None
    pipeline: Pipeline | None = None
    stages: tuple[Stage, ...] = ()
    nodes: tuple[NodeRanks, ...] = ()
    available_bytes: int | None = None
    allowance_bytes: int | None = None
    plans: Mapping[Accounting, Plan] = field(default_factory=dict)
    assumptions: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()
    notes: tuple[Noted, ...] = ()
    skipped: tuple[Skipped, ...] = ()


def examine(engine: Engine, form: str, options: Options, source: str = "") -> Examined:
    """Examine one engine of a document; `source` is where it was read, for files that it names."""
    release = options.release()
    mixed = form in _MIXED_FORMATS
    reading = read_arguments(engine.given, release.name, ignore_unknown=mixed, not_known=engine.not_known)
    args = reading.args
    environment = {**engine.environment, **options.environment}
    findings: list[Finding] = [*reading.findings, *_unknown_release(release)]

    slots = _device_slots(options, engine)
    model, pipeline, problems = _pipeline(options, args, release, environment, slots)
    model_name = None if model is None else model.name
    traits = traits_of(model, args, options.gpu)
    findings += problems
    stages = pipeline.stages if pipeline is not None else ()
    if options.pools is not None:
        from .pools_file import read_pools

        pools = read_pools(options.pools, args.pp_size, slots)
        findings += pools.findings(options.pools)
        stages = pools.stages

    resolution = resolve_arguments(args, release.name, gpu=options.gpu, pipeline=pipeline, traits=traits)
    own = None if pipeline is None else pipeline.capacity
    if not resolution.host_pools:
        findings = [_without_host_pools(finding) for finding in findings]
    capacity = resolution.capacity() if own is None else own
    nodes = _nodes(args, len(stages), options.ranks_per_node)
    available = _available(options, engine)
    allowance = None if available is None else allowance_of(available, args, release, options.ranks_per_node)
    plans: dict[Accounting, Plan] = {}
    if stages and not has_errors(findings):
        for accounting in ("sglang", "total"):
            terms = Terms(capacity, accounting, release)
            plans[accounting] = plan_stages(stages, terms, allowance_bytes=allowance)

    files, unread = settings_files(args, source)
    findings += unread
    case = Case(
        args=args,
        release=release,
        resolution=resolution,
        written=frozenset(reading.given),
        invalid=reading.invalid,
        environment=environment,
        gpu=options.gpu,
        model_name=model_name,
        pipeline=pipeline,
        plan=plans.get("sglang"),
        host=None if available is None else HostMemory(available, max((node.ranks for node in nodes), default=1)),
        traits=traits,
        files=files,
    )
    judged, skipped = registry.run(case)
    return Examined(
        given=engine.given,
        reading=reading,
        release=release,
        resolution=resolution,
        capacity=capacity,
        environment=environment,
        model_name=model_name,
        pipeline=pipeline,
        stages=stages,
        nodes=nodes,
        available_bytes=available,
        allowance_bytes=allowance,
        plans=plans,
        assumptions=_assumptions(options, engine, pipeline),
        findings=(*findings, *judged),
        notes=(*engine.notes, *observed(engine.reported, plans.get("sglang"))),
        skipped=tuple(skipped),
    )


def placed(
    document: Document,
    examined: Examined,
    extra: Sequence[Finding],
    options: Options,
    suppressions: Suppressions | None = None,
) -> tuple[Placed, ...]:
    """The findings of an engine at their places in the document, in order, each once.

    Those that the options do not want, or that a comment in the source answers, are left out.
    """
    found = [Placed(finding, place_of(finding, examined)) for finding in (*examined.findings, *extra)]
    found += [Placed(noted.finding, noted.place) for noted in (*examined.notes, *document.notes)]
    once = {
        (each.finding.code, each.finding.message, each.place): each
        for each in found
        if options.wants(each.finding.code)
    }
    answered = Suppressions.of(document) if suppressions is None else suppressions
    return in_order(answered.apply(once.values()))


def place_of(finding: Finding, examined: Examined) -> Place | None:
    """Where the argument of a finding was written; a pointer into its value is followed as far as its places go."""
    each = examined.reading.given.get(finding.argument or "")
    if each is None:
        return next((given.key_place for given in examined.given if given.key == finding.argument), None)
    if finding.pointer is not None:
        inner = finding.pointer.removeprefix(f"/{finding.argument}")
        while inner:
            if inner in each.inner:
                return each.inner[inner]
            inner = inner.rpartition("/")[0]
    return each.place


def _without_host_pools(finding: Finding) -> Finding:
    """A note instead of an error where SGLang runs the set-up because it builds no host pools (HiCache is off)."""
    if finding.severity == "error" and registry.needs_host_pools(finding.code):
        return replace(finding, severity="note")
    return finding


def _available(options: Options, engine: Engine) -> int | None:
    """Memory of a node for host pools: what the caller says, at most the limit of the engine's container."""
    known = [each for each in (options.host_memory_bytes, engine.memory_limit_bytes) if each is not None]
    return min(known, default=None)


def _assumptions(options: Options, engine: Engine, pipeline: Pipeline | None) -> tuple[str, ...]:
    texts = list(pipeline.assumptions) if pipeline is not None and options.pools is None else []
    limit = engine.memory_limit_bytes
    if limit is not None and (options.host_memory_bytes is None or limit < options.host_memory_bytes):
        texts.append(
            f"the container's memory limit, {format_gb(limit)}, is taken as what is available when pools are built; "
            "what else runs in the container comes off it"
        )
    return tuple(texts)


def _unknown_release(release: Release) -> list[Finding]:
    if not release.is_unknown:
        return []
    return [
        Finding(
            "HC109",
            "release-not-known",
            "warning",
            f"SGLang {release.asked} is newer than any release that is known; it is taken as {release.name}",
            "Update hicache-config, or name a known release with --sglang.",
            asked=release.asked,
            gets=release.name,
        )
    ]


def _device_slots(options: Options, engine: Engine) -> dict[str, int]:
    """Known device slots by pool: what the caller says, else what a running server or its log reported."""
    seen = engine.reported.get("device_slots")
    reported = {"kv": engine.reported.get("max_total_num_tokens"), **(seen if isinstance(seen, dict) else {})}
    slots = {
        name: count
        for name, count in reported.items()
        if isinstance(count, int) and not isinstance(count, bool) and count > 0
    }
    return {**slots, **options.device_slots}


def _pipeline(
    options: Options, args: ServerArgs, release: Release, environment: Mapping[str, str], slots: Mapping[str, int]
) -> tuple[Model | None, Pipeline | None, list[Finding]]:
    """The model and its stages: of `--model`, or of a model_path that is a local folder or a catalogue name."""
    name = options.model or args.model_path
    if name is None or (options.pools is not None and options.model is None):
        return None, None, []
    model, problems = load_model(name)
    if model is None:
        return None, None, list(problems) if options.model is not None else []
    question = Question(release.name, options.gpu, environment, slots, draft_config=_draft(args))
    pipeline = pipeline_of(model, args, question)
    return model, pipeline, list(pipeline.findings)


def _draft(args: ServerArgs) -> Mapping[str, object] | None:
    if args.speculative_draft_model_path is None:
        return None
    model, _ = load_model(args.speculative_draft_model_path)
    return None if model is None else model.whole


def _nodes(args: ServerArgs, stages: int, ranks_per_node: int | None) -> tuple[NodeRanks, ...]:
    """Which ranks lie on which machine: as SGLang places them, or so many on each as the caller says."""
    replicas = 1 if args.enable_dp_attention else args.dp_size
    if ranks_per_node is None:
        return placement(args.tp_size, stages or args.pp_size, args.nnodes, replicas)
    owners = [stage for _ in range(replicas) for stage in range(stages or args.pp_size) for _ in range(args.tp_size)]
    nodes = []
    for number, first in enumerate(range(0, len(owners), ranks_per_node)):
        held = owners[first : first + ranks_per_node]
        nodes.append(NodeRanks(number, {stage: held.count(stage) for stage in sorted(set(held))}))
    return tuple(nodes)
