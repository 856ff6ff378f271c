"""SGLang's real host pools after the build: their pages and the bytes of their buffers, and how they meet a plan.

Bytes are those of the tensors themselves, not of SGLang's own account of them. Source: SGLang 0.5.20 to 0.5.23,
mem_cache/pool_host/*.py and memory_pool_host.py (names of the buffers). Must not import torch nor sglang.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ...core.findings import Finding
from ...core.sizes import HostPoolSize
from ...core.units import format_bytes

#: The attributes in which host pools keep what they mirror (staging and bookkeeping have other names).
BUFFERS = (
    "kv_buffer", "k_buffer", "v_buffer", "k_scale_host", "v_scale_host", "temporal_buffer", "conv_buffer",
    "slot_state_buffers", "index_k_with_scale_buffer", "index_k_buffer", "index_k_scale_buffer", "raw",
)  # fmt: skip


@dataclass(frozen=True)
class BuiltPool:
    """One real host pool of this rank."""

    name: str
    pages: int
    bytes: int


def built_pools(tree_cache: Any) -> tuple[BuiltPool, ...] | None:
    """The host pools of a rank, sidecars included; None where the tree has none (HiCache is off, or another tree)."""
    controller = getattr(tree_cache, "cache_controller", None)
    entries = getattr(getattr(controller, "mem_pool_host", None), "entry_map", None)
    if entries is None:
        return None
    return tuple(
        BuiltPool(str(getattr(name, "value", name)), _pages(entry.host_pool), buffer_bytes(entry.host_pool))
        for name, entry in entries.items()
    )


def _pages(pool: Any) -> int:
    for name in ("num_host_pages", "page_num"):
        pages = getattr(pool, name, None)
        if pages is not None:
            return int(pages)
    return int(pool.size) // int(pool.page_size)


def buffer_bytes(pool: Any) -> int:
    """Bytes of memory behind a host pool's buffers; views of the same memory count once."""
    spans = sorted(
        (start, start + int(tensor.numel()) * int(tensor.element_size()))
        for name in BUFFERS
        for tensor in _tensors(getattr(pool, name, None))
        if (start := int(tensor.data_ptr()))
    )
    total, end = 0, 0
    for start, stop in spans:
        total += max(0, stop - max(start, end))
        end = max(end, stop)
    return total


def _tensors(value: Any) -> Iterator[Any]:
    if hasattr(value, "data_ptr"):
        yield value
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _tensors(item)


def differences(planned: Iterable[HostPoolSize], built: Iterable[BuiltPool]) -> list[str]:
    """Where real pools are not the planned ones, each in words; empty when all are."""
    real: Mapping[str, BuiltPool] = {pool.name: pool for pool in built}
    wanted = {pool.name: pool for pool in planned}
    found = [f"{name} was built, which is not in the plan" for name in real if name not in wanted]
    for name, plan in wanted.items():
        pool = real.get(name)
        if pool is None:
            found.append(f"{name} was not built")
            continue
        if pool.bytes == plan.bytes:
            continue
        found.append(
            f"{name} has {pool.pages:,} pages of {format_bytes(pool.bytes)} instead of {plan.pages:,} pages of "
            f"{'unknown' if plan.bytes is None else format_bytes(plan.bytes)}"
        )
    return found


def differ(rank: int, what: Iterable[str]) -> Finding:
    """The error for real pools that are not the planned ones."""
    return Finding(
        "HC455",
        "host-pools-differ-from-plan",
        "error",
        f"rank {rank}: SGLang built other host pools than planned: {'; '.join(what)}",
        "This SGLang sizes them in another way than hicache-config knows. Please report it; start with "
        "HICACHE_CONFIG=check to go on with SGLang's own sizes.",
        argument="hicache_size",
    )
