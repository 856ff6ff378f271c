"""Which pools the pipeline stages of an engine have: those of its model, or those of a pools file.

Must not import anything above this floor.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ..arguments import ServerArgs
from ..core.capacity import Capacity
from ..core.findings import Finding
from ..core.pools import Stage
from ..core.releases import Release
from ..geometry import load_model, pipeline_of
from ..geometry.model import Model
from ..geometry.pipeline import Pipeline, Question
from ..sources.document import Engine
from .options import Options


@dataclass(frozen=True)
class Staged:
    """The stages, as far as they are known, with the model that they are of and what is wrong with them.

    `assumptions` are those of the geometry; pools that were given assume nothing.
    """

    model: Model | None = None
    pipeline: Pipeline | None = None
    stages: tuple[Stage, ...] = ()
    assumptions: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()

    @property
    def model_name(self) -> str | None:
        """The public name of the model, or of its folder."""
        return None if self.model is None else self.model.name

    @property
    def capacity(self) -> Capacity | None:
        """The capacity in force where the family has one of its own."""
        return None if self.pipeline is None else self.pipeline.capacity


def staged(
    engine: Engine, options: Options, args: ServerArgs, release: Release, environment: Mapping[str, str]
) -> Staged:
    """The stages of an engine: the model's (`--model`, or a model_path that is known), or those of `--pools`."""
    slots = _device_slots(options, engine)
    found = _of_model(options, args, Question(release.name, options.gpu, environment, slots, draft_config=_draft(args)))
    if options.pools is None:
        return found
    from .pools_file import read_pools

    read = read_pools(options.pools, args.pp_size, slots)
    return Staged(found.model, found.pipeline, read.stages, (), (*found.findings, *read.findings(options.pools)))


def _of_model(options: Options, args: ServerArgs, question: Question) -> Staged:
    name = options.model or args.model_path
    if name is None or (options.pools is not None and options.model is None):
        return Staged()
    model, problems = load_model(name)
    if model is None:
        return Staged(findings=tuple(problems) if options.model is not None else ())
    pipeline = pipeline_of(model, args, question)
    return Staged(model, pipeline, pipeline.stages, tuple(pipeline.assumptions), tuple(pipeline.findings))


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


def _draft(args: ServerArgs) -> Mapping[str, object] | None:
    if args.speculative_draft_model_path is None:
        return None
    model, _ = load_model(args.speculative_draft_model_path)
    return None if model is None else model.whole
