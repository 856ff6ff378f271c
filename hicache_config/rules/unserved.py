"""Model classes that HiCache does not work with, or not under every arrangement of ranks.

Source: SGLang 0.5.23, arg_groups/attention_hook.py, arg_groups/model_overrides/ and the model classes themselves.
Must not import anything above this floor.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from .case import Case
from .common import flag, hicache
from .registry import Rule, Seen, declare, rule

ON: Mapping[str, Any] = {"enable_hierarchical_cache": True}
SIZE: Mapping[str, Any] = {**ON, "hicache_size": 10, "page_size": 1}
#: Classes whose prefix cache SGLang turns off, and why.
_NO_PREFIX_CACHE: Mapping[str, str] = {
    "EmbeddingGemma2Model": "it reads a text at once",
    "WhisperForConditionalGeneration": "the padding of its encoder's tokens does not go with cached prefixes",
}
_STATES_ALONE = frozenset({"FalconMambaForCausalLM", "Mamba2ForCausalLM", "MambaForCausalLM"})


@rule(
    "HC687",
    "class-without-prefix-cache",
    "error",
    why="Classes whose prefix cache SGLang turns off have nothing that HiCache could keep, so that it is refused. "
    "Source: SGLang 0.5.23, attention_hook.py, model_overrides/embedding_gemma2.py, kv_cache_hook.py.",
    bad=ON,
    good={},
    needs=("model",),
    settings={"architecture": "WhisperForConditionalGeneration"},
)
def class_without_prefix_cache(case: Case) -> Iterator[Seen]:
    """HiCache for a class without a prefix cache."""
    why = _NO_PREFIX_CACHE.get(case.traits.architecture) if case.traits is not None else None
    if why is not None and case.traits is not None and hicache(case):
        yield Seen(
            "enable_hierarchical_cache",
            f"SGLang turns the prefix cache of {case.traits.architecture} off ({why}) and refuses HiCache without one",
            f"Take {flag(case, 'enable_hierarchical_cache')} out.",
        )


@rule(
    "HC688",
    "states-without-attention",
    "error",
    why="A model of Mamba layers alone has a KV pool without bytes, and its host buffer of length 0 can't be mapped "
    "(EINVAL). Source: SGLang 0.5.23, its own pools for Mamba2ForCausalLM; model_config.py, PURE_SSM_ARCHITECTURES.",
    bad=SIZE,
    good=SIZE,
    needs=("model",),
    settings={"architecture": "Mamba2ForCausalLM"},
    good_settings={"architecture": "LlamaForCausalLM"},
    late="mem_cache/pool_host/mha.py:init_kv_buffer",
)
def states_without_attention(case: Case) -> Iterator[Seen]:
    """HiCache for a model without attention."""
    if case.traits is not None and case.traits.architecture in _STATES_ALONE and hicache(case):
        yield Seen(
            "enable_hierarchical_cache",
            f"{case.traits.architecture} has no attention: SGLang builds a KV host pool of no bytes, which can't be "
            "mapped, and stops after the weights are loaded",
            f"Take {flag(case, 'enable_hierarchical_cache')} out.",
        )


@rule(
    "HC689",
    "class-without-attention-groups",
    "error",
    why="ZAYA1 splits heads and convolutions over all tensor ranks: with groups of attention SGLang stops at an "
    "assertion while the model is built. Source: SGLang 0.5.23, models/zaya.py.",
    bad={**SIZE, "tp_size": 2, "attn_dp_size": 2},
    good={**SIZE, "tp_size": 2},
    needs=("model",),
    settings={"architecture": "ZayaForCausalLM"},
    late="models/zaya.py:__init__",
)
def class_without_attention_groups(case: Case) -> Iterator[Seen]:
    """Groups of attention for ZAYA1."""
    if case.traits is None or case.traits.architecture != "ZayaForCausalLM":
        return
    grouped = case.args.dp_size if case.raw("enable_dp_attention") else 1
    for name, value in (
        ("attn_dp_size", case.args.attn_dp_size),
        ("dp_size", grouped),
        ("attn_cp_size", case.args.attn_cp_size),
    ):
        if value > 1:
            yield Seen(
                name,
                f"ZayaForCausalLM does not run in groups of attention ({flag(case, name, value)}): SGLang stops at an "
                "assertion while it builds the model",
                f"Take {flag(case, name)} out.",
                asked=value,
            )


_ZAYA = {
    "architectures": ["ZayaForCausalLM"],
    "model_type": "zaya",
    "dtype": "bfloat16",
    "num_hidden_layers": 80,
    "hidden_size": 2048,
    "num_attention_heads": 8,
    "num_key_value_heads": 2,
    "head_dim": 128,
}

declare(
    Rule(
        "HC690",
        "states-refuse-drafts",
        "error",
        why="States of speculative decoding need a window of convolution in each of their parts, and ZAYA1 keeps a "
        "part without one. Source: SGLang 0.5.23, its own pools for ZayaForCausalLM with a draft.",
        bad={**SIZE, "speculative_algorithm": "EAGLE"},
        good=SIZE,
        files={"config.json": json.dumps(_ZAYA, indent=1) + "\n"},
        settings={"model": "config.json"},
        late="mem_cache/memory_pool.py:_detect_conv_window_axis",
    )
)

_V4: Mapping[str, Any] = {**ON, "hicache_ratio": 2.0}

declare(
    Rule(
        "HC691",
        "v4-needs-window-pool",
        "error",
        why="DeepSeek V4's pools have no form without a sliding window. Source: SGLang 0.5.23, its own pools with "
        "--disable-hybrid-swa-memory.",
        bad={**_V4, "disable_hybrid_swa_memory": True},
        good=_V4,
        settings={"model": "deepseek-ai/DeepSeek-V4-Flash"},
        late="mem_cache/deepseek_v4_memory_pool.py:_num_dsv4_physical_kv_pages",
    )
)
