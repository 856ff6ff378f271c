"""MiniMax M3: keys and values of every layer, and index keys of the sparse layers; on Blackwell also 4-bit page rows.

Must not import anything above this floor.
"""

from __future__ import annotations

from dataclasses import replace

from ..core.pools import DevicePool
from .attention import heads, rank_heads
from .family import Case, FamilyPage
from .minimax_settings import ARCHITECTURES, index_bytes, is_native_four_bit
from .model import Model, refuse
from .parallel import StageLayers
from .pieces import Heads, heads_pool

#: Components of a 4-bit page row begin at multiples of this (0.5.23, minimax_m3_nvfp4_pool.py).
_ROW_ALIGNMENT = 128
_SCALE_GROUP = 16
_FOUR_BIT_PAGE = 128
_FOUR_BIT_INDEX = 128


class MiniMaxSparse:
    """The family of MiniMax M3, in bf16 and fp8 and with 4-bit rows."""

    page = FamilyPage(
        name="minimax_sparse",
        title="MiniMax M3, block-sparse attention",
        pools=("kv", "indexer"),
        formula=(
            "kv: KV heads of a rank x 2 x head_dim x bytes of a value x all layers. indexer, follows kv: "
            "sparse_index_dim x bytes x sparse layers, outside the size; 1 byte a value when KV is fp8_e4m3 on sm90, "
            "or on sm100 with trtllm_mha, else the bytes of the weights' type. NVFP4 checkpoints on Blackwell: rows "
            "of a page of 128 tokens, 18,432 bytes a head and layer and 9,216 of index keys; the size is shared "
            "between them (and a draft) by these bytes. Pipeline parallelism is refused."
        ),
        checked="whole models through SGLang's own configuration, its device and host pools",
        models=("MiniMaxAI/MiniMax-M3",),
    )

    def matches(self, case: Case) -> bool:
        return case.model.architecture in ARCHITECTURES

    def pools(self, case: Case, stage: StageLayers) -> list[DevicePool]:
        _check_stages(case)
        sparse = sparse_layers(case.model, case.layers)
        width = _index_width(case.model)
        shape = heads(case.model)
        own = rank_heads(Heads(shape.count, shape.key, shape.key), case.parallel.head_ranks)
        if is_native_four_bit(case.model, case.args, case.settings.gpu):
            return _four_bit_pools(case, own, stage.count, len(sparse), width)
        slots, page = case.slots.get("kv"), case.page_size
        kv = heads_pool("kv", own, case.settings.store, stage.count, slots)
        keys = width * index_bytes(case) * len(sparse)
        if not keys:
            return [kv]
        counted = None if slots is None or kv.device_bytes is None else kv.device_bytes + (slots + page) * keys
        return [
            _counted(kv, counted),
            DevicePool("indexer", slots=slots, bytes_per_slot=keys, page_size=page, follows="kv"),
        ]


def sparse_layers(model: Model, layers: int) -> tuple[int, ...]:
    """Layers with index keys. Value-bearing index layers are refused, as SGLang refuses them.

    Source: 0.5.23, model_config.py:get_minimax_sparse_layer_ids, build_minimax_sparse_hicache_stack.
    """
    table = model.table("sparse_attention_config")
    if table is None:
        raise model.missing("sparse_attention_config")
    flags = table.integers("sparse_attention_freq")
    if flags is None:
        raise table.missing("sparse_attention_freq")
    found = tuple(layer for layer, flag in enumerate(flags[:layers]) if flag)
    keys_only = table.integers("sparse_disable_index_value") or ()
    if any(layer >= len(keys_only) or not keys_only[layer] for layer in found):
        raise refuse(
            "HC650",
            "index-values-without-host-pool",
            f"{model.shown}: sparse layers whose index holds values (sparse_disable_index_value is 0) have no host "
            "pool: SGLang stops after the weights are loaded",
            "Turn HiCache off for this model.",
            argument="enable_hierarchical_cache",
        )
    return found


def _index_width(model: Model) -> int:
    table = model.table("sparse_attention_config")
    assert table is not None  # sparse_layers looked at it
    return table.integer("sparse_index_dim")


def _check_stages(case: Case) -> None:
    if case.parallel.stages > 1:
        raise refuse(
            "HC651",
            "sparse-blocks-refuse-stages",
            f"{case.model_class.name} with HiCache refuses pipeline parallelism (--pp-size {case.parallel.stages}): "
            "SGLang stops when it builds the host pools, after the weights are loaded",
            "Write --pp-size 1 and use more tensor ranks.",
            argument="pp_size",
            asked=case.parallel.stages,
        )


# --- 4-bit page rows ----------------------------------------------------------------------------------------------


def _four_bit_pools(case: Case, shape: Heads, layers: int, sparse: int, width: int) -> list[DevicePool]:
    """Page rows of 4-bit values with their scales; the index keys are taken out of the share of kv.

    Source: 0.5.23, minimax_m3_nvfp4_pool.py:msa_v1_page_row_bytes.
    """
    if sparse != layers:
        raise refuse(
            "HC652",
            "four-bit-needs-sparse-layers",
            f"{case.model.shown}: 4-bit KV needs sparse attention in every layer; {layers - sparse} of {layers} are "
            "dense",
            "Use a checkpoint without NVFP4, or a GPU before Blackwell.",
            argument="model_path",
        )
    if width != _FOUR_BIT_INDEX:
        raise case.model.wrong("sparse_attention_config", width, f"sparse_index_dim {_FOUR_BIT_INDEX} for 4-bit KV")
    slots = case.slots.get("kv")
    main = 2 * (_row(shape.count * shape.key // 2) + _row(shape.count * shape.key // _SCALE_GROUP)) * layers
    index = (_row(width // 2) + _row(width // _SCALE_GROUP)) * layers

    def pool(name: str, page_bytes: int, follows: str | None = None) -> DevicePool:
        row = page_bytes // _FOUR_BIT_PAGE
        return DevicePool(
            name,
            slots=slots,
            bytes_per_slot=row,
            page_size=_FOUR_BIT_PAGE,
            follows=follows,
            device_bytes=None if slots is None else (slots + _FOUR_BIT_PAGE) * row,
            carved=follows is not None,
        )

    return [pool("kv", main), pool("indexer", index, follows="kv")]


def _row(bytes_of_a_slot: int) -> int:
    """Bytes of one component of a page row."""
    return -(-bytes_of_a_slot * _FOUR_BIT_PAGE // _ROW_ALIGNMENT) * _ROW_ALIGNMENT


def _counted(kv: DevicePool, device_bytes: int | None) -> DevicePool:
    """The kv pool with what SGLang counts for it when it sizes by a fraction: the index keys too."""
    return replace(kv, device_bytes=device_bytes)
