"""What HiCache excludes or needs beside it: prefix cache, other caches, the linker, buffer_only, diffusion models.

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
LINKER = {"enable_unified_cache_external_linker": True}
BUFFER = {**ON, "hicache_host_memory_mode": "buffer_only"}


@rule(
    "HC201",
    "hicache-without-prefix-cache",
    "error",
    covers=(12,),
    why="HiCache is a second tier of the prefix cache; SGLang refuses it without one. Source: SGLang 0.5.23, "
    "arg_groups/kv_cache_hook.py:handle_cache_compatibility (the same since before 0.5.10).",
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
    why="In mode buffer_only there is no host tier to write back from, so SGLang takes write_through. Source: SGLang "
    "0.5.23, arg_groups/hicache_hook.py:validate_hicache_host_memory_mode.",
    bad={**BUFFER, "hicache_storage_backend": "file", "hicache_write_policy": "write_back"},
    good={**BUFFER, "hicache_storage_backend": "file", "hicache_write_policy": "write_through"},
)
def buffer_only_write_back(case: Case) -> Iterator[Seen]:
    """buffer_only with write_back."""
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
    "of DeepSeek V4 on an Ascend NPU are refused when the tree is made, after the weights are loaded. Source: SGLang "
    "0.5.23, mem_cache/registry.py:create_tree_cache and mem_cache/unified_radix_cache.py:init_hicache.",
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
    "HC215",
    "linker-excludes",
    "error",
    since="0.5.20",
    covers=(14,),
    why="The external linker ties the prefix tree to storage with no host tier; it needs SGLang's own tree with the "
    "prefix cache on and takes no HiCache storage backend. Source: SGLang 0.5.23, "
    "arg_groups/hicache_hook.py:handle_hicache.",
    bad={**LINKER, **ON},
    good=LINKER,
)
def linker_excludes(case: Case) -> Iterator[Seen]:
    """The external linker with what it excludes."""
    if not case.raw("enable_unified_cache_external_linker"):
        return
    others = {
        "enable_hierarchical_cache": "it has no host tier",
        "hicache_storage_backend": "it has a backend of its own",
    }
    if case.release.at_least("0.5.21"):
        others |= {"radix_cache_backend": "it needs SGLang's own prefix tree"}
    for other, why in others.items():
        if case.raw(other):
            yield excluded(case, other, "enable_unified_cache_external_linker", why, f"Take one of the two out: {why}.")
    if case.resolved("disable_radix_cache"):
        yield Seen(
            "disable_radix_cache" if case.raw("disable_radix_cache") else "enable_unified_cache_external_linker",
            f"{flag(case, 'enable_unified_cache_external_linker')} needs the prefix cache, which is off here",
            "Keep the prefix cache on"
            + (
                ", on a decode server with --disaggregation-decode-enable-radix-cache."
                if mode(case) == "decode"
                else "."
            ),
        )


@rule(
    "HC216",
    "linker-config",
    "error",
    since="0.5.23",
    covers=(15,),
    why="A dynamic linker needs `linker` and `linker_module_path` and knows one more key, `linker_extra_config`. "
    "Source: SGLang 0.5.23, mem_cache/unified_cache/linker_config.py.",
    bad={**LINKER, "unified_cache_external_linker_backend": "dynamic",
         "unified_cache_external_linker_config": {"linker": "a"}},
    good={**LINKER, "unified_cache_external_linker_backend": "dynamic",
          "unified_cache_external_linker_config": {"linker": "a", "linker_module_path": "b"}},
)  # fmt: skip
def linker_config(case: Case) -> Iterator[Seen]:
    """Settings of a dynamic linker."""
    config = case.raw("unified_cache_external_linker_config")
    used = case.raw("enable_unified_cache_external_linker") or config is not None
    if case.raw("unified_cache_external_linker_backend") != "dynamic" or not used:
        return
    name = "unified_cache_external_linker_config"
    given = config if isinstance(config, dict) else {}
    for key in ("linker", "linker_module_path"):
        if not isinstance(given.get(key), str) or not given[key].strip():
            yield Seen(
                name,
                f"{flag(case, name)} must name {key!r}, a text, for a dynamic linker",
                f'Write {flag(case, name)} \'{{"linker": "…", "linker_module_path": "…"}}\'.',
                pointer=f"/{name}/{key}" if key in given else None,
            )
    for key in given:
        if key not in ("linker", "linker_module_path", "linker_extra_config"):
            yield Seen(
                name,
                f"{flag(case, name)} has no key {key!r}",
                "Settings of the linker itself go into linker_extra_config.",
                pointer=f"/{name}/{key}",
            )
    if not isinstance(given.get("linker_extra_config", {}), dict):
        yield Seen(
            name, "linker_extra_config must be a mapping", "Write an object.", pointer=f"/{name}/linker_extra_config"
        )


@rule(
    "HC217",
    "linker-mla-dedup",
    "error",
    since="0.5.21",
    covers=(16,),
    why="Only the Mooncake linker can keep replicated latent pages once. Source: SGLang 0.5.23, "
    "arg_groups/hicache_hook.py:handle_hicache.",
    bad={"enable_linker_mla_dedup": True},
    good={**LINKER, "enable_linker_mla_dedup": True},
)
def linker_mla_dedup(case: Case) -> Iterator[Seen]:
    """Deduplication without the Mooncake linker."""
    linker = case.raw("enable_unified_cache_external_linker")
    if case.raw("enable_linker_mla_dedup") and (
        not linker or case.raw("unified_cache_external_linker_backend") != "mooncake"
    ):
        yield Seen(
            "enable_linker_mla_dedup",
            f"{flag(case, 'enable_linker_mla_dedup')} works with the Mooncake linker alone",
            f"Add {flag(case, 'enable_unified_cache_external_linker')} with backend mooncake, or take it out.",
        )


@rule(
    "HC218",
    "lmcache-excludes",
    "error",
    covers=(23,),
    why="LMCache takes the place of HiCache and, since 0.5.21, refuses with it: the external linker, a prefix cache "
    "that is off, speculative decoding, attention data parallelism, decode context parallelism, streaming sessions, "
    "buffer_only and prefill/decode pairs. Source: SGLang 0.5.23, "
    "arg_groups/kv_cache_hook.py:handle_cache_compatibility.",
    since="0.5.21",
    bad={**ON, "enable_lmcache": True},
    good={"enable_lmcache": True},
)
def lmcache_excludes(case: Case) -> Iterator[Seen]:
    """LMCache with what it refuses."""
    if not case.raw("enable_lmcache"):
        return
    in_use = {
        "enable_hierarchical_cache": hicache(case),
        "enable_unified_cache_external_linker": case.raw("enable_unified_cache_external_linker"),
        "disable_radix_cache": case.resolved("disable_radix_cache"),
        "speculative_algorithm": case.raw("speculative_algorithm") is not None,
        "attn_dp_size": (case.resolved("attn_dp_size") or 1) > 1,
        "dcp_size": case.raw("dcp_size") > 1,
        "enable_streaming_session": case.raw("enable_streaming_session"),
        "hicache_host_memory_mode": _buffer_only(case),
        "disaggregation_mode": mode(case) != "null",
    }
    for other, used in in_use.items():
        if used:
            yield excluded(
                case,
                other,
                "enable_lmcache",
                "LMCache does not support it",
                f"Take {flag(case, 'enable_lmcache')} out.",
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


@rule(
    "HC221",
    "hisparse-needs-no-prefix-cache",
    "error",
    covers=(30,),
    why="HiSparse has host pools of its own and needs the prefix cache off, so it never runs together with HiCache. "
    "Source: SGLang 0.5.23, arg_groups/hisparse_hook.py:validate_hisparse.",
    bad={"enable_hisparse": True},
    good={"enable_hisparse": True, "disable_radix_cache": True},
)
def hisparse_needs_no_prefix_cache(case: Case) -> Iterator[Seen]:
    """HiSparse with the prefix cache on, with mixed chunks, or for a model without sparse attention."""
    if not case.raw("enable_hisparse"):
        return
    if not case.resolved("disable_radix_cache"):
        yield Seen(
            "enable_hisparse",
            f"{flag(case, 'enable_hisparse')} needs {flag(case, 'disable_radix_cache')}"
            + (", which HiCache excludes" if hicache(case) else ""),
            f"Add {flag(case, 'disable_radix_cache')}" + (" and take HiCache out." if hicache(case) else "."),
        )
    if case.raw("enable_mixed_chunk"):
        yield excluded(
            case, "enable_mixed_chunk", "enable_hisparse", "SGLang does not mix them", "Take one of them out."
        )
    traits = case.traits
    if traits is not None and not (traits.sparse or traits.v4 or traits.m3):
        yield Seen(
            "enable_hisparse",
            f"{flag(case, 'enable_hisparse')} is for models with sparse attention; {traits.architecture} has none",
            f"Take {flag(case, 'enable_hisparse')} out.",
        )


def _buffer_only(case: Case) -> bool:
    return bool(case.raw("hicache_host_memory_mode") == "buffer_only" and case.release.at_least("0.5.19"))
