"""SGLang's live device pools as core's device pools: what a rank has on its accelerator, and what its mirror costs.

Classes are told by name along their ancestry, so that nothing of SGLang is imported here and a subclass that is not
known is refused instead of taken for its parent. Source: SGLang 0.5.20 to 0.5.23, mem_cache/memory_pool.py,
swa_memory_pool.py, qsa_kv_pool.py, deepseek_v4_memory_pool.py (device side) and hybrid_cache/hybrid_pool_assembler.py,
pool_host/*.py (what each mirror allocates). Must not import torch nor sglang.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import prod
from typing import Any

from ...core.findings import ConfigurationError, Finding
from ...core.pools import DevicePool
from ...core.releases import Release


def unreadable(what: str) -> ConfigurationError:
    """These pools can't be planned: every rank leaves their sizes to SGLang (the caller decides, see building)."""
    return ConfigurationError(
        [
            Finding(
                "HC453",
                "pools-not-readable",
                "error",
                f"{what}, whose host pools hicache-config does not plan",
                "SGLang sizes them as it would alone; --hicache-size is no total here.",
                argument="hicache_size",
            )
        ]
    )


def class_name(pool: Any) -> str:
    """The name of the pool's own class."""
    return type(pool).__name__


def is_a(pool: Any, *names: str) -> bool:
    """Whether one of the pool's classes, its own or an ancestor, has one of these names."""
    return any(cls.__name__ in names for cls in type(pool).__mro__)


# --- one pool -----------------------------------------------------------------------------------------------------

#: Classes whose mirror's row is the one computed below. Their subclasses lay rows out differently.
_MHA = ("MHATokenToKVPool", "MHATokenToKVPoolMXFP8")
_MLA = ("MLATokenToKVPool", "DSATokenToKVPool")


def row_bytes(pool: Any) -> int:
    """Host bytes of one slot in one layer of an MHA or MLA pool, on this rank."""
    kind = class_name(pool)
    if kind in _MLA:
        return int(pool.kv_cache_dim) * int(pool.store_dtype.itemsize)
    if kind not in _MHA:
        raise unreadable(f"the device pool is a {kind}")
    payload = (int(pool.head_dim) + int(pool.v_head_dim)) * int(pool.head_num) * int(pool.store_dtype.itemsize)
    if kind == "MHATokenToKVPoolMXFP8":
        scales = [pool.k_scale_buffer, pool.v_scale_buffer]
        if not all(scales):
            raise unreadable("an MXFP8 pool has no layer to read its scales from")
        payload += sum(int(buffers[0][0].numel()) for buffers in scales) // int(pool.page_size)
    return payload


def capacity(pool: Any) -> int:
    """The device slots that a ratio is applied to (0.5.23, assembler: host_capacity_tokens, else size)."""
    tokens = getattr(pool, "host_capacity_tokens", None)
    return int(pool.size if tokens is None else tokens)


def weight(pool: Any) -> int:
    """The device bytes that count in SGLang's split of a size (0.5.23, assembler: _split_hicache_size)."""
    counted = getattr(pool, "host_capacity_bytes", None)
    if counted is None:
        counted = pool.get_kv_size_bytes()
    return int(sum(counted)) if isinstance(counted, tuple) else int(counted)


def kv_pool(name: str, pool: Any, page_size: int, drafts: Sequence[Any] = ()) -> DevicePool:
    """An independent pool of token rows; packed `drafts` add their layers to each row."""
    row = row_bytes(pool)  # first: it refuses a class that is not known
    return DevicePool(
        name,
        capacity(pool),
        row * (int(pool.layer_num) + len(drafts)),
        page_size=page_size,
        device_bytes=weight(pool),
        packed_bytes=tuple(weight(draft) for draft in drafts),
    )


def indexer(
    name: str, pool: Any, page_size: int, *, follows: str, packed: Sequence[Any], release: Release
) -> DevicePool:
    """The index keys of a DSA pool: pages of its leader and one more.

    Layers that share their top-k own none; before 0.5.22 the mirror has a layer for each of them all the same.
    """
    element = int(pool.index_head_dim)
    row = element + element // int(pool.quant_block_size) * 4
    index_page = int(getattr(pool, "index_page_size", 0) or pool.page_size)
    per_token = row * index_page // int(pool.page_size)
    owned = [layer for layer, shared in enumerate(getattr(pool, "skip_topk_layers", ())) if not shared]
    layers = len(owned) if release.at_least("0.5.22") else int(pool.layer_num)
    return DevicePool(
        name,
        bytes_per_slot=per_token * (layers + len(packed)),
        page_size=page_size,
        follows=follows,
        extra_pages=1,
    )


def has_indexer(pool: Any, release: Release) -> bool:
    """Whether SGLang mirrors index keys of this pool."""
    if not is_a(pool, "DSATokenToKVPool"):
        return False
    if not release.at_least("0.5.22"):
        return True
    return bool(pool.index_k_with_scale_buffer) and not all(pool.skip_topk_layers)


def mamba(pool: Any, drafts: Sequence[Any] = ()) -> DevicePool:
    """Request states of linear-attention layers: one slot is one state over all layers, drafts' layers included."""
    if class_name(pool) != "MambaPool":
        raise unreadable(f"the state pool is a {class_name(pool)}")
    state = pool.mamba_cache
    layers = int(state.temporal.shape[0]) + len(drafts)
    per_layer = sum(_slot_bytes(conv, 2) for conv in state.conv) + _slot_bytes(state.temporal, 2)
    beside = sum(_slot_bytes(buffer, 1) for one in (pool, *drafts) for buffer in _extra_state(one))
    return DevicePool("mamba", capacity(pool), per_layer * layers + beside, device_bytes=weight(pool))


def _slot_bytes(tensor: Any, axes: int) -> int:
    """Bytes behind the leading axes of a tensor."""
    return prod(int(length) for length in tensor.shape[axes:]) * int(tensor.dtype.itemsize)


def _extra_state(pool: Any) -> Iterable[Any]:
    """Buffers that share a state's slot and have no layer axis (since 0.5.22)."""
    if not hasattr(pool, "get_device_pool_infos"):
        return ()
    (info,) = pool.get_device_pool_infos()
    return tuple(getattr(info.buffer_info, "extra_checkpoint_buffers", ()))
