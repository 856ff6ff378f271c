"""Stand-ins for SGLang's objects, for tests that run without it: only what the plugin reads, with SGLang's class names.

What they look like in truth is tested by the tests marked `live`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import prod
from types import SimpleNamespace
from typing import Any


@dataclass(frozen=True)
class Kind:
    """A dtype."""

    itemsize: int


BF16, BYTE, FP32 = Kind(2), Kind(1), Kind(4)


class Tensor:
    """A shape and an element size; memory at an address where one is given."""

    def __init__(self, *shape: int, dtype: Kind = BF16, at: int = 0) -> None:
        self.shape, self.dtype, self.at = shape, dtype, at

    def numel(self) -> int:
        return prod(self.shape)

    def element_size(self) -> int:
        return self.dtype.itemsize

    def data_ptr(self) -> int:
        return self.at

    @property
    def nbytes(self) -> int:
        return self.numel() * self.dtype.itemsize

    def __getitem__(self, index: int) -> Tensor:
        return Tensor(*self.shape[1:], dtype=self.dtype, at=self.at)


def pool(class_name: str, *bases: type, **attributes: Any) -> Any:
    """An object whose class has SGLang's name."""
    made = type(class_name, bases or (object,), {})()
    vars(made).update(attributes)
    return made


def mha(layers: int, *, slots: int = 1000, page: int = 16, heads: int = 2, dim: int = 16, **more: Any) -> Any:
    size = (slots + page) * heads * dim * 2 * 2 * layers
    return pool(
        "MHATokenToKVPool", size=slots, page_size=page, layer_num=layers, head_num=heads, head_dim=dim, v_head_dim=dim,
        store_dtype=BF16, get_kv_size_bytes=lambda: (size // 2, size // 2), **more,
    )  # fmt: skip


def mla(layers: int, *, slots: int = 1000, page: int = 16, width: int = 576, dtype: Kind = BF16, **more: Any) -> Any:
    size = (slots + page) * width * dtype.itemsize * layers
    return pool(
        "MLATokenToKVPool", size=slots, page_size=page, layer_num=layers, kv_cache_dim=width, store_dtype=dtype,
        get_kv_size_bytes=lambda: size, **more,
    )  # fmt: skip


Latent = type("MLATokenToKVPool", (), {})


def dsa(layers: int, *, shared: tuple[int, ...] = (), slots: int = 1000, page: int = 64, **more: Any) -> Any:
    plain = mla(layers, slots=slots, page=page)
    given = {**vars(plain), "index_head_dim": 128, "quant_block_size": 128, "index_page_size": page,
             "skip_topk_layers": [layer in shared for layer in range(layers)],
             "index_k_with_scale_buffer": [Tensor(4, 8448, dtype=BYTE)] * layers, **more}  # fmt: skip
    return pool("DSATokenToKVPool", Latent, **given)


def swa(full: int, sliding: int, *, slots: int = 1000, swa_slots: int = 800, page: int = 16, **more: Any) -> Any:
    parts = {"full_kv_pool": mha(full, slots=slots, page=page), "swa_kv_pool": mha(sliding, slots=swa_slots, page=page)}
    return pool("SWAKVPool", type("BaseSWAKVPool", (), {}), size=slots, page_size=page, **parts, **more)


def states(layers: int, *, slots: int = 16) -> Any:
    cache = SimpleNamespace(
        conv=[Tensor(layers, slots + 1, 96, 3), Tensor(layers, slots + 1, 32, 3)],
        temporal=Tensor(layers, slots + 1, 4, 16, 16, dtype=FP32),
    )
    return pool("MambaPool", size=slots, mamba_cache=cache, get_kv_size_bytes=lambda: 1_000_000)


#: Bytes of one state of `states` in one layer.
STATE_BYTES = (96 * 3 + 32 * 3) * 2 + 4 * 16 * 16 * 4


@dataclass
class Memory:
    """SGLang's memory settings of a process."""

    hicache_size: float = 0
    hicache_ratio: float = 2.0
    radix_cache_backend: str | None = None
    enable_unified_memory: bool = False


@dataclass
class Process:
    """One scheduler process as the plugin sees it through sglang.srt.runtime_context."""

    memory: Memory = field(default_factory=Memory)
    pp_rank: int = 0
    pp_size: int = 1
    retraction: str | None = None
    group: Any = None

    @property
    def parallel(self) -> Any:
        return SimpleNamespace(
            pp_rank=self.pp_rank, pp_size=self.pp_size, dcp_enabled=False, attn_dcp_size=1, world_group=self.group
        )

    @property
    def context(self) -> Any:
        def override(source: str, **fields: Any) -> None:
            vars(self.memory).update(fields)

        return SimpleNamespace(override=override)


def tree_context(kvcache: Any, *, page: int = 16, beside: Any = None, swa_model: bool = False, **more: Any) -> Any:
    """SGLang's TreeCacheBuildContext, as far as the plugin reads it."""
    params = SimpleNamespace(
        token_to_kv_pool_allocator=SimpleNamespace(get_kvcache=lambda: kvcache),
        req_to_token_pool=SimpleNamespace(mamba_pool=beside), page_size=page,
        mtp_draft_device_pools=more.get("packed", ()), mtp_draft_mamba_pools=(),
    )  # fmt: skip
    return SimpleNamespace(
        params=params, enable_hierarchical_cache=more.get("enabled", True), is_hybrid_swa=swa_model,
        is_hybrid_ssm=beside is not None, full_tokens_per_layer=more.get("full_tokens", 1000),
    )  # fmt: skip
