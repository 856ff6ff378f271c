"""Hybrid sliding windows: full-attention layers in one pool, sliding layers in a smaller one.

Must not import anything above this floor.
"""

from __future__ import annotations

from ..core.pools import DevicePool
from .attention import heads, is_latent, latent, rank_heads
from .dense import check_mxfp8
from .family import Case, FamilyPage
from .gemma import gemma_heads, is_two_shaped_gemma
from .model import refuse
from .packed import packed_layers
from .parallel import StageLayers
from .pieces import Heads, heads_pool, latent_pool
from .sliding import MIMO_V2, has_two_shapes, sliding_layers, window_of


class Swa:
    """Two pools, kv for full attention and swa for the sliding layers."""

    page = FamilyPage(
        name="swa",
        title="Hybrid sliding window",
        pools=("kv", "swa"),
        formula=(
            "kv: KV heads of a rank x (key width + value width) x bytes of a value x full-attention layers of the "
            "stage. swa: the same over its sliding layers, with KV heads and widths of their own in MiMo-V2, Gemma 4 "
            "and Inkling alone. Device slots of swa are those of kv x swa_full_tokens_ratio. SGLang shares the size by "
            "device bytes with a page of padding."
        ),
        checked="SGLang's own device and host pools, and whole models through its own configuration",
        models=("openai/gpt-oss-120b", "meta-llama/Llama-4-Scout-17B-16E-Instruct", "google/gemma-4-26B-A4B"),
    )

    def matches(self, case: Case) -> bool:
        return case.settings.sliding

    def pools(self, case: Case, stage: StageLayers) -> list[DevicePool]:
        return sliding_pools(case, stage)


def sliding_pools(case: Case, stage: StageLayers) -> list[DevicePool]:
    """The two pools of a stage; a stage that lacks a kind of layer is refused as SGLang refuses it."""
    layers = sliding_layers(case.model, case.layers)
    full, window = len(stage.of(layers.full)), len(stage.of(layers.window))
    _check_kinds(case, stage, full, window)
    _check_room(case)
    packed = packed_layers(case, stage)
    on_window = packed if case.model.architecture in MIMO_V2 else 0
    on_full = packed - on_window
    store, slots, model = case.settings.store, case.slots, case.model
    if is_latent(model):
        return [
            latent_pool("kv", latent(model), store, full, slots.get("kv"), packed=on_full),
            latent_pool("swa", latent(model, "swa_"), store, window, slots.get("swa"), packed=on_window),
        ]
    shape, sliding = row_shapes(case)
    check_mxfp8(case, shape, packed)
    check_mxfp8(case, sliding, packed)
    return [
        heads_pool("kv", shape, store, full, slots.get("kv"), packed=on_full),
        heads_pool("swa", sliding, store, window, slots.get("swa"), packed=on_window),
    ]


def _check_room(case: Case) -> None:
    """Refuse a sliding pool that does not hold one request's window (0.5.23, pool_configurator.py)."""
    slots, window = case.slots.get("swa"), window_of(case.model)
    if slots is None or window is None or "swa" in case.question.device_slots or case.args.enable_unified_memory:
        return
    if window + case.page_size >= slots:
        raise refuse(
            "HC612",
            "sliding-pool-too-small",
            f"the sliding-window pool gets {slots:,} device slots, and one request needs more than its window of "
            f"{window:,} and a page of {case.page_size}: SGLang stops before it builds any pool",
            "Raise --max-total-tokens or --swa-full-tokens-ratio.",
            argument="max_total_tokens",
            asked=case.args.max_total_tokens,
        )


def row_shapes(case: Case) -> tuple[Heads, Heads]:
    """Keys and values of a rank, of full and of sliding layers.

    With one shape both have the width of a key for the value too (0.5.23, swa_memory_pool.py); with two the sliding
    layers have `swa_*` keys, which SGLang fills in for Gemma 4 (utils/hf_transformers/config.py).
    """
    model, ranks = case.model, case.parallel.attention_tensor
    shape = heads(model)
    if not has_two_shapes(model):
        one = rank_heads(Heads(shape.count, shape.key, shape.key), case.parallel.head_ranks)
        return one, one
    if is_two_shaped_gemma(model):
        sliding = gemma_heads(model, "sliding_attention")
        return rank_heads(shape, case.parallel.head_ranks), rank_heads(sliding, ranks)
    key = model.maybe_integer("swa_head_dim", least=1) or model.integer("head_dim", shape.key)
    value = model.maybe_integer("swa_v_head_dim", least=1) or key
    count = model.maybe_integer("swa_num_key_value_heads", least=1) or model.integer("num_key_value_heads")
    return rank_heads(shape, case.parallel.head_ranks), rank_heads(Heads(count, key, value), ranks)


def _check_kinds(case: Case, stage: StageLayers, full: int, window: int) -> None:
    where = f"pipeline stage {stage.index}" if case.parallel.stages > 1 else "the model"
    change = "Change --pp-size or SGLANG_PP_LAYER_PARTITION so that every stage owns layers of both kinds."
    if window == 0:
        raise refuse(
            "HC418",
            "stage-without-sliding-layers",
            f"{where} owns no sliding-window layer: SGLang stops there with an assertion while the other stages wait",
            change,
            argument="pp_size",
            stage=stage.index,
        )
    if full == 0 and case.page_size > 1:
        raise refuse(
            "HC419",
            "stage-without-full-attention",
            f"{where} owns no full-attention layer and pages have {case.page_size} slots: SGLang stops there with an "
            "assertion before any host pool is built",
            change,
            argument="pp_size",
            stage=stage.index,
        )
    if full == 0:
        raise refuse(
            "HC420",
            "only-sliding-layers",
            f"{where} owns sliding-window layers alone: SGLang builds no host pool for it, and its first scheduling "
            "step fails with HiCache on",
            change if case.parallel.stages > 1 else "Turn HiCache off for this model.",
            argument="pp_size" if case.parallel.stages > 1 else "enable_hierarchical_cache",
            stage=stage.index,
        )
