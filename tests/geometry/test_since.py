"""What older SGLang releases do otherwise (read in their wheels, and held against recordings of their pools)."""

from __future__ import annotations

from typing import Any

import pytest

from hicache_config.core.pools import DevicePool
from hicache_config.core.releases import Release
from hicache_config.geometry import Model, Pipeline, Question, load_model, pipeline_of
from hicache_config.geometry.older_pools import as_built

from .making import DENSE, args, code, rows
from .test_families import EAGLE


def at(release: str, config: dict[str, Any] | str, gpu: str = "sm90", **given: Any) -> Pipeline:
    model = load_model(config)[0] if isinstance(config, str) else Model("a-model", config)
    assert model is not None
    return pipeline_of(model, args(**given), Question(release, gpu))


@pytest.mark.parametrize(
    ("model", "first", "given"),
    [
        ("openai/gpt-oss-120b", "0.5.13", {}),  # host pools of sliding windows
        ("google/gemma-4-26B-A4B", "0.5.13", {}),
        ("XiaomiMiMo/MiMo-V2-Flash", "0.5.14", {}),  # keys and values of different widths
        ("moonshotai/Kimi-K3", "0.5.17", {}),  # the model class
        ("deepseek-ai/DeepSeek-V4-Flash", "0.5.13", {}),
        ("MiniMaxAI/MiniMax-M3", "0.5.16", {"page_size": 128}),
        ({**DENSE, "v_head_dim": 64}, "0.5.14", {}),
        (DENSE, "0.5.10", {}),
    ],
)
def test_first_release(model: Any, first: str, given: dict[str, Any]) -> None:
    number = int(first.rpartition(".")[2])
    if number > 10:
        missing_class = isinstance(model, str) and model.startswith(("moonshotai/", "MiniMaxAI/"))
        wanted = "HC613" if missing_class else "HC614"
        assert code(at(f"0.5.{number - 1}", model, tp_size=8, **given)) == wanted
    assert at(first, model, tp_size=8, **given).stages


def test_index_keys_lie_in_the_row_up_to_0_5_10() -> None:
    sparse = "deepseek-ai/DeepSeek-V3.2"
    assert rows(at("0.5.10", sparse)) == [{"kv": 61 * (1152 + 132)}]
    assert rows(at("0.5.11", sparse)) == [{"kv": 61 * 1152, "indexer": 61 * 132}]


def test_the_unified_tree_of_0_5_12_is_asked_for() -> None:
    """0.5.12, managers/scheduler.py: without the variable HiRadixCache gets the pool, and refuses it."""
    model, _ = load_model("openai/gpt-oss-120b")
    assert model is not None
    named = Question("0.5.12", "sm90", {"SGLANG_ENABLE_UNIFIED_RADIX_TREE": "1"})
    assert pipeline_of(model, args(tp_size=8), named).stages
    assert code(pipeline_of(model, args(tp_size=8), Question("0.5.12", "sm90"))) == "HC614"


def test_a_draft_lies_beside_the_model_up_to_0_5_17() -> None:
    latent, sparse = "deepseek-ai/DeepSeek-V3", "deepseek-ai/DeepSeek-V3.2"
    assert rows(at("0.5.10", latent, **EAGLE)) == [{"kv": 61 * 1152}]
    assert rows(at("0.5.17", latent, **EAGLE)) == [{"kv": 61 * 1152, "draft": 1152}]
    assert rows(at("0.5.18", sparse, **EAGLE)) == [{"kv": 62 * 1152, "indexer": 62 * 132}]


def test_0_5_18_packs_a_draft_for_its_unified_tree_alone() -> None:
    """Its HiRadixCache gets no draft, packed or beside: nothing on the host mirrors it."""
    latent = "deepseek-ai/DeepSeek-V3"
    assert rows(at("0.5.18", latent, **EAGLE)) == [{"kv": 61 * 1152}]
    assert rows(at("0.5.19", latent, **EAGLE)) == [{"kv": 62 * 1152}]
    model, _ = load_model(latent)
    assert model is not None
    named = Question("0.5.18", "sm90", {"SGLANG_ENABLE_UNIFIED_RADIX_TREE": "1"})
    assert rows(pipeline_of(model, args(**EAGLE), named)) == [{"kv": 62 * 1152}]


def test_rows_without_their_scales() -> None:
    """0.5.11 kept room for 576 of the 656 bytes of a row, 0.5.12 for all; so it was for drafts up to 0.5.17."""
    sparse: dict[str, Any] = {"kv_cache_dtype": "fp8_e4m3", **EAGLE}
    kv = {release: rows(at(release, "deepseek-ai/DeepSeek-V3.2", **sparse))[0] for release in ("0.5.11", "0.5.12")}
    assert (kv["0.5.11"]["kv"], kv["0.5.12"]["kv"]) == (61 * 576, 61 * 656)
    assert kv["0.5.11"]["draft"] == kv["0.5.12"]["draft"] == 576


@pytest.mark.parametrize(("release", "rule"), [("0.5.11", "ratio"), ("0.5.22", "ratio"), ("0.5.23", "pages")])
def test_a_draft_beside_the_model_takes_its_slots_through_a_ratio_up_to_0_5_22(release: str, rule: str) -> None:
    """So it has mostly one page more than kv; its index keys go with it."""
    kv = DevicePool("kv", 1000, 8, 16)
    drafts = [DevicePool(name, 1000, 1, 16, follows="kv") for name in ("draft", "draft_indexer")]
    built = as_built(Release.of(release), [kv, *drafts])
    assert {pool.follow_rule for pool in built if pool.name != "kv"} == {rule}
    assert {pool.pages_following(10, kv) for pool in built if pool.name != "kv"} == {11 if rule == "ratio" else 10}


def test_an_older_release_is_an_assumption() -> None:
    assert at("0.5.23", DENSE).assumptions == ()
    (text,) = at("0.5.17", DENSE).assumptions
    assert "what 0.5.17 builds otherwise (compared with pools that its constructors built)" in text
    assert text.endswith("whole models were compared with 0.5.23")
    (text,) = at("0.5.22", DENSE).assumptions
    assert text.endswith("whole models were compared with 0.5.23 and, fewer of them, with 0.5.22")
    assert "(read in its wheel)" in at("0.5.20", "deepseek-ai/DeepSeek-V4-Flash", tp_size=8).assumptions[0]


def test_what_an_older_release_leaves_open_is_an_assumption() -> None:
    """The one page of a draft that hangs on device slots, and the one of index keys that 0.5.10 has beyond its rows."""
    drafted = {"release": "0.5.17", "config": "deepseek-ai/DeepSeek-V3", **EAGLE}
    assert "gives the draft a page more" in at(**drafted).assumptions[1]
    assert not any("a page more" in text for text in at(**drafted, max_total_tokens=64_000).assumptions)
    assert "one page of index keys" in at("0.5.10", "deepseek-ai/DeepSeek-V3.2").assumptions[1]


def test_sparse_linear_hybrids_lack_index_keys_and_scales_up_to_0_5_21() -> None:
    """What their host pools held was a bare row without its index keys (0.5.21, build_hybrid_mamba_stack)."""
    keys = DevicePool("indexer", 1000, 3 * 132, 64, follows="kv", extra_pages=1)
    pools = [DevicePool("kv", 1000, 3 * 656, 64), keys, DevicePool("mamba", 10, 4096)]
    built = as_built(Release.of("0.5.21"), pools, 656, 576)
    assert [(pool.name, pool.bytes_per_slot) for pool in built] == [("kv", 3 * 576), ("mamba", 4096)]
    assert as_built(Release.of("0.5.22"), pools, 656, 576) == pools
