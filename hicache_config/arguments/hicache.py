"""The HiCache block of the server arguments. Source: SGLang 0.5.23, arg_groups/fields/memory.py and hicache_hook.py.

Must not import anything above this floor.
"""

from typing import Any

from ..core.capacity import Capacity, DeviceRatio, HostFraction, TotalSize
from .fields import ArgumentBlock, Choice, Integer, Number, Switch, WholeNumber, argument


def default_ratio(host_memory_mode: str) -> float:
    """The ratio that SGLang takes where none is given (not on a decode server, which settles it later)."""
    return 1.2 if host_memory_mode == "buffer_only" else 2.0


def in_force(size: int, ratio: float, fraction: float | None) -> Capacity:
    """What decides the sizes: a positive size (GB), else the ratio, lowered where a share of free memory counts too."""
    if size > 0:
        return TotalSize(size)
    return DeviceRatio(ratio) if fraction is None else HostFraction(fraction, ratio)


class HiCacheArgs(ArgumentBlock):
    """Arguments of the hierarchical cache itself."""

    enable_hierarchical_cache: Switch = argument(
        False,
        "Keep a second copy of the KV cache in host memory (HiCache). Without it the other HiCache values are never read.",
    )
    hicache_size: WholeNumber = argument(
        0,
        "Host memory of the hierarchical cache. SGLang counts it per rank, not per machine, and lets the sparse indexer, "
        "separate drafts and one padding page a pool come on top. 0 means not set; a positive size overrides hicache_ratio.",
        unit="GB (10**9 bytes)",
        scope="per rank",
        ge=0,
        examples=[100],
    )
    hicache_ratio: Number | None = argument(
        None,
        "Host slots per device slot, for every independent pool. Not set: 2.0 (1.2 in mode buffer_only), lowered until it "
        "fits into hicache_host_memory_fraction.",
        unit="host slots per device slot",
        scope="per rank",
        gt=0,
        examples=[2.0],
    )
    hicache_host_memory_fraction: Number | None = argument(
        0.8,
        "Share of the host's available memory, after a reserve of 10 GiB, that all ranks of a host may take together. "
        "Only in force when neither hicache_size nor hicache_ratio is given.",
        unit="fraction, above 0 and at most 1",
        scope="per host",
        gt=0,
        le=1,
        examples=[0.8],
    )
    hicache_host_memory_mode: Choice = argument(
        "cache", "cache: host memory is a tier of its own; buffer_only: it only stages transfers to a storage backend."
    )
    hicache_write_policy: Choice = argument(
        "write_through",
        "When device pages are copied to the host: at once, at once when they were hit, or on eviction (write_back).",
    )
    hicache_io_backend: Choice = argument(
        "kernel", "What moves pages between host and device: GPU kernels or direct copies."
    )
    hicache_mem_layout: Choice = argument(
        "page_first",
        "How host memory is laid out. Not every host pool can be built with every layout, nor moved by every io backend.",
    )
    hicache_storage_backend: Choice | None = argument(
        None, "A third tier behind host memory. It implies its own layouts and settings."
    )
    hicache_storage_prefetch_policy: Choice = argument(
        "timeout", "How long a request waits for pages to come from the storage backend."
    )
    hicache_storage_backend_extra_config: str | dict[str, Any] | None = argument(
        None,
        "Settings of the storage backend: JSON text, or @ and the path of a JSON, TOML or YAML file. A mapping is read here "
        "too, but SGLang's own command line takes text only.",
        examples=['{"prefetch_threshold": 256}', "@hicache.json"],
    )
    hicache_storage_prefetch_retry_poll_interval: Integer = argument(
        8,
        "Scheduler passes between two looks for pages that a prefetch missed; 0 turns retries of misses off.",
        unit="passes",
        ge=0,
    )
    hicache_storage_prefetch_retry_max_attempts: Integer = argument(
        8, "How often a prefetch is started again; 0 turns that off.", unit="attempts", ge=0
    )
