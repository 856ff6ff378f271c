"""Ranks and pipeline stages that a model can't be split into."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_SIZE: Mapping[str, Any] = {"enable_hierarchical_cache": True, "hicache_size": 100}
_SLIDING: Mapping[str, Any] = {**_SIZE, "max_total_tokens": 1_000_000}
_PARTITION = "SGLANG_PP_LAYER_PARTITION"


def _on(model: str, **environment: str) -> dict[str, Any]:
    return {"model": model, "environment": environment} if environment else {"model": model}


_QWEN, _GPT_OSS = "Qwen/Qwen3-8B", "openai/gpt-oss-120b"

STAGES: Mapping[str, Mapping[str, Any]] = {
    "HC412": {
        "bad": {**_SIZE, "tp_size": 4, "attn_dp_size": 3},
        "good": {**_SIZE, "tp_size": 4, "attn_dp_size": 2},
        "settings": _on(_QWEN),
    },
    "HC413": {
        "bad": {**_SIZE, "tp_size": 8, "dcp_size": 3},
        "good": {**_SIZE, "tp_size": 8, "dcp_size": 2},
        "settings": _on("deepseek-ai/DeepSeek-V3"),
    },
    "HC414": {
        "bad": {**_SIZE, "pp_size": 2},
        "good": {**_SIZE, "pp_size": 2},
        "settings": _on(_QWEN, **{_PARTITION: "18,17"}),
        "good_settings": _on(_QWEN, **{_PARTITION: "18,18"}),
    },
    "HC415": {
        "bad": {**_SIZE, "tp_size": 4, "pp_size": 2},
        "good": {**_SIZE, "tp_size": 8},
        "settings": _on("meta-llama/Llama-4-Scout-17B-16E-Instruct"),
    },
    "HC416": {
        "bad": {**_SIZE, "tp_size": 48},
        "good": {**_SIZE, "tp_size": 8},
        "settings": _on("Qwen/Qwen3.5-397B-A17B"),
    },
    "HC417": {
        "bad": {**_SIZE, "tp_size": 8, "dcp_size": 2},
        "good": {**_SIZE, "tp_size": 8},
        "settings": _on("deepseek-ai/DeepSeek-V3.2"),
    },
    "HC418": {
        "bad": {**_SLIDING, "pp_size": 3},
        "good": {**_SLIDING, "pp_size": 3},
        "settings": _on(_GPT_OSS, **{_PARTITION: "3,1,32"}),
        "good_settings": _on(_GPT_OSS, **{_PARTITION: "12,12,12"}),
    },
    "HC419": {
        "bad": {**_SLIDING, "pp_size": 36, "page_size": 64},
        "good": {**_SLIDING, "pp_size": 18, "page_size": 64},
        "settings": _on(_GPT_OSS),
    },
    "HC438": {
        "bad": {**_SIZE, "pp_size": 2},
        "good": {**_SIZE, "pp_size": 1},
        "settings": {"through": "hicache_config.resolve"},
    },
    "HC420": {
        "bad": {**_SLIDING, "pp_size": 36},
        "good": {**_SLIDING, "pp_size": 18},
        "settings": _on(_GPT_OSS),
    },
}
