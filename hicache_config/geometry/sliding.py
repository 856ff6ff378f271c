"""Which layers slide a window, and whether SGLang keeps them in a pool of their own.

The lists of classes are SGLang 0.5.23's (configs/model_config.py: is_hybrid_swa_model, get_hybrid_layer_ids;
arg_groups/: the overrides that give the pool up). Must not import anything above this floor.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ..arguments import ServerArgs
from .model import Model

_SINKS = frozenset({"GptOssForCausalLM", "GraniteMoeSWAForCausalLM", "GraniteSWAForCausalLM", "IQuestQ1ForCausalLM"})
MIMO_V2 = frozenset({"MiMoV2ForCausalLM", "MiMoV2FlashForCausalLM"})
STEP3P = frozenset({"Step3p5ForCausalLM", "Step3p7ForConditionalGeneration"})
_BY_LAYER_TYPE = _SINKS | {
    "BeamForCausalLM",
    "DiffusionGemmaForBlockDiffusion",
    "Dots3NoteForCausalLM",
    "EmbeddingGemma2Model",
    "Gemma4ForCausalLM",
    "Gemma4ForConditionalGeneration",
    "Gemma4UnifiedForConditionalGeneration",
    "LagunaForCausalLM",
    "MellumForCausalLM",
    "MuseGlimmerForCausalLM",
    "MuseGlimmerForConditionalGeneration",
    "MuseSparkForConditionalGeneration",
    "Spark2_5ForCausalLM",
}
_ALWAYS = (
    (_BY_LAYER_TYPE - {"Dots3NoteForCausalLM", "MuseSparkForConditionalGeneration", "Spark2_5ForCausalLM"})
    | MIMO_V2
    | STEP3P
    | {
        "DeepseekV4ForCausalLM",
        "InklingForConditionalGeneration",
        "Llama4ForConditionalGeneration",
        "UnlimitedOCRForCausalLM",
    }
)
#: Classes whose sliding layers have KV heads and widths of their own in the pool.
_TWO_SHAPES = MIMO_V2 | {
    "DiffusionGemmaForBlockDiffusion",
    "EmbeddingGemma2Model",
    "Gemma4ForCausalLM",
    "Gemma4ForConditionalGeneration",
    "Gemma4UnifiedForConditionalGeneration",
    "InklingForConditionalGeneration",
}
_GIVEN_UP = frozenset(
    {
        "Gemma2ForCausalLM",
        "Gemma3ForCausalLM",
        "Gemma3ForConditionalGeneration",
        "Gemma3nForCausalLM",
        "Gemma3nForConditionalGeneration",
        "Olmo2ForCausalLM",
    }
)
_GIVEN_UP_WITH_PATTERN = frozenset({"Exaone4ForCausalLM", "ExaoneMoEForCausalLM", "ExaoneMoeForCausalLM"})


@dataclass(frozen=True)
class Sliding:
    """Layer numbers of the whole model: those with a window and those with full attention."""

    window: tuple[int, ...]
    full: tuple[int, ...]


def gives_sliding_up(model: Model, args: ServerArgs) -> str | None:
    """Why SGLang keeps sliding layers in the full pool for this class, or None where it does not."""
    name = model.architecture
    if name in _GIVEN_UP:
        return f"SGLang has no sliding-window pool for {name}"
    if name in _GIVEN_UP_WITH_PATTERN and model.has("sliding_window_pattern"):
        return f"SGLang has no sliding-window pool for {name}"
    if name in STEP3P and args.enable_hierarchical_cache:
        return f"SGLang gives the sliding-window pool of {name} up when HiCache is on"
    return None


def could_slide(model: Model) -> bool:
    """Whether the class has a sliding-window pool unless it is given up."""
    names = set(model.architectures)
    if names & _ALWAYS:
        if "BeamForCausalLM" in names:
            return "sliding_attention" in layer_types(model)
        if "LagunaForCausalLM" in names:
            return bool(model.get("sliding_window"))
        return True
    if model.architecture == "Spark2_5ForCausalLM":
        return "sliding_attention" in layer_types(model)
    return model.get("is_hybrid_swa") is True


def has_sliding_memory(model: Model, args: ServerArgs) -> bool:
    """Whether sliding layers get a pool of their own."""
    return could_slide(model) and not args.disable_hybrid_swa_memory and gives_sliding_up(model, args) is None


def has_two_shapes(model: Model) -> bool:
    """Whether sliding layers have their own KV heads and widths in the pool."""
    return model.architecture in _TWO_SHAPES


#: Classes that take one less than the window of config.json for the span that a layer looks back.
_ONE_LESS = frozenset(
    {
        "BeamForCausalLM",
        "GptOssForCausalLM",
        "InklingForConditionalGeneration",
        "MellumForCausalLM",
        "MuseGlimmerForCausalLM",
        "MuseGlimmerForConditionalGeneration",
    }
)


def window_of(model: Model) -> int | None:
    """Slots that a sliding layer looks back, as SGLang counts them; None where config.json does not say.

    Source: 0.5.23, model_runner_components/load_model_utils.py:resolve_sliding_window_size.
    """
    for key in ("sliding_window_size", "sliding_window", "window_size", "attention_chunk_size"):
        found = model.maybe_integer(key)
        if found is not None:
            one_less = model.architecture in _ONE_LESS or model.architecture.startswith("Gemma4")
            return found - 1 if one_less else found
    return None


def sliding_layers(model: Model, layers: int) -> Sliding:
    """Which of the model's `layers` slide. A pattern that is missing or too short is a refusal."""
    names = set(model.architectures)
    if "Llama4ForConditionalGeneration" in names:
        return _split(layers, lambda layer: (layer + 1) % 4 != 0)
    if "UnlimitedOCRForCausalLM" in names:
        return Sliding(tuple(range(layers)), ())
    if "InklingForConditionalGeneration" in names:
        local = set(model.integers("local_layer_ids") or ())
        return _split(layers, lambda layer: layer in local)
    if names & (_BY_LAYER_TYPE | STEP3P):
        types = layer_types(model)
        return Sliding(
            tuple(i for i, kind in enumerate(types[:layers]) if kind == "sliding_attention"),
            tuple(i for i, kind in enumerate(types[:layers]) if kind == "full_attention"),
        )
    pattern = model.integers("hybrid_layer_pattern")
    if pattern is None:
        raise model.missing("hybrid_layer_pattern")
    if len(pattern) < layers:
        raise model.wrong("hybrid_layer_pattern", f"a list of {len(pattern)}", f"a list of {layers} numbers")
    return Sliding(
        tuple(layer for layer in range(layers) if pattern[layer] == 1),
        tuple(layer for layer in range(layers) if pattern[layer] == 0),
    )


#: Where the configuration class writes `layer_types` itself: full attention in every so manieth layer.
_PERIODS: Mapping[str, int] = {
    "beam": 6,
    "diffusion_gemma_text": 6,
    "embedding_gemma2_text": 6,
    "gemma4_text": 6,
    "gemma4_unified_text": 6,
    "gpt_oss": 2,
    "spark2_5": 4,
}
#: Where it makes full attention of the last layer: Gemma 4 in a given pattern too.
_FULL_AT_THE_END = frozenset({"diffusion_gemma_text", "embedding_gemma2_text", "gemma4_text", "gemma4_unified_text"})


def layer_types(model: Model) -> tuple[str, ...]:
    """The kinds of all layers, as config.json lists them or its configuration class fills them in."""
    kind, listed = model.text_type, model.words("layer_types")
    if listed is None:
        if kind not in _PERIODS:
            raise model.missing("layer_types")
        every = _PERIODS[kind]
        if kind == "embedding_gemma2_text":
            every = model.integer("sliding_window_pattern", every)
        listed = tuple(
            "full_attention" if (layer + 1) % every == 0 else "sliding_attention"
            for layer in range(model.integer("num_hidden_layers"))
        )
        if kind == "beam":
            return (*listed[:-1], "full_attention")
    return (*listed[:-1], "full_attention") if listed and kind in _FULL_AT_THE_END else listed


def _split(layers: int, slides: object) -> Sliding:
    assert callable(slides)
    window = tuple(layer for layer in range(layers) if slides(layer))
    return Sliding(window, tuple(layer for layer in range(layers) if layer not in set(window)))
