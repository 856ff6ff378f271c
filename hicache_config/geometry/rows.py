"""Bytes of a slot in one layer, and what SGLang counts for a device pool. Pure arithmetic.

A device pool has one page of padding beyond its slots, a state pool one state (SGLang 0.5.23, memory_pool.py).
Must not import anything above this floor.
"""

from __future__ import annotations

from .attention import Heads, Latent
from .settle import Settings

#: Block of values that share a scale in mxfp8 (0.5.23, memory_pool.py:MHATokenToKVPoolMXFP8).
MXFP8_BLOCK = 32
#: Values that share a scale of 4 bytes in a scaled row of sparse attention, and in index keys.
_SCALE_BLOCK = 128


def heads_row(shape: Heads, settings: Settings) -> int:
    """Bytes of keys and values of one slot in one layer; `shape.count` is the KV heads of a rank.

    mxfp8 has one scale byte for 32 values beside them.
    """
    values = shape.count * (shape.key + shape.value)
    if settings.kv_type == "mxfp8":
        return values + shape.count * (shape.key // MXFP8_BLOCK + shape.value // MXFP8_BLOCK)
    return values * settings.item_bytes


def latent_row(shape: Latent, settings: Settings) -> int:
    """Bytes of MLA's latent of one slot in one layer."""
    return shape.width * settings.item_bytes


def sparse_row(shape: Latent, settings: Settings) -> int:
    """Bytes of the latent of sparse attention: as MLA's, or with scales and an unquantised rope part (512 -> 656).

    Source: 0.5.23, kv_cache_configurator.py:calculate_mla_kv_cache_dim.
    """
    if settings.scaled_row:
        return shape.rank + shape.rank // _SCALE_BLOCK * 4 + shape.rope * 2
    return latent_row(shape, settings)


def index_page(width: int, pooled: int, page_size: int) -> int:
    """Bytes of the index keys of one page in one layer: a byte a value and a scale of 4 bytes for 128 of them.

    `pooled` slots share a key (0.5.23, memory_pool.py:IndexKeyCache).
    """
    return page_size // pooled * (width + width // _SCALE_BLOCK * 4)


def pool_bytes(slots: int | None, row: int, padding: int) -> int | None:
    """Device bytes of a pool with its padding; None where the slots are not known."""
    return None if slots is None else (slots + padding) * row
