"""The seeded list of argument sets that go through SGLang's own resolution and through ours.

A case is a kind of model, a GPU and arguments by SGLang's field names. Each starts from one of the themes below, which
lie near a rule, and takes some further arguments at random; the first of the list is every theme with nothing added.
The standard library alone.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

from resolution_models import MODELS

Arguments = dict[str, Any]
GPUS = ("sm90", "sm100")

_HICACHE: dict[str, tuple[Any, ...]] = {
    "hicache_size": (0, 1, 30, 100, 400),
    "hicache_ratio": (0.5, 1.0, 1.2, 2.0, 4.0),
    "hicache_host_memory_fraction": (0.1, 0.5, 0.8, 1.0),
    "hicache_host_memory_mode": ("cache", "buffer_only"),
    "hicache_write_policy": ("write_back", "write_through", "write_through_selective"),
    "hicache_io_backend": ("direct", "kernel", "kernel_ascend"),
    "hicache_mem_layout": ("layer_first", "page_first", "page_first_direct", "page_first_kv_split", "page_head"),
    "hicache_storage_backend": (
        "file", "sim", "mooncake", "npu_memcache", "hf3fs", "nixl", "aibrix", "dynamic", "eic", "simm", "mori", "shm",
        "tensorcast", "seaweedfs",
    ),
    "hicache_storage_prefetch_policy": ("best_effort", "wait_complete", "timeout"),
    "hicache_storage_prefetch_retry_poll_interval": (0, 4),
    "hicache_storage_prefetch_retry_max_attempts": (0, 4),
}  # fmt: skip

_NEIGHBOURS: dict[str, tuple[Any, ...]] = {
    "disable_radix_cache": (True,),
    "radix_cache_backend": ("own",),
    "radix_eviction_policy": ("lru", "lfu", "tlru"),
    "enable_unified_memory": (True,),
    "enable_page_major_kv_layout": (True,),
    "enable_session_radix_cache": (True,),
    "enable_streaming_session": (True,),
    "enable_unified_cache_external_linker": (True,),
    "unified_cache_external_linker_backend": ("mooncake", "mori", "dynamic"),
    "unified_cache_external_linker_config": ({}, {"linker": "a", "linker_module_path": "b"}, {"linker": "a"}),
    "enable_linker_mla_dedup": (True,),
    "enable_hisparse": (True,),
    "enable_lmcache": (True,),
    "enable_flexkv": (True,),
    "page_size": (1, 16, 32, 64, 128, 256),
    "chunked_prefill_size": (-1, 1000, 4096, 8192),
    "kv_cache_dtype": ("auto", "fp8_e4m3", "fp8_e5m2", "mxfp8", "nvfp4", "fp4_mx_block16", "bfloat16"),
    "swa_full_tokens_ratio": (0.1, 0.5, 1.0, 1.5),
    "swa_prefix_tails": (-1, 0, 2),
    "disable_hybrid_swa_memory": (True,),
    "mamba_radix_cache_strategy": ("auto", "no_buffer", "extra_buffer"),
    "mamba_track_interval": (100, 128, 256),
    "enable_int8_mamba_checkpoint": (True,),
    "tp_size": (2, 4, 8),
    "pp_size": (2, 3, 4),
    "dp_size": (2,),
    "attn_dp_size": (2, 4),
    "enable_dp_attention": (True,),
    "dcp_size": (2, 4),
    "nnodes": (2, 3),
    "enable_priority_scheduling": (True,),
    "disable_priority_preemption": (True,),
    "disable_overlap_schedule": (True,),
    "attention_backend": ("triton", "flashinfer", "fa3", "fa4", "trtllm_mha"),
    "speculative_algorithm": ("NGRAM", "EAGLE", "NEXTN"),
    "disaggregation_mode": ("prefill", "decode"),
    "disaggregation_transfer_backend": ("nixl", "mori"),
    "disaggregation_decode_enable_radix_cache": (True,),
    "disaggregation_decode_enable_offload_kvcache": (True,),
    "disaggregation_decode_retraction_backup": ("cpu_tensor", "host_pool"),
    "disaggregation_decode_host_receive_threshold": (-0.5, 0.0, 0.5, 1.0, 1.5),
    "disaggregation_decode_allocation_policy": ("early", "prefill_complete"),
    "enable_pd_role_switch": (True,),
    "optimistic_prefill_attempts": (1, 3),
    "enable_kv_cache_sharding": (True,),
    "enable_dsa_cache_layer_split": (True,),
    "enable_prefill_cp": (True,),
}

ON: Arguments = {"enable_hierarchical_cache": True}
# Mooncake asks the machine for its network cards while arguments are resolved, so pairs of servers use nixl here.
PREFILL: Arguments = {"disaggregation_mode": "prefill", "disaggregation_transfer_backend": "nixl"}
DECODE: Arguments = {"disaggregation_mode": "decode", "disaggregation_transfer_backend": "nixl"}
DECODE_RADIX: Arguments = {**DECODE, "disaggregation_decode_enable_radix_cache": True}
L3: Arguments = {**ON, "hicache_storage_backend": "file"}
BUFFER: Arguments = {**L3, "hicache_host_memory_mode": "buffer_only"}
LINKER: Arguments = {"enable_unified_cache_external_linker": True}

THEMES: tuple[Arguments, ...] = (
    {},
    ON,
    {**ON, "hicache_size": 100},
    {**ON, "hicache_ratio": 2.0, "hicache_size": 100},
    {**ON, "hicache_mem_layout": "page_first", "hicache_io_backend": "direct"},
    {**ON, "hicache_mem_layout": "page_first_direct", "hicache_io_backend": "kernel"},
    {**ON, "hicache_mem_layout": "layer_first", "hicache_storage_backend": "mooncake"},
    {
        **ON,
        "hicache_mem_layout": "layer_first",
        "hicache_io_backend": "direct",
        "hicache_storage_backend": "npu_memcache",
    },
    {
        **ON,
        "hicache_mem_layout": "layer_first",
        "hicache_io_backend": "kernel_ascend",
        "hicache_storage_backend": "mooncake",
    },
    L3,
    BUFFER,
    {**BUFFER, "hicache_write_policy": "write_back"},
    {**ON, "hicache_host_memory_mode": "buffer_only"},
    {**ON, "disable_radix_cache": True},
    {**ON, "enable_unified_memory": True},
    {**ON, "enable_unified_memory": True, "hicache_io_backend": "direct"},
    {**ON, "enable_lmcache": True},
    {"enable_lmcache": True},
    LINKER,
    {**LINKER, **ON},
    {**LINKER, "hicache_storage_backend": "mooncake"},
    {**LINKER, "unified_cache_external_linker_backend": "dynamic"},
    {**LINKER, "enable_linker_mla_dedup": True},
    {**DECODE, **ON},
    {**DECODE_RADIX, **ON},
    DECODE,
    {**DECODE, "disaggregation_decode_enable_offload_kvcache": True, "hicache_storage_backend": "file"},
    {**DECODE, "disaggregation_decode_retraction_backup": "host_pool"},
    {**DECODE, "disaggregation_decode_host_receive_threshold": 0.5},
    {**DECODE_RADIX, **ON, "disaggregation_decode_host_receive_threshold": 0.5},
    {**PREFILL, **ON},
    {**PREFILL, **ON, "optimistic_prefill_attempts": 2},
    {**PREFILL, **BUFFER, "optimistic_prefill_attempts": 2},
    {**PREFILL, "enable_kv_cache_sharding": True, **ON},
    {**ON, "dcp_size": 2, "tp_size": 2},
    {**L3, "dcp_size": 2, "tp_size": 2},
    {**ON, "tp_size": 2, "pp_size": 2},
    {**ON, "tp_size": 2, "pp_size": 3, "nnodes": 2},
    {**ON, "tp_size": 4, "attn_dp_size": 2},
    {**ON, "tp_size": 4, "dp_size": 4, "enable_dp_attention": True},
    {**ON, "kv_cache_dtype": "nvfp4"},
    {**ON, "kv_cache_dtype": "fp4_mx_block16", "attention_backend": "triton"},
    {**ON, "kv_cache_dtype": "mxfp8"},
    {**ON, "enable_int8_mamba_checkpoint": True},
    {**ON, "page_size": 64},
    {**ON, "mamba_radix_cache_strategy": "no_buffer", "disable_overlap_schedule": True},
    {**ON, "speculative_algorithm": "NGRAM"},
    {**ON, "enable_hisparse": True},
)


def cases(count: int = 5200, seed: str = "resolution") -> Iterator[dict[str, Any]]:
    """`count` cases with ids, the same for the same seed."""
    chance = random.Random(seed)
    kinds = tuple(MODELS)
    plain = [(kind, gpu, theme) for kind in kinds for gpu in GPUS for theme in THEMES]
    for number in range(count):
        if number < len(plain):
            kind, gpu, theme = plain[number]
            arguments = dict(theme)
        else:
            kind, gpu = chance.choice(kinds), chance.choice(GPUS)
            arguments = dict(chance.choice(THEMES))
            arguments |= _some(chance, _HICACHE, chance.choice((0, 1, 1, 2, 3)))
            arguments |= _some(chance, _NEIGHBOURS, chance.choice((0, 0, 1, 1, 2)))
        yield {"id": f"resolution-{number:05}", "case": {"model": kind, "gpu": gpu, "args": arguments}}


def _some(chance: random.Random, values: dict[str, tuple[Any, ...]], count: int) -> Arguments:
    return {name: chance.choice(values[name]) for name in chance.sample(sorted(values), count)}
