"""What HiCache excludes or needs beside it: prefix cache, storage with buffer_only, int8 states, diffusion models.

Source: SGLang 0.5.23, arg_groups/hicache_hook.py, kv_cache_hook.py, mamba_hook.py, dllm_hook.py, hisparse_hook.py.
Must not import anything above this floor.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..core.findings import Fix
from .case import Case
from .common import excluded, flag, hicache, mode
from .registry import Seen, rule

ON = {"enable_hierarchical_cache": True}
BUFFER = {**ON, "hicache_host_memory_mode": "buffer_only"}


@rule(
    "HC201",
    "hicache-without-prefix-cache",
    "error",
    covers=(12,),
    why="HiCache is a second tier of the prefix cache; SGLang refuses it without one. Deterministic inference turns "
    "the prefix cache off with other attention kernels than triton, fa3 and fa4 (on Blackwell its default is "
    "flashinfer). Source: SGLang 0.5.23, arg_groups/kv_cache_hook.py:handle_cache_compatibility and "
    "attention_hook.py:handle_deterministic_inference (the same since before 0.5.10).",
    bad={**ON, "disable_radix_cache": True},
    good=ON,
)
def hicache_without_prefix_cache(case: Case) -> Iterator[Seen]:
    """HiCache with the prefix cache turned off by the person, or by the model."""
    if not hicache(case) or not case.resolved("disable_radix_cache") or mode(case) == "decode":
        return
    if case.raw("disable_radix_cache"):
        yield excluded(
            case,
            "disable_radix_cache",
            "enable_hierarchical_cache",
            "the host tier belongs to the prefix cache",
            f"Take {flag(case, 'disable_radix_cache')} out, or run without HiCache.",
        )
        return
    for rewrite in case.resolution.of("disable_radix_cache"):
        if "deterministic" in rewrite.rules:
            yield Seen(
                "enable_hierarchical_cache",
                f"HiCache is refused without a prefix cache, and {rewrite.why}",
                f"Write {flag(case, 'attention_backend', 'triton')} or fa3, which keep it, or run without HiCache.",
            )


@rule(
    "HC211",
    "buffer-only-without-storage",
    "error",
    since="0.5.19",
    covers=(17,),
    why="In mode buffer_only the host keeps nothing; all cached data lies in the storage backend. Source: SGLang "
    "0.5.23, arg_groups/hicache_hook.py:validate_hicache_host_memory_mode.",
    bad=BUFFER,
    good={**BUFFER, "hicache_storage_backend": "file"},
)
def buffer_only_without_storage(case: Case) -> Iterator[Seen]:
    """buffer_only with no third tier."""
    if case.resolution.host_pools and _buffer_only(case) and case.raw("hicache_storage_backend") is None:
        yield Seen(
            "hicache_host_memory_mode",
            f"{flag(case, 'hicache_host_memory_mode', 'buffer_only')} needs a storage backend: the host only stages",
            f"Add {flag(case, 'hicache_storage_backend')}, or write {flag(case, 'hicache_host_memory_mode', 'cache')}.",
            asked="buffer_only",
        )


@rule(
    "HC212",
    "buffer-only-write-back",
    "warning",
    since="0.5.19",
    covers=(18,),
    why="In mode buffer_only there is no host tier to write back from: since 0.5.22 SGLang takes write_through, "
    "before it refuses the pair. Source: SGLang 0.5.23 and the wheel of 0.5.21, "
    "arg_groups/hicache_hook.py:validate_hicache_host_memory_mode.",
    bad={**BUFFER, "hicache_storage_backend": "file", "hicache_write_policy": "write_back"},
    good={**BUFFER, "hicache_storage_backend": "file", "hicache_write_policy": "write_through"},
)
def buffer_only_write_back(case: Case) -> Iterator[Seen]:
    """buffer_only with write_back."""
    refused = case.resolution.host_pools and _buffer_only(case) and not case.release.at_least("0.5.22")
    if refused and case.raw("hicache_write_policy") == "write_back":
        yield Seen(
            "hicache_write_policy",
            f"{flag(case, 'hicache_write_policy', 'write_back')} is refused with buffer_only: the host keeps nothing",
            f"Write {flag(case, 'hicache_write_policy', 'write_through')}.",
            asked="write_back",
            fix=Fix({"hicache_write_policy": "write_through"}),
            severity="error",
        )
    for rewrite in case.resolution.of("hicache_write_policy"):
        yield Seen(
            "hicache_write_policy",
            f"{flag(case, 'hicache_write_policy', rewrite.asked)} becomes {rewrite.gets}: {rewrite.why}",
            f"Write {flag(case, 'hicache_write_policy', rewrite.gets)}.",
            asked=rewrite.asked,
            gets=rewrite.gets,
            fix=Fix({"hicache_write_policy": rewrite.gets}, safe=True),
        )


@rule(
    "HC213",
    "buffer-only-on-decode",
    "error",
    since="0.5.19",
    covers=(19,),
    why="The prefetch and offload paths of a decode server do not go through the staging of buffer_only. Source: "
    "SGLang 0.5.23, arg_groups/hicache_hook.py:validate_hicache_host_memory_mode.",
    bad={**BUFFER, "hicache_storage_backend": "file", "disaggregation_mode": "decode",
         "disaggregation_decode_enable_radix_cache": True},
    good={**BUFFER, "hicache_storage_backend": "file", "disaggregation_mode": "prefill"},
)  # fmt: skip
def buffer_only_on_decode(case: Case) -> Iterator[Seen]:
    """buffer_only on a decode server."""
    if case.resolution.host_pools and _buffer_only(case) and mode(case) == "decode":
        yield Seen(
            "hicache_host_memory_mode",
            f"{flag(case, 'hicache_host_memory_mode', 'buffer_only')} is refused on a decode server",
            f"Write {flag(case, 'hicache_host_memory_mode', 'cache')} there; prefill servers may keep buffer_only.",
            asked="buffer_only",
            fix=Fix({"hicache_host_memory_mode": "cache"}),
        )


@rule(
    "HC214",
    "buffer-only-needs-the-unified-tree",
    "error",
    since="0.5.19",
    covers=(20, 22),
    why="buffer_only is written for the unified prefix tree alone. A registered tree, FlexKV, or the request states "
    "of DeepSeek V4 on an Ascend NPU are refused when the tree is made, after the weights are loaded. Source: "
    "SGLang 0.5.23, mem_cache/registry.py:create_tree_cache and mem_cache/unified_radix_cache.py:init_hicache.",
    bad={**BUFFER, "hicache_storage_backend": "file", "radix_cache_backend": "own"},
    good={**BUFFER, "hicache_storage_backend": "file"},
    late="mem_cache/registry.py:create_tree_cache",
)
def buffer_only_needs_the_unified_tree(case: Case) -> Iterator[Seen]:
    """buffer_only with another prefix tree."""
    if not (hicache(case) and _buffer_only(case)):
        return
    for name in ("radix_cache_backend", "enable_flexkv"):
        if case.raw(name):
            yield excluded(
                case,
                name,
                "hicache_host_memory_mode",
                "buffer_only is written for SGLang's own prefix tree",
                f"Take {flag(case, name)} out, or write {flag(case, 'hicache_host_memory_mode', 'cache')}.",
            )
    if str(case.raw("device") or "").startswith("npu") and case.traits is not None and case.traits.v4:
        yield Seen(
            "hicache_host_memory_mode",
            "DeepSeek V4 on an NPU keeps request states that buffer_only cannot stage",
            f"Write {flag(case, 'hicache_host_memory_mode', 'cache')}.",
            asked="buffer_only",
        )


@rule(
    "HC219",
    "diffusion-turns-hicache-off",
    "warning",
    covers=(24,),
    why="A diffusion language model runs without host tiers, in one stage and on one server; SGLang turns the rest "
    "off with a log line. Source: SGLang 0.5.23, arg_groups/dllm_hook.py.",
    bad={**ON, "dllm_algorithm": "LowConfidence"},
    good={"dllm_algorithm": "LowConfidence"},
)
def diffusion_turns_hicache_off(case: Case) -> Iterator[Seen]:
    """What a diffusion model switches off."""
    for rewrite in case.resolution.rewrites:
        if 24 in rewrite.rules and case.gave(rewrite.argument):
            yield Seen(
                rewrite.argument,
                f"{flag(case, rewrite.argument, rewrite.asked)} is turned off: {rewrite.why}",
                f"Take {flag(case, rewrite.argument)} out, or {flag(case, 'dllm_algorithm')}.",
                asked=rewrite.asked,
                gets=rewrite.gets,
                fix=Fix({rewrite.argument: None}, safe=True),
            )


@rule(
    "HC220",
    "int8-mamba-states",
    "error",
    since="0.5.14",
    covers=(25,),
    why="The host tier, registered prefix trees and LMCache would read int8 states as full ones. Source: SGLang "
    "0.5.23, arg_groups/mamba_hook.py:handle_int8_mamba_checkpoint.",
    bad={**ON, "enable_int8_mamba_checkpoint": True},
    good={"enable_int8_mamba_checkpoint": True},
)
def int8_mamba_states(case: Case) -> Iterator[Seen]:
    """int8 states with a cache that cannot read them."""
    if not case.raw("enable_int8_mamba_checkpoint"):
        return
    for other in ("enable_hierarchical_cache", "radix_cache_backend", "enable_lmcache"):
        if case.raw(other):
            yield excluded(
                case,
                "enable_int8_mamba_checkpoint",
                other,
                "it would read int8 states as full ones",
                f"Take {flag(case, 'enable_int8_mamba_checkpoint')} out, or {flag(case, other)}.",
            )


def _buffer_only(case: Case) -> bool:
    return bool(case.raw("hicache_host_memory_mode") == "buffer_only" and case.release.at_least("0.5.19"))
