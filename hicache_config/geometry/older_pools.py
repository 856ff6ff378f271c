"""Host pools as older releases build them from the pools that the newest has: a function of pools and release alone.

Held against the real constructors of every release from 0.5.10 to 0.5.22 (tests/recorded/older-*.jsonl.gz). Must not
import anything above this floor.
"""

from __future__ import annotations

from dataclasses import replace

from ..core.pools import DevicePool
from ..core.releases import Release

#: The first release with host pools of drafts, with drafts packed into the model's rows and sparse or sliding drafts
#: beside it, with that packing for plain pools too, and with a draft's host pool that takes its leader's pages.
DRAFTS, PACKED, PACKED_PLAIN, DRAFT_PAGES = "0.5.11", "0.5.18", "0.5.19", "0.5.23"
#: The first release whose index keys have a host pool of their own, whose layers may share the keys of another, and
#: whose host pool then holds the owning layers alone.
KEYS_APART, KEYS_SHARED, KEYS_OWNED = "0.5.11", "0.5.18", "0.5.22"
#: Families of the reference whose pools were compared with older releases' constructors, and the oldest of these.
COMPARED = {
    "dense": "0.5.10",
    "mla": "0.5.10",
    "dsa": "0.5.10",
    "linear": "0.5.10",
    "drafts": "0.5.11",
    "swa": "0.5.12",
    "mamba_swa": "0.5.16",
    "packed drafts": "0.5.18",
}
#: The oldest release whose own configuration and pools of whole models were compared, and the families of these.
WHOLE_MODELS = "0.5.21"
RUN_WHOLE = frozenset({"dense", "mla", "dsa", "linear", "swa", "deepseek_v4"})
_DRAFT_POOLS = frozenset({"draft", "draft_indexer", "draft_swa"})


def as_built(release: Release, pools: list[DevicePool], row: int = 0, bare: int = 0) -> list[DevicePool]:
    """The pools of a stage with what a release builds otherwise.

    `row` are the bytes of kv in one layer on the device where a row of latents holds its scales, `bare` those without.
    0.5.11 kept room for bare rows alone (attach_hybrid_nsa_pool_to_hiradix_cache); so did 0.5.20 and 0.5.21 for linear
    hybrids with sparse attention, whose index keys they left out (build_hybrid_mamba_stack).

    Up to 0.5.10 a slot of kv held its index keys too and drafts had no host pool (memory_pool_host.py:
    NSATokenToKVPoolHost). Up to 0.5.17 a draft's index keys and sliding layers had none (kv_cache_builder.py:
    maybe_register_hicache_draft). Up to 0.5.22 a draft beside the model took kv's slots through a float ratio, its
    index keys with it: mostly one page more than kv (hybrid_pool_assembler.py:build_full_draft_pools).
    """
    is_hybrid = {"indexer", "mamba"} <= {pool.name for pool in pools}
    forgets_keys = is_hybrid and not release.at_least(KEYS_OWNED)
    if row and (forgets_keys or release.name == "0.5.11"):
        pools = [_with_bare_rows(pool, row, bare) if pool.name == "kv" else pool for pool in pools]
    if forgets_keys:
        pools = [pool for pool in pools if pool.name != "indexer"]
    if not release.at_least(KEYS_APART):
        pools = _with_keys_inside(pools)
    if not release.at_least(DRAFTS):
        return [pool for pool in pools if pool.name not in _DRAFT_POOLS]
    if not release.at_least(PACKED):
        pools = [pool for pool in pools if pool.name not in {"draft_indexer", "draft_swa"}]
    return pools if release.at_least(DRAFT_PAGES) else [_by_ratio(pool, pools) for pool in pools]


def key_layers(release: Release, layers: int, owners: int) -> tuple[int, int]:
    """Layers of a stage with index keys on the device, and those for whose keys the host keeps room.

    The layers that own some; up to 0.5.21 the host kept room for every one, up to 0.5.17 every one had some.
    Source: 0.5.17 and 0.5.18, mem_cache/memory_pool.py:DSATokenToKVPool (skip_topk_layers); 0.5.21 and 0.5.22,
    mem_cache/pool_host/dsa.py:DSAIndexerPoolHost.
    """
    device = owners if release.at_least(KEYS_SHARED) else layers
    return device, owners if release.at_least(KEYS_OWNED) else layers


def packs(release: Release, *, plain: bool) -> bool:
    """Whether a release packs a model's own draft layers into its rows. `plain`: one attention pool without index keys.

    0.5.18 packs where its unified tree serves the model; with HiRadixCache the plan says packed and nothing holds the
    draft (speculative/base_spec_worker.py:_build_hicache_draft_plan, mem_cache/hiradix_cache.py).
    """
    return release.at_least(PACKED_PLAIN if plain else PACKED)


def _by_ratio(pool: DevicePool, pools: list[DevicePool]) -> DevicePool:
    known = pool.slots or next((other.slots for other in pools if other.name == pool.follows), None)
    return replace(pool, follow_rule="ratio") if pool.name in {"draft", "draft_indexer"} and known else pool


def _with_bare_rows(pool: DevicePool, row: int, bare: int) -> DevicePool:
    return replace(pool, bytes_per_slot=(pool.bytes_per_slot or 0) // row * bare)


def _with_keys_inside(pools: list[DevicePool]) -> list[DevicePool]:
    keys = {pool.follows: pool.bytes_per_slot or 0 for pool in pools if pool.name == "indexer"}
    return [
        replace(pool, bytes_per_slot=(pool.bytes_per_slot or 0) + keys.get(pool.name, 0))
        for pool in pools
        if pool.name != "indexer"
    ]
