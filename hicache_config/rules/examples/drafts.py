"""Speculative decoding with drafts whose pools do not go with those of the model."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from .models import M31

_SIZE: Mapping[str, Any] = {
    "enable_hierarchical_cache": True,
    "hicache_size": 100,
    "tp_size": 4,
    "max_total_tokens": 1_000_000,
}


def chain(algorithm: str, tokens: int = 4, draft: str | None = None) -> dict[str, Any]:
    """Arguments of a draft that writes one token a step."""
    given: dict[str, Any] = {
        "speculative_algorithm": algorithm,
        "speculative_num_steps": tokens - 1,
        "speculative_eagle_topk": 1,
        "speculative_num_draft_tokens": tokens,
        "max_running_requests": 64,
    }
    return given if draft is None else {**given, "speculative_draft_model_path": draft}


def _draft(**config: Any) -> dict[str, str]:
    return {"draft/config.json": json.dumps(config, indent=1) + "\n"}


#: A plain EAGLE-3 draft of one layer.
EAGLE3_CONFIG = _draft(
    architectures=["LlamaForCausalLMEagle3"],
    model_type="llama",
    dtype="bfloat16",
    hidden_size=4096,
    num_attention_heads=32,
    num_key_value_heads=8,
    head_dim=128,
    num_hidden_layers=1,
)
_LATENT_CONFIG = _draft(
    architectures=["Eagle3DeepseekV2ForCausalLM"],
    model_type="deepseek_v3",
    dtype="bfloat16",
    hidden_size=7168,
    num_attention_heads=64,
    num_hidden_layers=1,
    kv_lora_rank=512,
    qk_rope_head_dim=64,
    qk_nope_head_dim=128,
    v_head_dim=128,
)
_INKLING = {
    "config.json": json.dumps(
        {
            "architectures": ["InklingForConditionalGeneration"],
            "model_type": "inkling_mm_model",
            "dtype": "bfloat16",
            "text_config": {
                "hidden_size": 4096,
                "num_hidden_layers": 8,
                "num_attention_heads": 32,
                "num_key_value_heads": 8,
                "head_dim": 128,
                "swa_num_key_value_heads": 8,
                "swa_head_dim": 128,
                "local_layer_ids": [0, 1, 2, 4, 5, 6],
                "sliding_window_size": 512,
                "use_sconv": True,
                "sconv_kernel_size": 4,
                "num_nextn_predict_layers": 4,
            },
            "mtp_config": {"n_layers": 4, "local_layer_ids": [0, 2], "local_extent": 512},
        },
        indent=1,
    )
    + "\n"
}
_QWEN, _LATENT, _GPT_OSS = "Qwen/Qwen3-8B", "deepseek-ai/DeepSeek-V3", "openai/gpt-oss-120b"
_HYBRID, _MIMO, _GLM = "Qwen/Qwen3.5-397B-A17B", "XiaomiMiMo/MiMo-7B-Base", "zai-org/GLM-5.2-FP8"
_STATES: Mapping[str, Any] = {**_SIZE, "max_mamba_cache_size": 500}
_TWO: Mapping[str, Any] = {**_SIZE, "pp_size": 2}
_PARTITION = {"SGLANG_PP_LAYER_PARTITION": "75,3"}

DRAFTS: Mapping[str, Mapping[str, Any]] = {
    "HC657": {
        "bad": {**_SIZE, **chain("EAGLE3")},
        "good": {**_SIZE, **chain("EAGLE3", draft="draft")},
        "settings": {"model": _QWEN},
        "files": EAGLE3_CONFIG,
    },
    "HC658": {
        "bad": {**_SIZE, **chain("EAGLE3", draft="/models/draft-of-ours")},
        "good": {**_SIZE, **chain("EAGLE3", draft="draft")},
        "settings": {"model": _QWEN},
        "files": EAGLE3_CONFIG,
    },
    "HC659": {
        "bad": {**_STATES, **chain("EAGLE"), "pp_size": 2},
        "good": {**_STATES, **chain("EAGLE")},
        "settings": {"model": _HYBRID},
    },
    "HC660": {
        "bad": {**_SIZE, **chain("EAGLE")},
        "good": {**_SIZE, **chain("EAGLE")},
        "settings": {"model": _MIMO, "patch": {"num_nextn_predict_layers": 2}},
        "good_settings": {"model": _MIMO},
    },
    "HC661": {
        "bad": {**_TWO, **chain("EAGLE")},
        "good": {**_TWO, **chain("EAGLE")},
        "settings": {"model": _GLM, "environment": {**_PARTITION, "SGLANG_ENABLE_PP_SPEC": "1"}},
        "good_settings": {"model": _GLM, "environment": {"SGLANG_ENABLE_PP_SPEC": "1"}},
    },
    "HC662": {
        "bad": {
            **_SIZE,
            "kv_cache_dtype": "fp8_e4m3",
            "speculative_draft_kv_cache_dtype": "bf16",
            **chain("EAGLE", draft=_LATENT),
        },
        "good": {**_SIZE, "kv_cache_dtype": "fp8_e4m3", **chain("EAGLE", draft=_LATENT)},
        "settings": {"model": _LATENT},
    },
    "HC663": {
        "bad": {**_SIZE, **chain("STANDALONE", draft="Qwen/Qwen3-32B")},
        "good": {**_SIZE, **chain("STANDALONE", draft="Qwen/Qwen3-0.6B")},
        "settings": {"model": _QWEN},
    },
    "HC664": {
        "bad": {**_SIZE, **chain("STANDALONE", draft=_GPT_OSS)},
        "good": {**_SIZE, **chain("STANDALONE", draft="Qwen/Qwen3-0.6B")},
        "settings": {"model": _QWEN},
    },
    "HC665": {
        "bad": {**_SIZE, **chain("EAGLE3", draft="draft")},
        "good": {**_SIZE, **chain("EAGLE3", draft="draft")},
        "bad_files": _LATENT_CONFIG,
        "good_files": EAGLE3_CONFIG,
        "settings": M31,
    },
    "HC666": {
        "bad": {**_STATES, **chain("EAGLE")},
        "good": {**_STATES, **chain("EAGLE"), "enable_multi_layer_eagle": True, "page_size": 64},
        "settings": {"model": "config.json"},
        "files": _INKLING,
    },
}
