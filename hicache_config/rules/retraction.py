"""Host pools of a decode server beside HiCache: retraction, receiving, offload.

Source: SGLang 0.5.23, arg_groups/kv_cache_hook.py, mem_cache/registry.py, mem_cache/kv_cache_builder.py and
disaggregation/. Must not import anything above this floor.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..core.findings import Fix
from .case import Case
from .common import flag, hicache, mode
from .registry import Seen, rule

ON = {"enable_hierarchical_cache": True}
DECODE = {"disaggregation_mode": "decode"}
DECODE_PREFIX = {**DECODE, "disaggregation_decode_enable_radix_cache": True}
OFFLOAD = {**DECODE, "disaggregation_decode_enable_offload_kvcache": True, "hicache_storage_backend": "file"}
BACKUP = "disaggregation_decode_retraction_backup"
HOST_POOL = {BACKUP: "host_pool"}


@rule(
    "HC224",
    "retraction-host-pool-excludes",
    "error",
    since="0.5.18",
    covers=(59,),
    why="The host pool for retracted requests is for a decode server, without decode context parallelism, and with "
    "priority scheduling only when preemption is off. Source: SGLang 0.5.23, "
    "arg_groups/kv_cache_hook.py:handle_cache_compatibility.",
    bad=HOST_POOL,
    good={**DECODE, **HOST_POOL},
)
def retraction_host_pool_excludes(case: Case) -> Iterator[Seen]:
    """A host pool for retraction where SGLang refuses it."""
    if case.resolved(BACKUP) != "host_pool":
        return
    asked = BACKUP if case.gave(BACKUP) else "disaggregation_decode_host_receive_threshold"
    setting = flag(case, BACKUP, "host_pool")
    if mode(case) != "decode":
        yield Seen(asked, f"{setting} is for a decode server", "Take it out here.", asked=case.raw(asked))
    if case.raw("dcp_size") > 1:
        yield Seen(
            asked,
            f"{setting} is refused with {flag(case, 'dcp_size', case.raw('dcp_size'))}",
            f"Write {flag(case, BACKUP, 'cpu_tensor')}.",
            asked=case.raw(asked),
        )
    if case.raw("enable_priority_scheduling") and not case.raw("disable_priority_preemption"):
        yield Seen(
            asked,
            f"{setting} is refused with {flag(case, 'enable_priority_scheduling')} unless preemption is off",
            f"Add {flag(case, 'disable_priority_preemption')}.",
            asked=case.raw(asked),
            fix=Fix({"disable_priority_preemption": True}),
        )


@rule(
    "HC232",
    "retraction-host-pool-and-model",
    "error",
    since="0.5.18",
    covers=(60,),
    why="The host pool for retraction holds no recurrent states and needs a full-attention pool; a registered prefix "
    "tree cannot keep it. SGLang finds out when the tree is made. Source: SGLang 0.5.23, "
    "mem_cache/registry.py:create_unified_radix_cache.",
    bad={**DECODE, **HOST_POOL},
    good={**DECODE, BACKUP: "cpu_tensor"},
    needs=("model",),
    settings={"architecture": "Qwen3NextForCausalLM"},
    late="mem_cache/registry.py:create_unified_radix_cache",
)
def retraction_host_pool_and_model(case: Case) -> Iterator[Seen]:
    """A host pool for retraction with Mamba states, or with sliding-window layers alone."""
    traits = case.traits
    if traits is None or case.resolved(BACKUP) != "host_pool" or mode(case) != "decode":
        return
    asked = BACKUP if case.gave(BACKUP) else "disaggregation_decode_host_receive_threshold"
    if traits.has_recurrent_states:
        yield Seen(
            asked,
            f"{flag(case, BACKUP, 'host_pool')} keeps no recurrent states, which {traits.architecture} has",
            f"Write {flag(case, BACKUP, 'cpu_tensor')}.",
            asked=case.raw(asked),
            fix=Fix({BACKUP: "cpu_tensor"}) if case.gave(BACKUP) else None,
        )


@rule(
    "HC233",
    "retraction-left-to-the-server",
    "note",
    since="0.5.18",
    covers=(61,),
    why="Without a word on it a decode server keeps retracted requests in a host pool where it can (plain or "
    "sliding-window pools, no recurrent states, no prefix cache, no offload, no preemption, not on ROCm) and "
    "else copies tensors. That host pool is sized by the HiCache arguments: by default 0.2 of the device pool, "
    "at least one request. Source: SGLang 0.5.23, "
    "mem_cache/kv_cache_builder.py:resolve_decode_retraction_backup.",
    bad=DECODE,
    good={**DECODE, BACKUP: "cpu_tensor"},
)
def retraction_left_to_the_server(case: Case) -> Iterator[Seen]:
    """A decode server that may build a host pool although HiCache is off."""
    if mode(case) != "decode" or case.resolved(BACKUP) is not None or hicache(case):
        return
    if case.raw("dcp_size") > 1 or case.raw("disaggregation_decode_enable_radix_cache"):
        return
    if case.raw("disaggregation_decode_enable_offload_kvcache"):
        return
    yield Seen(
        "disaggregation_mode",
        "this decode server may build a host pool for retracted requests, sized by the HiCache arguments "
        "(by default 0.2 of the device pool)",
        f"Write {flag(case, BACKUP, 'cpu_tensor')} for none, or size it with {flag(case, 'hicache_size')}.",
    )


@rule(
    "HC234",
    "received-kv-does-not-fit",
    "error",
    since="0.5.21",
    covers=(63,),
    why="A host pool that receives KV must hold, beside the retraction reserve, at least one more page; SGLang "
    "checks it when the decode queues are made. Source: SGLang 0.5.23, disaggregation/decode.py.",
    bad={**DECODE, "disaggregation_decode_host_receive_threshold": 0.5, "hicache_ratio": 0.0001,
         "max_total_tokens": 4096,
         "context_length": 4096},
    good={**DECODE, "disaggregation_decode_host_receive_threshold": 0.5, "hicache_ratio": 4.0, "max_total_tokens": 4096,
          "context_length": 4096},
    needs=("plan",),
    settings={"architecture": "LlamaForCausalLM"},
    late="disaggregation/decode.py:__init__",
)  # fmt: skip
def received_kv_does_not_fit(case: Case) -> Iterator[Seen]:
    """A host pool smaller than one request of full length."""
    name = "disaggregation_decode_host_receive_threshold"
    longest = case.raw("context_length")
    if mode(case) != "decode" or case.plan is None or longest is None or case.raw(name) >= 1:
        return
    for stage in case.plan.stages:
        for pool in stage.pools:
            needed = min(longest - 1, pool.device_slots or longest) + pool.page_size
            if pool.name == "kv" and pool.slots is not None and pool.slots < needed:
                yield Seen(
                    name,
                    f"the host pool of a rank holds {pool.slots:,} slots; one request of --context-length {longest:,} "
                    f"and one page need {needed:,}",
                    f"Give more with {flag(case, 'hicache_size')} or {flag(case, 'hicache_ratio')}.",
                    asked=case.raw(name),
                )
                return


@rule(
    "HC227",
    "decode-offload-with-unified-memory",
    "error",
    since="0.5.21",
    covers=(65,),
    why="With unified memory, decode offload works with the file backend alone, and for neither latent attention nor "
    "recurrent states nor sliding windows. Source: SGLang 0.5.23, "
    "arg_groups/kv_cache_hook.py:handle_unified_memory_pool.",
    bad={**OFFLOAD, "enable_unified_memory": True, "hicache_storage_backend": "nixl"},
    good={**OFFLOAD, "enable_unified_memory": True},
)
def decode_offload_with_unified_memory(case: Case) -> Iterator[Seen]:
    """Decode offload from unified memory."""
    name = "disaggregation_decode_enable_offload_kvcache"
    if not (case.raw(name) and case.raw("enable_unified_memory")) or mode(case) == "null":
        return
    backend = case.raw("hicache_storage_backend")
    if backend not in (None, "file"):
        yield Seen(
            "hicache_storage_backend",
            f"decode offload from unified memory writes to file alone, not to {backend}",
            f"Write {flag(case, 'hicache_storage_backend', 'file')}, or take {flag(case, 'enable_unified_memory')} "
            "out.",
            asked=backend,
        )
    traits = case.traits
    if traits is not None and (traits.latent or traits.has_recurrent_states or traits.sliding):
        yield Seen(
            name,
            f"decode offload from unified memory does not support {traits.architecture}",
            f"Take {flag(case, 'enable_unified_memory')} out.",
        )


@rule(
    "HC228",
    "decode-offload-settings",
    "error",
    covers=(66,),
    why="Decode offload reads --hicache-storage-backend-extra-config as plain JSON: a file (@path) is an error "
    "there, after the weights are loaded, and prefetch_* keys reach the backend. Source: SGLang 0.5.23, "
    "disaggregation/decode_kvcache_offload_manager.py.",
    bad={**OFFLOAD, "hicache_storage_backend_extra_config": "@hicache.json"},
    good={**OFFLOAD, "hicache_storage_backend_extra_config": '{"file_storage_path": "/data/hicache"}'},
    late="disaggregation/decode_kvcache_offload_manager.py:__init__",
)
def decode_offload_settings(case: Case) -> Iterator[Seen]:
    """A settings file for decode offload."""
    name = "hicache_storage_backend_extra_config"
    if not case.raw("disaggregation_decode_enable_offload_kvcache"):
        return
    config = case.raw(name)
    if isinstance(config, str) and config.strip().startswith("@"):
        yield Seen(
            name,
            f"{flag(case, name, config)} names a file, which decode offload cannot read",
            "Write the settings themselves as JSON text.",
            asked=config,
        )


@rule(
    "HC229",
    "two-host-stacks",
    "warning",
    covers=("3.4 decode offload",),
    why="A decode server with HiCache and decode offload builds two sets of host pools, each with the whole size: "
    "twice the memory. Source: SGLang 0.5.23, disaggregation/decode_kvcache_offload_manager.py; read, not run.",
    bad={**ON, **OFFLOAD, **DECODE_PREFIX},
    good=OFFLOAD,
)
def two_host_stacks(case: Case) -> Iterator[Seen]:
    """HiCache and decode offload together."""
    name = "disaggregation_decode_enable_offload_kvcache"
    if hicache(case) and case.raw(name) and mode(case) == "decode":
        yield Seen(
            name,
            f"{flag(case, name)} builds a second set of host pools beside HiCache's: each rank takes the size twice",
            "Keep one of the two.",
        )
