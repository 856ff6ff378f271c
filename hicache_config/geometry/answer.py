"""From a model, arguments and a question to the device pools of every pipeline stage.

Raises nothing for a person's mistake: a refusal comes back as a finding, with no stages. Must not import anything
above this floor.
"""

from __future__ import annotations

from dataclasses import replace

from ..arguments import ServerArgs
from ..core.findings import Finding, has_errors
from ..core.pools import DevicePool, Stage
from ..core.releases import Release
from .classes import check_stages, class_of, unknown_architecture
from .counts import layers_of
from .decode import decode_capacity, is_offloading, with_offload
from .drafts import draft_findings, packed_row, with_drafts
from .envelope import check_envelope
from .families import family_of
from .family import Case, Family
from .gpu import Gpu
from .model import Model, RefusedError
from .parallel import Parallel, StageLayers, split_layers
from .pipeline import Pipeline, Question
from .settle import Settings, settle
from .since import as_of, check_release, release_assumptions
from .speculative_numbers import fill_in


def pipeline_of(model: Model, args: ServerArgs, question: Question) -> Pipeline:
    """The device pools of a rank of each stage; a refused model has no stages and the finding that says why."""
    try:
        return _pipeline(model, args, question)
    except RefusedError as refusal:
        return Pipeline(family="", stages=(), findings=(refusal.finding,))


def _pipeline(model: Model, args: ServerArgs, question: Question) -> Pipeline:
    model_class = class_of(model)
    gpu = Gpu.of(question.gpu)
    parallel = Parallel.of(args)
    settings = settle(model, model_class, args, gpu, question.environment)
    args, numbers = fill_in(model, args)
    settings = replace(settings, changed={**settings.changed, **numbers})
    case = Case(
        model=model,
        model_class=model_class,
        args=args,
        question=question,
        release=Release.of(question.release),
        parallel=parallel,
        settings=settings,
        layers=layers_of(model),
        slots=known_slots(args, question, settings, parallel),
    )
    family = family_of(case)
    if family is None:
        raise unknown_architecture(model)
    check_release(case, family.page.name)
    check_stages(model_class, parallel.stages)
    stages: list[Stage] = []
    findings = list(draft_findings(case))
    for layers in stage_layers(case):
        try:
            pools = _stage_pools(case, family, layers)
        except RefusedError as refusal:
            return Pipeline(family.page.name, (), settings.changed, (), (refusal.finding,))
        stage, wrong = Stage.of(pools, layers.count)
        stages.append(stage)
        findings += wrong
    if has_errors(findings):
        return Pipeline(family.page.name, (), settings.changed, (), tuple(findings))
    capacity, notes = decode_capacity(case)
    assumptions = (*release_assumptions(case, family.page.name, stages), *_assumptions(case), *notes)
    return Pipeline(family.page.name, tuple(stages), settings.changed, assumptions, tuple(findings), capacity)


def _stage_pools(case: Case, family: Family, layers: StageLayers) -> list[DevicePool]:
    """All pools of a stage: the family's, those of drafts, and what a decode server adds."""
    own = family.pools(case, layers)
    check_envelope(case, own)
    pools = as_of(case, family.page.name, with_drafts(case, layers, own))
    return with_offload(case, pools, packed_row(case, layers)) if is_offloading(case) else pools


def stage_layers(case: Case) -> tuple[StageLayers, ...]:
    """The layers of each stage, those of its pools and those of the split.

    Source: 0.5.23, model_runner_components/layer_setup.py:_resolve_pp_layer_range.
    """
    bounds = split_layers(case.layers, case.parallel.stages, case.question.environment)
    last = len(bounds) - 1
    if case.model_class.tells_layers:
        return tuple(
            StageLayers(index, first, end, end - first, index == last) for index, (first, end) in enumerate(bounds)
        )
    every = attention_layers(case)
    return tuple(StageLayers(index, 0, every, end - first, index == last) for index, (first, end) in enumerate(bounds))


def attention_layers(case: Case) -> int:
    """Layers that the pools of a class cover which does not tell them: LongCat Flash has two attentions in a layer.

    Source: 0.5.23, configs/model_config.py (num_attention_layers). A loop model counts its loops here, and once more
    where its pool is made (layer_setup.py:resolve_layer_indices).
    """
    if case.model_class.name == "LongcatFlashForCausalLM":
        return case.layers * 2
    if case.model_class.name == "IQuestLoopCoderForCausalLM":
        return case.layers * case.model.integer("loop_num", 1)
    return case.layers


def known_slots(args: ServerArgs, question: Question, settings: Settings, parallel: Parallel) -> dict[str, int]:
    """Device slots of a rank that are given or follow from what is given.

    Tokens are rounded down to pages; sliding slots follow from the full ones (0.5.23, pool_configurator.py), states
    from --max-mamba-cache-size over the attention groups (kv_cache_configurator.py:_handle_max_mamba_cache).
    """
    known = dict(question.device_slots)
    page = settings.page_size
    if "kv" not in known and args.max_total_tokens is not None:
        known["kv"] = args.max_total_tokens // page * page
    if "swa" not in known and "kv" in known and settings.sliding and settings.swa_ratio is not None:
        known["swa"] = int(known["kv"] * settings.swa_ratio) // page * page
    if "mamba" not in known and args.max_mamba_cache_size is not None:
        known["mamba"] = args.max_mamba_cache_size // parallel.attention_dp
    return {name: slots for name, slots in known.items() if slots > 0}


def _assumptions(case: Case) -> tuple[str, ...]:
    texts: list[str] = []
    filled = ", ".join(f"{key} {value}" for key, value in case.model.filled_sizes.items())
    if filled:
        texts.append(
            f"config.json is silent about some sizes, which SGLang's configuration class of "
            f"{case.model.text_type} fills in: {filled}"
        )
    if "kv" in case.slots and "kv" not in case.question.device_slots:
        texts.append(
            f"the device is taken to hold --max-total-tokens {case.args.max_total_tokens:,} KV slots; SGLang uses "
            "fewer when GPU memory does not hold as many"
        )
    if case.settings.sliding and "kv" in case.slots and "swa" not in case.slots:
        texts.append(
            "device slots of the sliding window are not known: SGLang sizes them by requests here; give them with "
            "--swa-full-tokens-ratio or as device slots"
        )
    if case.parallel.stages > 1 and not case.model_class.tells_layers:
        texts.append(
            f"{case.model_class.name} does not tell its pools which layers a stage has, so the pools of every stage "
            f"cover all {case.layers} layers"
        )
    return tuple(texts)


def refused(finding: Finding) -> Pipeline:
    """A pipeline without stages, for a finding that was made before a model could be asked."""
    return Pipeline(family="", stages=(), findings=(finding,))
