"""Device pools from their geometry: keys and values, latents, index keys, states. Pure arithmetic, one rank of a stage.

A device pool has a page of padding beyond its slots, a state pool one state; SGLang counts them where it splits a
size (0.5.23, mem_cache/memory_pool.py: get_kv_size_bytes). Packed draft layers are in the rows of the host pool but
not in that weight. Must not import anything above this floor.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ..core.pools import DevicePool

#: Bytes of one stored value by KV type. mxfp8 has scales beside its values.
ITEM_BYTES: Mapping[str, int] = {
    "float32": 4, "float16": 2, "bfloat16": 2, "fp8_e4m3": 1, "fp8_e5m2": 1, "mxfp8": 1,
}  # fmt: skip
#: Values that share a scale byte in mxfp8 (0.5.23, memory_pool.py:MHATokenToKVPoolMXFP8).
MXFP8_BLOCK = 32
#: Values that share a scale of 4 bytes in a scaled row of sparse attention and in index keys.
_SCALE_BLOCK = 128


@dataclass(frozen=True)
class Heads:
    """Keys and values of one attention layer: KV heads, width of a key, width of a value."""

    count: int
    key: int
    value: int


@dataclass(frozen=True)
class Latent:
    """Widths of MLA's row: `rank` of the compressed part, `rope` of the part with positions."""

    rank: int
    rope: int


@dataclass(frozen=True)
class Store:
    """How KV is kept: its type, slots of a page, and whether an fp8 row of sparse attention holds its scales."""

    kv_type: str
    page_size: int
    scaled_row: bool = False


# --- keys and values ----------------------------------------------------------------------------------------------


def heads_row(shape: Heads, store: Store) -> int:
    """Bytes of keys and values of one slot in one layer; mxfp8 has a scale byte for 32 values beside them."""
    values = shape.count * (shape.key + shape.value)
    if store.kv_type == "mxfp8":
        return values + shape.count * (shape.key // MXFP8_BLOCK + shape.value // MXFP8_BLOCK)
    return values * ITEM_BYTES[store.kv_type]


def heads_pool(name: str, shape: Heads, store: Store, layers: int, slots: int | None, *, packed: int = 0) -> DevicePool:
    """A pool of keys and values over `layers` of the stage and `packed` draft layers of the same row."""
    return _token_pool(name, heads_row(shape, store), store, layers, slots, packed=packed)


def _token_pool(
    name: str,
    row: int,
    store: Store,
    layers: int,
    slots: int | None,
    *,
    packed: int,
    index_bytes: int = 0,
    draft_index_bytes: int = 0,
) -> DevicePool:
    """A pool of rows. Each packed draft has a device pool of one layer of its own, with the slots of the model's."""
    layer_bytes = None if slots is None else (slots + store.page_size) * row
    return DevicePool(
        name,
        slots=slots,
        bytes_per_slot=row * (layers + packed),
        page_size=store.page_size,
        device_bytes=None if layer_bytes is None else layer_bytes * layers + index_bytes,
        packed_bytes=() if layer_bytes is None else (layer_bytes + draft_index_bytes,) * packed,
    )


# --- latents and index keys ---------------------------------------------------------------------------------------


def latent_row(shape: Latent, store: Store) -> int:
    """Bytes of the latent of one slot in one layer.

    With scales in the row (512 + 64 values: 656 bytes instead of 576) the rope part is not quantised.
    Source: 0.5.23, kv_cache_configurator.py:calculate_mla_kv_cache_dim.
    """
    if store.scaled_row:
        return shape.rank + shape.rank // _SCALE_BLOCK * 4 + shape.rope * 2
    return (shape.rank + shape.rope) * ITEM_BYTES[store.kv_type]


def latent_pool(
    name: str,
    shape: Latent,
    store: Store,
    layers: int,
    slots: int | None,
    *,
    packed: int = 0,
    index_bytes: int = 0,
    draft_index_bytes: int = 0,
) -> DevicePool:
    """A pool of latents; `index_bytes` are those of index keys beside it, which SGLang counts in its weight.

    `draft_index_bytes` are those of one packed draft layer.
    """
    row = latent_row(shape, store)
    return _token_pool(
        name, row, store, layers, slots, packed=packed, index_bytes=index_bytes, draft_index_bytes=draft_index_bytes
    )


@dataclass(frozen=True)
class IndexKeys:
    """Index keys of sparse attention: `width` values a key, `pooled` slots that share one."""

    width: int = 128
    pooled: int = 1

    def page_bytes(self, page_size: int) -> int:
        """Bytes of one page in one layer: a byte a value, and a scale of 4 bytes for 128 of them."""
        return page_size // self.pooled * (self.width + self.width // _SCALE_BLOCK * 4)

    def device_bytes(self, owners: int, slots: int | None, page_size: int) -> int:
        """What the index keys of `owners` layers take on the device (0.5.23, memory_pool.py:IndexKeyCache)."""
        return 0 if slots is None else (slots + page_size + 1) // page_size * self.page_bytes(page_size) * owners


def index_pool(keys: IndexKeys, store: Store, owners: int, slots: int | None, *, packed: int = 0) -> DevicePool:
    """The pool of index keys of the layers that own some; it follows kv, and its buffer has one page more.

    Source: 0.5.23, mem_cache/pool_host/dsa.py.
    """
    page = keys.page_bytes(store.page_size) * (owners + packed)
    whole = page % store.page_size == 0
    return DevicePool(
        "indexer",
        slots=slots,
        bytes_per_slot=page // store.page_size if whole else None,
        page_size=store.page_size,
        follows="kv",
        extra_pages=1,
        page_bytes=None if whole else page,
    )


# --- states -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class State:
    """The state of one linear layer on one rank.

    `conv` are the values of each part of the convolution window, `temporal` those of the recurrent state, each with
    its type. `heads`, `value`, `key` and `key_heads` are the shape of the recurrent state, `per_key` whether its gate
    is a vector (KDA); they count where states are replayed.
    """

    conv: tuple[int, ...]
    temporal: int
    conv_type: str = "bfloat16"
    temporal_type: str = "float32"
    heads: int = 0
    value: int = 0
    key: int = 0
    key_heads: int = 0
    per_key: bool = False

    @property
    def conv_bytes(self) -> int:
        """Bytes of the convolution window."""
        return sum(self.conv) * ITEM_BYTES[self.conv_type]

    @property
    def temporal_bytes(self) -> int:
        """Bytes of the recurrent state."""
        return self.temporal * ITEM_BYTES[self.temporal_type]

    @property
    def bytes(self) -> int:
        """Bytes of one state in one layer."""
        return self.conv_bytes + self.temporal_bytes


@dataclass(frozen=True)
class Drafting:
    """Speculative states on the device: `requests` at once, with `tokens` draft tokens each."""

    requests: int
    tokens: int
    keeps_temporal: bool = True


def state_pool(
    state: State, layers: int, slots: int | None, drafting: Drafting | None = None, ring_bytes: int = 0
) -> DevicePool:
    """The pool of states over `layers` linear layers. Its weight has a padding state, the speculative states and
    `ring_bytes` of replay rings, which the host does not mirror (0.5.23, memory_pool.py:MambaPool.State)."""
    weight = None
    if slots is not None:
        weight = (slots + 1) * state.bytes * layers + ring_bytes
        if drafting is not None:
            kept = state.conv_bytes + (state.temporal_bytes if drafting.keeps_temporal else 0)
            weight += (drafting.requests + 1) * drafting.tokens * kept * layers
    return DevicePool("mamba", slots=slots, bytes_per_slot=state.bytes * layers, page_size=1, device_bytes=weight)


def replay_bytes(state: State, layers: int, entries: int, length: int, *, verifying: bool) -> int:
    """Bytes of replay rings of `length` records for `entries` states or requests.

    `verifying`: rings for speculative verification instead of decoding. Source: 0.5.23, memory_pool.py:MambaPool.
    """
    ring = ITEM_BYTES[state.conv_type if verifying else state.temporal_type]
    records = state.heads * length * state.value + state.key_heads * length * state.key
    total = records * ring + state.heads * length * (state.key if state.per_key else 1) * 4
    if verifying and (state.per_key or state.conv_type != "float32"):
        total += records * ITEM_BYTES[state.conv_type]
        if state.per_key:
            total += state.heads * length * 4
    return total * entries * layers
