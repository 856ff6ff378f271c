"""Drafts of DeepSeek V4: next-token layers (EAGLE) and the bundled DSpark head, packed into the sliding pool.

Must not import anything above this floor.
"""

from __future__ import annotations

from .classes import known_classes
from .draft_model import check_draft_stages
from .family import Case
from .model import refuse
from .packed import packed_on
from .parallel import StageLayers
from .speculation import algorithm_of

_DSPARK_KEYS = ("dspark_block_size", "dspark_markov_rank", "dspark_noise_token_id", "dspark_target_layer_ids")
#: Draft tokens that a ring of 16 states for windows of 8 can hold (0.5.23, get_compress_state_write_pad).
_MOST_TOKENS = 10


def is_speculative(case: Case) -> bool:
    """Whether a speculative algorithm is on, of those that V4 knows; others are refused as SGLang refuses them."""
    algorithm = algorithm_of(case)
    if not algorithm:
        return False
    # SGLang looks before it reads NEXTN as EAGLE (0.5.23, deepseek_v4_hook.py:apply_deepseek_v4_defaults).
    asked = (case.args.speculative_algorithm or "").upper()
    if asked not in {"EAGLE", "DSPARK"}:
        raise refuse(
            "HC625",
            "v4-draft-algorithm",
            f"--speculative-algorithm {case.args.speculative_algorithm} is refused for DeepSeek V4, which knows EAGLE "
            "and DSPARK",
            "Write --speculative-algorithm EAGLE --speculative-eagle-topk 1.",
            argument="speculative_algorithm",
            asked=case.args.speculative_algorithm,
        )
    tokens = case.args.speculative_num_draft_tokens or 0
    if tokens > _MOST_TOKENS:
        raise refuse(
            "HC626",
            "v4-draft-tokens",
            f"--speculative-num-draft-tokens {tokens} is more than the {_MOST_TOKENS} that V4's ring of compressor "
            "states keeps: SGLang stops with an assertion",
            f"Write {_MOST_TOKENS} or fewer.",
            argument="speculative_num_draft_tokens",
            asked=tokens,
        )
    return True


def v4_draft_layers(case: Case, stage: StageLayers) -> int:
    """Draft layers that share the sliding pool's pages on this stage: one for EAGLE, DSpark's stages for DSPARK.

    Source: 0.5.23, models/deepseek_v4_dspark.py (num_stages), model_config.py:_config_draft_model.
    """
    if not is_speculative(case) or not packed_on(case, stage):
        return 0
    if algorithm_of(case) != "DSPARK":
        check_draft_stages(case, known_classes()["DeepseekV4ForCausalLMNextN"])
        return 1
    draft = case.question.draft_config if case.question.draft_config is not None else case.model.whole
    if not any(draft.get(key) is not None for key in _DSPARK_KEYS):
        raise refuse(
            "HC627",
            "v4-draft-not-bundled",
            "DSPARK needs a checkpoint that bundles a DSpark head (dspark_* in its config.json)",
            "Write --speculative-algorithm EAGLE, or name such a checkpoint with --speculative-draft-model-path.",
            argument="speculative_algorithm",
        )
    layers = draft.get("dspark_target_layer_ids")
    if isinstance(layers, list) and layers:
        return len(layers)
    count = draft.get("num_nextn_predict_layers")
    return count if isinstance(count, int) and count > 0 else 1
