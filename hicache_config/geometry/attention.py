"""Which attention a model class has and the shape of its rows: KV heads and widths, latent widths, sliding layers.

The lists of classes are SGLang 0.5.23's (configs/model_config.py). Must not import anything above this floor.
"""

from __future__ import annotations

from collections.abc import Mapping

from .gemma import gemma_heads, is_two_shaped_gemma
from .model import Model
from .pieces import Heads, IndexKeys, Latent

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
    return name in _SPARSE and model.has("index_topk")


def latent(model: Model, prefix: str = "") -> Latent:
    """The latent widths; `prefix` is "swa_" for the sliding layers of Dots3."""
    if model.architecture.startswith("BailingMoeV3") and model.get("use_mla_nope"):
        return Latent(model.integer(f"{prefix}kv_lora_rank"), 0)
    return Latent(model.integer(f"{prefix}kv_lora_rank"), model.integer(f"{prefix}qk_rope_head_dim", least=0))


def heads(model: Model) -> Heads:
    """KV heads and their widths, of full attention where a model has two shapes.

    Source: 0.5.23, model_config.py:_derive_model_shapes and get_total_num_kv_heads.
    """
    if is_two_shaped_gemma(model):
        return gemma_heads(model, "full_attention")
    if model.architecture in {"FalconMambaForCausalLM", "Mamba2ForCausalLM", "MambaForCausalLM"}:
        return Heads(1, 0, 0)
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


def rank_heads(shape: Heads, ranks: int) -> Heads:
    """The KV heads of one of the ranks that share them; with fewer heads than ranks each keeps one."""
    return Heads(max(1, shape.count // max(1, ranks)), shape.key, shape.value)


def index_keys(model: Model) -> IndexKeys:
    """Index keys of sparse attention; SGLang 0.5.23 knows a width of 128 alone (memory_pool.py:DSATokenToKVPool)."""
    width = model.integer("index_head_dim")
    if width != 128:
        raise model.wrong("index_head_dim", width, "128, the width that SGLang knows")
    return IndexKeys(width, model.integer("index_kpool", 1))


def shares_selection(model: Model, layer: int) -> bool:
    """Whether a layer uses the selection of the one before it and owns no index keys.

    Source: SGLang 0.5.23, configs/model_config.py:dsa_layer_skips_topk.
    """
    kinds = model.words("indexer_types")
    if kinds is not None:
        return layer < len(kinds) and kinds[layer] == "shared"
    if model.architecture == "HYV4ForCausalLM":  # what its configuration class fills in (configs/hy_v4.py)
        return layer > 0 and (layer - 1) % 4 != 0
    factor = model.integer("cli_factor", 1) if model.architecture.startswith("Longcat") else 1
    if factor > 1:
        return layer % factor != 0
    pattern = model.get("index_topk_pattern")
    if isinstance(pattern, str | list):
        return layer < len(pattern) and pattern[layer] == "S"
    every = model.integer("index_topk_freq", 1)
    offset = model.integer("index_skip_topk_offset", 2)
    return max(layer - offset + 1, 0) % every != 0


#: Classes whose KV is not one pool of plain attention, or that have none, and that another family must answer.
_NOT_PLAIN = frozenset(
    {
        "Contriever",
        "Cosmos3ForConditionalGeneration",
        "DiffusionGemmaForBlockDiffusion",
        "MindSporeForCausalLM",
        "MossVLForConditionalGeneration",
        "PixtralVisionModel",
    }
)
_NOT_PLAIN_BEGIN = (
    "DFlash", "DSpark", "DeepseekV4", "Eagle", "Lfm2", "LiLiCorr", "Mamba", "MiniMaxDFlash", "MiniMaxM3",
    "NemotronH", "Qwen4Exp", "Transformers", "TorchNative",
)  # fmt: skip
_NOT_PLAIN_HAVE = ("Assistant", "Draft", "DSpark", "Eagle", "MTP", "NextN")


def is_plain(model: Model) -> bool:
    """Whether the class keeps keys and values of each head in one pool over all its layers."""
    name = model.architecture
    if name in _NOT_PLAIN or name.startswith(_NOT_PLAIN_BEGIN):
        return False
    return not any(part in name for part in _NOT_PLAIN_HAVE)
