"""Models that are not known or not whole, and KV types, GPUs and modes that a model does not go with."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

_ON: Mapping[str, Any] = {"enable_hierarchical_cache": True}
_SIZE: Mapping[str, Any] = {**_ON, "hicache_size": 100}
_FP8: Mapping[str, Any] = {**_SIZE, "kv_cache_dtype": "fp8_e4m3"}
_OWN = {"model": "config.json"}
_DENSE: Mapping[str, Any] = {
    "architectures": ["LlamaForCausalLM"],
    "dtype": "bfloat16",
    "hidden_size": 4096,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
}


def _config(**changed: Any) -> dict[str, str]:
    """A config.json; a key that is changed to None is left out."""
    whole = {key: value for key, value in {**_DENSE, **changed}.items() if value is not None}
    return {"config.json": json.dumps(whole, indent=1) + "\n"}


def _model(bad: Mapping[str, str]) -> dict[str, Any]:
    return {"bad": _SIZE, "good": _SIZE, "bad_files": bad, "good_files": _config(), "settings": _OWN}


def _with(model: str, **more: Any) -> dict[str, Any]:
    return {"model": model, **more}


_QWEN, _GPT_OSS, _SPARSE, _M3 = (
    "Qwen/Qwen3-8B",
    "openai/gpt-oss-120b",
    "deepseek-ai/DeepSeek-V3.2",
    "MiniMaxAI/MiniMax-M3",
)
_FOUR_LAYERS: Mapping[str, Any] = {"num_hidden_layers": 4, "moe_layer_freq": [0, 1, 1, 1]}


def _m3(sparse: list[int], without_values: list[int], **more: Any) -> dict[str, Any]:
    """MiniMax M3 of four layers: which are sparse, and which of these keep no index values."""
    config = {"sparse_attention_freq": sparse, "sparse_disable_index_value": without_values}
    return {**_FOUR_LAYERS, "sparse_attention_config": config, **more}


_NVFP4: Mapping[str, Any] = {
    "quantization_config": {
        "quant_method": "mxfp8",
        "moe_quant_algo": "NVFP4",
        "moe_quant_format": "nvfp4-pack-quantized",
    }
}
#: MiniMax M3.1 of four layers: 4-bit weights, and index keys in every layer.
M31 = _with(_M3, gpu="sm100", patch=_m3([1, 1, 1, 1], [1, 1, 1, 1], **_NVFP4))
_QSA: Mapping[str, Any] = {
    "architectures": ["Qwen4ExpForConditionalGeneration"],
    "model_type": "qwen4_exp",
    "text_config": {
        "model_type": "qwen4_exp_text",
        "num_hidden_layers": 8,
        "layer_types": (["linear_attention"] * 3 + ["qwen_sparse_attention"]) * 2,
        "indexer_n_heads": 16,
        "indexer_kv_heads": 1,
        "indexer_head_dim": 128,
        "indexer_budget": 2048,
        "indexer_compress_ratio": 4,
    },
}
_QWEN35 = "Qwen/Qwen3.5-397B-A17B"
_DECODE: Mapping[str, Any] = {
    "disaggregation_mode": "decode",
    "hicache_size": 50,
    "disaggregation_decode_enable_offload_kvcache": True,
    "hicache_storage_backend": "file",
}

MODELS: Mapping[str, Mapping[str, Any]] = {
    "HC304": {
        "bad": _SIZE,
        "good": {**_ON, "hicache_ratio": 2.0},
        "settings": _with("deepseek-ai/DeepSeek-V4-Flash"),
    },
    "HC306": {
        "bad": _ON,
        "good": {**_ON, "hicache_ratio": 2.0},
        "settings": _with("deepseek-ai/DeepSeek-V4-Flash"),
    },
    "HC600": {
        "bad": {**_SIZE, "model_path": "/models/of-ours"},
        "good": {**_SIZE, "model_path": _QWEN},
    },
    "HC601": _model(_config(architectures=["LlamaForCasualLM"])),
    "HC602": _model(_config(hidden_size=None)),
    "HC603": _model(_config(num_hidden_layers="32")),
    "HC604": {
        "bad": _SIZE,
        "good": _SIZE,
        "settings": _with(_QWEN, gpu="sm95"),
        "good_settings": _with(_QWEN, gpu="sm90"),
    },
    "HC605": {"bad": {**_SIZE, "kv_cache_dtype": "nvfp4"}, "good": _FP8, "settings": _with(_QWEN, gpu="sm100")},
    "HC606": {"bad": {**_SIZE, "kv_cache_dtype": "mxfp8"}, "good": _FP8, "settings": _with(_QWEN, gpu="sm90")},
    "HC607": {"bad": {**_SIZE, "kv_cache_dtype": "fp8_e5m2"}, "good": _FP8, "settings": _with(_SPARSE)},
    "HC608": {
        "bad": {**_SIZE, "kv_cache_dtype": "mxfp8"},
        "good": {**_SIZE, "kv_cache_dtype": "mxfp8", "attention_backend": "fa4"},
        "settings": _with(_QWEN, gpu="sm100"),
    },
    "HC609": _model({"config.json": '{"architectures": ["LlamaForCausalLM"],\n'}),
    "HC610": {
        "bad": _SIZE,
        "good": _SIZE,
        "settings": _with("Qwen/Qwen3-8b-base"),
        "good_settings": _with(_QWEN),
    },
    "HC611": {
        "bad": {**_FP8, "dsa_prefill_backend": "tilelang"},
        "good": {**_FP8, "dsa_prefill_backend": "tilelang", "dsa_decode_backend": "tilelang"},
        "settings": _with(_SPARSE),
    },
    "HC612": {
        "bad": {**_SIZE, "max_total_tokens": 150},
        "good": {**_SIZE, "max_total_tokens": 1_000_000},
        "settings": _with(_GPT_OSS),
    },
    "HC613": {
        "bad": _SIZE,
        "good": _SIZE,
        "settings": _with("moonshotai/Kimi-K3", sglang="0.5.16"),
        "good_settings": _with("moonshotai/Kimi-K3", sglang="0.5.17"),
    },
    "HC614": {
        "bad": {**_SIZE, "kv_cache_dtype": "mxfp8", "page_size": 128},
        "good": {**_SIZE, "kv_cache_dtype": "mxfp8", "page_size": 128},
        "settings": _with(_QWEN, gpu="sm100", sglang="0.5.20"),
        "good_settings": _with(_QWEN, gpu="sm100", sglang="0.5.21"),
    },
    "HC650": {
        "bad": _SIZE,
        "good": _SIZE,
        "settings": _with(_M3, patch=_m3([0, 1, 1, 1], [0, 0, 0, 0])),
        "good_settings": _with(_M3, patch=_m3([0, 1, 1, 1], [0, 1, 1, 1])),
    },
    "HC651": {"bad": {**_SIZE, "pp_size": 2}, "good": _SIZE, "settings": _with(_M3)},
    "HC652": {
        "bad": _SIZE,
        "good": _SIZE,
        "settings": {**M31, "patch": _m3([0, 1, 1, 1], [0, 1, 1, 1], **_NVFP4)},
        "good_settings": M31,
    },
    "HC653": {"bad": {**_SIZE, "page_size": 64}, "good": {**_SIZE, "page_size": 128}, "settings": M31},
    "HC654": {"bad": {**_SIZE, "kv_cache_dtype": "bf16"}, "good": _FP8, "settings": M31},
    "HC655": {
        "bad": {**_SIZE, "pp_size": 4},
        "good": {**_SIZE, "pp_size": 2},
        "settings": _with(_QWEN35, patch=_QSA),
    },
    "HC656": {
        "bad": {**_SIZE, "qsa_indexer_dtype": "fp8_e4m3"},
        "good": _SIZE,
        "settings": _with(_QWEN35, gpu="sm80", patch=_QSA),
    },
    "HC667": {
        "bad": _DECODE,
        "good": _DECODE,
        "settings": _with(_GPT_OSS),
        "good_settings": _with("deepseek-ai/DeepSeek-V3"),
    },
    "HC668": {
        "bad": {**_SIZE, "enable_unified_memory": True, "page_size": 64},
        "good": {**_SIZE, "page_size": 64},
        "settings": _with(_GPT_OSS),
    },
}
