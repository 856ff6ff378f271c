"""Wider argument sets for the comparison with SGLang's own resolution: real models, variables, and many more arguments.

    python tests/oracle/resolution_wide.py 1000 SEED 0.5.22 > CASES.jsonl
    python tools/oracle.py run --sglang 0.5.22 resolution.py < CASES.jsonl > RESULTS.jsonl
    python tools/differential.py RESULTS.jsonl

`resolution_cases` stays near the rules; here a case is a model of any family (a file of tests/models/, or a tiny one),
a GPU, environment variables and arguments drawn from everything that HiCache meets, for any release from 0.5.20 on.
Any seed gives fresh sets. The standard library alone.
"""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from resolution_cases import _HICACHE, _NEIGHBOURS, BUFFER, DECODE, DECODE_RADIX, L3, LINKER, ON, PREFILL, _some
from resolution_models import MODELS

TESTS = Path(__file__).resolve().parent.parent
FOLDER = TESTS / "models"
TABLES = TESTS.parent / "hicache_config" / "arguments" / "releases"
_MORE: dict[str, tuple[Any, ...]] = {
    "hicache_storage_backend_extra_config": (
        '{"prefetch_threshold": 128}',
        '{"tp_lcm_size": 8}',
        '{"hicache_storage_pass_prefix_keys": true}',
        '{"prefetch_timeout_base": 2, "prefetch_timeout_per_ki_token": 0.5}',
        '{"master_server_address": "127.0.0.1:50051", "global_segment_size": "4gb"}',
        "{}",
        "not json",
        "[1]",
        "@missing.json",
    ),
    "page_size": (1, 2, 8, 16, 32, 48, 64, 128, 256, 512),
    "attention_backend": (
        "triton", "flashinfer", "fa3", "fa4", "trtllm_mha", "trtllm_mla", "flashmla", "cutlass_mla", "torch_native",
        "flex_attention", "cutedsl_mla", "dsa", "nsa", "compressed", "tokenspeed_mla", "hpc_ops",
    ),
    "prefill_attention_backend": ("triton", "flashinfer", "fa3", "fa4", "trtllm_mha", "trtllm_mla", "flashmla"),
    "decode_attention_backend": ("triton", "flashinfer", "fa3", "fa4", "trtllm_mha", "trtllm_mla", "flashmla"),
    "dsa_prefill_backend": ("flashmla_sparse", "flashmla_kv", "flashmla_auto", "fa3", "tilelang", "trtllm"),
    "dsa_decode_backend": ("flashmla_sparse", "flashmla_kv", "fa3", "tilelang", "trtllm"),
    "kv_cache_dtype": ("auto", "fp8_e4m3", "fp8_e5m2", "mxfp8", "nvfp4", "fp4_mx_block16", "bf16", "bfloat16"),
    "speculative_algorithm": ("NGRAM", "EAGLE", "NEXTN", "EAGLE3", "STANDALONE", "DSPARK", "DFLASH", "FROZEN_KV_MTP"),
    "speculative_draft_model_path": ("made--eagle3-8b", "made--eagle3-70b"),
    "speculative_num_steps": (1, 3, 5),
    "speculative_eagle_topk": (1, 2, 4),
    "speculative_num_draft_tokens": (2, 4, 6),
    "enable_multi_layer_eagle": (True,),
    "speculative_attention_mode": ("prefill", "decode"),
    "mamba_radix_cache_strategy": ("auto", "no_buffer", "extra_buffer", "extra_buffer_lazy"),
    "mamba_ssm_dtype": ("float32", "bfloat16", "float16"),
    "mamba_full_memory_ratio": (0.5, 0.9, 2.0),
    "max_mamba_cache_size": (1, 100, 1000),
    "mamba_backend": ("triton", "flashinfer"),
    "linear_attn_backend": ("triton", "flashinfer", "cutedsl", "flashkda"),
    "enable_linear_replayssm": (True,),
    "enable_linear_replayssm_spec": (True,),
    "tp_size": (1, 2, 3, 4, 6, 8, 16),
    "pp_size": (2, 3, 4, 8),
    "dp_size": (2, 4, 8),
    "attn_dp_size": (2, 4, 8),
    "attn_cp_size": (2, 4),
    "moe_dp_size": (2,),
    "ep_size": (2, 4, 8),
    "dcp_size": (2, 3, 4, 8),
    "nnodes": (1, 2, 3, 4),
    "cp_strategy": ("zigzag", "interleave"),
    "moe_a2a_backend": ("none", "deepep", "mooncake", "nixl", "flashinfer", "megamoe"),
    "moe_runner_backend": ("auto", "triton", "flashinfer_trtllm", "deep_gemm", "cutlass"),
    "deepep_mode": ("auto", "normal", "low_latency"),
    "max_lora_rank": (16,),
    "lora_target_modules": (["all"], ["q_proj"]),
    "enable_two_batch_overlap": (True,),
    "enable_mixed_chunk": (True,),
    "enable_hisparse": (True,),
    "hisparse_config": ('{"top_k": 2048, "device_buffer_size": 4096}', '{"host_to_device_ratio": 2}', "{}"),
    "enable_deterministic_inference": (True,),
    "enable_memory_saver": (True,),
    "enable_torch_compile": (True,),
    "enable_dp_lm_head": (True,),
    "disable_cuda_graph": (True,),
    "enable_return_hidden_states": (True,),
    "enable_return_routed_experts": (True,),
    "is_embedding": (True,),
    "dllm_algorithm": ("LowConfidence", "JointThreshold"),
    "cpu_offload_gb": (4,),
    "disable_overlap_schedule": (True,),
    "disable_chunked_prefix_cache": (True,),
    "chunked_prefill_size": (-1, 0, 256, 1000, 4096, 8192),
    "max_prefill_tokens": (4096,),
    "max_total_tokens": (1, 100, 65536),
    "max_running_requests": (1, 8, 64),
    "mem_fraction_static": (0.5, 0.9),
    "context_length": (2048, 4096),
    "quantization": ("fp8", "modelopt_fp4"),
    "dtype": ("float16", "bfloat16"),
    "swa_full_tokens_ratio": (0.0, 0.1, 0.5, 1.0, 1.5, -0.5),
    "schedule_policy": ("fcfs", "lpm", "priority", "lof", "dfs-weight"),
    "radix_eviction_policy": ("lru", "lfu", "fifo", "mru", "filo", "slru", "priority", "tlru"),
    "radix_eviction_policy_config": ({"ttl": 3}, {}),
    "disaggregation_mode": ("prefill", "decode", "null"),
    "disaggregation_transfer_backend": ("nixl", "mori", "fake", "ascend"),
    "num_reserved_decode_tokens": (0, 512),
    "disaggregation_decode_extra_slots": (0, 8),
    "disaggregation_decode_polling_interval": (1, 4),
    "language_only": (True,),
    "enable_multimodal": (True,),
    "mm_attention_backend": ("triton_attn", "sdpa"),
    "qsa_indexer_dtype": ("auto", "bf16", "fp8_e4m3"),
    "enable_streaming_session": (True,),
    "enable_metrics": (True,),
    "use_ray": (True,),
}  # fmt: skip

_ENVIRONMENT: dict[str, tuple[str, ...]] = {
    "SGLANG_ENABLE_UNIFIED_RADIX_TREE": ("0", "1"),
    "SGLANG_HICACHE_MAX_PINNED_RATIO": ("0.1",),
    "SGLANG_HUGEPAGE_SIZE": ("2MB", "1GB"),
    "SGLANG_DISAGG_STAGING_BUFFER": ("1",),
    "SGLANG_MAMBA_SSM_DTYPE": ("float32", "bfloat16"),
    "SGLANG_OPT_USE_ONLINE_COMPRESS": ("1",),
    "SGLANG_EXPERIMENTAL_UNIFIED_SWA_POOL": ("1",),
    "SGLANG_ENABLE_SPEC_V2": ("0", "1"),
    "SGLANG_HICACHE_DECODE_OFFLOAD_STRIDE": ("64",),
    "SGLANG_HICACHE_HF3FS_CONFIG_PATH": ("hf3fs.json",),
    "SGLANG_HICACHE_FILE_BACKEND_STORAGE_DIR": ("hicache",),
    "SGLANG_PP_LAYER_PARTITION": ("2,2", "1,3"),
    "SGLANG_USE_AITER": ("1",),
    "SGLANG_ENABLE_DETERMINISTIC_INFERENCE": ("1",),
}
#: What the environment's transformers does not load, or is no model by itself.
_NOT_LOADED = (
    "sgl-project--DeepSeek-V4", "XiaomiMiMo--MiMo-7B", "made--mimo-7b", "nvidia--Llama-3_3-Nemotron-Super",
    "stepfun-ai--Step-3.7", "dflash", "eagle3-", "made--eagle3-",
)  # fmt: skip
_THEMES = (
    {},
    ON, ON, ON,
    L3, L3,
    BUFFER,
    {**ON, **PREFILL},
    {**L3, **PREFILL},
    DECODE,
    {**DECODE, "hicache_size": 30},
    {**ON, **DECODE_RADIX},
    {**DECODE, "disaggregation_decode_enable_offload_kvcache": True, "hicache_storage_backend": "file"},
    LINKER,
    {**ON, "enable_unified_memory": True},
    {**ON, "speculative_algorithm": "EAGLE"},
    {**ON, "speculative_algorithm": "EAGLE3", "speculative_draft_model_path": "made--eagle3-8b"},
    {**ON, "tp_size": 4, "enable_dp_attention": True, "dp_size": 4},
    {**ON, "enable_deterministic_inference": True},
    {**ON, "tp_size": 8, "attn_cp_size": 2, "enable_prefill_cp": True, "cp_strategy": "zigzag"},
)  # fmt: skip


def configurations() -> dict[str, dict[str, Any]]:
    """Every model by name: the tiny ones, and those of tests/models/ with its special ones."""
    files = sorted([*FOLDER.glob("*.json"), *(FOLDER / "special").glob("*.json")])
    return MODELS | {path.stem: json.loads(path.read_text("utf-8")) for path in files}


def _fits(known: dict[str, Any], name: str, value: Any) -> bool:
    """Whether the release has the argument, with this value among its choices."""
    return name in known and ("choices" not in known[name] or value in known[name]["choices"])


def wide_cases(count: int, seed: str, sglang: str = "0.5.23") -> Iterator[dict[str, Any]]:
    """`count` cases, the same for the same seed; arguments that the release does not have are left out."""
    chance = random.Random(seed)
    names = sorted(name for name in configurations() if not name.startswith(_NOT_LOADED))
    values = {**_HICACHE, **_NEIGHBOURS, **_MORE}
    known = json.loads((TABLES / f"{sglang}.json").read_text("utf-8"))["arguments"]
    for number in range(count):
        arguments = dict(chance.choice(_THEMES))
        arguments |= _some(chance, _HICACHE, chance.choice((0, 0, 1, 1, 2, 4)))
        arguments |= _some(chance, values, chance.choice((0, 1, 1, 2, 2, 3, 4)))
        case = {
            "model": chance.choice(names),
            "gpu": chance.choice(("sm80", "sm90", "sm90", "sm100", "sm100")),
            "args": {name: value for name, value in arguments.items() if _fits(known, name, value)},
            "env": _some(chance, _ENVIRONMENT, chance.choice((0, 0, 0, 1, 2))),
            "sglang": sglang,
        }
        yield {"id": f"{seed}-{number:05}", "case": case}


if __name__ == "__main__":
    for entry in wide_cases(int(sys.argv[1]), *sys.argv[2:]):
        print(json.dumps(entry))
