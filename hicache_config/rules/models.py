"""Models that HiCache does not support, or only in part.

What sizes alone show (a stage without full-attention layers, DeepSeek V4 by size) is found by geometry and core; their
codes are declared in elsewhere.py. Source: SGLang 0.5.23, arg_groups/model_overrides/, mem_cache/hybrid_cache/.
Must not import anything above this floor.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..core.findings import Fix
from .case import Case
from .common import excluded, flag, hicache, mode
from .registry import Seen, rule

ON = {"enable_hierarchical_cache": True}


@rule(
    "HC640",
    "mixed-minicpm-has-no-hicache",
    "error",
    covers=(26,),
    since="0.5.19",
    why="MiniCPM with sparse or lightning layers has no prefix cache, so HiCache is refused. Source: SGLang 0.5.23, "
    "arg_groups/model_overrides/minicpm.py.",
    bad=ON,
    good={},
    needs=("model",),
    settings={"architecture": "MiniCPMSALAForCausalLM"},
)
def mixed_minicpm_has_no_hicache(case: Case) -> Iterator[Seen]:
    """HiCache for MiniCPM SALA."""
    if case.traits is not None and case.traits.lightning and hicache(case):
        yield Seen(
            "enable_hierarchical_cache",
            f"{case.traits.architecture} with sparse or lightning layers does not support HiCache",
            f"Take {flag(case, 'enable_hierarchical_cache')} out.",
        )


@rule(
    "HC643",
    "fused-draft-and-hicache",
    "error",
    since="0.5.23",
    covers=(68,),
    why="A DFLASH draft fused into unified memory is kept on the host only for models with sliding windows, without "
    "recurrent states, and without a storage backend. Source: SGLang 0.5.23, "
    "hybrid_pool_assembler.py:validate_fused_hicache_draft; read, not run.",
    bad={**ON, "enable_unified_memory": True, "speculative_algorithm": "DFLASH", "hicache_storage_backend": "file"},
    good={**ON, "enable_unified_memory": True, "speculative_algorithm": "DFLASH"},
    late="mem_cache/hybrid_cache/hybrid_pool_assembler.py:validate_fused_hicache_draft",
)
def fused_draft_and_hicache(case: Case) -> Iterator[Seen]:
    """DFLASH in unified memory with HiCache."""
    algorithm = str(case.raw("speculative_algorithm") or "").upper()
    if algorithm != "DFLASH" or not (hicache(case) and case.raw("enable_unified_memory")):
        return
    if case.raw("hicache_storage_backend") is not None:
        yield excluded(
            case,
            "hicache_storage_backend",
            "speculative_algorithm",
            "a fused DFLASH draft stays on the host",
            f"Take {flag(case, 'hicache_storage_backend')} out.",
        )
    traits = case.traits
    if traits is not None and (not traits.sliding or traits.linear):
        yield Seen(
            "speculative_algorithm",
            f"a fused DFLASH draft has no host pool beside {traits.architecture}: it needs sliding windows and no "
            "recurrent states",
            f"Take {flag(case, 'enable_unified_memory')} out.",
            asked=case.raw("speculative_algorithm"),
        )


@rule(
    "HC644",
    "recurrent-states-and-pages",
    "error",
    covers=(73,),
    since="0.5.14",
    why="Recurrent states are kept at page boundaries: strategy no_buffer needs pages of 1 and no overlap schedule, "
    "with extra_buffer the track interval must be a multiple of the page, and the page and the chunk of 64 "
    "tokens must divide each other. Source: SGLang 0.5.23, arg_groups/mamba_hook.py and "
    "overrides.py:mamba_cache_chunk_size.",
    bad={**ON, "mamba_radix_cache_strategy": "no_buffer", "page_size": 64},
    good={**ON, "mamba_radix_cache_strategy": "no_buffer", "disable_overlap_schedule": True},
    needs=("model",),
    settings={"architecture": "Qwen3NextForCausalLM"},
)
def recurrent_states_and_pages(case: Case) -> Iterator[Seen]:
    """Page size, overlap and track interval of recurrent states."""
    if case.traits is None or case.resolved("disable_radix_cache"):
        return
    strategy, page, interval = (
        case.raw(name) for name in ("mamba_radix_cache_strategy", "page_size", "mamba_track_interval")
    )
    if not case.traits.linear:
        if str(strategy).startswith("extra_buffer"):
            yield Seen(
                "mamba_radix_cache_strategy",
                f"{flag(case, 'mamba_radix_cache_strategy', strategy)} is for recurrent states, which "
                f"{case.traits.architecture} has not",
                f"Take {flag(case, 'mamba_radix_cache_strategy')} out.",
                asked=strategy,
            )
        return
    if strategy == "no_buffer":
        if page not in (None, 1):
            yield Seen(
                "page_size",
                f"{flag(case, 'mamba_radix_cache_strategy', strategy)} needs {flag(case, 'page_size', 1)}, not {page}",
                f"Write {flag(case, 'page_size', 1)}, or strategy extra_buffer.",
                asked=page,
            )
        if not case.raw("disable_overlap_schedule"):
            yield Seen(
                "mamba_radix_cache_strategy",
                f"{flag(case, 'mamba_radix_cache_strategy', strategy)} needs {flag(case, 'disable_overlap_schedule')}",
                f"Add {flag(case, 'disable_overlap_schedule')}, or write strategy extra_buffer.",
                asked=strategy,
                fix=Fix({"disable_overlap_schedule": True}),
            )
        return
    overlap_off = case.raw("disable_overlap_schedule") and (page or 1) <= 1
    if page is None or (strategy == "auto" and overlap_off):
        return
    if interval % page:
        yield Seen(
            "mamba_track_interval",
            f"{flag(case, 'mamba_track_interval', interval)} is no multiple of the page size {page}",
            f"Write a multiple of {page}.",
            asked=interval,
        )
    if max(64, page) % min(64, page):
        yield Seen(
            "page_size",
            f"{flag(case, 'page_size', page)} and the chunk of 64 tokens of recurrent states do not divide each other",
            "Write a power of two.",
            asked=page,
        )


@rule(
    "HC645",
    "chunk-not-a-multiple-of-the-page",
    "error",
    covers=(72,),
    why="A prefill chunk holds whole pages, except on a decode server. Source: SGLang 0.5.23, "
    "arg_groups/validation_hook.py:check_server_args.",
    bad={"chunked_prefill_size": 1000, "page_size": 64},
    good={"chunked_prefill_size": 4096, "page_size": 64},
)
def chunk_not_a_multiple_of_the_page(case: Case) -> Iterator[Seen]:
    """A chunk that pages do not divide; with attention groups each has its part of the chunk."""
    chunk, page = case.raw("chunked_prefill_size"), case.resolved("page_size")
    if chunk is None or chunk <= 0 or page is None or mode(case) == "decode" or "page_size" in case.invalid:
        return
    groups = max(int(case.resolved("attn_dp_size") or 1), 1)
    if chunk // groups % page:
        share = f" over {groups} attention groups" if groups > 1 else ""
        yield Seen(
            "chunked_prefill_size",
            f"{flag(case, 'chunked_prefill_size', chunk)} tokens{share} are no whole number of pages of {page}",
            f"Write a multiple of {page * groups}, such as {max(chunk // (page * groups), 1) * page * groups}.",
            asked=chunk,
        )


@rule(
    "HC647",
    "speculation-in-stages",
    "error",
    covers=(51,),
    why="Under pipeline parallelism SGLang drafts with EAGLE alone, on a prefill server (or with "
    "SGLANG_ENABLE_PP_SPEC on one server), and with DSPARK on a prefill server. Source: SGLang 0.5.23, "
    "arg_groups/validation_hook.py:check_pipeline_parallel_compat.",
    bad={"pp_size": 2, "speculative_algorithm": "NGRAM"},
    good={"pp_size": 2},
)
def speculation_in_stages(case: Case) -> Iterator[Seen]:
    """Speculative decoding with pipeline stages."""
    algorithm = str(case.raw("speculative_algorithm") or "").upper()
    algorithm = "EAGLE" if algorithm == "NEXTN" else algorithm
    if not algorithm or case.resolved("pp_size") <= 1:
        return
    if case.release.at_least("0.5.18") and not case.release.at_least("0.5.20"):
        return  # these two releases change over; their checks were not read in full
    relayed = case.environment.get("SGLANG_ENABLE_PP_SPEC", "").lower() in ("1", "true", "yes")
    if algorithm == "DSPARK":
        fits = mode(case) == "prefill" and not relayed
    elif not case.release.at_least("0.5.18"):
        fits = False
    else:
        many = case.raw("enable_multi_layer_eagle")
        fits = algorithm == "EAGLE" and not many and (mode(case) == ("null" if relayed else "prefill"))
    if not fits:
        yield Seen(
            "speculative_algorithm",
            f"{flag(case, 'speculative_algorithm', case.raw('speculative_algorithm'))} is refused with "
            f"{flag(case, 'pp_size', case.raw('pp_size'))} on this server",
            "Draft with EAGLE on a prefill server, or run in one stage.",
            asked=case.raw("speculative_algorithm"),
        )


@rule(
    "HC648",
    "tree-drafts-and-pages",
    "error",
    covers=("spec pages",),
    why="A tree of drafts (NGRAM has 10 branches by default) is verified page by page, which only flashinfer kernels "
    "do for pages above 1. Source: SGLang 0.5.23, arg_groups/speculative_hook.py:_handle_ngram.",
    bad={"speculative_algorithm": "NGRAM", "page_size": 64},
    good={"speculative_algorithm": "NGRAM", "page_size": 64, "attention_backend": "flashinfer"},
)
def tree_drafts_and_pages(case: Case) -> Iterator[Seen]:
    """NGRAM trees with pages above 1."""
    if str(case.raw("speculative_algorithm") or "").upper() != "NGRAM":
        return
    page, breadth = case.resolved("page_size"), case.raw("speculative_ngram_max_bfs_breadth")
    kernels = case.resolved("attention_backend")
    if (case.resolved("attn_dp_size") or 1) > 1:
        yield excluded(
            case, "speculative_algorithm", "attn_dp_size", "NGRAM drafts for one group", "Keep one of the two."
        )
    if page is not None and page > 1 and breadth != 1 and kernels != "flashinfer":
        yield Seen(
            "speculative_algorithm",
            f"NGRAM drafts a tree of {breadth} branches, and the pages have {page} tokens: only flashinfer "
            "verifies that",
            f"Write {flag(case, 'attention_backend', 'flashinfer')}, or --speculative-ngram-max-bfs-breadth 1.",
            asked=case.raw("speculative_algorithm"),
        )
