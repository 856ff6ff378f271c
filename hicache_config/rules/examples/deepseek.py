"""DeepSeek V4 and V4.1 under layouts, types, GPUs and drafts that they do not have."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .drafts import EAGLE3_CONFIG, chain

_RATIO: Mapping[str, Any] = {
    "enable_hierarchical_cache": True,
    "hicache_ratio": 2.0,
    "tp_size": 4,
    "max_total_tokens": 1_000_000,
}
_FLASH = "deepseek-ai/DeepSeek-V4-Flash"
_LAYOUT = "SGLANG_DSV4_KV_LAYOUT"


def _on(gpu: str = "sm90", **more: Any) -> dict[str, Any]:
    return {"model": _FLASH, "gpu": gpu, **more}


#: A V4.1 of twelve layers, as its configuration tells it from V4.
_V41 = _on(
    "sm100",
    patch={
        "model_type": "deepseek_v41",
        "num_hidden_layers": 12,
        "compress_ratios": [0, 1, 1, 2, 2, 4, 128, 4, 128, 4, 128, 1, 0],
        "kv_source_layer_ids": [1, 3, 11],
        "index_source_layer_ids": [1, 3, 11],
    },
)


def _environment(name: str, bad: str, good: str, gpu: str = "sm90") -> dict[str, Any]:
    return {
        "bad": _RATIO,
        "good": _RATIO,
        "settings": _on(gpu, environment={name: bad}),
        "good_settings": _on(gpu, environment={name: good}),
    }


DEEPSEEK_V4: Mapping[str, Mapping[str, Any]] = {
    "HC619": {
        "bad": {**_RATIO, "kv_cache_dtype": "bfloat16"},
        "good": {**_RATIO, "kv_cache_dtype": "fp8_e4m3"},
        "settings": _on(),
    },
    "HC620": _environment(_LAYOUT, "v5", "auto"),
    "HC621": _environment("SGLANG_DSV4_COMPRESS_STATE_DTYPE", "fp8", "bf16"),
    "HC622": _environment("SGLANG_OPT_SM120_DIRECT_SWA_KV", "1", "0", "sm120"),
    "HC623": {
        "bad": {**_RATIO, "enable_encoder_swa_bounded_replay": True},
        "good": _RATIO,
        "settings": _V41,
    },
    "HC624": {
        "bad": {**_RATIO, "dsv4_attn_backend": "trtllm"},
        "good": {**_RATIO, "dsv4_attn_backend": "trtllm"},
        "settings": _on("sm90"),
        "good_settings": _on("sm100", environment={_LAYOUT: "auto"}),
    },
    "HC625": {
        "bad": {**_RATIO, **chain("EAGLE3", draft="draft")},
        "good": {**_RATIO, **chain("EAGLE")},
        "settings": _on(),
        "files": EAGLE3_CONFIG,
    },
    "HC626": {
        "bad": {**_RATIO, **chain("EAGLE", tokens=11)},
        "good": {**_RATIO, **chain("EAGLE", tokens=10)},
        "settings": _on(),
    },
    "HC627": {
        "bad": {**_RATIO, **chain("DSPARK")},
        "good": {**_RATIO, **chain("DSPARK")},
        "settings": _on(),
        "good_settings": _on(patch={"dspark_block_size": 7, "dspark_target_layer_ids": [40, 41, 42]}),
    },
    "HC628": {"bad": {**_RATIO, "pp_size": 2}, "good": _RATIO, "settings": _V41},
}
