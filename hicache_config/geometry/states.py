"""The states of linear-attention and Mamba layers: which layers have one, which have attention, and the shapes.

Each model class has a reader, as its configuration class in SGLang 0.5.23 computes the shapes (configs/*.py and
configs/mamba_utils.py). Must not import anything above this floor.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from .model import Model
from .pieces import State
from .state_shapes import StateTypes, delta_state, mamba1_state, mamba2_state, share

_TYPES = frozenset({"float32", "bfloat16", "float16"})
#: Classes of Nemotron-H, which count their layers by a list or a pattern.
NEMOTRON_H = frozenset({"NemotronHForCausalLM", "NemotronHPuzzleForCausalLM", "NemotronH_Omni_Reasoning_V3"})


@dataclass(frozen=True)
class Linear:
    """Layers of the whole model with attention and with a state (some have both), and the state of one of them."""

    attention: tuple[int, ...]
    linear: tuple[int, ...]
    state: State


Reader = Callable[[Model, int, StateTypes], Linear]


def state_types(ssm_dtype: str | None, environment: Mapping[str, str]) -> StateTypes:
    """The types that --mamba-ssm-dtype or SGLang's variables ask for; others are ignored, as SGLang does."""
    temporal = ssm_dtype or environment.get("SGLANG_MAMBA_SSM_DTYPE")
    conv = environment.get("SGLANG_MAMBA_CONV_DTYPE")
    return StateTypes(conv if conv in _TYPES else None, temporal if temporal in _TYPES else None)


def linear_reader(model: Model) -> Reader | None:
    """What reads the states of this model class, or None for a class without linear layers."""
    name = model.architecture
    if name == "BailingMoeV3VLForConditionalGeneration" and not model.has("short_conv_kernel_size"):
        return None  # SGLang sees the states of KDA alone in it
    if name == "GraniteMoeHybridForCausalLM" and "mamba" not in (model.words("layer_types") or ("mamba",)):
        return None
    return _READERS.get(name)


def _written(model: Model, types: StateTypes) -> StateTypes:
    """The types, with `mamba_ssm_dtype` of config.json where nothing else asks for one."""
    own = model.get("mamba_ssm_dtype")
    return StateTypes(types.conv, types.temporal or (own if isinstance(own, str) and own in _TYPES else None))


# --- readers ------------------------------------------------------------------------------------------------------


def _qwen(model: Model, ranks: int, types: StateTypes) -> Linear:
    """Qwen3-Next and 3.5: attention in every `full_attention_interval`-th layer, gated delta in the others."""
    layers = model.integer("num_hidden_layers")
    every = model.integer("full_attention_interval")  # without it SGLang stops, whatever `layer_types` says
    attention = tuple(layer for layer in range(layers) if (layer + 1) % every == 0)
    linear = tuple(layer for layer in range(layers) if (layer + 1) % every)
    return Linear(attention, linear, _gated_delta(model, ranks, types))


def qwen4_layers(model: Model, ranks: int, types: StateTypes) -> Linear:
    """Qwen4-Exp: the kinds of layers are listed, or attention comes in every `full_attention_interval`-th one."""
    kinds = model.words("layer_types")
    if kinds is None:
        return _qwen(model, ranks, types)
    attention = ("full_attention", "qwen_sparse_attention", "indexed_attention")
    return Linear(
        tuple(layer for layer, kind in enumerate(kinds) if kind in attention),
        _named(kinds, "linear_attention"),
        _gated_delta(model, ranks, types),
    )


def _gated_delta(model: Model, ranks: int, types: StateTypes) -> State:
    heads, width = model.integer("linear_num_value_heads", 32), model.integer("linear_value_head_dim", 128)
    return mamba2_state(
        ranks,
        inner=heads * width,
        groups=model.integer("linear_num_key_heads", 16),
        heads=heads,
        width=width,
        size=model.integer("linear_key_head_dim", 128),
        window=model.integer("linear_conv_kernel_dim", 4),
        types=_written(model, types),
    )


def _gigachat(model: Model, ranks: int, types: StateTypes) -> Linear:
    layers = model.integer("num_hidden_layers")
    kinds = model.words("layer_types")
    if kinds is not None:
        linear = tuple(layer for layer, kind in enumerate(kinds) if kind == "linear_attention")
    else:
        full = set(model.integers("full_attention_layers") or ())
        linear = tuple(layer for layer in range(layers) if layer not in full)
    return Linear(_others(layers, linear), linear, _gated_delta(model, ranks, types))


def _kimi(model: Model, ranks: int, types: StateTypes) -> Linear:
    """Kimi Linear and K3: the layers are listed, counted from 1."""
    nested = model.table("linear_attn_config")
    if nested is None:
        raise model.missing("linear_attn_config")
    layers = model.integer("num_hidden_layers")
    listed = nested.integers("kda_layers")
    if listed is None:
        raise nested.missing("kda_layers")
    linear = tuple(sorted(layer - 1 for layer in listed if 1 <= layer <= layers))
    state = delta_state(
        ranks,
        heads=nested.integer("num_heads"),
        width=nested.integer("head_dim"),
        window=nested.integer("short_conv_kernel_size"),
        types=types,
    )
    return Linear(_others(layers, linear), linear, state)


def _glm5_next(model: Model, ranks: int, types: StateTypes) -> Linear:
    """GLM-5 Next: KDA layers are listed (counted from 0), or named by layer_types, or three of four."""
    layers = model.integer("num_hidden_layers")
    nested, kinds = model.table("linear_attn_config"), model.words("layer_types")
    if nested is not None:
        listed = nested.integers("kda_layers") or ()
        heads, width = nested.integer("num_heads"), nested.integer("head_dim")
        window = nested.integer("short_conv_kernel_size")
    else:
        listed = tuple(
            layer for layer in range(layers) if (kinds[layer] == "linear_attention" if kinds else layer % 4 != 3)
        )
        heads, width = model.integer("linear_num_heads"), model.integer("linear_head_dim", 128)
        window = model.integer("linear_conv_kernel_dim", 4)
    linear = tuple(layer for layer in listed if layer < layers)
    return Linear(
        _others(layers, linear), linear, delta_state(ranks, heads=heads, width=width, window=window, types=types)
    )


def _falcon(model: Model, ranks: int, types: StateTypes) -> Linear:
    """Falcon H1: every layer has both."""
    every = tuple(range(model.integer("num_hidden_layers")))
    inner = model.maybe_integer("mamba_d_ssm", least=1) or model.integer("mamba_expand", 2) * model.integer(
        "hidden_size"
    )
    heads = model.integer("mamba_n_heads", 128)
    width = inner // heads if model.get("mamba_d_head", "auto") == "auto" else model.integer("mamba_d_head")
    state = mamba2_state(
        ranks,
        inner=inner,
        groups=model.integer("mamba_n_groups", 1),
        heads=heads,
        width=width,
        size=model.integer("mamba_d_state", 256),
        window=model.integer("mamba_d_conv", 4),
        types=_written(model, types),
    )
    return Linear(every, every, state)


def _granite(model: Model, ranks: int, types: StateTypes) -> Linear:
    layers = model.integer("num_hidden_layers")
    kinds = model.words("layer_types") or tuple("attention" if (i + 1) % 6 == 0 else "mamba" for i in range(layers))
    linear = tuple(layer for layer, kind in enumerate(kinds) if kind == "mamba")
    heads = model.integer("mamba_n_heads", 64)
    width = model.get("mamba_d_head", 64)
    inner = model.integer("mamba_expand", 2) * model.integer("hidden_size")
    state = mamba2_state(
        ranks,
        inner=inner,
        groups=model.integer("mamba_n_groups", 1),
        heads=heads,
        width=inner // heads if width == "auto" else model.integer("mamba_d_head", 64),
        size=model.integer("mamba_d_state", 128),
        window=model.integer("mamba_d_conv", 4),
        types=types,
    )
    return Linear(_others(layers, linear), linear, state)


_NEMOTRON_LETTERS = {"M": "mamba", "*": "attention", "-": "mlp", "E": "moe"}


def nemotron_layers(model: Model) -> tuple[str, ...]:
    """Kinds of Nemotron-H's layers, from the list or the pattern of letters; they are also its number of layers."""
    kinds = model.words("layers_block_type")
    if kinds is not None:
        return kinds
    pattern = model.word("hybrid_override_pattern")
    if not pattern:
        raise model.missing("layers_block_type")
    if any(letter not in _NEMOTRON_LETTERS for letter in pattern):
        raise model.wrong("hybrid_override_pattern", pattern, "letters of M, *, - and E")
    return tuple(_NEMOTRON_LETTERS[letter] for letter in pattern)


def _nemotron(model: Model, ranks: int, types: StateTypes) -> Linear:
    kinds = nemotron_layers(model)
    heads, width = model.integer("mamba_num_heads", 128), model.integer("mamba_head_dim", 64)
    state = mamba2_state(
        ranks,
        inner=heads * width,
        groups=model.integer("n_groups"),  # SGLang has no other name for it
        heads=heads,
        width=width,
        size=model.integer("ssm_state_size", 128),
        window=model.integer("conv_kernel" if model.has("conv_kernel") else "mamba_d_conv", 4),
        types=_written(model, types),
    )
    return Linear(_named(kinds, "attention"), _named(kinds, "mamba"), state)


def _lfm2(model: Model, ranks: int, types: StateTypes) -> Linear:
    """LFM2: short convolutions without a recurrent state."""
    kinds = model.words("layer_types")
    if kinds is None:
        full = model.integers("full_attn_idxs")
        if full is None:
            raise model.missing("layer_types")
        kinds = tuple("full_attention" if i in full else "conv" for i in range(model.integer("num_hidden_layers")))
    conv = share(model.integer("hidden_size"), ranks, "values of the convolution")
    state = State(
        (conv * (model.integer("conv_L_cache", 3) - 1),), 0, types.conv or "bfloat16", types.temporal or "float32"
    )
    linear = tuple(layer for layer, kind in enumerate(kinds) if kind in {"conv", "short_conv"})
    if not linear:
        raise model.wrong("layer_types", "without a convolution", "at least one layer of convolutions")
    return Linear(_named(kinds, "full_attention"), linear, state)


def _jet(model: Model, ranks: int, types: StateTypes) -> Linear:
    kinds = model.words("layer_types")
    nested = model.table("efficient_attention_config")
    block = nested.table("jet") if nested is not None else None
    if kinds is None or block is None:
        raise model.missing("layer_types" if kinds is None else "efficient_attention_config")
    heads, key = block.integer("num_heads"), block.integer("head_dim")
    width = int(key * block.number("expand_v", 1.0))
    state = mamba2_state(
        ranks,
        inner=heads * width,
        groups=heads,
        heads=heads,
        width=width,
        size=key,
        window=block.integer("conv_size"),
        types=_written(model, types),
    )
    return Linear(tuple(i for i, kind in enumerate(kinds) if kind in {"attn", "swa"}), _named(kinds, "jet"), state)


_BAILING = frozenset({"BailingMoeV2_5ForCausalLM", "BailingMoeV3ForCausalLM", "BailingMoeV3VLForConditionalGeneration"})


def _bailing(model: Model, ranks: int, types: StateTypes) -> Linear:
    """Ling 2.5 and 3: attention once in a group of layers; KDA where there is a short convolution, else lightning."""
    layers = model.integer("num_hidden_layers")
    if isinstance(model.get("layer_group_size"), list):
        linear = tuple(i for i, kind in enumerate(model.integers("layer_group_size") or ()) if kind == 1)
    else:
        every = model.integer("layer_group_size", 1)
        linear = tuple(layer for layer in range(layers) if (layer + 1) % every)
    width = model.maybe_integer("head_dim", least=1) or model.integer("hidden_size") // model.integer(
        "num_attention_heads"
    )
    window = model.maybe_integer("short_conv_kernel_size", least=1)
    if window is not None:
        state = delta_state(ranks, heads=model.integer("num_attention_heads"), width=width, window=window, types=types)
    else:
        heads = model.maybe_integer("num_linear_key_value_heads", least=1) or model.integer("num_attention_heads")
        state = mamba2_state(ranks, inner=0, groups=0, heads=heads, width=width, size=width, window=1, types=types)
    return Linear(_others(layers, linear), linear, state)


def _inkling(model: Model, ranks: int, _types: StateTypes) -> Linear:
    """Inkling: short convolutions around every layer, on keys and values of both kinds and on two streams."""
    every = tuple(range(model.integer("num_hidden_layers")))
    heads = model.integer("num_key_value_heads")
    width = model.maybe_integer("head_dim", least=1) or model.integer("hidden_size") // model.integer(
        "num_attention_heads"
    )
    full = max(1, heads // ranks) * width
    local = max(1, model.integer("swa_num_key_value_heads", heads) // ranks) * model.integer("swa_head_dim", width)
    stream, window = model.integer("hidden_size"), model.integer("sconv_kernel_size") - 1
    conv = tuple(window * size for size in (full, full, local, local, stream, stream))
    return Linear(every, every, State(conv, 0, "bfloat16", "bfloat16"))


def _zaya(model: Model, ranks: int, types: StateTypes) -> Linear:
    """ZAYA1: attention over compressed convolutions, so that its layers have both; the others are experts."""
    kinds = model.get("zaya_layers")
    layers = model.integer("num_hidden_layers")
    listed = isinstance(kinds, list) and bool(kinds)
    both = tuple(i for i, kind in enumerate(kinds) if kind == "a") if listed else tuple(range(0, layers, 2))
    queries, keys = model.integer("num_attention_heads"), model.integer("num_key_value_heads")
    heads = (share(queries, ranks, "query heads") + share(keys, ranks, "KV heads")) * ranks
    channels = share(heads * model.integer("head_dim"), ranks, "channels of the convolutions")
    window = model.integer("cca_time0", 2) + model.integer("cca_time1", 2) - 2
    conv = (channels * window, model.integer("hidden_size"))
    return Linear(both, both, State(conv, 0, types.conv or "bfloat16", types.temporal or "float32"))


def _mamba2(model: Model, ranks: int, types: StateTypes) -> Linear:
    """Mamba 2 by itself: no layer has attention."""
    state = mamba2_state(
        ranks,
        inner=model.integer("intermediate_size"),
        groups=model.integer("n_groups"),
        heads=model.integer("num_heads"),
        width=model.integer("head_dim"),
        size=model.integer("state_size"),
        window=model.integer("conv_kernel"),
        types=_written(model, types),
    )
    return Linear((), tuple(range(model.integer("num_hidden_layers"))), state)


def _mamba1(model: Model, ranks: int, types: StateTypes) -> Linear:
    """The same of Mamba 1."""
    state = mamba1_state(
        ranks,
        inner=model.integer("intermediate_size"),
        size=model.integer("state_size"),
        window=model.integer("conv_kernel"),
        types=_written(model, types),
    )
    return Linear((), tuple(range(model.integer("num_hidden_layers"))), state)


def _others(layers: int, linear: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(layer for layer in range(layers) if layer not in set(linear))


def _named(kinds: tuple[str, ...], kind: str) -> tuple[int, ...]:
    return tuple(layer for layer, found in enumerate(kinds) if found == kind)


_READERS: Mapping[str, Reader] = {
    **dict.fromkeys(
        (
            "InternS2MobiusForConditionalGeneration",
            "InternS2PreviewForConditionalGeneration",
            "MiniCPMV4_6ForConditionalGeneration",
            "MiniCPMV4_7ForConditionalGeneration",
            "Qwen3NextForCausalLM",
            "Qwen3_5ForCausalLM",
            "Qwen3_5ForConditionalGeneration",
            "Qwen3_5MoeForCausalLM",
            "Qwen3_5MoeForConditionalGeneration",
        ),
        _qwen,
    ),
    **dict.fromkeys(("KimiK3ForConditionalGeneration", "KimiK3LinearForCausalLM", "KimiLinearForCausalLM"), _kimi),
    **dict.fromkeys(NEMOTRON_H, _nemotron),
    **dict.fromkeys(("Lfm2ForCausalLM", "Lfm2MoeForCausalLM", "Lfm2VlForConditionalGeneration"), _lfm2),
    **dict.fromkeys(("JetNemotronForCausalLM", "JetVLMForConditionalGeneration"), _jet),
    **dict.fromkeys(_BAILING, _bailing),
    "FalconH1ForCausalLM": _falcon,
    "Qwen4ExpForConditionalGeneration": qwen4_layers,
    "GigaChat35ForCausalLM": _gigachat,
    "Glm5NextForConditionalGeneration": _glm5_next,
    "GraniteMoeHybridForCausalLM": _granite,
    "InklingForConditionalGeneration": _inkling,
    "FalconMambaForCausalLM": _mamba1,
    "Mamba2ForCausalLM": _mamba2,
    "MambaForCausalLM": _mamba1,
    "ZayaForCausalLM": _zaya,
}
