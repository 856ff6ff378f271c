"""What SGLang refuses for the special families and drafts, each by its own code; and the neighbours that it takes."""

from __future__ import annotations

from typing import Any

import pytest

from hicache_config.geometry import Pipeline

from . import replaying

FLASH, V41 = "deepseek-ai--DeepSeek-V4-Flash", "special/deepseek-v4.1"
M3, M3_FOUR_BIT = "special/minimax-m3", "special/minimax-m3-nvfp4"
QSA, INKLING = "special/qwen4-exp", "special/inkling"
GPT_OSS, QWEN, GLM = "openai--gpt-oss-120b", "Qwen--Qwen3-8B", "zai-org--GLM-5.2-FP8"
MIMO, LATENT = "XiaomiMiMo--MiMo-V2-Flash", "deepseek-ai--DeepSeek-V3"
LAYOUT, COMPRESSED = "SGLANG_DSV4_KV_LAYOUT", "SGLANG_DSV4_COMPRESSED_KV_LAYOUT"


def chain(algorithm: str, tokens: int = 4, draft: str | None = None) -> dict[str, Any]:
    named = {} if draft is None else {"speculative_draft_model_path": draft}
    return {
        "speculative_algorithm": algorithm,
        "speculative_num_steps": tokens - 1,
        "speculative_eagle_topk": 1,
        "speculative_num_draft_tokens": tokens,
        "max_running_requests": 64,
        **named,
    }


def decode(**given: Any) -> dict[str, Any]:
    return {"disaggregation_mode": "decode", "enable_hierarchical_cache": False, "hicache_size": 50, **given}


OFFLOAD = {"disaggregation_decode_enable_offload_kvcache": True}


def asked(
    model: str, gpu: str = "sm90", env: dict[str, str] | None = None, patch: Any = None, **given: Any
) -> Pipeline:
    size = {} if "hicache_ratio" in given else {"hicache_size": 100}
    base = {"tp_size": 4, "page_size": None, "max_total_tokens": 1_000_000, "max_mamba_cache_size": 500}
    args = {name: value for name, value in {**base, **size, **given}.items() if value is not None}
    return replaying.answer({"model": model, "gpu": gpu, "env": env or {}, "patch": patch, "args": args})


@pytest.mark.parametrize(
    ("code", "model", "gpu", "env", "given"),
    [
        ("HC620", FLASH, "sm90", {LAYOUT: "v41"}, {}),
        ("HC620", FLASH, "sm90", {LAYOUT: "V41_NEW"}, {}),
        ("HC620", FLASH, "sm90", {LAYOUT: "v5"}, {}),
        ("HC620", FLASH, "sm90", {COMPRESSED: "fp4"}, {}),
        ("HC620", FLASH, "sm100", {COMPRESSED: "int8"}, {}),
        ("HC620", FLASH, "sm100", {LAYOUT: "v41"}, {"dsv4_attn_backend": "trtllm"}),
        ("HC621", FLASH, "sm90", {"SGLANG_DSV4_COMPRESS_STATE_DTYPE": "fp8"}, {}),
        ("HC622", FLASH, "sm120", {"SGLANG_OPT_SM120_DIRECT_SWA_KV": "1"}, {}),
        ("HC623", V41, "sm100", {}, {"enable_encoder_swa_bounded_replay": True}),
        ("HC624", FLASH, "sm90", {}, {"dsv4_attn_backend": "trtllm"}),
        ("HC624", FLASH, "sm100", {}, {"dsv4_attn_backend": "flashmla_mega"}),
        ("HC624", FLASH, "sm90", {}, {"enable_deepseek_v4_fp4_indexer": True}),
        ("HC625", FLASH, "sm90", {}, chain("EAGLE3", draft="special/eagle3-dense")),
        ("HC626", FLASH, "sm90", {}, chain("EAGLE", tokens=11)),
        ("HC627", FLASH, "sm90", {}, chain("DSPARK")),
        ("HC628", V41, "sm100", {}, {"pp_size": 2}),
        ("HC628", V41, "sm100", {}, chain("EAGLE")),
        ("HC650", "special/minimax-m3-index-values", "sm90", {}, {}),
        ("HC651", M3, "sm90", {}, {"pp_size": 2}),
        ("HC651", M3_FOUR_BIT, "sm100", {}, {"pp_size": 2}),
        ("HC653", M3_FOUR_BIT, "sm100", {}, {"page_size": 64}),
        ("HC654", M3_FOUR_BIT, "sm100", {}, {"kv_cache_dtype": "bf16"}),
        ("HC655", QSA, "sm90", {}, {"tp_size": 1, "pp_size": 16}),
        ("HC656", QSA, "sm80", {}, {"qsa_indexer_dtype": "fp8_e4m3"}),
        ("HC657", QWEN, "sm90", {}, chain("EAGLE3")),
        ("HC659", "Qwen--Qwen3.5-397B-A17B", "sm90", {}, {**chain("EAGLE"), "pp_size": 2}),
        ("HC660", MIMO.replace("V2-Flash", "7B-Base"), "sm90", {}, chain("EAGLE")),
        ("HC663", QWEN, "sm90", {}, chain("STANDALONE", draft="Qwen--Qwen3-32B")),
        ("HC664", QWEN, "sm90", {}, chain("STANDALONE", draft="special/gpt-oss-20b")),
        ("HC665", M3_FOUR_BIT, "sm100", {}, chain("EAGLE3", draft="special/eagle3-latent")),
        ("HC666", INKLING, "sm90", {}, chain("EAGLE")),
        ("HC667", GPT_OSS, "sm90", {}, decode(**OFFLOAD)),
        ("HC667", M3, "sm90", {}, decode(**OFFLOAD)),
        ("HC667", FLASH, "sm90", {}, decode(**OFFLOAD)),
        ("HC667", "Qwen--Qwen3.5-397B-A17B", "sm90", {}, decode(**OFFLOAD)),
        ("HC668", GPT_OSS, "sm90", {}, {"enable_unified_memory": True, "page_size": 64}),
    ],
)  # fmt: skip
def test_refused(code: str, model: str, gpu: str, env: dict[str, str], given: dict[str, Any]) -> None:
    patch = {"num_nextn_predict_layers": 2} if code == "HC660" else None
    answer = asked(model, gpu, env, patch, **given)
    assert answer.stages == ()
    (finding,) = answer.findings
    assert (finding.code, finding.severity) == (code, "error")
    assert finding.message
    assert finding.help


@pytest.mark.parametrize(
    ("model", "gpu", "env", "given"),
    [
        (FLASH, "sm90", {LAYOUT: "auto", COMPRESSED: "fp4"}, {}),
        (FLASH, "sm100", {LAYOUT: "v41", COMPRESSED: "fp4"}, {}),
        (FLASH, "sm100", {LAYOUT: "auto"}, {"dsv4_attn_backend": "trtllm"}),
        (FLASH, "sm120", {}, {"enable_deepseek_v4_fp4_indexer": True}),
        (FLASH, "sm90", {"SGLANG_OPT_SM120_DIRECT_SWA_KV": "1"}, {}),
        (FLASH, "sm90", {}, chain("EAGLE", tokens=10)),
        ("special/deepseek-v4-dspark", "sm90", {}, chain("DSPARK")),
        (M3_FOUR_BIT, "sm90", {}, {"kv_cache_dtype": "bf16"}),
        (QSA, "sm90", {}, {"tp_size": 1, "pp_size": 12}),
        (GPT_OSS, "sm90", {}, chain("STANDALONE", draft="special/gpt-oss-20b")),
        (INKLING, "sm90", {}, {**chain("EAGLE"), "enable_multi_layer_eagle": True, "page_size": 64}),
        (LATENT, "sm90", {}, decode(**OFFLOAD)),
        (QWEN, "sm90", {}, {"enable_unified_memory": True}),
        ("Qwen--Qwen3.5-397B-A17B", "sm90", {"SGLANG_ENABLE_PP_SPEC": "1"}, {**chain("EAGLE"), "pp_size": 2}),
    ],
)
def test_the_neighbour_is_taken(model: str, gpu: str, env: dict[str, str], given: dict[str, Any]) -> None:
    answer = asked(model, gpu, env, **given)
    assert answer.stages, answer.findings


def test_a_draft_that_is_not_at_hand_is_said() -> None:
    """Without its config.json the pools of the model stand, and a warning says what is left out."""
    answer = replaying.pipeline_of(
        replaying.Model(QWEN, replaying.config(QWEN)),
        replaying.typed({"args": {"hicache_size": 10, **chain("EAGLE3", draft="/somewhere/else")}}),
        replaying.Question("0.5.23", "sm90", {}),
    )
    assert [pool.name for pool in answer.stages[0].pools] == ["kv"]
    (finding,) = answer.findings
    assert (finding.code, finding.severity, finding.asked) == ("HC658", "warning", "/somewhere/else")


def test_a_draft_with_index_keys_needs_a_target_with_some() -> None:
    """Stages of GLM-5.2 that share another stage's selection own no index keys, but their packed draft would."""
    stages = {"SGLANG_PP_LAYER_PARTITION": "75,3"}
    refused = asked(GLM, env={**stages, "SGLANG_ENABLE_PP_SPEC": "1"}, pp_size=2, **chain("EAGLE"))
    assert [finding.code for finding in refused.findings] == ["HC661"]
    assert asked(GLM, env=stages, pp_size=2).stages


def test_a_packed_draft_has_the_rows_of_its_model() -> None:
    """A NextN checkpoint kept in another type has other rows."""
    draft = chain("EAGLE", draft=LATENT)
    assert asked(LATENT, **draft).stages
    other = asked(LATENT, kv_cache_dtype="fp8_e4m3", speculative_draft_kv_cache_dtype="bf16", **draft)
    assert [finding.code for finding in other.findings] == ["HC662"]


def test_four_bit_pages_need_index_keys_in_every_layer() -> None:
    content = replaying.config(M3_FOUR_BIT)
    table = content["text_config"]["sparse_attention_config"]
    freq = [0, *table["sparse_attention_freq"][1:]]
    text = {**content["text_config"], "sparse_attention_config": {**table, "sparse_attention_freq": freq}}
    patch = {"text_config": text}
    assert [finding.code for finding in asked(M3_FOUR_BIT, "sm100", patch=patch).findings] == ["HC652"]


def test_the_shared_arena_says_its_bytes() -> None:
    """The real SGLang allocates 100,000,530,432 bytes for this one."""
    (finding,) = asked(GPT_OSS, enable_unified_memory=True, page_size=64).findings
    assert "100,000,530,432 bytes" in finding.message
