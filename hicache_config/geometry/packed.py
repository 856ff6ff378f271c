"""Draft layers that a model brings along (next-token prediction) and SGLang packs into the model's own rows.

A family adds them to the pool whose rows they share. Must not import anything above this floor.
"""

from __future__ import annotations

from ..arguments import ServerArgs
from .attention import is_sparse
from .family import Case
from .model import Model
from .older_pools import packs
from .parallel import StageLayers
from .sliding import MIMO_V2, STEP3P
from .states import linear_reader

#: Classes for which SGLang takes one layer, whatever config.json says.
_ONE = frozenset(
    {
        "ExaoneMoEForCausalLM",
        "ExaoneMoeForCausalLM",
        "Glm5NextForConditionalGeneration",
        "HYV3ForCausalLM",
        "HYV4ForCausalLM",
        "InternS2MobiusForConditionalGeneration",
        "InternS2PreviewForConditionalGeneration",
        "NemotronHForCausalLM",
        "NemotronHPuzzleForCausalLM",
        "NemotronH_Omni_Reasoning_V3",
        "Qwen3MoeForCausalLM",
        "Qwen3NextForCausalLM",
        "Qwen3_5ForCausalLM",
        "Qwen3_5ForConditionalGeneration",
        "Qwen3_5MoeForCausalLM",
        "Qwen3_5MoeForConditionalGeneration",
    }
    | MIMO_V2
)
#: Its drafts are among both kinds of its layers (inkling.py).
_INKLING = "InklingForConditionalGeneration"
#: Classes with a draft layer for each step (multi-layer EAGLE).
_EACH_STEP = MIMO_V2 | STEP3P | {"GigaChat35ForCausalLM"}


def packed_layers(case: Case, stage: StageLayers) -> int:
    """Draft layers that are packed into the rows of this stage; 0 where drafts are separate or there are none.

    Before 0.5.18 a draft had a pool beside the model's, see since.py.
    """
    return packed_depths(case) if packs(case.release, plain=_is_plain(case)) and packed_on(case, stage) else 0


def _is_plain(case: Case) -> bool:
    """Whether releases before 0.5.19 gave the model HiRadixCache (0.5.18, mem_cache/registry.py)."""
    if case.is_on("SGLANG_ENABLE_UNIFIED_RADIX_TREE") or is_sparse(case.model):
        return False
    return linear_reader(case.model) is None and not case.settings.sliding


def packed_on(case: Case, stage: StageLayers) -> bool:
    """Whether this stage runs a draft: with SGLANG_ENABLE_PP_SPEC the last alone (0.5.23, managers/scheduler.py)."""
    return stage.is_last or not case.is_on("SGLANG_ENABLE_PP_SPEC")


def packed_depths(case: Case) -> int:
    """Draft layers that speculative decoding uses and that are packed: the model's own, or those of a named checkpoint.

    Source: 0.5.23, speculative/base_spec_worker.py:_can_pack_hicache_mtp.
    """
    args, model = case.args, case.model
    if (args.speculative_algorithm or "").upper() not in {"EAGLE", "NEXTN"}:
        return 0
    if has_separate_draft(args):
        named = case.question.draft_config
        layers = 0 if named is None else draft_depths(Model(str(args.speculative_draft_model_path), named))
    else:
        layers = 0 if model.architecture == _INKLING else draft_depths(model)
    if model.architecture in _EACH_STEP or args.enable_multi_layer_eagle:
        return layers * (args.speculative_num_steps or 1)
    return layers


def draft_depths(model: Model) -> int:
    """Next-token layers of a runner that drafts with this model; 0 for a model without any.

    Source: 0.5.23, model_config.py:_config_draft_model, layer_setup.py:_compute_model_num_layers.
    """
    if model.architecture in _ONE | STEP3P | {"MiMoV2MTP", "Step3p5MTP"}:
        return 1
    return model.integer("num_nextn_predict_layers", 0, least=0)


def has_separate_draft(args: ServerArgs) -> bool:
    """Whether the arguments name a draft model other than the model itself."""
    return args.speculative_draft_model_path not in {None, args.model_path}
