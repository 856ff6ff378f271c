"""Servers of a prefill and decode pair: prefix cache, retraction, receiving, offload, optimistic prefill.

Source: SGLang 0.5.23, arg_groups/pd_disaggregation_hook.py, kv_cache_hook.py, serving_hook.py and
mem_cache/kv_cache_builder.py. Must not import anything above this floor.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..core.findings import Fix
from .case import Case
from .common import excluded, flag, hicache, mode
from .registry import Seen, rule

ON = {"enable_hierarchical_cache": True}
DECODE = {"disaggregation_mode": "decode"}
DECODE_PREFIX = {**DECODE, "disaggregation_decode_enable_radix_cache": True}
PREFILL = {"disaggregation_mode": "prefill"}
OFFLOAD = {**DECODE, "disaggregation_decode_enable_offload_kvcache": True}


@rule(
    "HC202",
    "decode-without-prefix-cache",
    "error",
    covers=(13,),
    why="A decode server turns its prefix cache off unless it is asked to keep it, and then HiCache is refused with "
    "a message about --disable-radix-cache that nobody wrote. Source: SGLang 0.5.23, "
    "arg_groups/pd_disaggregation_hook.py (the flag exists since 0.5.11; before, a decode server cannot have "
    "HiCache).",
    bad={**ON, **DECODE},
    good={**ON, **DECODE_PREFIX},
)
def decode_without_prefix_cache(case: Case) -> Iterator[Seen]:
    """HiCache on a decode server without its prefix cache."""
    if not (hicache(case) and mode(case) == "decode" and case.resolved("disable_radix_cache")):
        return
    keep = "disaggregation_decode_enable_radix_cache"
    can = case.release.at_least("0.5.11")
    yield Seen(
        "enable_hierarchical_cache",
        "a decode server has no prefix cache"
        + (f" without {flag(case, keep)}" if can else f" in SGLang {case.release.name}")
        + ", and HiCache is refused without one",
        f"Add {flag(case, keep)}, or take {flag(case, 'enable_hierarchical_cache')} out."
        if can
        else f"Take {flag(case, 'enable_hierarchical_cache')} out, or run 0.5.11 or later.",
        fix=Fix({keep: True}) if can else None,
    )


@rule(
    "HC235",
    "prefix-cache-switch-overwritten",
    "warning",
    since="0.5.11",
    covers=(13,),
    why="On a decode server --disaggregation-decode-enable-radix-cache decides alone; --disable-radix-cache beside "
    "it has no effect. Source: SGLang 0.5.23, arg_groups/pd_disaggregation_hook.py:handle_pd_disaggregation.",
    bad={**DECODE_PREFIX, "disable_radix_cache": True},
    good=DECODE_PREFIX,
)
def prefix_cache_switch_overwritten(case: Case) -> Iterator[Seen]:
    """--disable-radix-cache on a decode server that keeps its prefix cache."""
    for rewrite in case.resolution.of("disable_radix_cache"):
        if case.gave("disable_radix_cache") and rewrite.asked is True and 13 in rewrite.rules:
            yield Seen(
                "disable_radix_cache",
                f"{flag(case, 'disable_radix_cache')} has no effect: {rewrite.why}",
                "Take one of the two out.",
                asked=True,
                gets=False,
                fix=Fix({"disable_radix_cache": None}, safe=True),
            )


@rule(
    "HC236",
    "decode-prefix-cache-of-sliding-windows",
    "error",
    since="0.5.11",
    covers=(33,),
    why="A decode server's prefix cache for a model with sliding-window layers lives on the device alone, so HiCache "
    "is refused (up to 0.5.18 there is no such cache at all); models with recurrent states have none up to 0.5.20. "
    "SGLang finds out when the pools are there. Source: SGLang 0.5.23, "
    "mem_cache/kv_cache_builder.py:validate_decode_radix_cache, and the wheels from 0.5.11 on.",
    bad={**ON, **DECODE_PREFIX},
    good={**ON, **PREFILL},
    needs=("model",),
    settings={"architecture": "GptOssForCausalLM"},
    late="mem_cache/kv_cache_builder.py:validate_decode_radix_cache",
)
def decode_prefix_cache_of_sliding_windows(case: Case) -> Iterator[Seen]:
    """A decode server's prefix cache with sliding-window layers and HiCache."""
    traits = case.traits
    keep = "disaggregation_decode_enable_radix_cache"
    if traits is None or mode(case) != "decode" or not case.raw(keep) or not hicache(case):
        return
    if traits.has_recurrent_states and not case.release.at_least("0.5.21"):
        yield Seen(
            keep,
            f"{flag(case, keep)} is refused for models with recurrent states ({traits.architecture}) in SGLang "
            f"{case.release.name}, after the weights are loaded",
            f"Take {flag(case, 'enable_hierarchical_cache')} and {flag(case, keep)} out, or run 0.5.21 or later.",
        )
    if traits.sliding or traits.v4:
        yield Seen(
            "enable_hierarchical_cache",
            f"the prefix cache of a decode server keeps sliding-window layers ({traits.architecture}) on the device "
            "alone; with HiCache it is refused after the weights are loaded",
            f"Take {flag(case, 'enable_hierarchical_cache')} out on the decode server; a prefill server may have it.",
        )


@rule(
    "HC237",
    "decode-prefix-cache-excludes",
    "error",
    since="0.5.11",
    covers=(13,),
    why="A decode server's prefix cache is refused with HiSparse, with the transfer backend `fake`, and with "
    "speculative decoding other than DSPARK, EAGLE and EAGLE3 (all of it before 0.5.19). Source: SGLang 0.5.23, "
    "arg_groups/pd_disaggregation_hook.py and speculative_hook.py.",
    bad={**DECODE_PREFIX, "disaggregation_transfer_backend": "fake"},
    good={**DECODE_PREFIX, "disaggregation_transfer_backend": "nixl"},
)
def decode_prefix_cache_excludes(case: Case) -> Iterator[Seen]:
    """What a decode server's prefix cache is refused with."""
    keep = "disaggregation_decode_enable_radix_cache"
    if mode(case) != "decode" or not case.raw(keep):
        return
    if case.raw("enable_hisparse"):
        yield excluded(case, "enable_hisparse", keep, "HiSparse needs the prefix cache off", "Take one of the two out.")
    if case.raw("disaggregation_transfer_backend") == "fake":
        yield Seen(
            keep,
            f"{flag(case, keep)} is refused with {flag(case, 'disaggregation_transfer_backend', 'fake')}",
            "Take a real transfer backend, such as mooncake or nixl.",
        )
    algorithm = str(case.raw("speculative_algorithm") or "").upper()
    if algorithm and algorithm not in ("DSPARK", "EAGLE", "EAGLE3", "NEXTN") and case.release.at_least("0.5.23"):
        yield excluded(
            case, "speculative_algorithm", keep, f"{algorithm} is not supported there", "Take one of the two out."
        )


@rule(
    "HC222",
    "optimistic-prefill-turned-off",
    "warning",
    since="0.5.16",
    covers=(31,),
    why="Optimistic prefill runs in one stage, and with HiCache only without a storage backend (write_back or "
    "write_through) or with buffer_only and write_through; before 0.5.21 with no HiCache at all. Otherwise "
    "SGLang sets the attempts to 0. Source: SGLang 0.5.23, arg_groups/serving_hook.py:handle_other_validations.",
    bad={**ON, **PREFILL, "optimistic_prefill_attempts": 2, "hicache_write_policy": "write_through_selective"},
    good={**ON, **PREFILL, "optimistic_prefill_attempts": 2},
)
def optimistic_prefill_turned_off(case: Case) -> Iterator[Seen]:
    """Attempts that become 0."""
    for rewrite in case.resolution.of("optimistic_prefill_attempts"):
        if 31 in rewrite.rules and case.gave("optimistic_prefill_attempts"):
            yield Seen(
                "optimistic_prefill_attempts",
                f"{flag(case, 'optimistic_prefill_attempts', rewrite.asked)} becomes 0: {rewrite.why}",
                "Take it out, or write --hicache-write-policy write_through without a storage backend.",
                asked=rewrite.asked,
                gets=0,
                fix=Fix({"optimistic_prefill_attempts": None}, safe=True),
            )


@rule(
    "HC223",
    "prefill-complete-excludes",
    "error",
    since="0.5.22",
    covers=(32,),
    why="The allocation policy prefill_complete is written for a narrow set-up: Mooncake transfers, one attention "
    "rank a group, one stage, no HiSparse, no decode prefix cache or HiCache, and on the prefill server HiCache "
    "without storage and with write_back alone. Source: SGLang 0.5.23, "
    "arg_groups/pd_disaggregation_hook.py:_validate_prefill_complete.",
    bad={**ON, **PREFILL, "disaggregation_decode_allocation_policy": "prefill_complete"},
    good={**ON, **PREFILL, "disaggregation_decode_allocation_policy": "prefill_complete",
          "hicache_write_policy": "write_back"},
)  # fmt: skip
def prefill_complete_excludes(case: Case) -> Iterator[Seen]:
    """prefill_complete with what it does not support."""
    policy = "disaggregation_decode_allocation_policy"
    if case.raw(policy) != "prefill_complete":
        return
    groups = case.raw("dp_size") if case.raw("enable_dp_attention") else 1
    storage, write = case.raw("hicache_storage_backend"), case.raw("hicache_write_policy")
    unsupported = {
        "a server that is no half of a pair": mode(case) not in ("prefill", "decode"),
        "a transfer backend other than mooncake": case.raw("disaggregation_transfer_backend")
        not in ("mooncake", "mooncake_tcp"),
        "pipeline stages or context parallelism": any(
            case.raw(name) != 1 for name in ("pp_size", "attn_cp_size", "dcp_size")
        ),
        "several attention ranks a group": case.raw("tp_size") != groups,
        "HiSparse": case.raw("enable_hisparse"),
        "changing roles at run time": case.raw("enable_pd_role_switch"),
        "receiving KV into host memory": case.raw("disaggregation_decode_host_receive_threshold") < 1,
        "a decode server with prefix cache or HiCache": mode(case) == "decode"
        and (case.raw("disaggregation_decode_enable_radix_cache") or hicache(case)),
        "HiCache other than write_back without a storage backend": mode(case) == "prefill"
        and hicache(case)
        and (storage is not None or write != "write_back"),
    }
    found = [what for what, is_there in unsupported.items() if is_there]
    if found:
        yield Seen(
            policy,
            f"{flag(case, policy, 'prefill_complete')} does not support {'; '.join(found)}",
            f"Write {flag(case, policy, 'early')}, or change what is named.",
            asked="prefill_complete",
            fix=Fix({policy: "early"}),
        )


@rule(
    "HC225",
    "host-receive-threshold",
    "error",
    since="0.5.21",
    covers=(62,),
    why="The threshold is a share between 0 and 1. Below 1 (in 0.5.21 above 0: its meaning was turned round) "
    "received KV may go to host memory, which needs the host pool for retraction and works neither with HiSparse "
    "nor with servers that change roles. Source: SGLang 0.5.23, "
    "arg_groups/pd_disaggregation_hook.py:handle_pd_disaggregation.",
    bad={**DECODE, "disaggregation_decode_host_receive_threshold": 1.5},
    good={**DECODE, "disaggregation_decode_host_receive_threshold": 0.5},
)
def host_receive_threshold(case: Case) -> Iterator[Seen]:
    """A threshold out of range, or with what it excludes."""
    name = "disaggregation_decode_host_receive_threshold"
    threshold = case.raw(name)
    if not 0 <= threshold <= 1:
        yield Seen(
            name,
            f"{flag(case, name, threshold)} is not between 0 and 1",
            "Write a share, such as 0.5.",
            asked=threshold,
        )
        return
    if not any(62 in rewrite.rules for rewrite in case.resolution.rewrites) and not (
        threshold < 1 and case.release.at_least("0.5.22")
    ):
        return
    for other in ("enable_hisparse", "enable_pd_role_switch"):
        if case.raw(other):
            yield excluded(
                case, name, other, "KV can't be received into host memory there", f"Take {flag(case, other)} out."
            )
    backup = "disaggregation_decode_retraction_backup"
    if case.raw(backup) == "cpu_tensor":
        yield Seen(
            name,
            f"{flag(case, name, threshold)} needs {flag(case, backup, 'host_pool')}, not cpu_tensor",
            f"Write {flag(case, backup, 'host_pool')}, or leave it out.",
            asked=threshold,
            fix=Fix({backup: "host_pool"}),
        )


@rule(
    "HC226",
    "decode-offload-needs",
    "error",
    covers=(64,),
    why="Decode offload writes to a storage backend, on a decode server alone; a host pool for retraction beside it "
    "would be a second one (refused since 0.5.18). Source: SGLang 0.5.23, "
    "arg_groups/kv_cache_hook.py:handle_cache_compatibility.",
    bad=OFFLOAD,
    good={**OFFLOAD, "hicache_storage_backend": "file"},
)
def decode_offload_needs(case: Case) -> Iterator[Seen]:
    """Decode offload without what it needs."""
    name = "disaggregation_decode_enable_offload_kvcache"
    if not case.raw(name):
        return
    if mode(case) != "decode":
        yield Seen(
            name,
            f"{flag(case, name)} is for a decode server; this one has {flag(case, 'disaggregation_mode', mode(case))}",
            f"Take {flag(case, name)} out.",
        )
    if case.raw("hicache_storage_backend") is None:
        yield Seen(
            name,
            f"{flag(case, name)} has nowhere to write: no {flag(case, 'hicache_storage_backend')} is given",
            f"Add {flag(case, 'hicache_storage_backend')}.",
        )
    if case.resolved("disaggregation_decode_retraction_backup") == "host_pool":
        yield excluded(
            case,
            name,
            "disaggregation_decode_retraction_backup",
            "both would build a host pool",
            "Keep one of the two.",
        )
