"""Decode servers: the host pools that exist there, and the ratio of a pool that only keeps retracted requests.

Source: SGLang 0.5.23, mem_cache/kv_cache_builder.py:resolve_decode_retraction_backup and
disaggregation/decode_kvcache_offload_manager.py. Must not import anything above this floor.
"""

from __future__ import annotations

from dataclasses import replace

from ..core.capacity import Capacity, DeviceRatio, HostFraction
from ..core.pools import DevicePool
from .attention import is_latent
from .family import Case
from .filled import filled_in
from .given import given
from .minimax_settings import ARCHITECTURES as M3_ARCHITECTURES
from .model import Model, refuse
from .states import linear_reader

#: Host slots per device slot of a pool that only keeps retracted requests, since 0.5.19 (0.5.18: 1.0).
BACKUP_RATIO = 0.2
#: Keys of config.json with the longest context, in SGLang's order (utils/hf_transformers/common.py).
_CONTEXT_KEYS = ("max_sequence_length", "seq_length", "max_seq_len", "model_max_length", "max_position_embeddings")
_DEFAULT_CONTEXT = 2048
#: Slots of a request beyond the context, besides its draft tokens.
_BEYOND_CONTEXT = 4


# --- offload ------------------------------------------------------------------------------------------------------


def is_offloading(case: Case) -> bool:
    """Whether a decode server offloads KV to the host."""
    return case.args.disaggregation_mode == "decode" and case.args.disaggregation_decode_enable_offload_kvcache


def with_offload(case: Case, pools: list[DevicePool], packed_row: int) -> list[DevicePool]:
    """The pools of a stage on a decode server: with offload a second kv of the full size, or that one alone.

    `packed_row` are the bytes of a slot of kv that belong to packed drafts, which are not offloaded. Index keys and
    drafts are not offloaded either; pools of other kinds than kv are refused as SGLang refuses them.
    """
    args = case.args
    names = {pool.name for pool in pools if pool.follows is None}
    if names != {"kv"} or case.model.architecture in M3_ARCHITECTURES:
        raise refuse(
            "HC667",
            "offload-without-host-pool",
            f"{case.model_class.name} can't be offloaded on a decode server: SGLang offloads one pool of plain or "
            "latent attention alone, and stops after the weights are loaded",
            "Leave --disaggregation-decode-enable-offload-kvcache out.",
            argument="disaggregation_decode_enable_offload_kvcache",
        )
    kv = next(pool for pool in pools if pool.name == "kv")
    offload = replace(
        kv,
        name="offload_kv",
        bytes_per_slot=(kv.bytes_per_slot or 0) - packed_row,
        packed_bytes=(),
        fraction_bytes=0,
        carved=False,
        stack=1,
    )
    return [*pools, offload] if args.enable_hierarchical_cache else [offload]


# --- retraction ---------------------------------------------------------------------------------------------------


def decode_capacity(case: Case) -> tuple[Capacity | None, tuple[str, ...]]:
    """The capacity that a decode server works out itself, with what it assumes; None where the arguments say it.

    Without a ratio it is 2.0, or for a pool that only keeps retracted requests 0.2 and at least one request of the
    longest context (two where host memory may receive requests), lowered until it fits into a share of host memory.
    """
    args, release = case.args, case.release
    if args.disaggregation_mode != "decode" or args.hicache_size > 0 or "hicache_ratio" in args.written:
        return None, ()
    if args.enable_hierarchical_cache or retraction_backup(case) != "host_pool":
        return None, ()
    ratio = BACKUP_RATIO if release.at_least("0.5.19") else 1.0
    notes: tuple[str, ...] = ()
    if release.at_least("0.5.21"):
        floor = _floor(case)
        if floor is None:
            notes = (
                "the device slots of kv are not known, so the ratio of the pool for retracted requests is taken as "
                f"{BACKUP_RATIO}; SGLang raises it until one request of the longest context fits",
            )
        else:
            ratio = max(ratio, floor)
    if release.has_fraction and args.hicache_host_memory_fraction is not None:
        return HostFraction(args.hicache_host_memory_fraction, ratio), notes
    return DeviceRatio(ratio), notes


def retraction_backup(case: Case) -> str:
    """Where KV of retracted requests goes: as asked, or as SGLang works it out from the pools."""
    args = case.args
    if args.disaggregation_mode != "decode" or not case.release.at_least("0.5.18"):
        return "none"
    if receives_into_host(case):
        return "host_pool"
    if args.disaggregation_decode_retraction_backup is not None:
        return args.disaggregation_decode_retraction_backup
    preemption = given(args, "enable_priority_scheduling") and not given(args, "disable_priority_preemption")
    busy = args.disaggregation_decode_enable_radix_cache or args.disaggregation_decode_enable_offload_kvcache
    allowed = not busy and not preemption and case.parallel.decode_cp == 1
    return "host_pool" if allowed and _has_plain_pools(case) else "cpu_tensor"


def receives_into_host(case: Case) -> bool:
    """Whether requests may be received into host memory: a threshold below 1, in 0.5.21 one above 0."""
    threshold = case.args.disaggregation_decode_host_receive_threshold
    if not case.release.at_least("0.5.22"):
        written = "disaggregation_decode_host_receive_threshold" in case.args.written
        return case.release.at_least("0.5.21") and written and threshold > 0
    return threshold < 1


def _has_plain_pools(case: Case) -> bool:
    """Whether KV lies in plain or sliding-window pools, without states: what a host pool for retraction can hold."""
    return (
        not is_latent(case.model)
        and linear_reader(case.model) is None
        and case.model.architecture not in M3_ARCHITECTURES | {"DeepseekV4ForCausalLM"}
        and not (case.args.enable_unified_memory and case.settings.sliding)
    )


def _floor(case: Case) -> float | None:
    """Host slots per device slot that hold one request of the longest context, None without device slots."""
    slots, page = case.slots.get("kv"), case.page_size
    if slots is None:
        return None
    longest = context_length(case) + _beyond_context(case)
    tokens = -(-min(longest - 1, slots) // page) * page
    return tokens * (2 if receives_into_host(case) else 1) / slots


def _beyond_context(case: Case) -> int:
    """Slots of a request beyond its context (0.5.23, mem_cache/allocation_sizing.py), for drafts of one branch."""
    args, page = case.args, case.page_size * case.parallel.decode_cp
    tokens = args.speculative_num_draft_tokens or 0
    beyond = _BEYOND_CONTEXT + tokens
    if args.speculative_algorithm is None or page == 1:
        return beyond
    step = max((args.speculative_num_steps or 1) * (args.speculative_eagle_topk or 1), tokens)
    return max(beyond, 2 * step + page - 1)


def context_length(case: Case) -> int:
    """The longest context: --context-length, or what config.json says (0.5.23, get_context_length)."""
    asked = case.args.context_length
    return asked if asked is not None else _derived_context(case.model)


def _derived_context(model: Model) -> int:
    scaling = model.get("rope_scaling")
    factor = 1.0
    if isinstance(scaling, dict) and "original_max_position_embeddings" not in scaling:
        stretched = scaling.get("rope_type") != "llama3" and isinstance(scaling.get("factor"), int | float)
        factor = float(scaling["factor"]) if stretched else 1.0
    for key in _CONTEXT_KEYS:
        if model.text.get(key) is not None or (key not in model.text and key in filled_in(model.text_type)):
            return int(factor * model.integer(key))
    return _DEFAULT_CONTEXT
