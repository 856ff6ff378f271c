"""Which attention a model class has and the shape of its rows: KV heads and widths, latent widths, sliding layers.

The lists of classes are SGLang 0.5.23's (configs/model_config.py). Must not import anything above this floor.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from .model import Model

#: Classes that always keep the latent of MLA.
_LATENT = frozenset(
    {
        "BailingMoeV2_5ForCausalLM",
        "BailingMoeV3ForCausalLM",
        "BailingMoeV3VLForConditionalGeneration",
        "DeepseekV2ForCausalLM",
        "DeepseekV32ForCausalLM",
        "DeepseekV3ForCausalLM",
        "Dots3NoteForCausalLM",
        "DotsVLMForCausalLM",
        "GigaChat35ForCausalLM",
        "Glm4MoeLiteForCausalLM",
        "Glm5NextForConditionalGeneration",
        "GlmMoeDsaForCausalLM",
        "HYV4ForCausalLM",
        "KimiK25ForConditionalGeneration",
        "KimiK3ForConditionalGeneration",
        "KimiK3LinearForCausalLM",
        "KimiLinearForCausalLM",
        "KimiVLForConditionalGeneration",
        "LongcatFlashForCausalLM",
        "MiniCPM3ForCausalLM",
        "MistralLarge3ForCausalLM",
        "SarvamMLAForCausalLM",
    }
)
#: Classes that have index keys when their config.json names `index_topk`.
_SPARSE = frozenset(
    {
        "DeepseekV32ForCausalLM",
        "DeepseekV3ForCausalLM",
        "Dots3NoteForCausalLM",
        "Glm5NextForConditionalGeneration",
        "GlmMoeDsaForCausalLM",
        "HYV4ForCausalLM",
        "LongcatFlashForCausalLM",
        "MistralLarge3ForCausalLM",
        "PixtralForConditionalGeneration",
    }
)
#: Values that a configuration class of SGLang or transformers fills in where config.json is silent.
_FILLED: Mapping[tuple[str, str], int] = {
    ("HYV4ForCausalLM", "index_topk"): 2048,
    ("Glm5NextForConditionalGeneration", "qk_rope_head_dim"): 0,
}


def is_latent(model: Model) -> bool:
    """Whether the model keeps MLA's latent instead of keys and values of each head."""
    names = set(model.architectures)
    if names & _LATENT:
        return True
    if "PixtralForConditionalGeneration" in names:
        return model.has("kv_lora_rank")
    return "DeepseekVL2ForCausalLM" in names and model.get("use_mla", True) is not False


def is_sparse(model: Model) -> bool:
    """Whether the model selects by index keys (DSA). Source: 0.5.23, model_config.py:is_deepseek_dsa."""
    name = model.architecture
    return name in _SPARSE and (model.has("index_topk") or (name, "index_topk") in _FILLED)


@dataclass(frozen=True)
class Latent:
    """Widths of the latent row: `rank` of the compressed part, `rope` of the part with positions."""

    rank: int
    rope: int

    @property
    def width(self) -> int:
        """Values of a row, one layer."""
        return self.rank + self.rope


def latent(model: Model, prefix: str = "") -> Latent:
    """The latent widths; `prefix` is "swa_" for the sliding layers of Dots3."""
    rope_default = _FILLED.get((model.architecture, "qk_rope_head_dim"))
    if model.architecture.startswith("BailingMoeV3") and model.get("use_mla_nope"):
        return Latent(model.integer(f"{prefix}kv_lora_rank"), 0)
    return Latent(
        model.integer(f"{prefix}kv_lora_rank"), model.integer(f"{prefix}qk_rope_head_dim", rope_default, least=0)
    )


@dataclass(frozen=True)
class Heads:
    """Keys and values of one attention layer in the whole model: heads, width of a key, width of a value."""

    count: int
    key: int
    value: int


def heads(model: Model) -> Heads:
    """KV heads and their widths, of full attention where a model has two shapes.

    Source: 0.5.23, model_config.py:_derive_model_shapes and get_total_num_kv_heads.
    """
    if is_two_shaped_gemma(model):
        return _gemma_full(model)
    key = model.maybe_integer("head_dim", least=1)
    if key is None:
        key = model.integer("hidden_size") // model.integer("num_attention_heads")
    return Heads(kv_heads(model), key, model.maybe_integer("v_head_dim") or key)


def kv_heads(model: Model) -> int:
    """KV heads of the whole model, from whichever key the model class uses."""
    new_falcon = model.model_type in {"falcon", "RefinedWeb", "RefinedWebModel"} and bool(
        model.get("new_decoder_architecture")
    )
    if model.get("multi_query") is True and not new_falcon:
        return 1
    if model.model_type in {"dbrx", "mpt"}:
        nested = model.table("attn_config")
        found = nested.maybe_integer("kv_n_heads", least=1) if nested else None
        return found or model.integer("num_attention_heads")
    if model.model_type == "nemotron-nas":
        return _block_heads(model)
    for key in ("n_head_kv", "num_kv_heads", "num_key_value_heads", "multi_query_group_num", "num_attention_groups"):
        found = model.maybe_integer(key, least=1)
        if found is not None:
            return found
    return model.integer("num_attention_heads")


def _block_heads(model: Model) -> int:
    """KV heads of Nemotron-NAS, whose layers say how many query heads share one; they must agree."""
    blocks = model.get("block_configs")
    groups: set[int] = set()
    if isinstance(blocks, list):
        for block in blocks:
            attention = block.get("attention") if isinstance(block, Mapping) else None
            if isinstance(attention, Mapping) and not attention.get("no_op") and attention.get("n_heads_in_group"):
                groups.add(int(attention["n_heads_in_group"]))
    if len(groups) != 1:
        raise model.wrong("block_configs", sorted(groups), "layers that all have the same n_heads_in_group")
    return model.integer("num_attention_heads") // groups.pop()


_GEMMA4 = frozenset({"gemma4", "gemma4_unified", "diffusion_gemma", "embedding_gemma2"})


def is_two_shaped_gemma(model: Model) -> bool:
    """Whether full attention has its own head width and number of KV heads (Gemma 4)."""
    return model.model_type in _GEMMA4


def _gemma_full(model: Model) -> Heads:
    """Full attention of Gemma 4: `global_head_dim` and `num_global_key_value_heads` where they are given.

    Source: 0.5.23, utils/hf_transformers/config.py:_apply_gemma4_attention_overrides.
    """
    width = model.maybe_integer("global_head_dim", least=1) or model.integer("head_dim")
    count = model.maybe_integer("num_global_key_value_heads", least=1) or model.integer("num_key_value_heads")
    return Heads(count, width, model.maybe_integer("v_head_dim") or width)
