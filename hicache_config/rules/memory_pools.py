"""Device pools that host pools mirror: unified memory, the sliding-window share, eviction, FP4 and mxfp8 storage.

Source: SGLang 0.5.23, arg_groups/kv_cache_hook.py and mem_cache/pool_host/. Must not import anything above this floor.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..core.findings import Fix
from .case import Case
from .common import excluded, flag, hicache, mode, words
from .registry import Seen, rule

ON = {"enable_hierarchical_cache": True}
UNIFIED = {"enable_unified_memory": True}
_FP4 = ("nvfp4", "fp4_mx_block16")
#: Speculative algorithms that unified memory follows, and since when.
_UNIFIED_ALGORITHMS = {"DSPARK": "0.5.18", "DFLASH": "0.5.22", "EAGLE": "0.5.22", "EAGLE3": "0.5.22"}


@rule(
    "HC240",
    "unified-memory-excludes",
    "error",
    since="0.5.15",
    covers=(53, 67),
    why="Unified memory hands out virtual places, which not everything can follow: HiCache only since 0.5.21, never "
    "LMCache, the external linker, two-batch overlap, tree drafts or Qwen4-Exp; of drafts DSPARK (since 0.5.18), and "
    "DFLASH, EAGLE and EAGLE3 (since 0.5.22, then without HiCache for EAGLE). Halves of a pair of servers (since "
    "0.5.18) run in one stage. Source: SGLang 0.5.23, arg_groups/kv_cache_hook.py:handle_unified_memory_pool, and the "
    "wheels from 0.5.15 on.",
    bad={**UNIFIED, "enable_lmcache": True},
    good=UNIFIED,
)
def unified_memory_excludes(case: Case) -> Iterator[Seen]:
    """Unified memory with what it excludes."""
    if not case.raw("enable_unified_memory"):
        return
    if hicache(case) and not case.release.at_least("0.5.21"):
        yield excluded(
            case,
            "enable_hierarchical_cache",
            "enable_unified_memory",
            f"SGLang {case.release.name} has no host pools for it",
            "Take one of the two out, or run 0.5.21 or later.",
        )
    for other, why in (
        ("enable_lmcache", "LMCache would read virtual places as real ones"),
        ("enable_unified_cache_external_linker", "the linker cannot follow its pages"),
        ("enable_two_batch_overlap", "it cannot follow half a batch"),
    ):
        if case.raw(other):
            yield excluded(case, other, "enable_unified_memory", why, "Take one of the two out.")
    if mode(case) != "null":
        yield from _unified_pair(case)
    algorithm = str(case.raw("speculative_algorithm") or "").upper()
    algorithm = "EAGLE" if algorithm == "NEXTN" else algorithm
    known = [name for name, since in _UNIFIED_ALGORITHMS.items() if case.release.at_least(since)]
    if algorithm and algorithm not in known:
        yield excluded(
            case,
            "speculative_algorithm",
            "enable_unified_memory",
            f"SGLang {case.release.name} drafts there with {words(known) or 'nothing'}",
            "Take one of the two out.",
        )
    if not case.release.at_least("0.5.20"):
        return
    traits = case.traits
    own = case.resolved("attention_backend") in (None, "dsa", "nsa")
    if traits is not None and traits.architecture == "Qwen4ExpForConditionalGeneration":
        yield Seen(
            "enable_unified_memory",
            f"{traits.architecture} has no pools in unified memory",
            f"Take {flag(case, 'enable_unified_memory')} out.",
        )
    if traits is not None and (traits.v4 or (traits.sparse and own)):
        yield Seen(
            "enable_unified_memory",
            f"the attention kernels of {traits.architecture} cannot read unified memory",
            f"Take {flag(case, 'enable_unified_memory')} out.",
        )
    if algorithm in ("EAGLE", "EAGLE3") and case.release.at_least("0.5.22"):
        for other in ("enable_hierarchical_cache", "disaggregation_decode_retraction_backup"):
            if case.resolved(other) in (True, "host_pool"):
                yield excluded(
                    case,
                    other,
                    "enable_unified_memory",
                    f"{algorithm} drafts in unified memory have no host pool",
                    f"Take {flag(case, 'enable_unified_memory')} out.",
                )


def _unified_pair(case: Case) -> Iterator[Seen]:
    if not case.release.at_least("0.5.18"):
        yield Seen(
            "disaggregation_mode",
            f"{flag(case, 'enable_unified_memory')} is refused on halves of a pair of servers in SGLang "
            f"{case.release.name}",
            f"Take {flag(case, 'enable_unified_memory')} out, or run 0.5.18 or later.",
            asked=mode(case),
        )
        return
    transfer = case.raw("disaggregation_transfer_backend")
    if transfer not in ("mooncake", "mooncake_tcp"):
        yield Seen(
            "disaggregation_transfer_backend",
            f"{flag(case, 'disaggregation_transfer_backend', transfer)} cannot send the pages of unified memory",
            "Write mooncake, which sends whole pages, and draft nothing.",
            asked=transfer,
        )
    elif case.raw("speculative_algorithm") is not None:
        yield excluded(
            case, "speculative_algorithm", "enable_unified_memory", "Mooncake sends no drafts", "Take one out."
        )
    if case.raw("pp_size") > 1:
        yield Seen(
            "pp_size",
            f"{flag(case, 'pp_size', case.raw('pp_size'))} is refused with unified memory on half a pair of servers",
            f"Write {flag(case, 'pp_size', 1)}, or take {flag(case, 'enable_unified_memory')} out.",
            asked=case.raw("pp_size"),
        )
    if case.raw("enable_hisparse"):
        yield excluded(case, "enable_hisparse", "enable_unified_memory", "a pair can't have both", "Take one out.")
    backup, traits = case.resolved("disaggregation_decode_retraction_backup"), case.traits
    if backup == "host_pool" and traits is not None and traits.has_recurrent_states:
        yield Seen(
            "enable_unified_memory",
            f"a host pool for retraction from unified memory does not support {traits.architecture}",
            "Write --disaggregation-decode-retraction-backup cpu_tensor.",
        )
    keep = "disaggregation_decode_enable_radix_cache"
    sliding = traits is not None and traits.sliding
    if backup == "host_pool" and (case.raw(keep) or sliding) and not case.release.at_least("0.5.22"):
        yield Seen(
            "enable_unified_memory",
            f"in SGLang {case.release.name} a host pool for retraction from unified memory supports neither "
            f"{flag(case, keep)} nor models with sliding windows",
            "Write --disaggregation-decode-retraction-backup cpu_tensor, or run 0.5.22 or later.",
        )


@rule(
    "HC241",
    "page-major-alone",
    "error",
    since="0.5.19",
    why="The page-major layout works only inside unified memory in these releases. Source: SGLang 0.5.23, "
    "arg_groups/kv_cache_hook.py:handle_page_major_kv_layout.",
    bad={"enable_page_major_kv_layout": True},
    good=UNIFIED,
)
def page_major_alone(case: Case) -> Iterator[Seen]:
    """The page-major layout without unified memory."""
    if case.raw("enable_page_major_kv_layout") and not case.raw("enable_unified_memory"):
        yield Seen(
            "enable_page_major_kv_layout",
            f"{flag(case, 'enable_page_major_kv_layout')} works only with {flag(case, 'enable_unified_memory')}",
            f"Take it out, or add {flag(case, 'enable_unified_memory')}.",
            fix=Fix({"enable_page_major_kv_layout": None}),
        )


@rule(
    "HC242",
    "pool-share-out-of-range",
    "error",
    covers=(71,),
    why="The share of sliding-window slots is above 0 and at most 1, tails of prefixes are not negative, and tlru "
    "needs a threshold above its estimate of the next prompt. Source: SGLang 0.5.23, "
    "arg_groups/kv_cache_hook.py:handle_cache_compatibility.",
    bad={"swa_full_tokens_ratio": 1.5},
    good={"swa_full_tokens_ratio": 0.5},
)
def pool_share_out_of_range(case: Case) -> Iterator[Seen]:
    """The sliding-window share, tails and tlru."""
    ratio = case.resolved("swa_full_tokens_ratio")
    if ratio is not None and not 0 < ratio <= 1:
        name = "swa_full_tokens_ratio"
        yield Seen(
            name, f"{flag(case, name, ratio)} is not above 0 and at most 1", "Write 0.8, the default.", asked=ratio
        )
    tails = case.raw("swa_prefix_tails")
    if tails is not None and tails < 0:
        yield Seen(
            "swa_prefix_tails", f"{flag(case, 'swa_prefix_tails', tails)} is negative", "Write 0 or more.", asked=tails
        )
    if case.raw("radix_eviction_policy") == "tlru" and case.release.at_least("0.5.21"):
        config = case.raw("radix_eviction_policy_config") or {}
        threshold, estimate = config.get("threshold", 0), config.get("next_prompt_estimate", 0)
        if threshold < 0 or estimate < 0 or threshold <= estimate:
            yield Seen(
                "radix_eviction_policy",
                f"tlru needs a threshold above next_prompt_estimate, both from 0: they are {threshold} and {estimate}",
                '--radix-eviction-policy-config \'{"threshold": 4096, "next_prompt_estimate": 512}\', for example.',
                asked="tlru",
            )


@rule(
    "HC243",
    "tlru-needs-the-unified-tree",
    "error",
    since="0.5.21",
    covers=("1.2 tlru",),
    why="T-LRU is kept in SGLang's own prefix tree alone; another tree is refused when it is made. Source: SGLang "
    "0.5.23, mem_cache/registry.py:create_tree_cache.",
    bad={"radix_eviction_policy": "tlru", "radix_cache_backend": "own",
         "radix_eviction_policy_config": {"threshold": 10}},
    good={"radix_eviction_policy": "tlru", "radix_eviction_policy_config": {"threshold": 10}},
    late="mem_cache/registry.py:create_tree_cache",
)  # fmt: skip
def tlru_needs_the_unified_tree(case: Case) -> Iterator[Seen]:
    """tlru with another prefix tree."""
    if case.raw("radix_eviction_policy") == "tlru":
        for other in ("radix_cache_backend", "enable_flexkv"):
            if case.raw(other):
                yield excluded(case, other, "radix_eviction_policy", "only SGLang's own tree has tlru", "Take one out.")


@rule(
    "HC244",
    "fp4-has-no-host-pool",
    "error",
    covers=(55, 56),
    why="Host pools do not keep the scales of FP4 rows. Since 0.5.21 SGLang refuses native nvfp4 with trtllm_mha "
    "when the arguments are read; every other FP4 recipe passes there and fails when the host pool is built "
    "(before 0.5.21 it may run and hand back wrong rows). Source: SGLang 0.5.23, "
    "arg_groups/kv_cache_hook.py:handle_kv4_compatibility, mem_cache/pool_host/mha.py and mla.py.",
    bad={**ON, "kv_cache_dtype": "fp4_mx_block16"},
    good={**ON, "kv_cache_dtype": "fp8_e4m3"},
    late="mem_cache/pool_host/mha.py:__init__",
    said_by=("HC605",),
)
def fp4_has_no_host_pool(case: Case) -> Iterator[Seen]:
    """FP4 rows with HiCache."""
    kv_type = case.raw("kv_cache_dtype")
    host = hicache(case) or case.raw("enable_lmcache")
    if kv_type in (*_FP4, "fp4_e2m1") and host:
        yield Seen(
            "kv_cache_dtype",
            f"{flag(case, 'kv_cache_dtype', kv_type)} has no host pool: its scales are not copied",
            f"Write {flag(case, 'kv_cache_dtype', 'fp8_e4m3')}, or take "
            f"{flag(case, 'enable_hierarchical_cache' if hicache(case) else 'enable_lmcache')} out.",
            asked=kv_type,
            fix=Fix({"kv_cache_dtype": "fp8_e4m3"}),
        )


@rule(
    "HC245",
    "mxfp8-and-host-pools",
    "error",
    since="0.5.21",
    covers=(57, 58),
    why="mxfp8 rows need a Blackwell GPU; their host pool takes the layout page_first with kernel copies and pages "
    "of 128, and neither packed drafts nor different widths of keys and values. SGLang checks the GPU when the "
    "arguments are read, the rest when the pool is built. Source: SGLang 0.5.23, "
    "mem_cache/pool_host/mha_mxfp8.py.",
    bad={**ON, "kv_cache_dtype": "mxfp8", "page_size": 64},
    good={**ON, "kv_cache_dtype": "mxfp8", "page_size": 128},
    settings={"gpu": "sm100"},
    late="mem_cache/pool_host/mha_mxfp8.py:__init__",
    said_by=("HC606", "HC608"),
)
def mxfp8_and_host_pools(case: Case) -> Iterator[Seen]:
    """mxfp8 off Blackwell, or with another page; of a known model geometry says more."""
    name = "kv_cache_dtype"
    if case.raw(name) != "mxfp8":
        return
    if not case.gpu.startswith(("sm10", "sm11", "sm12")):
        yield Seen(
            name,
            f"{flag(case, name, 'mxfp8')} needs a Blackwell GPU; this is checked for {case.gpu}",
            f"Write {flag(case, name, 'fp8_e4m3')}, or name the GPU with --gpu sm100.",
            asked="mxfp8",
        )
    if not hicache(case):
        return
    page = case.resolved("page_size")
    if page is not None and page != 128:
        yield Seen(
            "page_size" if case.gave("page_size") else name,
            f"the host pool of mxfp8 rows needs pages of 128; the page size is {page}",
            f"Write {flag(case, 'page_size', 128)}.",
            asked=case.raw("page_size"),
            fix=Fix({"page_size": 128}),
        )


#: KV types that kernels of latent attention on Blackwell take, beside FP4 in older releases.
_TAKEN = {"trtllm_mla": ("fp8_e4m3", "bf16", "auto"), "cutedsl_mla": ("fp8_e4m3", "bf16", "bfloat16", "auto")}


@rule(
    "HC247",
    "kv-type-not-for-these-kernels",
    "error",
    why="The kernels trtllm_mla, which SGLang takes by itself for DeepSeek's family on Blackwell, read fp8_e4m3 and "
    "bf16 alone, and not even bfloat16 under its long name; cutedsl_mla takes that too. Source: SGLang 0.5.23, "
    "arg_groups/overrides.py:_mla_kv_cache_dtype_checks and _cutedsl_prefill_backend_fill (the same since 0.5.10).",
    bad={**ON, "kv_cache_dtype": "bfloat16"},
    good={**ON, "kv_cache_dtype": "bf16"},
    needs=("model",),
    settings={"architecture": "DeepseekV3ForCausalLM", "gpu": "sm100"},
    said_by=("HC605", "HC606", "HC607"),
)
def kv_type_not_for_these_kernels(case: Case) -> Iterator[Seen]:
    """A KV type that the kernels of latent attention refuse."""
    name = "kv_cache_dtype"
    kv_type = case.raw(name)
    used = {case.resolved("attention_backend"), case.raw("decode_attention_backend")}
    older = () if case.release.at_least("0.5.21") else ("fp4_e2m1",)
    for kernels, taken in _TAKEN.items():
        if kernels in used and kv_type not in (*taken, *older):
            wanted = "bf16" if kv_type == "bfloat16" else "fp8_e4m3"
            yield Seen(
                name,
                f"{flag(case, name, kv_type)} is refused by the attention kernels {kernels}",
                f"Write {flag(case, name, wanted)}.",
                asked=kv_type,
                fix=Fix({name: wanted}, safe=wanted == "bf16"),
            )
