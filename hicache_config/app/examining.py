"""One engine's configuration, examined: typed, resolved as SGLang would, given a model, planned, judged.

Both `validate` and `plan` stand on this, so that they can never disagree. Must not import anything above this floor.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import get_args

from ..arguments import Given
from ..arguments.reading import Reading, read_arguments
from ..core.capacity import Capacity
from ..core.findings import Finding, has_errors
from ..core.plan import Plan
from ..core.plan import plan as plan_stages
from ..core.pools import Stage
from ..core.releases import Release, ReleaseError
from ..core.terms import Accounting, Terms
from ..rules import registry
from ..rules.case import Case
from ..rules.registry import Skipped
from ..rules.resolution import Resolution, resolve_arguments
from ..rules.traits import traits_of
from ..sources.document import Engine, Noted
from .machines import Machines, machines_of
from .observing import observed
from .options import Options
from .settings_file import settings_files
from .staging import Staged, staged

#: Formats of what a running server says of itself.
_PRINTED = ("server-info", "log")


@dataclass(frozen=True)
class Examined:
    """All that is known of one engine. `plans` holds the plan of each accounting where stages are known."""

    given: tuple[Given, ...]
    reading: Reading
    release: Release
    resolution: Resolution
    capacity: Capacity
    environment: Mapping[str, str]
    staged: Staged
    machines: Machines
    plans: Mapping[Accounting, Plan] = field(default_factory=dict)
    findings: tuple[Finding, ...] = ()
    notes: tuple[Noted, ...] = ()
    skipped: tuple[Skipped, ...] = ()

    def of_sizing(self, accounting: Accounting) -> tuple[Finding, ...]:
        """What is wrong with the sizes of the host pools; nothing for a server that builds none (HiCache is off)."""
        plan = self.plans.get(accounting)
        return () if plan is None or not self.resolution.host_pools else plan.findings


def examine(engine: Engine, form: str, options: Options, source: str = "") -> Examined:
    """Examine one engine of a document; `source` is where it was read, for files that it names."""
    release = options.release()
    reading = read_arguments(engine.given, release.name, printed=form in _PRINTED, not_known=engine.not_known)
    args = reading.args
    environment = {**engine.environment, **options.environment}
    files, unread = settings_files(args, source)
    stages = staged(engine, options, args, release, environment)
    traits = traits_of(stages.model, args, options.gpu)
    resolution = resolve_arguments(args, release.name, gpu=options.gpu, pipeline=stages.pipeline, traits=traits)
    releases = [*_unknown_release(release), *_another_release(release, options, engine)]
    findings = [*reading.findings, *releases, *stages.findings]
    if not resolution.host_pools:
        findings = [_without_host_pools(finding) for finding in findings]
    capacity = stages.capacity or resolution.capacity()
    machines = machines_of(engine, options, args, release, len(stages.stages))
    plans = {} if has_errors(findings) else _plans(stages.stages, capacity, release, machines.allowance_bytes)
    case = Case(
        args=args,
        release=release,
        resolution=resolution,
        written=frozenset(reading.given),
        invalid=reading.invalid,
        environment=environment,
        gpu=options.gpu,
        model_name=stages.model_name,
        pipeline=stages.pipeline,
        plan=plans.get("sglang"),
        host=machines.memory,
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
        staged=stages,
        machines=machines,
        plans=plans,
        findings=(*findings, *unread, *judged),
        notes=(*engine.notes, *observed(engine.reported, plans.get("sglang"))),
        skipped=tuple(skipped),
    )


def _plans(
    stages: Sequence[Stage], capacity: Capacity, release: Release, allowance_bytes: int | None
) -> dict[Accounting, Plan]:
    """The plan of each accounting; none where no stage is known."""
    accountings: tuple[Accounting, ...] = get_args(Accounting) if stages else ()
    return {
        accounting: plan_stages(stages, Terms(capacity, accounting, release), allowance_bytes=allowance_bytes)
        for accounting in accountings
    }


def _without_host_pools(finding: Finding) -> Finding:
    """A note instead of an error where SGLang runs the set-up because it builds no host pools (HiCache is off)."""
    if finding.severity == "error" and registry.needs_host_pools(finding.code):
        return replace(finding, severity="note")
    return finding


def _another_release(release: Release, options: Options, engine: Engine) -> list[Finding]:
    """A running server that names another release than the one that nobody chose here."""
    said = engine.reported.get("version")
    if options.sglang is not None or not isinstance(said, str):
        return []
    try:
        ran = Release.of(said)
    except ReleaseError:  # a build of nobody's release, such as 0.0.0.dev1
        return []
    if ran.name == release.name:
        return []
    return [
        Finding(
            "HC111",
            "another-release-ran",
            "warning",
            f"the server says that it is SGLang {said}; it is checked as {release.name}",
            f"Name it: --sglang {said}.",
            asked=said,
            gets=release.name,
        )
    ]


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
