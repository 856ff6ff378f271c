"""From a recorded geometry (tests/oracle/README.md) to stages, by the functions of families. Part of replay.py."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hicache_config.core.pools import DevicePool, Stage
from hicache_config.core.releases import Release
from hicache_config.geometry.older_pools import PACKED, as_built, key_layers, packs
from hicache_config.geometry.pieces import (
    Drafting,
    Heads,
    IndexKeys,
    Latent,
    State,
    Store,
    heads_pool,
    heads_row,
    index_pool,
    latent_pool,
    latent_row,
    state_pool,
)
from hicache_config.geometry.state_shapes import StateTypes, delta_state, full_rank_state, mamba2_state

Case = dict[str, Any]


def stages_of(case: Case, release: Release) -> list[Stage]:
    """The stages of a generated geometry as a release builds them, made by the functions that families use."""
    row, bare = latent_rows(case)
    return [Stage.of(as_built(release, pools_of(case, stage, release), row, bare))[0] for stage in case["stages"]]


def latent_rows(case: Case) -> tuple[int, int]:
    """Bytes of a row of latents with its scales and without; zeros where it has none."""
    if "kv_lora_rank" not in case["kv"] or not store_of(case, case["kv"]).scaled_row:
        return 0, 0
    shape, store = latent_of(case["kv"]), store_of(case, case["kv"])
    return latent_row(shape, store), latent_row(shape, replace(store, scaled_row=False))


def pools_of(case: Case, stage: Case, release: Release) -> list[DevicePool]:
    dtype = case["dtype"]
    is_plain = not {"swa", "mamba"} & set(stage) and "index" not in case
    is_packed = case.get("draft", {}).get("mode") == "packed" and packs(release, plain=is_plain)
    packed = stage.get("draft_layers", 0) if is_packed else 0
    on_window = packed if case.get("draft", {}).get("on") == "swa" and "swa" in stage else 0
    pools = []
    if "kv" in stage:
        pools += attention(case, stage, packed - on_window, release)
    if "swa" in stage:
        shape = shape_of(case.get("swa", case["kv"]))
        kept = stage["swa"]
        pools.append(
            heads_pool("swa", shape, Store(dtype, case["page_size"]), kept["layers"], kept["slots"], packed=on_window)
        )
    if "mamba" in stage:
        spec = case["mamba"].get("speculative")
        drafting = Drafting(spec["requests"], spec["draft_tokens"]) if spec else None
        pools.append(state_pool(state_of(case["mamba"]), stage["mamba"]["layers"], stage["mamba"]["slots"], drafting))
    is_beside = case.get("draft", {}).get("mode") == "sidecar" and stage["draft_layers"]
    return [*pools, *beside(case, stage, release)] if is_beside else pools


def beside(case: Case, stage: Case, release: Release) -> list[DevicePool]:
    """The pools of a draft with a geometry of its own: it follows kv, or with a sliding window swa by a ratio."""
    draft, layers, page = case["draft"], stage["draft_layers"], case["page_size"]
    if "swa" in draft:
        row = heads_row(shape_of(draft["swa"]), Store(case["dtype"], page)) * layers
        slots = stage["swa"]["slots"]
        return [DevicePool("draft_swa", slots, row, page, follows="swa", follow_rule="ratio")]
    page, slots = page * case.get("dcp_size", 1), stage["kv"]["slots"] * case.get("dcp_size", 1)
    store = store_of(case, draft["kv"])
    if not release.at_least(PACKED):
        store = replace(store, scaled_row=False)
    latents = "kv_lora_rank" in draft["kv"]
    row = latent_row(latent_of(draft["kv"]), store) if latents else heads_row(shape_of(draft["kv"]), store)
    made = [DevicePool("draft", slots, row * layers, page, follows="kv")]
    if draft.get("index"):
        keys = IndexKeys(case["index"]["head_dim"], case["index"]["kpool"])
        made.append(replace(index_pool(keys, store, layers, slots), name="draft_indexer"))
    return made


def latent_of(geometry: Case) -> Latent:
    return Latent(geometry["kv_lora_rank"], geometry["qk_rope_head_dim"])


def store_of(case: Case, geometry: Case) -> Store:
    """How a geometry is kept; its row has scales where its width is not that of the bare latent."""
    plain = geometry.get("kv_lora_rank", 0) + geometry.get("qk_rope_head_dim", 0)
    return Store(case["dtype"], case["page_size"], geometry.get("kv_cache_dim", plain) != plain)


def attention(case: Case, stage: Case, packed: int, release: Release) -> list[DevicePool]:
    geometry, dtype, kept, page = case["kv"], case["dtype"], stage["kv"], case["page_size"]
    layers, slots = kept["layers"], kept["slots"]
    if "kv_lora_rank" not in geometry:
        return [heads_pool("kv", shape_of(geometry), Store(dtype, page), layers, slots, packed=packed)]
    shape, store = latent_of(geometry), store_of(case, geometry)
    if "index" not in case:
        return [latent_pool("kv", shape, store, layers, slots, packed=packed)]
    keys = IndexKeys(case["index"]["head_dim"], case["index"]["kpool"])
    owning = len(stage["index_owners"]) if "index_owners" in stage else layers
    owners, held = key_layers(release, layers, owning)
    beside = keys.device_bytes(owners, slots, page)
    pools = [latent_pool("kv", shape, store, layers, slots, packed=packed, index_bytes=beside)]
    return [*pools, index_pool(keys, store, held, slots, packed=packed)] if held else pools


def shape_of(geometry: Case) -> Heads:
    return Heads(geometry["heads"], geometry["head_dim"], geometry["v_head_dim"])


def state_of(geometry: Case) -> State:
    types = StateTypes(geometry["conv_dtype"], geometry["ssm_dtype"])
    shape = dict(geometry["shape"])
    ranks = shape.pop("tp_world_size")
    if geometry["kind"] == "kda":
        return delta_state(
            ranks,
            heads=shape["num_heads"],
            width=shape["head_dim"],
            window=shape["conv_kernel_size"],
            key_heads=shape.get("num_k_heads"),
            key_width=shape.get("head_k_dim"),
            types=types,
        )
    if geometry["kind"] == "mamba1":
        return full_rank_state(
            ranks, inner=shape["intermediate_size"], size=shape["state_size"], window=shape["conv_kernel"], types=types
        )
    return mamba2_state(
        ranks,
        inner=shape["intermediate_size"],
        groups=shape["n_groups"],
        heads=shape["num_heads"],
        width=shape["head_dim"],
        size=shape["state_size"],
        window=shape["conv_kernel"],
        types=types,
    )
