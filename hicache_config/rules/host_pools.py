"""Which pairs of layout and io backend each kind of host pool can be built and moved with.

Source: SGLang 0.5.23, the branches of mem_cache/pool_host/*.py and mem_cache/memory_pool_host.py.
Must not import anything above this floor.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import Enum

from ..core.releases import Release
from .case import Case


class Pool(Enum):
    """Kinds of host pools; the value is what a reader calls them."""

    MHA = "keys and values"
    ASYMMETRIC = "keys and values of different widths"
    MXFP8 = "mxfp8 keys and values"
    MLA = "latent rows"
    INDEXER = "index keys"
    MAMBA = "Mamba states"
    V4 = "DeepSeek V4's pages and states"
    ENVELOPE = "pages of unified memory"

    @property
    def words(self) -> str:
        """What a reader calls it."""
        return self.value


_ROWS = (
    ("layer_first", "kernel"),
    ("page_first", "kernel"),
    ("layer_first", "direct"),
    ("page_first_direct", "direct"),
)
_BY_PAGE = tuple(
    (layout, io) for layout in ("page_first", "page_first_direct") for io in ("kernel", "direct", "kernel_ascend")
)

#: The pairs that work, by pool.
MATRIX: dict[Pool, frozenset[tuple[str, str]]] = {
    Pool.MHA: frozenset({*_ROWS, ("page_head", "kernel"), ("page_first_direct", "kernel_ascend")}),
    Pool.ASYMMETRIC: frozenset({("page_first", "kernel"), ("page_first_direct", "direct")}),
    Pool.MXFP8: frozenset({("page_first", "kernel")}),
    Pool.MLA: frozenset({*_ROWS, ("page_first_kv_split", "kernel_ascend")}),
    Pool.INDEXER: frozenset(_ROWS),
    Pool.MAMBA: frozenset(_BY_PAGE),
    Pool.V4: frozenset(
        {*_ROWS, *((layout, "kernel_ascend") for layout in ("layer_first", "page_first", "page_first_direct"))}
    ),
    Pool.ENVELOPE: frozenset({*_ROWS, ("page_first_direct", "kernel")}),
}

#: Layouts that a pool can be built with at all; with another one SGLang stops when it builds the pool.
BUILT: dict[Pool, frozenset[str]] = {
    Pool.MHA: frozenset({"layer_first", "page_first", "page_first_direct", "page_head"}),
    Pool.ASYMMETRIC: frozenset({"page_first", "page_first_direct"}),
    Pool.MXFP8: frozenset({"page_first"}),
    Pool.MLA: frozenset({"layer_first", "page_first", "page_first_direct"}),
    Pool.INDEXER: frozenset({"layer_first", "page_first", "page_first_direct"}),
    Pool.MAMBA: frozenset({"page_first", "page_first_direct"}),
    Pool.V4: frozenset({"layer_first", "page_first", "page_first_direct"}),
    Pool.ENVELOPE: frozenset({"layer_first", "page_first", "page_first_direct"}),
}


def main_pools_of_any_model() -> tuple[Pool, ...]:
    """The pools of which every model has at least one."""
    return (Pool.MHA, Pool.MLA, Pool.V4, Pool.ENVELOPE)


def pools_of(case: Case) -> tuple[Pool, ...] | None:
    """The kinds of host pools that the case's model will have, None where the model is not known."""
    traits = case.traits
    if traits is None:
        return None
    if traits.v4:
        return (Pool.V4,)
    if case.raw("enable_unified_memory") and traits.sliding:
        return (Pool.ENVELOPE,)
    kv_type = case.resolved("kv_cache_dtype")
    if traits.latent:
        main: tuple[Pool, ...] = (Pool.MLA, Pool.INDEXER) if traits.sparse else (Pool.MLA,)
    elif kv_type == "mxfp8":
        main = (Pool.MXFP8,)
    elif traits.asymmetric:
        main = (Pool.ASYMMETRIC,)
    else:
        main = (Pool.MHA, Pool.INDEXER) if traits.m3 else (Pool.MHA,)
    return (*main, Pool.MAMBA) if traits.linear else main


def why_not(release: Release, pool: Pool, layout: str, io_backend: str) -> str | None:
    """ "build" or "move" for what fails with a pair, None for a pair that works."""
    if pool is Pool.MAMBA and layout == "page_first_kv_split":
        layout = "page_first_direct"  # SGLang maps it for the states beside latent rows
    ascend = io_backend == "kernel_ascend"
    if layout not in _built(release, pool) and not (ascend and pool is Pool.MLA and layout == "page_first_kv_split"):
        return "build"
    return None if (layout, io_backend) in MATRIX[pool] else "move"


def _built(release: Release, pool: Pool) -> frozenset[str]:
    if pool is Pool.MAMBA and release.name in ("0.5.14", "0.5.15"):
        return frozenset({"page_first_direct"})
    return BUILT[pool]


def best_pair(release: Release, pools: Iterable[Pool], io_backend: str) -> tuple[str, str]:
    """A pair that works for all of the pools, with the same io backend where there is one; else the default pair."""
    wanted: Sequence[tuple[str, str]] = (
        ("page_first", "kernel"),
        ("page_first_direct", "direct"),
        ("layer_first", "kernel"),
    )
    ordered = sorted(wanted, key=lambda pair: pair[1] != io_backend)
    listed = list(pools)
    for layout, io in ordered:
        if all(why_not(release, pool, layout, io) is None for pool in listed):
            return layout, io
    return wanted[0]
