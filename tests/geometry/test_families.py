"""Families: bytes, layers, followers, weights, and what is refused. Figures are SGLang 0.5.23's own."""

from __future__ import annotations

from typing import Any

import pytest

from hicache_config.core.pools import DevicePool
from hicache_config.geometry import Pipeline, families
from hicache_config.geometry.catalogue import catalogue_names
from hicache_config.geometry.families import FAMILIES

from .making import DENSE, answer, code, rows

GPT, MIMO, GEMMA = "openai/gpt-oss-120b", "XiaomiMiMo/MiMo-V2-Flash", "google/gemma-4-26B-A4B"
QWEN, NEMOTRON, KIMI = "Qwen/Qwen3.5-397B-A17B", "nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16", "moonshotai/Kimi-K3"
GLM = "zai-org/GLM-5.2-FP8"
EAGLE: dict[str, Any] = {
    "speculative_algorithm": "EAGLE",
    "speculative_num_steps": 3,
    "speculative_eagle_topk": 1,
    "speculative_num_draft_tokens": 4,
    "max_running_requests": 64,
}
SLOTS: dict[str, Any] = {"max_total_tokens": 1_000_000, "max_mamba_cache_size": 500}


def pools(pipeline: Pipeline, stage: int = 0) -> dict[str, DevicePool]:
    assert pipeline.stages, pipeline.findings
    return dict(pipeline.stages[stage].by_name)


# --- sparse attention ---------------------------------------------------------------------------------------------


def test_index_keys_follow_in_owning_layers_alone() -> None:
    """21 of GLM-5.2's 78 layers own index keys: 7, 4, 5 and 5 of four stages."""
    pipeline = answer(GLM, tp_size=8, pp_size=4, kv_cache_dtype="fp8_e4m3")
    assert [row["kv"] for row in rows(pipeline)] == [19 * 656, 19 * 656, 20 * 656, 20 * 656]
    assert [row["indexer"] for row in rows(pipeline)] == [7 * 132, 4 * 132, 5 * 132, 5 * 132]
    indexer = pools(pipeline)["indexer"]
    assert (indexer.follows, indexer.extra_pages, indexer.page_size) == ("kv", 1, 64)


@pytest.mark.parametrize(
    ("keys", "owners"),
    [
        ({"indexer_types": ["full", "shared"] * 39}, 39),
        ({"indexer_types": ["full"] * 3}, 78),  # layers beyond the list own theirs
        ({"index_topk_pattern": "FSSS" * 19 + "FS"}, 20),
        ({"index_topk_freq": 4}, 21),
        ({"index_topk_freq": 4, "index_skip_topk_offset": 3}, 21),
        ({"index_topk_freq": 1}, 78),
        ({}, 78),
    ],
)
def test_who_owns_index_keys(keys: dict[str, Any], owners: int) -> None:
    config = sparse(**keys)
    assert rows(answer(config))[0]["indexer"] == owners * 132


def test_pooled_index_keys_have_wider_pages() -> None:
    pipeline = answer(sparse(index_kpool=4), kv_cache_dtype="fp8_e4m3")
    assert pools(pipeline)["indexer"].bytes_per_slot == 78 * 33
    assert pools(pipeline)["kv"].page_size == 256


def test_a_stage_without_owner_has_no_indexer() -> None:
    pipeline = answer(sparse(indexer_types=["full"] * 39 + ["shared"] * 39), pp_size=2)
    assert [set(row) for row in rows(pipeline)] == [{"kv", "indexer"}, {"kv"}]


def test_layers_of_a_cache_that_context_parallel_ranks_split() -> None:
    split: dict[str, Any] = {
        "enable_prefill_cp": True,
        "cp_strategy": "interleave",
        "disaggregation_mode": "prefill",
        "enable_dsa_cache_layer_split": True,
    }
    assert rows(answer(sparse(), tp_size=8, **split)) == [{"kv": 10 * 1152, "indexer": 10 * 132}]


def sparse(**more: Any) -> dict[str, Any]:
    return {
        "architectures": ["GlmMoeDsaForCausalLM"],
        "model_type": "glm_moe_dsa",
        "dtype": "bfloat16",
        "num_hidden_layers": 78,
        "num_attention_heads": 64,
        "hidden_size": 6144,
        "kv_lora_rank": 512,
        "qk_rope_head_dim": 64,
        "index_topk": 2048,
        "index_head_dim": 128,
        **more,
    }


# --- latent attention ---------------------------------------------------------------------------------------------


def test_latents_are_the_same_on_every_rank() -> None:
    for ranks in (1, 8, 16):
        assert rows(answer("deepseek-ai/DeepSeek-V3", tp_size=ranks)) == [{"kv": 70_272}]


def test_two_attentions_in_a_layer() -> None:
    longcat = {
        "architectures": ["LongcatFlashForCausalLM"],
        "dtype": "bfloat16",
        "num_layers": 28,
        "kv_lora_rank": 512,
        "qk_rope_head_dim": 64,
    }
    pipeline = answer(longcat, tp_size=4)
    assert rows(pipeline) == [{"kv": 56 * 1152}]
    assert pipeline.stages[0].layers == 56


def test_a_loop_model_has_kv_for_each_round() -> None:
    looped = {**DENSE, "architectures": ["NanbeigeForCausalLM"], "num_loops": 2}
    once = {**DENSE, "architectures": ["NanbeigeForCausalLM"]}
    assert rows(answer(looped, pp_size=2)) == rows(answer({**once, "num_hidden_layers": 64}, pp_size=2))


# --- sliding windows ----------------------------------------------------------------------------------------------


def test_one_shape_and_two() -> None:
    assert rows(answer(GPT, tp_size=8, **SLOTS)) == [{"kv": 4608, "swa": 4608}]
    assert rows(answer(MIMO, tp_size=4, page_size=64, **SLOTS)) == [{"kv": 9 * 640, "swa": 39 * 1280}]
    assert rows(answer(GEMMA, tp_size=4, **SLOTS)) == [{"kv": 10_240, "swa": 51_200}]


def test_sliding_slots_follow_from_the_full_ones() -> None:
    found = pools(answer(GPT, page_size=64, swa_full_tokens_ratio=0.5, max_total_tokens=999_999))
    assert (found["kv"].slots, found["swa"].slots) == (999_936, 499_968)
    assert found["kv"].device_bytes == (999_936 + 64) * (found["kv"].bytes_per_slot or 0)
    assert pools(answer(GPT, device_slots={"kv": 1000, "swa": 7}))["swa"].slots == 7


def test_unknown_slots_stay_unknown() -> None:
    found = pools(answer(GPT))
    assert (found["kv"].slots, found["swa"].slots, found["kv"].weight) == (None, None, None)


def test_stages_without_a_kind_of_layer() -> None:
    """gpt-oss alternates: one layer a stage leaves each stage without one kind."""
    assert code(answer(GPT, pp_size=36, **SLOTS)) == "HC420"  # stage 0 slides alone
    assert code(answer(GPT, pp_size=36, page_size=64, **SLOTS)) == "HC419"
    full_first = {"environment": {"SGLANG_PP_LAYER_PARTITION": "2,1,33"}}
    refused = answer(GPT, pp_size=3, **full_first, **SLOTS)
    assert code(refused) == "HC420"
    assert refused.findings[0].stage == 1
    second = answer(GPT, pp_size=3, environment={"SGLANG_PP_LAYER_PARTITION": "3,1,32"}, **SLOTS)
    assert code(second) == "HC418"


def test_a_sliding_pool_for_less_than_a_request() -> None:
    assert code(answer(GPT, max_total_tokens=150)) == "HC612"
    assert answer(GPT, max_total_tokens=162).stages  # 129 slots: a window of 127, a page of 1, and one more


def test_sliding_memory_can_be_switched_off() -> None:
    pipeline = answer(GPT, disable_hybrid_swa_memory=True)
    assert pipeline.family == "dense"
    assert rows(pipeline) == [{"kv": 36 * 8 * 64 * 2 * 2}]


# --- states -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "tensor", "state"),
    [(QWEN, 8, 24_007_680), (QWEN, 4, 48_015_360), (NEMOTRON, 8, 6_135_296), (KIMI, 8, 56_171_520)],
)
def test_bytes_of_a_state(model: str, tensor: int, state: int) -> None:
    mamba = pools(answer(model, tp_size=tensor, **SLOTS))["mamba"]
    assert mamba.bytes_per_slot == state
    assert mamba.device_bytes == 501 * state  # a padding state
    assert mamba.page_size == 1


def test_types_of_a_state() -> None:
    wide = pools(answer(QWEN, tp_size=8, **SLOTS))["mamba"].bytes_per_slot or 0
    for given in ({"mamba_ssm_dtype": "bfloat16"}, {"environment": {"SGLANG_MAMBA_SSM_DTYPE": "float16"}}):
        narrow = pools(answer(QWEN, tp_size=8, **given, **SLOTS))["mamba"].bytes_per_slot or 0  # type: ignore[arg-type]
        assert wide - narrow == 45 * 8 * 128 * 128 * 2
    doubled = answer(QWEN, tp_size=8, environment={"SGLANG_MAMBA_CONV_DTYPE": "float32"}, **SLOTS)
    assert (pools(doubled)["mamba"].bytes_per_slot or 0) > wide


def test_states_are_shared_by_attention_groups() -> None:
    assert pools(answer(QWEN, tp_size=8, attn_dp_size=8, **SLOTS))["mamba"].slots == 62


def test_speculative_states_count_in_the_weight_alone() -> None:
    """Qwen3.5-122B at tp 8, EAGLE with 4 draft tokens and 64 requests."""
    found = pools(answer("nvidia/Qwen3.5-122B-A10B-NVFP4", tp_size=8, kv_cache_dtype="bf16", **EAGLE, **SLOTS))
    assert found["kv"].bytes_per_slot == 13 * 1024  # 12 layers and the packed draft
    assert found["kv"].device_bytes == (1_000_000 + 1) * 12 * 1024  # without it
    assert found["mamba"].device_bytes == 14_615_875_584


def test_a_state_that_ranks_can_not_share() -> None:
    assert code(answer(QWEN, tp_size=48, **SLOTS)) == "HC416"


def test_attention_of_a_linear_hybrid_can_be_missing_on_a_stage() -> None:
    """Its pool is there with no bytes; the arithmetic refuses it where SGLang does."""
    pipeline = answer("Qwen/Qwen3.5-35B-A3B", pp_size=20, **SLOTS)
    assert 0 in [row["kv"] for row in rows(pipeline)]


ZAYA: dict[str, Any] = {
    "architectures": ["ZayaForCausalLM"],
    "model_type": "zaya",
    "dtype": "bfloat16",
    "num_hidden_layers": 80,
    "hidden_size": 2048,
    "num_attention_heads": 8,
    "num_key_value_heads": 2,
    "head_dim": 128,
}


def test_layers_with_attention_and_convolutions() -> None:
    """ZAYA1: every second layer has both, or those that are listed; figures of SGLang 0.5.23 on two ranks."""
    state = (5 * 128 * 2 + 2048) * 2  # heads of a rank over a window of two, and the stream, which is not split
    assert rows(answer(ZAYA, tp_size=2)) == [{"kv": 40 * 512, "mamba": 40 * state}]
    listed = {**ZAYA, "num_hidden_layers": 4, "zaya_layers": ["a", 16, "a", "a"]}
    assert rows(answer(listed, tp_size=2)) == [{"kv": 3 * 512, "mamba": 3 * state}]


@pytest.mark.parametrize("ranks", [4, 3])
def test_heads_that_ranks_do_not_divide_are_refused(ranks: int) -> None:
    assert code(answer(ZAYA, tp_size=ranks)) == "HC416"


def test_states_alone_leave_a_pool_of_no_bytes() -> None:
    mamba = {
        "architectures": ["Mamba2ForCausalLM"],
        "model_type": "mamba2",
        "dtype": "bfloat16",
        "num_hidden_layers": 64,
        "hidden_size": 4096,
        "intermediate_size": 8192,
        "num_heads": 128,
        "head_dim": 64,
        "n_groups": 8,
        "state_size": 128,
        "conv_kernel": 4,
    }
    assert rows(answer(mamba, tp_size=2)) == [{"kv": 0, "mamba": 136_183_808}]
    assert code(answer({key: value for key, value in mamba.items() if key != "intermediate_size"})) == "HC602"


@pytest.mark.parametrize("architecture", ["MambaForCausalLM", "FalconMambaForCausalLM"])
def test_states_of_full_rank_alone(architecture: str) -> None:
    """SGLang 0.5.23, configs/mamba_utils.py:Mamba2StateShape.create_full_rank, for a rank of two."""
    mamba = {
        "architectures": [architecture],
        "dtype": "bfloat16",
        "num_hidden_layers": 64,
        "hidden_size": 4096,
        "intermediate_size": 8192,
        "state_size": 16,
        "conv_kernel": 4,
    }
    assert rows(answer(mamba, tp_size=2)) == [{"kv": 0, "mamba": 64 * (4096 * 3 * 2 + 4096 * 16 * 4)}]
    assert code(answer(mamba, tp_size=3)) == "HC416"


def test_a_stack_that_is_run_through_several_times_keeps_each_run() -> None:
    dense = {key: value for key, value in DENSE.items() if key != "model_type"}
    looped = {**dense, "architectures": ["HrmTextForCausalLM"], "H_cycles": 2, "L_cycles": 3}
    (once,) = rows(answer(dense))
    assert once["kv"] is not None
    assert rows(answer(looped)) == [{"kv": once["kv"] * 8}]
    assert rows(answer({**looped, "num_layers_per_stack": 4})) == [once]


# --- packed drafts ------------------------------------------------------------------------------------------------


def test_packed_layers_of_one_kind_each() -> None:
    assert rows(answer(GLM, tp_size=8, kv_cache_dtype="fp8_e4m3", **EAGLE)) == [{"kv": 79 * 656, "indexer": 22 * 132}]
    assert rows(answer("deepseek-ai/DeepSeek-V3", tp_size=8, **EAGLE)) == [{"kv": 62 * 1152}]
    assert rows(answer(MIMO, tp_size=8, page_size=64, **EAGLE, **SLOTS)) == [{"kv": 5760, "swa": 42 * 640}]
    nextn = {**EAGLE, "speculative_algorithm": "NEXTN"}
    assert rows(answer("deepseek-ai/DeepSeek-V3", tp_size=8, **nextn)) == [{"kv": 62 * 1152}]


def test_packed_drafts_on_the_last_stage_alone() -> None:
    last = answer(GLM, tp_size=4, pp_size=2, environment={"SGLANG_ENABLE_PP_SPEC": "1"}, **EAGLE)
    assert [row["kv"] for row in rows(last)] == [39 * 1152, 40 * 1152]


def test_a_model_without_layers_of_its_own_drafts_with_itself() -> None:
    """EAGLE without a draft takes the model once more: a pool of all its layers beside it."""
    (own,) = rows(answer("moonshotai/Kimi-K2-Instruct", tp_size=8))
    assert rows(answer("moonshotai/Kimi-K2-Instruct", tp_size=8, **EAGLE)) == [{**own, "draft": own["kv"]}]


@pytest.mark.parametrize(
    ("changed", "times"),
    [
        ({"architectures": ["NanbeigeForCausalLM"], "num_loops": 2}, 2),
        ({"architectures": ["HrmTextForCausalLM"], "H_cycles": 2, "L_cycles": 3}, 8),
    ],
)
def test_a_model_that_drafts_with_itself_keeps_each_run_through_its_layers(changed: dict[str, Any], times: int) -> None:
    dense = {key: value for key, value in DENSE.items() if key != "model_type"}
    row = 8 * 128 * 2 * 2 * 32 * times
    assert rows(answer({**dense, **changed}, **EAGLE)) == [{"kv": row, "draft": row}]


def test_states_without_a_window_refuse_drafts() -> None:
    assert code(answer(ZAYA, tp_size=2, **EAGLE)) == "HC690"


# --- the table ----------------------------------------------------------------------------------------------------


def test_each_family_has_a_page() -> None:
    pages = families()
    assert [page.name for page in pages][: len(FAMILIES)] == [family.page.name for family in FAMILIES]
    assert len({page.name for page in pages}) == len(pages)
    for page in pages:
        assert page.title
        assert page.pools or page.name == "none"
        assert page.formula.endswith(".")
        assert page.checked
        assert page.models


def test_each_model_of_the_catalogue_has_pools() -> None:
    for name in catalogue_names():
        pipeline = answer(name, tp_size=8, hicache_size=0, hicache_ratio=2.0)
        assert pipeline.stages, (name, pipeline.findings)


def test_each_model_of_the_catalogue_belongs_to_the_family_that_its_page_says() -> None:
    pages = [family.page for family in FAMILIES]
    named = {model: page.name for page in pages for model in page.models if model in catalogue_names()}
    assert named
    for model, family in named.items():
        pipeline = answer(model, tp_size=8, hicache_size=0, hicache_ratio=2.0, **SLOTS)
        assert pipeline.stages, (model, pipeline.findings)
        assert pipeline.family == family, model
