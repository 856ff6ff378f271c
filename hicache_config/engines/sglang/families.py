"""Which host pools SGLang builds for the pools of a rank, family by family, in its order of construction.

Source: SGLang 0.5.20 to 0.5.23, mem_cache/hybrid_cache/hybrid_pool_assembler.py (the strategies, the drafts) and
kv_cache_builder.py. What is not known here is refused, never guessed. Must not import torch nor sglang.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from ...core.findings import ConfigurationError, Finding
from ...core.pools import DevicePool, FollowRule
from ...core.releases import Release
from .device_pools import class_name, has_indexer, indexer, is_a, kv_pool, mamba, row_bytes, unreadable, weight


@dataclass(frozen=True)
class Situation:
    """What decides the family, besides the pools themselves.

    `page_size` is the tree's page (CacheInitParams.page_size); `dcp_size` ranks share it under decode context
    parallelism. `packed` drafts lie in the target's rows, `packed_states` in its Mamba states; `sidecar` drafts have
    host pools of their own. `stage` is the pipeline stage, for messages.
    """

    kvcache: Any
    req_to_token_pool: Any
    allocator: Any
    page_size: int
    release: Release
    has_swa: bool = False
    has_state: bool = False
    dcp_size: int = 1
    packed: tuple[Any, ...] = ()
    packed_states: tuple[Any, ...] = ()
    sidecar: tuple[Any, ...] = ()
    stage: int = 0

    @property
    def rank_page(self) -> int:
        """Token rows of one page on this rank."""
        return self.page_size // self.dcp_size


def read(situation: Situation) -> tuple[DevicePool, ...]:
    """The device pools of this rank. Raises ConfigurationError for pools that can't be planned (HC453) or mirrored."""
    kvcache = situation.kvcache
    kind = class_name(kvcache)
    if is_a(kvcache, "PageInterleaveKVPoolMixin"):
        raise unreadable("the KV cache is sharded by pages over ranks")
    if kind == "DeepSeekV4TokenToKVPool":
        from .deepseek_v4 import read_v4

        return read_v4(situation)
    if situation.has_state and kind in ("HybridLinearKVPool", "QSATokenToKVPool"):
        pools = _linear(situation)
    elif situation.has_swa and kind == "SWAKVPool":
        pools = _swa(situation)
    elif situation.has_swa or situation.has_state:
        raise unreadable(f"the device pool of this hybrid model is a {kind}")
    elif kind == "MiniMaxSparseKVPool":
        pools = _minimax_sparse(situation)
    else:
        pools = _plain(situation)
    for pool in pools:
        _refuse_empty(pool, situation)
    return (*pools, *_sidecars(pools, situation))


def _plain(situation: Situation) -> list[DevicePool]:
    pool, page = situation.kvcache, situation.rank_page
    pools = [kv_pool("kv", pool, page, situation.packed)]
    if has_indexer(pool, situation.release):
        pools.append(indexer("indexer", pool, page, follows="kv", packed=situation.packed, release=situation.release))
    return pools


def _swa(situation: Situation) -> list[DevicePool]:
    pool, page = situation.kvcache, situation.rank_page
    drafts = situation.packed
    full = [draft.full_kv_pool for draft in drafts if draft.full_kv_pool.layer_num]
    windowed = [draft for draft in drafts if draft.swa_kv_pool.layer_num]
    by_full = [draft.swa_kv_pool for draft in windowed if getattr(draft, "swa_uses_full_indices", False)]
    by_swa = [draft.swa_kv_pool for draft in windowed if not getattr(draft, "swa_uses_full_indices", False)]
    pools = [kv_pool("kv", pool.full_kv_pool, page, full), kv_pool("swa", pool.swa_kv_pool, page, by_swa)]
    if by_full:
        pools.append(_draft_by_full(by_full, page))
    if situation.has_state:
        pools.append(mamba(situation.req_to_token_pool.mamba_pool, situation.packed_states))
    return pools


def _draft_by_full(drafts: Sequence[Any], page: int) -> DevicePool:
    """Windowed layers of a draft that are addressed as full tokens: a pool of their own, by the KV pool's slots."""
    layers = int(drafts[0].layer_num) + len(drafts) - 1
    return DevicePool(
        "draft_swa",
        int(drafts[0].size),
        row_bytes(drafts[0]) * layers,
        page_size=page,
        follows="kv",
        follow_rule="ratio",
        device_bytes=sum(weight(draft) for draft in drafts),
        carved=True,
    )


def _linear(situation: Situation) -> list[DevicePool]:
    hybrid, page = situation.kvcache, situation.rank_page
    full = hybrid.full_kv_pool
    packed = [getattr(draft, "full_kv_pool", draft) for draft in situation.packed]
    pools = [kv_pool("kv", full, page, packed)]
    if situation.release.at_least("0.5.22") and has_indexer(full, situation.release):
        pools.append(indexer("indexer", full, page, follows="kv", packed=packed, release=situation.release))
    pools.append(mamba(situation.req_to_token_pool.mamba_pool, situation.packed_states))
    if class_name(hybrid) == "QSATokenToKVPool":
        if not situation.release.at_least("0.5.22"):
            raise unreadable(f"SGLang {situation.release.name} mirrors no QSA index keys; the device pool is a QSA one")
        pools.append(_qsa_index(hybrid, situation))
    return pools


def _qsa_index(hybrid: Any, situation: Situation) -> DevicePool:
    buffers = [buffer for one in (hybrid, *situation.packed) for buffer in one.qsa_compressed_k_buffer_pool]
    groups = situation.rank_page // int(hybrid.qsa_compress_ratio)
    page_bytes = sum(int(buffer[0].nbytes) * groups for buffer in buffers)
    return DevicePool(
        "indexer", page_size=situation.rank_page, page_bytes=page_bytes, follows="kv",
        device_bytes=sum(int(buffer.nbytes) for buffer in buffers), carved=True,
    )  # fmt: skip


def _minimax_sparse(situation: Situation) -> list[DevicePool]:
    pool, page = situation.kvcache, situation.rank_page
    pools = [kv_pool("kv", pool.main_pool, page)]
    keys = pool.index_k_pool
    if keys is not None:
        if class_name(keys) != "MHATokenToKOnlyPool":
            raise unreadable(f"the index keys lie in a {class_name(keys)}")
        row = int(keys.head_num) * int(keys.head_dim) * int(keys.layer_num) * int(keys.store_dtype.itemsize)
        pools.append(DevicePool("indexer", bytes_per_slot=row, page_size=page, follows="kv"))
    return pools


#: What a stage lacks whose host pool would hold no bytes. States may be missing: SGLang allows for it.
_LAYERS = {"kv": "full-attention layer", "swa": "sliding-window layer"}


def _refuse_empty(pool: DevicePool, situation: Situation) -> None:
    """A stage that owns no layer of a kind: SGLang maps a buffer of no bytes, and the stage ends by EINVAL."""
    if pool.bytes_per_page or pool.name not in _LAYERS:
        return
    layer = _LAYERS[pool.name]
    raise ConfigurationError(
        [
            Finding(
                "HC303",
                "pool-of-zero-bytes",
                "error",
                f"stage {situation.stage}: host pool {pool.name!r} would hold no bytes, since the stage owns no "
                f"{layer}; SGLang maps a buffer of length 0 and stops with EINVAL while the other stages wait",
                f"Give every stage a {layer}: change --pp-size or SGLANG_PP_LAYER_PARTITION.",
                argument="pp_size",
                stage=situation.stage,
                pool=pool.name,
            )
        ]
    )


# --- drafts with host pools of their own --------------------------------------------------------------------------


def _sidecars(pools: Sequence[DevicePool], situation: Situation) -> list[DevicePool]:
    added: list[DevicePool] = []
    for draft in situation.sidecar:
        if is_a(draft, "BaseSWAKVPool"):
            added += _window_draft(draft, pools)
        else:
            added += _full_draft(draft, situation)
    return added


def _window_draft(draft: Any, pools: Sequence[DevicePool]) -> list[DevicePool]:
    pool = draft.swa_kv_pool
    target = next((one for one in pools if one.name == "swa"), None)
    if pool is None or target is None:
        raise unreadable("a draft with a sliding window stands beside a target without one")
    if not pool.layer_num:
        return []
    row = row_bytes(pool) * int(pool.layer_num)
    return [
        DevicePool("draft_swa", int(pool.size), row, page_size=target.page_size, follows="swa", follow_rule="ratio")
    ]


def _full_draft(draft: Any, situation: Situation) -> list[DevicePool]:
    """A draft that follows the KV pool: its pages since 0.5.23, before by a float quotient of slots."""
    pool = draft.full_kv_pool if is_a(draft, "HybridLinearKVPool") else draft
    if not pool.layer_num:
        return []
    rule: FollowRule = "pages" if situation.release.at_least("0.5.23") else "ratio"
    if rule == "ratio" and situation.dcp_size > 1:
        raise unreadable("a draft stands beside a target under decode context parallelism")
    # A draft is not split over the ranks of decode context parallelism: its page is the tree's.
    page, slots = situation.page_size, int(pool.size)
    row = row_bytes(pool) * int(pool.layer_num)
    added = [DevicePool("draft", slots, row, page_size=page, follows="kv", follow_rule=rule)]
    if is_a(pool, "DSATokenToKVPool") and pool.index_k_with_scale_buffer:
        keys = indexer("draft_indexer", pool, page, follows="kv", packed=(), release=situation.release)
        added.append(replace(keys, slots=slots, follow_rule=rule))
    if class_name(draft) == "QSATokenToKVPool":
        groups = page // int(draft.qsa_compress_ratio)
        page_bytes = sum(int(buffer[0].nbytes) * groups for buffer in draft.qsa_compressed_k_buffer_pool)
        keys = DevicePool("draft_indexer", page_size=page, page_bytes=page_bytes, follows="kv")
        added.append(replace(keys, slots=slots, follow_rule=rule))
    return added
