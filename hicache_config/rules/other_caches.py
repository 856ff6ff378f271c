"""Caches beside HiCache that exclude it: the external linker, LMCache, HiSparse.

Source: SGLang 0.5.23, arg_groups/hicache_hook.py, kv_cache_hook.py and hisparse_hook.py.
Must not import anything above this floor.
"""

from __future__ import annotations

from collections.abc import Iterator

from .case import Case
from .common import excluded, flag, hicache, mode
from .registry import Seen, rule

ON = {"enable_hierarchical_cache": True}
LINKER = {"enable_unified_cache_external_linker": True}


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
    if case.release.at_least("0.5.23"):
        others |= {"radix_cache_backend": "it needs SGLang's own prefix tree"}
    for other, why in others.items():
        if case.raw(other):
            yield excluded(case, other, "enable_unified_cache_external_linker", why, f"Take one of the two out: {why}.")
    if case.resolved("disable_radix_cache") and case.release.at_least("0.5.23"):
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
    "that is off, speculative decoding, attention data parallelism, decode context parallelism, streaming "
    "sessions, buffer_only and prefill/decode pairs. Source: SGLang 0.5.23, "
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
        "hicache_host_memory_mode": case.raw("hicache_host_memory_mode") == "buffer_only",
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
