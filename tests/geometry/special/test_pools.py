"""Rows and slots of the special families by hand, beside what is recorded."""

from __future__ import annotations

from typing import Any

import pytest

from hicache_config.core.pools import DevicePool
from hicache_config.geometry.envelope import arena_bytes
from hicache_config.geometry.gpu import Gpu
from hicache_config.geometry.v4_layout import index_token_bytes, layouts

from . import replaying
from .test_refusals import FLASH, GLM, GPT_OSS, INKLING, LATENT, M3, M3_FOUR_BIT, MIMO, QSA, QWEN, V41, asked, chain


def pools(*given: Any, **more: Any) -> dict[str, DevicePool]:
    found = asked(*given, **more)
    assert found.stages, found.findings
    return {pool.name: pool for pool in found.stages[0].pools}


# --- DeepSeek V4 --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("backend", "layout", "gpu", "expected"),
    [
        ("flashmla", None, "sm90", [149_760, 37_440, 149_760]),
        ("flashmla", "auto", "sm90", [149_760, 37_440, 149_760]),
        ("trtllm", None, "sm100", [256 * 512, 64 * 512, 256 * 512]),
        ("flashmla", "auto", "sm100", [256 * 528, 64 * 528, 256 * 288]),
        ("flashmla", "v41_new", "sm103", [256 * 528, 64 * 528, 256 * 288]),
        ("flashmla_mega", None, "sm100", [256 * 528, 64 * 528, 256 * 288]),
    ],
)
def test_bytes_of_a_page(backend: str, layout: str | None, gpu: str, expected: list[int]) -> None:
    """Of the sliding cache, of four tokens to a latent and of one, in one layer."""
    chosen = layouts(backend, {} if layout is None else {"SGLANG_DSV4_KV_LAYOUT": layout}, Gpu.of(gpu))
    pages = [chosen.main.page_bytes(256), chosen.of_ratio(4).page_bytes(64), chosen.of_ratio(1).page_bytes(256)]
    assert pages == expected


def test_a_four_bit_compressed_cache_is_for_every_ratio() -> None:
    asked_for = {"SGLANG_DSV4_KV_LAYOUT": "v41", "SGLANG_DSV4_COMPRESSED_KV_LAYOUT": "fp4"}
    chosen = layouts("flashmla", asked_for, Gpu.of("sm100"))
    assert [chosen.of_ratio(ratio).page_bytes(256 // ratio) for ratio in (1, 4, 128)] == [73_728, 18_432, 768]
    asked_for["SGLANG_DSV4_COMPRESSED_KV_LAYOUT"] = "fp8"
    assert layouts("flashmla", asked_for, Gpu.of("sm100")).of_ratio(1).page_bytes(256) == 256 * 528


def test_index_keys_of_v4() -> None:
    assert (index_token_bytes(128, False), index_token_bytes(128, True)) == (132, 68)
    narrow = pools(FLASH, "sm100", enable_deepseek_v4_fp4_indexer=True)["deepseek_v4_c4_indexer"]
    assert narrow.bytes_per_page == 21 * 64 * 68


def test_the_kv_anchor_holds_nothing_and_rounds_down() -> None:
    anchor = pools(FLASH)["kv"]
    assert (anchor.bytes_per_slot, anchor.page_rule, anchor.page_size) == (0, "whole", 256)


def test_a_draft_of_v4_lies_in_the_sliding_pages_and_doubles_the_ring() -> None:
    plain, drafting = pools(FLASH), pools(FLASH, **chain("EAGLE"))
    assert plain["swa"].bytes_per_page == 43 * 149_760
    assert drafting["swa"].bytes_per_page == 44 * 149_760
    assert drafting["deepseek_v4_c4_state"].bytes_per_page == 2 * plain["deepseek_v4_c4_state"].bytes_per_page
    assert drafting["deepseek_v4_c4"].bytes_per_page == plain["deepseek_v4_c4"].bytes_per_page


def test_v41_without_its_ratio_has_sliding_slots_that_are_not_known() -> None:
    found = asked(V41, "sm100")
    assert {pool.name: pool.slots for pool in found.stages[0].pools}["swa"] is None
    assert any("sizes them by requests" in note for note in found.assumptions)


# --- MiniMax M3 and QSA -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("gpu", "given", "env", "each"),
    [
        ("sm90", {}, {}, 2),
        ("sm90", {"kv_cache_dtype": "fp8_e4m3"}, {}, 1),
        ("sm90", {"kv_cache_dtype": "fp8_e5m2"}, {}, 2),
        ("sm100", {"kv_cache_dtype": "fp8_e4m3"}, {}, 1),
        ("sm100", {"kv_cache_dtype": "fp8_e4m3", "attention_backend": "fa4"}, {}, 2),
        ("sm100", {"kv_cache_dtype": "fp8_e4m3"}, {"SGLANG_DISABLE_M3_FP8_ATTN_GEMM": "1"}, 2),
    ],
)
def test_index_keys_of_m3(gpu: str, given: dict[str, Any], env: dict[str, str], each: int) -> None:
    sparse = sum(replaying.config(M3)["text_config"]["sparse_attention_config"]["sparse_attention_freq"])
    index = pools(M3, gpu, env, **given)["indexer"]
    assert (index.bytes_per_slot, index.follows, index.carved) == (sparse * 128 * each, "kv", False)


def test_four_bit_rows_of_m3() -> None:
    """A page of 128: 18,432 bytes a head and layer for keys and values, 9,216 a layer of index keys."""
    found = pools(M3_FOUR_BIT, "sm100")
    assert found["kv"].bytes_per_page == 60 * 18_432
    assert found["indexer"].bytes_per_page == 60 * 9_216
    assert found["indexer"].carved
    assert found["kv"].page_size == 128


def test_index_keys_of_qsa_are_taken_out_of_the_share() -> None:
    found = pools(QSA)
    assert found["indexer"].carved
    assert found["indexer"].follows == "kv"
    narrow = pools(QSA, qsa_indexer_dtype="fp8_e4m3")
    assert found["indexer"].bytes_per_page == 2 * narrow["indexer"].bytes_per_page


# --- drafts -------------------------------------------------------------------------------------------------------


def test_a_layer_for_each_step() -> None:
    """Multi-layer EAGLE packs as many depths as steps; others their own layers, whatever the steps."""
    for steps in (1, 2, 3):
        mimo = chain("EAGLE", tokens=steps + 1)
        added = (
            pools(MIMO, page_size=64, **mimo)["swa"].bytes_per_slot - pools(MIMO, page_size=64)["swa"].bytes_per_slot
        )
        one = pools(MIMO, page_size=64, **chain("EAGLE", tokens=2))["swa"].packed_bytes
        assert added == steps * 2 * (192 + 128) * 2
        assert len(one) == 1
        glm = pools(GLM, **chain("EAGLE", tokens=steps + 1))["kv"].bytes_per_slot
        assert glm == pools(GLM)["kv"].bytes_per_slot // 78 * 79


def test_packed_drafts_do_not_weigh() -> None:
    """Their bytes are in the row, not in the weights by which SGLang splits the size."""
    plain, drafting = pools(MIMO, page_size=64), pools(MIMO, page_size=64, **chain("EAGLE"))
    assert drafting["swa"].weight == plain["swa"].weight
    assert len(drafting["swa"].packed_bytes) == 3


def test_states_weigh_with_what_speculation_keeps() -> None:
    hybrid = "Qwen--Qwen3.5-397B-A17B"
    plain, drafting = pools(hybrid), pools(hybrid, **chain("EAGLE"))
    assert drafting["mamba"].bytes_per_slot == plain["mamba"].bytes_per_slot
    assert drafting["mamba"].weight > plain["mamba"].weight


@pytest.mark.parametrize(
    ("model", "draft", "expected"),
    [
        (QWEN, "special/eagle3-dense", {"draft": 2 * 2 * 128 * 2}),
        (LATENT, "special/eagle3-latent", {"draft": 1152}),
    ],
)
def test_a_draft_beside_the_model(model: str, draft: str, expected: dict[str, int]) -> None:
    found = pools(model, **chain("EAGLE3", draft=draft))
    beside = {name: pool for name, pool in found.items() if name.startswith("draft")}
    assert {name: pool.bytes_per_slot for name, pool in beside.items()} == expected
    assert all((pool.follows, pool.follow_rule) == ("kv", "pages") for pool in beside.values())


def test_a_draft_with_index_keys_brings_both() -> None:
    found = pools(GLM, **chain("STANDALONE", draft="special/glm-short"))
    assert {"draft", "draft_indexer"} <= set(found)
    assert found["draft_indexer"].extra_pages == 1


def test_a_sliding_draft_follows_the_sliding_pool_by_ratio() -> None:
    found = pools(GPT_OSS, page_size=64, **chain("STANDALONE", draft="special/gpt-oss-20b"))["draft_swa"]
    assert (found.follows, found.follow_rule, found.bytes_per_slot) == ("swa", "ratio", 12 * 2 * 64 * 2 * 2)


def test_inkling_takes_its_sliding_drafts_out_of_kv() -> None:
    found = pools(INKLING, page_size=64, enable_multi_layer_eagle=True, **chain("EAGLE"))
    assert [name for name in found if name.startswith("draft")] == ["draft_swa"]
    assert (found["draft_swa"].follows, found["draft_swa"].carved) == ("kv", True)


# --- the shared arena ---------------------------------------------------------------------------------------------


def test_the_arena_holds_the_larger_side() -> None:
    assert arena_bytes(100, [(64, 64 * 9_216), (64, 64 * 9_216)]) == 100_000_530_432
    assert arena_bytes(1e-6, [(64, 1000), (64, 3000)]) == 3000
