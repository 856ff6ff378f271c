"""Which of our codes says what each of SGLang's refusals says: by the place in the wheel and the start of its message.

A refusal counts as met only when one of these codes is among our errors, not for any other error of ours.
"""

from __future__ import annotations

_HICACHE, _CACHE = "arg_groups/hicache_hook.py", "arg_groups/kv_cache_hook.py"
_PD, _SHARD = "arg_groups/pd_disaggregation_hook.py", "arg_groups/kv_shard_hook.py"

REASONS: tuple[tuple[str, str, str], ...] = (
    (f"{_HICACHE}:handle_hicache", "--enable-linker-mla-dedup", "HC217"),
    (f"{_HICACHE}:handle_hicache", "--enable-unified-cache-external-linker", "HC215"),
    (f"{_HICACHE}:handle_hicache", "The resolved HiCache storage layout", "HC207"),
    (f"{_HICACHE}:resolve_hicache_dcp_compatibility", "", "HC430"),
    (f"{_HICACHE}:validate_hicache_host_memory_mode", "--hicache-host-memory-mode buffer_only is not", "HC213"),
    (f"{_HICACHE}:validate_hicache_host_memory_mode", "", "HC211 HC212"),
    ("mem_cache/unified_cache/linker_config.py:from_dict", "", "HC216"),
    ("arg_groups/hisparse_hook.py:validate_hisparse", "", "HC221"),
    (f"{_CACHE}:handle_cache_compatibility", "The arguments enable-hierarchical-cache and disa", "HC201 HC202"),
    (f"{_CACHE}:handle_cache_compatibility", "--disaggregation-decode-retraction-backup", "HC224"),
    (f"{_CACHE}:handle_cache_compatibility", "--enable-lmcache", "HC218"),
    (f"{_CACHE}:handle_cache_compatibility", "--hicache-host-memory-mode=buffer_only", "HC218"),
    (f"{_CACHE}:handle_cache_compatibility", "LMCache", "HC218"),
    (f"{_CACHE}:handle_cache_compatibility", "--radix-eviction-policy", "HC242"),
    (f"{_CACHE}:handle_cache_compatibility", "--swa-", "HC242"),
    (f"{_CACHE}:handle_cache_compatibility", "The argument", "HC226"),
    (f"{_CACHE}:handle_kv4_compatibility", "", "HC244 HC605"),
    (f"{_CACHE}:handle_nvfp4_prefill_kv_dequant_dtype", "", "HC244 HC605 HC607 HC619"),
    (f"{_CACHE}:handle_mxfp8_kv_cache_compatibility", "", "HC245 HC606 HC607"),
    (f"{_CACHE}:handle_page_major_kv_layout", "--enable-page-major-kv-layout without", "HC241"),
    (f"{_CACHE}:handle_page_major_kv_layout", "", "HC240"),
    (f"{_CACHE}:handle_unified_memory_pool", "", "HC240 HC227"),
    (f"{_SHARD}:handle_kv_cache_sharding", "--enable-kv-cache-sharding does not support --en", "HC434"),
    (f"{_SHARD}:handle_kv_cache_sharding", "--enable-kv-cache-sharding does not support s", "HC434"),
    (f"{_SHARD}:handle_kv_cache_sharding", "--enable-kv-cache-sharding is only", "HC434"),
    (f"{_SHARD}:handle_kv_cache_sharding", "--enable-kv-cache-sharding supports", "HC434"),
    (f"{_SHARD}:handle_kv_cache_sharding", "--enable-kv-cache-sharding requires the built-in", "HC434"),
    (f"{_SHARD}:handle_kv_cache_sharding", "--enable-kv-cache-sharding and decode", "HC434"),
    (f"{_SHARD}:handle_kv_cache_sharding", "CP-sharded DSA HiCache", "HC434"),
    ("arg_groups/mamba_hook.py:handle_int8_mamba_checkpoint", "", "HC220"),
    ("arg_groups/mamba_hook.py", "", "HC644"),
    ("arg_groups/model_hook.py:handle_mamba_radix_cache", "", "HC644"),
    ("arg_groups/overrides.py:mamba_cache_chunk_size", "", "HC644"),
    ("arg_groups/model_overrides/deepseek_v2.py:_dsa_dcp_overrides", "", "HC431 HC417"),
    ("arg_groups/overrides.py:_dsa_kv_cache_dtype_default", "", "HC607 HC605 HC606 HC244 HC245"),
    ("arg_groups/overrides.py:_deepseek_v4_kv_cache_dtype", "", "HC244 HC245 HC619"),
    ("arg_groups/overrides.py:_mla_kv_cache_dtype_checks", "", "HC244 HC245 HC605 HC606 HC247"),
    ("arg_groups/overrides.py:_cutedsl_prefill_backend_fill", "CuteDSL MLA backend only", "HC247 HC605 HC606"),
    ("arg_groups/model_overrides/qwen4_exp.py", "Qwen4-Exp does not support --enable-unified", "HC240"),
    (
        "arg_groups/deepseek_v4_hook.py:apply_deepseek_v4_defaults",
        "Only EAGLE",
        "HC625 HC649 HC628 HC691",
    ),  # one refusal of a model at a time
    ("arg_groups/parallel_hook.py:handle_data_parallelism", "--dp-size", "HC435"),
    ("arg_groups/parallel_hook.py:handle_data_parallelism", "", "HC412"),
    ("arg_groups/parallel_hook.py:handle_decode_context_parallelism", "", "HC430"),
    (f"{_PD}:_validate_prefill_complete", "", "HC223"),
    (f"{_PD}:handle_pd_disaggregation", "--disaggregation-decode-enable-radix-cache", "HC237"),
    (f"{_PD}:handle_pd_disaggregation", "--disaggregation-decode-host-receive", "HC225"),
    (f"{_PD}:handle_pd_disaggregation", "Decode host", "HC225"),
    ("arg_groups/speculative_hook.py:_handle_ngram", "", "HC648"),
    ("arg_groups/speculative_hook.py:handle_speculative_decoding", "", "HC237"),
    ("arg_groups/validation_hook.py:check_pipeline_parallel_compat", "", "HC647"),
    ("arg_groups/validation_hook.py:check_server_args", "chunked_prefill_size", "HC645"),
    ("arg_groups/validation_hook.py:check_server_args", "tp_size must be", "HC435"),
    ("arg_groups/validation_hook.py:check_server_args", "multi-node", "HC435"),
)


def codes_for(where: str, message: str) -> frozenset[str] | None:
    """The codes that say the same as a refusal, None for one that is not about what this program checks."""
    for place, start, codes in REASONS:
        if where.startswith(place) and message.startswith(start):
            return frozenset(codes.split())
    return None
