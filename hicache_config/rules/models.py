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
    off = [rewrite for rewrite in case.resolution.of("disable_radix_cache") if "deterministic" not in rewrite.rules]
    if case.traits is None or (off[-1].gets if off else case.raw("disable_radix_cache")):
        return
    strategy = case.raw("mamba_radix_cache_strategy")
    page = case.raw("page_size") if case.traits.page is None else case.traits.page
    if not case.traits.keeps_states:
        if str(strategy).startswith("extra_buffer") and case.release.at_least("0.5.21"):
            yield Seen(
                "mamba_radix_cache_strategy",
                f"{flag(case, 'mamba_radix_cache_strategy', strategy)} is for recurrent states, which "
                f"{case.traits.architecture} has not",
                f"Take {flag(case, 'mamba_radix_cache_strategy')} out.",
                asked=strategy,
            )
        return
    if case.traits.strategy == "no_buffer":
        yield from _states_without_a_buffer(case, page)
    else:
        yield from _states_in_a_buffer(case, page)


def _states_without_a_buffer(case: Case, page: int | None) -> Iterator[Seen]:
    strategy, traits = case.raw("mamba_radix_cache_strategy"), case.traits
    assert traits is not None
    kept = flag(case, "mamba_radix_cache_strategy", "no_buffer")
    instead = f", or {flag(case, 'mamba_radix_cache_strategy', 'extra_buffer')}" if traits.extra_states else ""
    if page not in (None, 1):
        is_chosen = "" if strategy == "no_buffer" else f" (what auto is for {traits.architecture} here)"
        yield Seen(
            "page_size",
            f"{kept}{is_chosen} needs {flag(case, 'page_size', 1)}, not {page}",
            f"Write {flag(case, 'page_size', 1)}{instead}.",
            asked=page,
        )
    if (case.raw("attention_backend") or traits.kernels) == "trtllm_mha":
        yield Seen(
            "attention_backend" if case.gave("attention_backend") else "mamba_radix_cache_strategy",
            f"{kept} does not go with trtllm_mha, the attention kernels of {traits.architecture} here",
            f"Write {flag(case, 'attention_backend', 'triton')}{instead}.",
            asked="trtllm_mha" if case.gave("attention_backend") else strategy,
        )
    if strategy == "no_buffer" and not case.raw("disable_overlap_schedule"):
        yield Seen(
            "mamba_radix_cache_strategy",
            f"{kept} needs {flag(case, 'disable_overlap_schedule')}",
            f"Add {flag(case, 'disable_overlap_schedule')}{instead}.",
            asked=strategy,
            fix=Fix({"disable_overlap_schedule": True}),
        )


def _states_in_a_buffer(case: Case, page: int | None) -> Iterator[Seen]:
    strategy, interval = case.raw("mamba_radix_cache_strategy"), case.raw("mamba_track_interval")
    traits, drafted = case.traits, case.raw("speculative_num_draft_tokens")
    assert traits is not None
    if not traits.extra_states:
        yield Seen(
            "mamba_radix_cache_strategy",
            f"{flag(case, 'mamba_radix_cache_strategy', strategy)} is not supported for {traits.architecture} with "
            "these kernels of linear layers",
            f"Write {flag(case, 'mamba_radix_cache_strategy', 'no_buffer')} with "
            f"{flag(case, 'disable_overlap_schedule')}, or {flag(case, 'linear_attn_backend', 'triton')}.",
            asked=strategy,
        )
        return
    if strategy == "extra_buffer_lazy" and mode(case) != "null" and case.release.at_least("0.5.17"):
        yield Seen(
            "mamba_radix_cache_strategy",
            f"{flag(case, 'mamba_radix_cache_strategy', strategy)} is not for halves of a pair of servers",
            f"Write {flag(case, 'mamba_radix_cache_strategy', 'extra_buffer')}.",
            asked=strategy,
            fix=Fix({"mamba_radix_cache_strategy": "extra_buffer"}),
        )
    if drafted is not None and interval < drafted:
        yield Seen(
            "mamba_track_interval",
            f"{flag(case, 'mamba_track_interval', interval)} is less than the {drafted} draft tokens of a step",
            f"Write {flag(case, 'mamba_track_interval', 256)}, the default.",
            asked=interval,
        )
    if page is None:
        return
    if interval % page:
        yield Seen(
            "mamba_track_interval",
            f"{flag(case, 'mamba_track_interval', interval)} is no multiple of the page size {page}",
            f"Write a multiple of {page}, such as {page * max(1, round(interval / page))}.",
            asked=interval,
        )
    if max(traits.chunk, page) % min(traits.chunk, page):
        yield Seen(
            "page_size",
            f"{flag(case, 'page_size', page)} and the chunk of {traits.chunk} tokens of recurrent states do not divide "
            "each other",
            f"Write {flag(case, 'page_size', 64)}.",
            asked=page,
        )


@rule(
    "HC649",
    "v4-eagle-without-one-branch",
    "error",
    since="0.5.12",
    why="DeepSeek V4 drafts with EAGLE in a chain, and SGLang looks for --speculative-eagle-topk 1 before it fills the "
    "number in. Source: SGLang 0.5.23, arg_groups/deepseek_v4_hook.py:apply_deepseek_v4_defaults.",
    bad={**ON, "hicache_ratio": 2.0, "speculative_algorithm": "EAGLE"},
    good={**ON, "hicache_ratio": 2.0, "speculative_algorithm": "EAGLE", "speculative_eagle_topk": 1,
          "speculative_num_steps": 3, "speculative_num_draft_tokens": 4},
    needs=("model",),
    settings={"architecture": "DeepseekV4ForCausalLM"},
)  # fmt: skip
def v4_eagle_without_one_branch(case: Case) -> Iterator[Seen]:
    """EAGLE for DeepSeek V4 with another number of branches than 1, or without it."""
    algorithm, branches = str(case.raw("speculative_algorithm") or "").upper(), case.raw("speculative_eagle_topk")
    if case.traits is not None and case.traits.v4 and algorithm == "EAGLE" and branches != 1:
        yield Seen(
            "speculative_algorithm" if branches is None else "speculative_eagle_topk",
            f"{flag(case, 'speculative_algorithm', 'EAGLE')} is refused for DeepSeek V4 without "
            f"{flag(case, 'speculative_eagle_topk', 1)}",
            f"Write {flag(case, 'speculative_eagle_topk', 1)}.",
            asked="EAGLE" if branches is None else branches,
            fix=Fix({"speculative_eagle_topk": 1}),
        )


@rule(
    "HC645",
    "chunk-not-a-multiple-of-the-page",
    "error",
    covers=(72,),
    why="A prefill chunk holds whole pages, except on a decode server. Without --chunked-prefill-size SGLang takes "
    "2048 to 16384 tokens by the memory of the GPU, a power of two that a page with an odd factor never divides. "
    "Source: SGLang 0.5.23, arg_groups/validation_hook.py:check_server_args and "
    "memory_hook.py:handle_gpu_memory_settings.",
    bad={"chunked_prefill_size": 1000, "page_size": 64},
    good={"chunked_prefill_size": 4096, "page_size": 64},
)
def chunk_not_a_multiple_of_the_page(case: Case) -> Iterator[Seen]:
    """A chunk that pages do not divide; with attention groups each has its part of the chunk."""
    chunk, page = case.raw("chunked_prefill_size"), case.resolved("page_size")
    if page is None or page < 1 or mode(case) == "decode" or "page_size" in case.invalid:
        return
    groups = max(int(case.resolved("attn_dp_size") or 1), 1)
    if chunk is None and groups == 1 and page & (page - 1) and not case.raw("is_embedding"):
        yield Seen(
            "page_size",
            f"{flag(case, 'page_size', page)} divides no chunk that SGLang takes by itself (2048 to 16384 tokens)",
            f"Write a power of two, such as {flag(case, 'page_size', 64)}, or "
            f"{flag(case, 'chunked_prefill_size')} with a multiple of {page}.",
            asked=page,
        )
    if chunk is None or chunk <= 0:
        return
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
