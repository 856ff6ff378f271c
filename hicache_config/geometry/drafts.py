"""Host pools of drafts: layers packed into the model's own rows, and drafts with pools of their own beside it.

A draft beside the model follows the model's kv slot by slot and lies outside SGLang's size; one with a sliding window
follows the sliding pool through a float ratio. Source: SGLang 0.5.23, speculative/base_spec_worker.py and
hybrid_pool_assembler.py:build_hicache_draft_sidecars. Must not import anything above this floor.
"""

from __future__ import annotations

from dataclasses import replace

from ..core.findings import Finding
from ..core.pools import DevicePool
from .attention import heads, index_keys, is_latent, is_sparse, latent, rank_heads
from .dense import loops
from .draft_model import SEPARATE, Draft, check_draft_stages, draft_case, draft_of, is_known
from .family import Case
from .inkling import ARCHITECTURE as INKLING
from .inkling import with_inkling_drafts
from .minimax_settings import is_native_four_bit
from .model import RefusedError, refuse
from .packed import has_separate_draft, packed_depths, packed_layers, packed_on
from .parallel import StageLayers
from .pieces import Heads, heads_row, index_pool, latent_row
from .sliding import MIMO_V2, has_sliding_memory, sliding_layers
from .speculation import algorithm_of
from .states import linear_reader
from .swa import row_shapes

_V4 = "DeepseekV4ForCausalLM"


def with_drafts(case: Case, stage: StageLayers, pools: list[DevicePool]) -> list[DevicePool]:
    """The pools of a stage with those of its draft; what SGLang refuses raises a RefusedError."""
    algorithm = algorithm_of(case)
    if algorithm not in SEPARATE | {"EAGLE"} or case.model.architecture == _V4 or not packed_on(case, stage):
        return pools
    if algorithm == "EAGLE" and case.model.architecture == INKLING and not has_separate_draft(case.args):
        return with_inkling_drafts(case, pools)
    if algorithm == "EAGLE" and packed_depths(case):
        return _packed(case, stage, pools)
    draft = draft_of(case)
    return pools if draft is None else [*pools, *_beside(case, draft, stage, pools)]


def packed_row(case: Case, stage: StageLayers) -> int:
    """Bytes of a slot of kv that belong to packed drafts of a stage, where kv is the only pool that has them."""
    depths = packed_layers(case, stage)
    draft = draft_of(case) if depths else None
    return 0 if draft is None else _draft_row(case, draft) * depths


def own_draft_row(case: Case) -> int:
    """Bytes of a slot of the first draft layer that the model brings along; 0 without one."""
    draft = draft_of(case) if packed_depths(case) else None
    return 0 if draft is None else _draft_row(case, draft)


def draft_findings(case: Case) -> tuple[Finding, ...]:
    """A warning where a draft is named whose config.json is not at hand: its pools are left out."""
    if algorithm_of(case) not in SEPARATE | {"EAGLE"} or case.model.architecture == _V4 or is_known(case):
        return ()
    path = case.args.speculative_draft_model_path
    return (
        Finding(
            "HC658",
            "draft-model-unknown",
            "warning",
            f"the config.json of the draft {path} is not at hand, so its host pools are left out of the plan",
            "Name a folder that holds it with --speculative-draft-model-path, or a model of the catalogue.",
            argument="speculative_draft_model_path",
            asked=path,
        ),
    )


# --- packed -------------------------------------------------------------------------------------------------------


def _packed(case: Case, stage: StageLayers, pools: list[DevicePool]) -> list[DevicePool]:
    """The pools with the device bytes of the drafts that families have packed into their rows."""
    depths = packed_layers(case, stage)
    draft = draft_of(case)
    if not depths or draft is None:
        return pools
    _check_packed(case, draft, pools)
    slots, page = case.slots, case.page_size
    target = "swa" if case.model.architecture in MIMO_V2 and case.settings.sliding else "kv"
    if slots.get(target) is None:
        return pools
    row = _draft_row(case, draft, sliding=target == "swa")
    held = (slots[target] + page) * row
    if is_sparse(draft.model):
        held += index_keys(draft.model).device_bytes(1, slots[target], page)
    return [
        replace(pool, packed_bytes=(held,) * depths) if pool.name == target and not pool.packed_bytes else pool
        for pool in pools
    ]


def _check_packed(case: Case, draft: Draft, pools: list[DevicePool]) -> None:
    """Refuse what SGLang refuses where it packs a draft (0.5.23, host_pool_config.py and pool_host/mha.py, mla.py)."""
    check_draft_stages(case, draft.model_class)
    if draft.layers > 1:
        raise refuse(
            "HC660",
            "packed-draft-of-several-layers",
            f"the draft has {draft.layers} layers, and SGLang packs drafts of one layer alone: it stops when it builds "
            "the host pools",
            "Turn speculative decoding off, or use a checkpoint with num_nextn_predict_layers 1.",
            argument="speculative_algorithm",
        )
    if is_sparse(draft.model) and "indexer" not in {pool.name for pool in pools}:
        raise refuse(
            "HC661",
            "draft-index-without-target",
            "a pipeline stage owns no index keys of its own, but its draft does: SGLang stops there when it builds the "
            "host pools, while the other stages wait",
            "Change --pp-size or SGLANG_PP_LAYER_PARTITION so that every stage has a layer with index keys.",
            argument="pp_size",
        )
    if has_separate_draft(case.args):
        own = Draft(case.model, case.model_class, 1, case.settings.kv_type)
        sliding = case.model.architecture in MIMO_V2 and case.settings.sliding
        wanted, got = _draft_row(case, own, sliding=sliding), _draft_row(case, draft, sliding=sliding)
        if wanted != got:
            raise refuse(
                "HC662",
                "packed-draft-differs",
                f"the draft's rows have {got} bytes and the model's {wanted}, so SGLang can't pack them: it stops when "
                "it builds the host pools",
                "Use the draft that belongs to the model, with the same KV type.",
                argument="speculative_draft_model_path",
            )


def _draft_row(case: Case, draft: Draft, *, sliding: bool = False) -> int:
    """Bytes of one slot in one layer of the draft, on one rank."""
    own = draft_case(case, draft)
    store = own.settings.store
    if is_latent(draft.model):
        return latent_row(latent(draft.model), store)
    if sliding:
        return heads_row(row_shapes(own)[1], store)
    shape = heads(draft.model)
    if linear_reader(draft.model) is not None or has_sliding_memory(draft.model, case.args):
        shape = Heads(shape.count, shape.key, shape.key)
    return heads_row(rank_heads(shape, case.parallel.head_ranks), store)


# --- beside -------------------------------------------------------------------------------------------------------


def _beside(case: Case, draft: Draft, stage: StageLayers, pools: list[DevicePool]) -> list[DevicePool]:
    if has_sliding_memory(draft.model, case.args):
        return _sliding(case, draft, pools)
    layers = 1 if linear_reader(draft.model) is not None else draft.layers
    held = stage.count * loops(case)
    if layers > held:
        raise refuse(
            "HC663",
            "draft-longer-than-model",
            f"the draft has {layers} layers and the model {held}: SGLang stops when it builds the draft's host pool",
            "Use a draft with fewer layers than the model.",
            argument="speculative_draft_model_path",
        )
    own = draft_case(case, draft)
    slots, page = case.slots.get("kv"), case.page_size * case.parallel.decode_cp
    slots = None if slots is None else slots * case.parallel.decode_cp
    row = _draft_row(case, draft) * layers
    weight = None if slots is None else (slots + page) * row
    made = [
        DevicePool(
            "draft",
            slots=slots,
            bytes_per_slot=row,
            page_size=page,
            follows="kv",
            carved=_is_carved(case, draft),
            device_bytes=weight,
        )
    ]
    if is_sparse(draft.model):
        keys = index_keys(draft.model)
        made.append(replace(index_pool(keys, own.settings.store, layers, slots), name="draft_indexer"))
        if weight is not None:
            made[0] = replace(made[0], device_bytes=weight + keys.device_bytes(layers, slots, page))
    return made


def _sliding(case: Case, draft: Draft, pools: list[DevicePool]) -> list[DevicePool]:
    """The sliding layers of a draft; its full layers have no host pool (0.5.23, build_swa_draft_pools)."""
    if "swa" not in {pool.name for pool in pools}:
        raise refuse(
            "HC664",
            "sliding-draft-without-target",
            f"the draft {draft.model_class.name} has a sliding-window pool and {case.model_class.name} has none: "
            "SGLang stops when it builds the draft's pools",
            "Use a draft without a sliding window, or --disable-hybrid-swa-memory.",
            argument="speculative_draft_model_path",
        )
    own = draft_case(case, draft)
    count = len(sliding_layers(draft.model, draft.layers).window)
    if count == 0:
        return []
    row = heads_row(row_shapes(own)[1], own.settings.store) * count
    slots = case.slots.get("swa")
    return [
        DevicePool(
            "draft_swa",
            slots=slots,
            bytes_per_slot=row,
            page_size=case.page_size,
            follows="swa",
            follow_rule="ratio",
            device_bytes=None if slots is None else (slots + case.page_size) * row,
        )
    ]


def _is_carved(case: Case, draft: Draft) -> bool:
    """Whether SGLang takes the draft out of the share of kv: for 4-bit rows of MiniMax M3, which need a plain draft."""
    if not is_native_four_bit(case.model, case.args, case.settings.gpu):
        return False
    if is_latent(draft.model):
        raise _needs_plain_draft()
    return True


def _needs_plain_draft() -> RefusedError:
    return refuse(
        "HC665",
        "four-bit-needs-plain-draft",
        "4-bit KV of MiniMax M3 takes a draft with plain attention alone: SGLang stops when it builds the host pools",
        "Use a dense draft.",
        argument="speculative_draft_model_path",
    )
