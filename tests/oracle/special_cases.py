"""The list of cases that special.py runs: DeepSeek V4 and V4.1, MiniMax M3, QSA, Inkling, drafts, decode servers.

    python tests/oracle/special_cases.py [TEXT]        the cases as JSON lines, those whose id holds TEXT

Models are files of tests/models/ and tests/models/special/ (made up where no public config.json names the class).
Uses the standard library alone; neither SGLang nor torch.
"""

from __future__ import annotations

import json
import sys
from typing import Any

Case = dict[str, Any]
FLASH, PRO = "deepseek-ai--DeepSeek-V4-Flash", "nvidia--DeepSeek-V4-Pro-NVFP4"
GLM, GPT_OSS, QWEN = "zai-org--GLM-5.2-FP8", "openai--gpt-oss-120b", "Qwen--Qwen3-8B"
MILLION = {"max_total_tokens": 1_000_000}
STATES = {**MILLION, "max_mamba_cache_size": 500}
CHAIN = {
    "speculative_num_steps": 3,
    "speculative_eagle_topk": 1,
    "speculative_num_draft_tokens": 4,
    "max_running_requests": 64,
}
EAGLE = {"speculative_algorithm": "EAGLE", **CHAIN}


def beside(algorithm: str, draft: str) -> Case:
    """Arguments of a draft with a model of its own."""
    chain = {"max_running_requests": 64} if algorithm == "DFLASH" else CHAIN
    return {"speculative_algorithm": algorithm, "speculative_draft_model_path": draft, **chain}


def deepseek_v4() -> list[Case]:
    ratio = {"tp_size": 8, "hicache_ratio": 2.0, **MILLION}
    made: list[Case] = []
    for model in (FLASH, PRO):
        made += [{"model": model, "args": {**ratio, "hicache_ratio": value}} for value in (0.3, 1.0, 1.2, 2.0, 8)]
        made += [{"model": model, "args": {**ratio, "pp_size": stages, "tp_size": 2}} for stages in (2, 3, 4, 8)]
        made += [
            {"model": model, "args": {"tp_size": 8, "hicache_size": 100, **MILLION}},
            {"model": model, "args": {**ratio, "max_total_tokens": 777_777, "swa_full_tokens_ratio": 0.37}},
            {"model": model, "args": {**ratio, **EAGLE}},
            {"model": model, "args": {**ratio, **EAGLE, "pp_size": 2, "disaggregation_mode": "prefill"}},
            {"model": model, "args": {**ratio, "kv_cache_dtype": "bfloat16"}},
            {"model": model, "args": {**ratio, "enable_deepseek_v4_fp4_indexer": True}, "gpu": "sm100"},
            {"model": model, "args": {**ratio, "enable_deepseek_v4_fp4_indexer": True}},
            {"model": model, "args": {**ratio, "dsv4_attn_backend": "trtllm"}, "gpu": "sm100"},
            {"model": model, "args": {**ratio, "hicache_mem_layout": "layer_first"}},
            {"model": model, "args": ratio, "env": {"SGLANG_DSV4_COMPRESS_STATE_DTYPE": "bf16"}},
        ]
        made += [
            {"model": model, "args": ratio, "gpu": gpu, "env": {"SGLANG_DSV4_KV_LAYOUT": layout, **more}}
            for gpu in ("sm90", "sm100")
            for layout in ("auto", "v4", "v41", "v41_new")
            for more in ({}, {"SGLANG_DSV4_COMPRESSED_KV_LAYOUT": "fp4"})
        ]
    stages = {"SGLANG_PP_LAYER_PARTITION": "2,20,21"}
    made += [
        {"model": FLASH, "args": {**ratio, "pp_size": 43, "tp_size": 1}},
        {"model": FLASH, "args": {**ratio, "pp_size": 3, "tp_size": 1}, "env": stages},
        {"model": FLASH, "args": {**ratio, **EAGLE, "pp_size": 3, "tp_size": 1}, "env": {"SGLANG_ENABLE_PP_SPEC": "1"}},
        {
            "model": FLASH,
            "args": {**ratio, **EAGLE, "speculative_num_steps": 10, "speculative_num_draft_tokens": 11},
        },
        {"model": FLASH, "args": {**ratio, "speculative_algorithm": "EAGLE3", **CHAIN}},
        {
            "model": "special/deepseek-v4-dspark",
            "args": {**ratio, "speculative_algorithm": "DSPARK", "max_running_requests": 64},
        },
        {"model": "special/deepseek-v4-dspark", "args": {**ratio, **EAGLE}},
        {"model": "special/deepseek-v4.1", "args": {**ratio, "swa_full_tokens_ratio": 0.2}},
        {"model": "special/deepseek-v4.1", "args": {**ratio, "swa_full_tokens_ratio": 0.2, "pp_size": 2}},
        {"model": "special/deepseek-v4.1", "args": {**ratio, "swa_full_tokens_ratio": 0.2}, "gpu": "sm100"},
        {
            "model": "special/deepseek-v4.1",
            "args": {**ratio, "swa_full_tokens_ratio": 0.2, "tp_size": 1},
            "gpu": "sm100",
        },
        {
            "model": "special/deepseek-v4.1",
            "args": {**ratio, "swa_full_tokens_ratio": 0.2, "tp_size": 1},
            "gpu": "sm100",
            "env": {"SGLANG_DSV4_KV_LAYOUT": "v41_new"},
        },
    ]
    return made


def minimax() -> list[Case]:
    m3, four = "special/minimax-m3", "special/minimax-m3-nvfp4"
    size = {"tp_size": 4, "hicache_size": 100}
    made: list[Case] = [
        {"model": m3, "args": {**size, **more}, "gpu": gpu}
        for gpu in ("sm90", "sm100")
        for more in (
            {},
            {"tp_size": 8},
            {"page_size": 64},
            {"kv_cache_dtype": "fp8_e4m3"},
            {"kv_cache_dtype": "fp8_e5m2"},
            {"kv_cache_dtype": "fp8_e4m3", "attention_backend": "triton"},
        )
    ]
    made += [
        {"model": m3, "args": {**size, "pp_size": 2}},
        {"model": "special/minimax-m3-index-values", "args": size},
        {"model": m3, "args": {"tp_size": 2, "hicache_ratio": 1.7, "max_total_tokens": 777_777}},
        {"model": m3, "args": {**size, "kv_cache_dtype": "fp8_e4m3", "attention_backend": "fa4"}, "gpu": "sm100"},
        {
            "model": m3,
            "args": {**size, "kv_cache_dtype": "fp8_e4m3"},
            "gpu": "sm100",
            "env": {"SGLANG_DISABLE_M3_FP8_ATTN_GEMM": "1"},
        },
        {"model": m3, "args": {**size, **beside("EAGLE3", "special/eagle3-dense")}},
        {"model": four, "args": size},
        {"model": four, "args": size, "gpu": "sm100"},
        {"model": four, "args": {**size, "tp_size": 2, "hicache_size": 33}, "gpu": "sm100"},
        {"model": four, "args": {"tp_size": 2, "hicache_ratio": 1.7, "max_total_tokens": 777_777}, "gpu": "sm100"},
        {"model": four, "args": {**size, "page_size": 64}, "gpu": "sm100"},
        {"model": four, "args": {**size, "kv_cache_dtype": "bf16"}, "gpu": "sm100"},
        {"model": four, "args": {**size, "pp_size": 2}, "gpu": "sm100"},
        {
            "model": four,
            "args": {**size, **MILLION, **beside("DFLASH", "special/dflash")},
            "gpu": "sm100",
            "env": {"SGLANG_RAGGED_VERIFY_MODE": "static"},
        },
    ]
    return made


def qsa() -> list[Case]:
    size = {"tp_size": 4, "hicache_size": 100, **STATES}
    plain, grams = "special/qwen4-exp", "special/qwen4-exp-ngrams"
    return [
        {"model": plain, "args": size},
        {"model": plain, "args": {**size, "qsa_indexer_dtype": "fp8_e4m3"}},
        {"model": plain, "args": {**size, "tp_size": 2, "pp_size": 2}},
        {"model": plain, "args": {**size, "tp_size": 1, "pp_size": 16}},
        {"model": plain, "args": {**size, **EAGLE}},
        {"model": plain, "args": {**size, "kv_cache_dtype": "fp8_e4m3"}},
        {"model": plain, "args": {"tp_size": 4, "hicache_ratio": 1.3, **STATES}},
        {"model": plain, "args": {**size, "page_size": 128}, "gpu": "sm100"},
        {"model": grams, "args": size},
        {"model": grams, "args": {**size, "pp_size": 2, "tp_size": 2}},
        {"model": grams, "args": {**size, **EAGLE}},
    ]


def inkling() -> list[Case]:
    size = {"tp_size": 4, "page_size": 64, "hicache_size": 100, **STATES}
    drafted = {**size, **EAGLE, "enable_multi_layer_eagle": True}
    model = "special/inkling"
    return [
        {"model": model, "args": size},
        {"model": model, "args": {**size, "hicache_size": 33, "tp_size": 8}},
        {"model": model, "args": drafted},
        {"model": model, "args": {**drafted, "speculative_num_steps": 1, "speculative_num_draft_tokens": 2}},
        {"model": model, "args": {**drafted, "speculative_num_steps": 2, "speculative_num_draft_tokens": 3}},
        {"model": model, "args": {**drafted, "hicache_size": 77, "page_size": 16, "max_total_tokens": 777_777}},
        {"model": model, "args": {**drafted, "hicache_size": 0, "hicache_ratio": 1.7}},
    ]


def drafts() -> list[Case]:
    size = {"tp_size": 4, "page_size": 64, "hicache_size": 100}
    sparse = {"tp_size": 8, "kv_cache_dtype": "fp8_e4m3", "hicache_size": 100}
    made: list[Case] = [
        {"model": QWEN, "args": {**size, **beside("EAGLE3", "special/eagle3-dense")}},
        {
            "model": QWEN,
            "args": {
                **size,
                "kv_cache_dtype": "fp8_e4m3",
                "speculative_draft_kv_cache_dtype": "bf16",
                **beside("EAGLE3", "special/eagle3-dense"),
            },
        },
        {"model": QWEN, "args": {**size, "kv_cache_dtype": "fp8_e4m3", **beside("EAGLE3", "special/eagle3-dense")}},
        {"model": QWEN, "args": {**size, **beside("DFLASH", "special/dflash")}},
        {
            "model": QWEN,
            "args": {"tp_size": 16, "page_size": 16, "hicache_ratio": 1.37, "max_total_tokens": 777_777}
            | beside("EAGLE3", "special/eagle3-dense"),
        },
        {"model": "Qwen--Qwen3-32B", "args": {**size, **beside("STANDALONE", "Qwen--Qwen3-0.6B")}},
        {"model": "Qwen--Qwen3-0.6B", "args": {**size, **beside("STANDALONE", "Qwen--Qwen3-32B")}},
        {"model": "Qwen--Qwen3-32B", "args": {**size, **beside("STANDALONE", "Qwen--Qwen3-30B-A3B")}},
        {"model": "moonshotai--Kimi-K2.5", "args": {**size, **beside("EAGLE3", "special/eagle3-latent")}},
        {"model": "moonshotai--Kimi-K2.5", "args": {**size, **beside("EAGLE3", "special/eagle3-64-heads")}},
        {"model": "moonshotai--Kimi-K3", "args": {**size, **STATES, **beside("EAGLE3", "special/eagle3-64-heads")}},
        {"model": GLM, "args": {**sparse, **EAGLE}},
        {"model": GLM, "args": {**sparse, **EAGLE}, "gpu": "sm100"},
        {"model": GLM, "args": {**sparse, **EAGLE, "pp_size": 2, "disaggregation_mode": "prefill"}},
        {"model": GLM, "args": {**sparse, **EAGLE, "pp_size": 4}, "env": {"SGLANG_ENABLE_PP_SPEC": "1"}},
        {"model": GLM, "args": {**sparse, **beside("EAGLE3", GLM)}},
        {"model": GLM, "args": {**sparse, **beside("STANDALONE", "special/glm-short")}},
        {"model": GLM, "args": {**sparse, **beside("EAGLE3", "special/eagle3-64-heads")}},
        {"model": "zai-org--GLM-5-FP8", "args": {**sparse, **EAGLE}},
        {"model": "deepseek-ai--DeepSeek-V3.2", "args": {**sparse, **beside("EAGLE", "deepseek-ai--DeepSeek-V3.2")}},
        {"model": "deepseek-ai--DeepSeek-V3", "args": {**size, **EAGLE}},
        {"model": "Qwen--Qwen3.5-397B-A17B", "args": {**size, **STATES, **EAGLE, "tp_size": 8}},
        {
            "model": "Qwen--Qwen3.5-397B-A17B",
            "args": {**size, **STATES, **EAGLE, "pp_size": 2},
            "env": {"SGLANG_ENABLE_PP_SPEC": "1"},
        },
        {
            "model": "Qwen--Qwen3.5-397B-A17B",
            "args": {**size, **STATES, **EAGLE, "pp_size": 2, "disaggregation_mode": "prefill"},
        },
        {"model": "XiaomiMiMo--MiMo-V2-Flash", "args": {**size, **MILLION, **EAGLE, "tp_size": 8}},
        {
            "model": "XiaomiMiMo--MiMo-V2-Flash",
            "args": {"tp_size": 8, "page_size": 64, "hicache_ratio": 2.0} | MILLION | EAGLE,
        },
    ]
    made += [
        {"model": GPT_OSS, "args": {**size, **MILLION, **more, **beside(algorithm, draft)}}
        for algorithm, draft in (("EAGLE3", "special/eagle3-dense"), ("STANDALONE", "special/gpt-oss-20b"))
        for more in (
            {},
            {"hicache_size": 77, "page_size": 16, "max_total_tokens": 777_777},
            {"hicache_size": 13, "page_size": 1, "max_total_tokens": 654_321},
            {"hicache_size": 0, "hicache_ratio": 1.9},
        )
    ]
    return made


def unified() -> list[Case]:
    size = {"tp_size": 4, "page_size": 64, "enable_unified_memory": True, **MILLION}
    return [
        {"model": GPT_OSS, "args": {**size, "hicache_size": 20}},
        {"model": GPT_OSS, "args": {**size, "hicache_size": 33, "tp_size": 8}},
    ]


def decode() -> list[Case]:
    server = {"disaggregation_mode": "decode", "page_size": 64, "tp_size": 4, **MILLION}
    off = {"enable_hierarchical_cache": False}
    radix = {"disaggregation_decode_enable_radix_cache": True}
    offload = {"disaggregation_decode_enable_offload_kvcache": True, "hicache_storage_backend": "file"}
    host = {"disaggregation_decode_retraction_backup": "host_pool"}
    return [
        {"model": QWEN, "args": {**server, **off}},
        {"model": QWEN, "args": {**server, **off, "max_total_tokens": 60_000}},
        {"model": QWEN, "args": {**server, **off, **host, "max_total_tokens": 60_000, "context_length": 8192}},
        {"model": QWEN, "args": {**server, **off, "disaggregation_decode_host_receive_threshold": 0.5}},
        {"model": QWEN, "args": {**server, **off, **host, "hicache_size": 20}},
        {"model": QWEN, "args": {**server, **off, **host, "hicache_ratio": 0.7}},
        {"model": QWEN, "args": {**server, **off, "disaggregation_decode_retraction_backup": "cpu_tensor", **offload}},
        {"model": GPT_OSS, "args": {**server, **off}},
        {"model": "deepseek-ai--DeepSeek-V3", "args": {**server, **off, **offload, "hicache_size": 50}},
        {"model": GLM, "args": {**server, **off, **offload, "hicache_size": 50}},
        {"model": GPT_OSS, "args": {**server, **off, **offload, "hicache_size": 50}},
        {"model": QWEN, "args": {**server, **radix, "hicache_size": 50}},
        {"model": QWEN, "args": {**server, **radix, **offload, "hicache_size": 50}},
        {"model": QWEN, "args": {**server, **radix, **offload}},
        {"model": "deepseek-ai--DeepSeek-V3", "args": {**server, **radix, **offload, **EAGLE, "hicache_size": 50}},
    ]


def found() -> list[Case]:
    """Kinds that unseen cases showed: a model that drafts with itself, types that a class settles, wide pages."""
    eagle = {"tp_size": 2, "page_size": 64, "hicache_size": 20, **MILLION, "speculative_algorithm": "EAGLE"}
    made: list[Case] = [{"model": model, "args": eagle} for model in (QWEN, GPT_OSS, "Qwen--Qwen3-VL-8B-Instruct")]
    made += [
        {"model": "moonshotai--Kimi-K2-Instruct", "args": {**eagle, "tp_size": 8}},
        {"model": "made--falcon-h1-34b", "args": {**eagle, "max_mamba_cache_size": 500}},
        {"model": QWEN, "args": {**eagle, "page_size": 1, "speculative_algorithm": "NGRAM"}},
        {"model": FLASH, "args": {"tp_size": 8, "hicache_ratio": 2.0, **MILLION, "disable_hybrid_swa_memory": True}},
    ]
    made += [
        {"model": model, "args": {"tp_size": 1, "hicache_size": 10, **MILLION, "dtype": dtype}}
        for model in ("special/gpt-oss-20b", "classes/PixtralForConditionalGeneration", QWEN)
        for dtype in ("float32", "float16")
    ]
    latent = {"tp_size": 8, "page_size": 64, "hicache_size": 40, **MILLION}
    made += [{"model": "deepseek-ai--DeepSeek-V3", "args": {**latent, "dcp_size": ranks}} for ranks in (2, 4)]
    return made


GROUPS = {
    "deepseek_v4": deepseek_v4,
    "minimax": minimax,
    "qsa": qsa,
    "inkling": inkling,
    "drafts": drafts,
    "unified": unified,
    "decode": decode,
    "found": found,
}


def cases() -> list[dict[str, Any]]:
    """All cases as `{"id": …, "case": …}`, the same every time."""
    return [
        {"id": f"{group}-{number:03d}", "case": {"gpu": "sm90", "env": {}, "patch": None, **case}}
        for group, make in GROUPS.items()
        for number, case in enumerate(make())
    ]


def main() -> None:
    wanted = sys.argv[1] if len(sys.argv) > 1 else ""
    for entry in cases():
        if wanted in entry["id"]:
            print(json.dumps(entry))


if __name__ == "__main__":
    main()
