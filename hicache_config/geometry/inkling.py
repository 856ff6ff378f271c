"""Drafts of Inkling: one layer a step, with full attention or a sliding window, each with a state of its own.

Full layers are packed into kv, states into mamba. Layers with a window keep a slot for every full slot, in a pool of
their own that follows kv through a float ratio and is taken out of kv's share. Source: SGLang 0.5.23,
hybrid_pool_assembler.py:build_hybrid_swa_group. Must not import anything above this floor.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ..core.pools import DevicePool
from .family import Case
from .linear import linear_layers
from .model import Model, refuse
from .pieces import heads_row
from .swa import row_shapes

ARCHITECTURE = "InklingForConditionalGeneration"


def with_inkling_drafts(case: Case, pools: list[DevicePool]) -> list[DevicePool]:
    """The three pools with the draft layers packed into them, and the pool of those with a window."""
    if not case.args.enable_multi_layer_eagle:
        raise refuse(
            "HC666",
            "inkling-needs-a-layer-a-step",
            "drafts of Inkling have states of their own, which SGLang keeps with --enable-multi-layer-eagle alone; "
            "without it it stops after the weights are loaded",
            "Add --enable-multi-layer-eagle.",
            argument="enable_multi_layer_eagle",
        )
    steps = case.args.speculative_num_steps or 1
    windowed = sum(depth in window_depths(case.model) for depth in range(steps))
    full = steps - windowed
    shapes = row_shapes(case)
    rows = [heads_row(shape, case.settings.store) for shape in shapes]
    by_name = {pool.name: pool for pool in pools}
    by_name["kv"] = _packed(case, by_name["kv"], rows[0], full)
    state = linear_layers(case).state.bytes
    mamba = by_name["mamba"]
    by_name["mamba"] = replace(mamba, bytes_per_slot=(mamba.bytes_per_slot or 0) + state * steps)
    made = list(by_name.values())
    if windowed:
        made.insert(2, _windowed(case, rows[1], windowed))
    return made


def window_depths(model: Model) -> frozenset[int]:
    """Draft steps whose layer slides a window, from `mtp_config` or else the text part."""
    nested = model.whole.get("mtp_config")
    listed = nested.get("local_layer_ids") if isinstance(nested, Mapping) else None
    if not listed:
        listed = model.integers("mtp_local_layer_ids") or ()
    return frozenset(layer for layer in listed if isinstance(layer, int))


def _packed(case: Case, kv: DevicePool, row: int, layers: int) -> DevicePool:
    """kv with draft layers in its rows; a share of host memory does not count them (0.5.23, hicache_auto_size.py)."""
    slots = case.slots.get("kv")
    held = () if slots is None else ((slots + case.page_size) * row,) * layers
    return replace(
        kv, bytes_per_slot=(kv.bytes_per_slot or 0) + row * layers, packed_bytes=held, fraction_bytes=kv.device_bytes
    )


def _windowed(case: Case, row: int, layers: int) -> DevicePool:
    slots, window = case.slots.get("kv"), case.slots.get("swa")
    held = None if slots is None else (slots + case.page_size) * row
    counted = None if held is None or slots is None or window is None else held * window // slots * layers
    return DevicePool(
        "draft_swa",
        slots=slots,
        bytes_per_slot=row * layers,
        page_size=case.page_size,
        follows="kv",
        device_bytes=None if held is None else held * layers,
        fraction_bytes=counted,
        follow_rule="ratio",
        carved=case.release.at_least("0.5.22"),
    )
