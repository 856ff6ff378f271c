"""DeepSeek V4's device pools: pages of several kinds that follow the full and the sliding-window pages.

SGLang counts them as `int(device_pages * ratio)`, without an added page, and refuses a size, so a size is enforced as
the ratio that it equals. Source: SGLang 0.5.20 to 0.5.23, hybrid_pool_assembler.py (build_deepseek_v4_hicache_stack)
and memory_pool_host.py. Must not import torch nor sglang.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...core.pools import DevicePool
from .device_pools import unreadable
from .families import Situation


def read_v4(situation: Situation) -> tuple[DevicePool, ...]:
    """The pools of a DeepSeek V4 rank on a GPU: `kv` holds no bytes itself and gives its pages to the others."""
    cache, page = situation.kvcache, situation.page_size
    if getattr(cache, "_unified_kv", False):
        raise unreadable("DeepSeek V4 with a unified KV layout")
    if getattr(situation.allocator, "c128_attn_allocator", None) is not None:
        raise unreadable("DeepSeek V4 with a C128 pool of its own size (NPU)")
    if getattr(cache, "swa_kv_pool", None) is None:
        raise unreadable("DeepSeek V4 without a sliding-window pool")
    if situation.sidecar:
        raise unreadable("DeepSeek V4 with a draft beside it")
    full = int(getattr(situation.allocator, "size_full", cache.size))
    pools = [DevicePool("kv", full, 0, page_size=page, page_rule="whole"), _window(situation)]
    local = cache.layer_mapping[cache.start_layer : cache.end_layer]
    c4 = [cache.start_layer + index for index, item in enumerate(local) if item.compress_ratio == 4]
    if c4:
        pools.append(
            _follower("deepseek_v4_c4", cache.c4_kv_pool.bytes_per_page_padded, cache.c4_kv_pool.kv_buffer, page)
        )
        pools += _c4_indexer(cache.c4_indexer_kv_pool, page)
        pools += [
            _states("deepseek_v4_c4_state", [cache.compress_state_pools[layer] for layer in c4], cache),
            _states("deepseek_v4_c4_indexer_state", [cache.indexer_compress_state_pools[layer] for layer in c4], cache),
        ]
    if any(item.compress_ratio == 128 for item in local):
        c128 = cache.c128_kv_pool
        pools.append(_follower("deepseek_v4_c128", c128.bytes_per_page_padded, c128.kv_buffer, page))
    for ratio in (1, 2):
        if getattr(cache, "sources_by_ratio", {}).get(ratio):
            pools += _shared_sources(cache, ratio, page)
    return tuple(pools)


def _shared_sources(cache: Any, ratio: int, page: int) -> list[DevicePool]:
    """Rows of source layers that other layers share (V4.1), with the index keys of each: full pages."""
    rows, index = cache.kv_pools[ratio], cache.index_pools[ratio]
    index_pages = page // ratio // int(index.page_size)
    name = f"deepseek_v4_c{ratio}"
    fused = index.index_k_with_scale_buffer
    keys = [("indexer", fused)]
    if fused is None:
        keys = [("indexer", index.index_k_payload_buffer), ("indexer_scale", index.index_k_scale_buffer)]
    return [
        _follower(name, _row(rows.kv_buffer[0]), rows.kv_buffer, page),
        *(_follower(f"{name}_{part}", _row(buffers[0]) * index_pages, buffers, page) for part, buffers in keys),
    ]


def _window(situation: Situation) -> DevicePool:
    cache = situation.kvcache
    layers = len(cache.swa_kv_pool.kv_buffer) + sum(len(draft.swa_kv_pool.kv_buffer) for draft in situation.packed)
    return DevicePool(
        "swa",
        int(cache.swa_size),
        page_size=int(cache.swa_page_size),
        page_bytes=int(cache.swa_kv_pool.bytes_per_page_padded) * layers,
        page_rule="whole",
    )


def _c4_indexer(pool: Any, page: int) -> list[DevicePool]:
    fused = pool.index_k_with_scale_buffer
    if fused is not None:
        return [_follower("deepseek_v4_c4_indexer", _row(fused[0]), fused, page)]
    payload, scale = pool.index_k_payload_buffer, pool.index_k_scale_buffer
    return [
        _follower("deepseek_v4_c4_indexer", _row(payload[0]), payload, page),
        _follower("deepseek_v4_c4_indexer_scale", _row(scale[0]), scale, page),
    ]


def _row(buffer: Any) -> int:
    """Bytes of one page row."""
    return int(buffer[0].numel()) * int(buffer.dtype.itemsize)


def _follower(name: str, item_bytes: int, buffers: Sequence[Any], page: int) -> DevicePool:
    return DevicePool(name, page_size=page, page_bytes=int(item_bytes) * len(buffers), follows="kv")


def _states(name: str, pools: Sequence[Any], cache: Any) -> DevicePool:
    page_bytes = sum(int(pool.ring_size) * int(pool.kv_score_buffer.kv_score[0].nbytes) for pool in pools)
    return DevicePool(name, page_size=int(cache.swa_page_size), page_bytes=page_bytes, follows="swa")
