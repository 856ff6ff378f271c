"""The model that drafts: which one it is, how SGLang reads it as a draft, its layers and the type of its KV.

Must not import anything above this floor.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from .attention import is_sparse
from .checkpoint import checkpoint_kv_type, weights_dtype
from .classes import ModelClass, known_classes
from .counts import layers_of
from .family import Case
from .minimax_settings import is_four_bit
from .model import Model, refuse
from .packed import draft_depths, has_separate_draft
from .speculation import algorithm_of

#: Algorithms whose draft is a model of its own.
SEPARATE = frozenset({"EAGLE3", "STANDALONE", "DFLASH", "DSPARK"})
#: Draft classes that are read as the model class whose attention they have.
_READ_AS: Mapping[str, str] = {
    "Eagle3DeepseekV2ForCausalLM": "DeepseekV2ForCausalLM",
    "MistralLarge3ForCausalLMEagle": "MistralLarge3ForCausalLM",
}
#: What SGLang turns a model class into when it drafts for itself (0.5.23, model_config.py:_config_draft_model).
_AS_DRAFT: Mapping[str, str] = {
    "DeepseekV32ForCausalLM": "DeepseekV3ForCausalLMNextN",
    "MiMoForCausalLM": "MiMoMTP",
    "MiMoV2FlashForCausalLM": "MiMoV2MTP",
    "MiMoV2ForCausalLM": "MiMoV2MTP",
    "Step3p5ForCausalLM": "Step3p5MTP",
    "Step3p7ForConditionalGeneration": "Step3p5MTP",
    **dict.fromkeys(
        ("BailingMoeForCausalLM", "BailingMoeV2ForCausalLM", "BailingMoeV2_5ForCausalLM", "BailingMoeV3ForCausalLM"),
        "BailingMoeForCausalLMNextN",
    ),
    **dict.fromkeys(
        (
            "InternS2MobiusForConditionalGeneration", "InternS2PreviewForConditionalGeneration", "Qwen3_5ForCausalLM",
            "Qwen3_5ForConditionalGeneration", "Qwen3_5MoeForCausalLM", "Qwen3_5MoeForConditionalGeneration",
        ),
        "Qwen3_5ForCausalLMMTP",
    ),
    **dict.fromkeys(
        ("NemotronHForCausalLM", "NemotronHPuzzleForCausalLM", "NemotronH_Omni_Reasoning_V3"),
        "NemotronHForCausalLMMTP",
    ),
    **dict.fromkeys(("ExaoneMoEForCausalLM", "ExaoneMoeForCausalLM"), "ExaoneMoEForCausalLMMTP"),
    "Ernie4_5_MoeForCausalLM": "Ernie4_5_MoeForCausalLMMTP",
    "Qwen3MoeForCausalLM": "Qwen3MoeForCausalLMMTP",
    "Qwen3NextForCausalLM": "Qwen3NextForCausalLMMTP",
    "Qwen4ExpForConditionalGeneration": "Qwen4ExpForCausalLMMTP",
}  # fmt: skip


@dataclass(frozen=True)
class Draft:
    """A draft model: how it is read, the class that runs it, its layers with KV, and the type of that KV."""

    model: Model
    model_class: ModelClass
    layers: int
    kv_type: str


def draft_of(case: Case) -> Draft | None:
    """The draft of a case whose algorithm has one; None where its config.json is not known."""
    model = _model(case)
    if model is None:
        return None
    name = draft_class_name(model)
    model_class = known_classes().get(name) or ModelClass(name, False, False, False)
    own = draft_depths(model) or layers_of(model)
    loops = model.integer("loop_num" if model.has("loop_num") else "num_loops", 1)
    read_as = model.architecture.removesuffix("NextN")
    read_as = _READ_AS.get(read_as, read_as)
    whole = {**model.whole, "architectures": [read_as]}
    return Draft(
        Model(model.name, whole, model.quantisation), model_class, own * loops, _kv_type(case, model, model_class)
    )


def is_known(case: Case) -> bool:
    """Whether the draft's config.json is at hand."""
    return _model(case) is not None


def draft_class_name(model: Model) -> str:
    """The class that runs this model as a draft."""
    name = model.architecture
    if name in _AS_DRAFT:
        return _AS_DRAFT[name]
    return f"{name}NextN" if f"{name}NextN" in known_classes() else name


def check_draft_stages(case: Case, model_class: ModelClass) -> None:
    """Refuse a draft that does not run under pipeline parallelism, unless it runs on the last stage alone.

    Source: SGLang 0.5.23, model_executor/model_runner.py: the assertion comes after the weights are loaded.
    """
    if case.parallel.stages == 1 or case.is_on("SGLANG_ENABLE_PP_SPEC") or model_class.runs_in_stages:
        return
    raise refuse(
        "HC659",
        "draft-refuses-stages",
        f"the draft {model_class.name} does not run under pipeline parallelism (--pp-size {case.parallel.stages}): "
        "SGLang stops with an assertion after the weights are loaded",
        "Set SGLANG_ENABLE_PP_SPEC=1, which drafts on the last stage alone, or write --pp-size 1.",
        argument="pp_size",
        asked=case.parallel.stages,
    )


def draft_case(case: Case, draft: Draft) -> Case:
    """The case of the draft alone, for functions that read rows from a case."""
    settings = case.settings
    scaled = draft.kv_type == "fp8_e4m3" and is_sparse(draft.model)
    if is_sparse(case.model) and draft.kv_type == settings.kv_type:
        scaled = settings.scaled_row and is_sparse(draft.model)
    return replace(
        case,
        model=draft.model,
        model_class=draft.model_class,
        layers=draft.layers,
        settings=replace(settings, kv_type=draft.kv_type, scaled_row=scaled),
    )


def _model(case: Case) -> Model | None:
    args, config = case.args, case.question.draft_config
    if has_separate_draft(args):
        return None if config is None else Model(str(args.speculative_draft_model_path), config)
    if algorithm_of(case) in SEPARATE and args.speculative_draft_model_path is None:
        raise refuse(
            "HC657",
            "draft-model-missing",
            f"--speculative-algorithm {args.speculative_algorithm} needs a draft model of its own",
            "Name it with --speculative-draft-model-path.",
            argument="speculative_draft_model_path",
        )
    return case.model


def _kv_type(case: Case, model: Model, model_class: ModelClass) -> str:
    """The type of the draft's KV (0.5.23, mem_cache/kv_cache_dtype.py:configure_kv_cache_dtype)."""
    args, settings = case.args, case.settings
    asked = args.speculative_draft_kv_cache_dtype
    own = weights_dtype(model, args.dtype)
    flash = algorithm_of(case) in {"DFLASH", "DSPARK"}
    if flash and asked in (None, "auto") and is_four_bit(case.model, args):
        asked = "bf16"
    if asked is None:
        settled = args.kv_cache_dtype != "auto" or _is_set_by_class(case)
        asked = settings.kv_type if settled else "auto"
    if asked == "auto":
        asked = "fp8_e4m3" if model_class.quantises and checkpoint_kv_type(model) == "FP8" else own
    asked = "bfloat16" if asked == "bf16" else asked
    backend = settings.backends.draft or settings.backends.prefill or settings.backends.base
    return own if flash and backend == "fa4" else asked


def _is_set_by_class(case: Case) -> bool:
    """Whether the model class itself replaces --kv-cache-dtype auto, for the draft too."""
    return (
        is_sparse(case.model)
        or is_four_bit(case.model, case.args)
        or case.model.architecture in {"DeepseekV4ForCausalLM", "MuseSparkForConditionalGeneration"}
    )
