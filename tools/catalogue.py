"""Make the shipped catalogue of models from a folder of config.json files, keeping the fields that sizing reads.

    python tools/catalogue.py FOLDER

FOLDER holds ORG--NAME.json files (and ORG--NAME.hf_quant_config.json where a checkpoint has one). Models already in the
catalogue that FOLDER lacks are kept. The output is sorted and compact, so that a change shows as a line.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from hicache_config.geometry.filled import filled_in

TARGET = Path(__file__).parents[1] / "hicache_config" / "geometry" / "catalogue" / "models.json"

#: Keys of config.json that geometry reads, at the top or in the part of the language model.
_NAMES = """
architectures model_type dtype torch_dtype quantization_config compression_config num_hidden_layers n_layer
n_layers num_layers hidden_size n_embd d_model num_attention_heads n_head n_heads head_dim v_head_dim
num_key_value_heads num_kv_heads n_head_kv multi_query multi_query_group_num num_attention_groups
new_decoder_architecture attn_config block_configs global_head_dim num_global_key_value_heads swa_head_dim
swa_v_head_dim swa_num_key_value_heads swa_kv_lora_rank swa_qk_rope_head_dim attention_other_setting
kv_lora_rank qk_rope_head_dim qk_nope_head_dim use_mla use_mla_nope index_topk index_head_dim index_n_heads
index_kpool index_kpool_compress index_topk_freq index_topk_pattern index_skip_topk_offset indexer_types
cli_factor learnable_sink layer_types hybrid_layer_pattern sliding_window sliding_window_size
sliding_window_pattern window_size local_layer_ids is_hybrid_swa attention_chunk_size loop_num num_loops
num_nextn_predict_layers full_attention_interval linear_num_value_heads linear_value_head_dim
linear_num_key_heads linear_key_head_dim linear_conv_kernel_dim linear_attn_config linear_num_heads
linear_head_dim full_attention_layers mamba_ssm_dtype mamba_d_ssm mamba_expand mamba_n_heads mamba_d_head
mamba_n_groups mamba_d_state mamba_d_conv layers_block_type hybrid_override_pattern mamba_num_heads
mamba_head_dim n_groups ssm_state_size conv_kernel conv_L_cache full_attn_idxs efficient_attention_config
layer_group_size short_conv_kernel_size num_linear_key_value_heads sconv_kernel_size compress_ratios
compress_rates kv_source_layer_ids sparse_attention_config max_position_embeddings mtp_local_layer_ids
mtp_layers_block_type mtp_hybrid_override_pattern attention_k_eq_v per_layer_config mixer_types sparse_config
encoder_layers decoder_layers
"""
KEYS = frozenset(_NAMES.split())
#: Classes that a published config.json names and SGLang 0.5.23 has under another name.
RENAMED = {
    "MiniMaxM3ForCausalLM": "MiniMaxM3SparseForCausalLM",
    "Step3p7FlashForCausalLM": "Step3p7ForConditionalGeneration",
}
PARTS = ("text_config", "llm_config", "language_config", "thinker_config")
QUANTISATION = ("quant_method", "quant_algo", "kv_cache_scheme", "kv_cache_quant_algo", "moe_quant_algo", "group_size")


def fields(config: dict[str, Any]) -> dict[str, Any]:
    """The fields that sizing reads, in the order of the file."""
    kept: dict[str, Any] = {}
    for key, value in config.items():
        if key in PARTS and isinstance(value, dict):
            kept[key] = fields(value)
        elif key == "quantization_config" and isinstance(value, dict):
            kept[key] = quantisation(value)
        elif key == "block_configs" and isinstance(value, list):
            kept[key] = [
                {"attention": _only(block.get("attention") or {}, "no_op", "n_heads_in_group")} for block in value
            ]
        elif key == "linear_attn_config" and isinstance(value, dict):
            kept[key] = _only(
                value, "kda_layers", "full_attn_layers", "num_heads", "head_dim", "short_conv_kernel_size"
            )
        elif key in KEYS and (value is not None or key in filled_in(str(config.get("model_type")))):
            kept[key] = value
    if "architectures" in kept:
        kept["architectures"] = [RENAMED.get(name, name) for name in kept["architectures"]]
    return kept


def quantisation(section: dict[str, Any]) -> dict[str, Any]:
    """What decides the KV type; of the quantised layers one for each algorithm."""
    kept = _only(section, *QUANTISATION)
    layers = section.get("quantized_layers")
    if isinstance(layers, dict):
        algorithms = sorted({str(layer.get("quant_algo")) for layer in layers.values() if isinstance(layer, dict)})
        kept["quantized_layers"] = {name: {"quant_algo": name} for name in algorithms}
    return kept


def _only(table: dict[str, Any], *keys: str) -> dict[str, Any]:
    return {key: table[key] for key in keys if table.get(key) is not None}


def main(folder: Path) -> None:
    models = json.loads(TARGET.read_text(encoding="utf-8"))["models"]
    for path in sorted(folder.glob("*--*.json")):
        if path.name.endswith(".hf_quant_config.json"):
            continue
        kept = fields(json.loads(path.read_text(encoding="utf-8")))
        beside = path.with_name(path.stem + ".hf_quant_config.json")
        if beside.is_file() and "quantization_config" not in kept:
            section = json.loads(beside.read_text(encoding="utf-8"))
            kept["quantization_config"] = quantisation(section.get("quantization", section))
        models[path.stem.replace("--", "/", 1)] = kept
    lines = [f"{json.dumps(name)}: {json.dumps(models[name], separators=(',', ':'))}" for name in sorted(models)]
    TARGET.write_text('{"models": {\n' + ",\n".join(lines) + "\n}}\n", encoding="utf-8")
    print(f"{len(models)} models, {TARGET.stat().st_size:,} bytes")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
