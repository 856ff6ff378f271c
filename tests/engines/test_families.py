"""What is read of device pools, by stand-ins with SGLang's class names; figures are SGLang's (0.5.20 to 0.5.23)."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from hicache_config.core.findings import ConfigurationError
from hicache_config.core.pools import DevicePool, check
from hicache_config.core.releases import Release
from hicache_config.engines.sglang.families import Situation, read

from . import fakes


def situation(kvcache: Any, *, page: int = 16, release: str = "0.5.23", beside: Any = None, **more: Any) -> Situation:
    return Situation(
        kvcache=kvcache,
        req_to_token_pool=SimpleNamespace(mamba_pool=beside),
        allocator=SimpleNamespace(),
        page_size=page,
        release=Release.of(release),
        has_state=beside is not None,
        **more,
    )


def by_name(pools: tuple[DevicePool, ...]) -> dict[str, DevicePool]:
    assert not check(pools)
    return {pool.name: pool for pool in pools}


def test_attention_counts_key_and_value_of_every_layer() -> None:
    """Llama-3.1-70B on 8 tensor ranks: 80 layers, one head of 128, 40,960 bytes a token."""
    (kv,) = read(situation(fakes.mha(80, heads=1, dim=128, slots=600_000, page=64), page=64))
    assert (kv.slots, kv.bytes_per_slot, kv.page_size) == (600_000, 40_960, 64)
    assert kv.device_bytes == (600_000 + 64) * 40_960


def test_asymmetric_attention_adds_its_two_widths() -> None:
    pool = fakes.mha(2)
    pool.v_head_dim = 8
    (kv,) = read(situation(pool))
    assert kv.bytes_per_slot == (16 + 8) * 2 * 2 * 2


def test_host_capacity_wins_over_size() -> None:
    (kv,) = read(situation(fakes.mha(2, host_capacity_tokens=640, host_capacity_bytes=99)))
    assert (kv.slots, kv.device_bytes) == (640, 99)


def test_latent_rows_are_as_wide_as_the_device_pool_says() -> None:
    (kv,) = read(situation(fakes.mla(61, width=656, dtype=fakes.BYTE, page=64), page=64))
    assert kv.bytes_per_slot == 61 * 656


def test_index_keys_follow_with_a_page_more_and_only_where_layers_own_them() -> None:
    kv, keys = read(situation(fakes.dsa(19, shared=tuple(range(7, 19))), page=64))
    assert (keys.name, keys.follows, keys.extra_pages, keys.bytes_per_slot) == ("indexer", "kv", 1, 7 * 132)
    assert kv.bytes_per_slot == 19 * 1152


def test_before_0_5_22_every_layer_has_index_keys_on_the_host() -> None:
    _, keys = read(situation(fakes.dsa(19, shared=tuple(range(7, 19))), page=64, release="0.5.21"))
    assert keys.bytes_per_slot == 19 * 132


def test_a_stage_that_owns_no_index_keys_has_no_such_pool() -> None:
    assert len(read(situation(fakes.dsa(3, shared=(0, 1, 2)), page=64))) == 1


def test_sliding_window_is_an_independent_pool() -> None:
    pools = by_name(read(situation(fakes.swa(4, 2), has_swa=True)))
    assert {name: (pool.slots, pool.bytes_per_slot, pool.follows) for name, pool in pools.items()} == {
        "kv": (1000, 4 * 128, None),
        "swa": (800, 2 * 128, None),
    }


def test_states_cost_convolution_and_temporal_state_of_every_layer() -> None:
    beside = fakes.states(3)
    hybrid = fakes.pool("HybridLinearKVPool", full_kv_pool=fakes.mha(1), size=1000)
    pools = by_name(read(situation(hybrid, beside=beside)))
    assert pools["mamba"].bytes_per_slot == 3 * fakes.STATE_BYTES
    assert (pools["mamba"].slots, pools["mamba"].page_size) == (16, 1)


def test_states_beside_a_sliding_window() -> None:
    pools = by_name(read(situation(fakes.swa(2, 2), has_swa=True, beside=fakes.states(1))))
    assert list(pools) == ["kv", "swa", "mamba"]


def test_packed_drafts_lie_in_the_targets_rows_and_not_in_its_weight() -> None:
    plain = read(situation(fakes.mha(4)))[0]
    packed = read(situation(fakes.mha(4), packed=(fakes.mha(1), fakes.mha(1))))[0]
    assert packed.bytes_per_slot == 6 * 128
    assert packed.device_bytes == plain.device_bytes
    assert packed.packed_bytes == (1016 * 128, 1016 * 128)


def test_packed_drafts_of_a_hybrid_go_where_their_layers_are() -> None:
    pools = by_name(read(situation(fakes.swa(4, 2), has_swa=True, packed=(fakes.swa(0, 1), fakes.swa(1, 0)))))
    assert (pools["kv"].bytes_per_slot, pools["swa"].bytes_per_slot) == (5 * 128, 3 * 128)


def test_a_windowed_draft_with_full_indices_has_a_pool_of_its_own() -> None:
    draft = fakes.swa(0, 1, swa_uses_full_indices=True)
    pools = by_name(read(situation(fakes.swa(4, 2), has_swa=True, packed=(draft, draft))))
    assert pools["draft_swa"].follows == "kv"
    assert pools["draft_swa"].carved
    assert pools["draft_swa"].bytes_per_slot == 2 * 128


@pytest.mark.parametrize(("release", "rule"), [("0.5.23", "pages"), ("0.5.22", "ratio")])
def test_a_draft_beside_the_target_follows_it(release: str, rule: str) -> None:
    pools = by_name(read(situation(fakes.mha(4), sidecar=(fakes.mha(1, slots=500),), release=release)))
    assert (pools["draft"].follows, pools["draft"].follow_rule, pools["draft"].slots) == ("kv", rule, 500)


def test_a_sparse_draft_brings_its_index_keys() -> None:
    pools = by_name(read(situation(fakes.dsa(4), page=64, sidecar=(fakes.dsa(1),))))
    assert list(pools) == ["kv", "indexer", "draft", "draft_indexer"]
    assert pools["draft_indexer"].extra_pages == 1


def test_a_windowed_draft_beside_the_target_follows_the_window() -> None:
    pools = by_name(read(situation(fakes.swa(4, 2), has_swa=True, sidecar=(fakes.swa(0, 1),))))
    assert (pools["draft_swa"].follows, pools["draft_swa"].follow_rule) == ("swa", "ratio")


def test_context_parallel_ranks_share_a_page() -> None:
    (kv,) = read(situation(fakes.mla(2), page=64, dcp_size=4))
    assert kv.page_size == 16


def test_index_keys_of_minimax() -> None:
    keys = fakes.pool("MHATokenToKOnlyPool", head_num=1, head_dim=128, layer_num=3, store_dtype=fakes.BYTE)
    sparse = fakes.pool("MiniMaxSparseKVPool", main_pool=fakes.mha(4), index_k_pool=keys)
    pools = by_name(read(situation(sparse)))
    assert (pools["indexer"].bytes_per_slot, pools["indexer"].follows) == (3 * 128, "kv")


def test_compressed_index_of_qsa_is_carved_out_of_the_kv_share() -> None:
    buffers = [fakes.Tensor(100, 2, 64), fakes.Tensor(100, 2, 64)]
    hybrid = fakes.pool(
        "QSATokenToKVPool", full_kv_pool=fakes.mha(2, page=64), qsa_compress_ratio=4, size=1000,
        qsa_compressed_k_buffer_pool=buffers,
    )  # fmt: skip
    pools = by_name(read(situation(hybrid, page=64, beside=fakes.states(1))))
    assert pools["indexer"].page_bytes == 2 * 16 * 256
    assert pools["indexer"].carved


def v4(**more: Any) -> Any:
    """Two C4 layers and one C128 layer over three layers, with SGLang's row sizes."""
    state = SimpleNamespace(
        ring_size=8, kv_score_buffer=SimpleNamespace(kv_score=fakes.Tensor(64, 2048, dtype=fakes.FP32))
    )
    rows = lambda size, layers: SimpleNamespace(bytes_per_page_padded=size, kv_buffer=[None] * layers)  # noqa: E731
    given = {
        "size": 1000, "swa_size": 300, "swa_page_size": 256, "swa_kv_pool": rows(149_760, 3), "start_layer": 0,
        "end_layer": 3, "layer_mapping": [SimpleNamespace(compress_ratio=ratio) for ratio in (4, 128, 4)],
        "c4_kv_pool": rows(37_440, 2), "c128_kv_pool": rows(1_728, 1),
        "c4_indexer_kv_pool": SimpleNamespace(index_k_with_scale_buffer=[fakes.Tensor(9, 8448, dtype=fakes.BYTE)] * 2),
        "compress_state_pools": {0: state, 2: state}, "indexer_compress_state_pools": {0: state, 2: state},
    }  # fmt: skip
    return fakes.pool("DeepSeekV4TokenToKVPool", **{**given, **more})


def test_deepseek_v4_pages_follow_full_and_window_pages() -> None:
    pools = by_name(read(situation(v4(), page=256)))
    assert {name: (pool.follows, pool.bytes_per_page) for name, pool in pools.items()} == {
        "kv": (None, 0),
        "swa": (None, 3 * 149_760),
        "deepseek_v4_c4": ("kv", 2 * 37_440),
        "deepseek_v4_c4_indexer": ("kv", 2 * 8_448),
        "deepseek_v4_c4_state": ("swa", 2 * 65_536),
        "deepseek_v4_c4_indexer_state": ("swa", 2 * 65_536),
        "deepseek_v4_c128": ("kv", 1_728),
    }
    assert all(pools[name].page_rule == "whole" for name in ("kv", "swa"))


def test_sources_that_layers_share_are_pages_of_their_own() -> None:
    rows = SimpleNamespace(kv_buffer=[fakes.Tensor(9, 135_168, dtype=fakes.BYTE)] * 2)
    index = SimpleNamespace(page_size=64, index_k_with_scale_buffer=[fakes.Tensor(40, 8_448, dtype=fakes.BYTE)] * 2)
    made = v4(sources_by_ratio={2: [0, 1], 4: [0]}, kv_pools={2: rows}, index_pools={2: index})
    pools = by_name(read(situation(made, page=256)))
    assert pools["deepseek_v4_c2"].page_bytes == 2 * 135_168
    assert pools["deepseek_v4_c2_indexer"].page_bytes == 2 * 2 * 8_448
    assert "deepseek_v4_c1" not in pools


@pytest.mark.parametrize(
    ("kvcache", "more"),
    [
        (fakes.pool("MHATokenToKVPoolFP4", layer_num=2), {}),
        (fakes.pool("UnifiedMHATokenToKVPool", type("MHATokenToKVPool", (), {}), layer_num=2), {}),
        (fakes.pool("PageInterleaveMHATokenToKVPool", type("PageInterleaveKVPoolMixin", (), {})), {}),
        (fakes.pool("UnifiedSWAKVPool", type("SWAKVPool", (), {})), {"has_swa": True}),
        (fakes.pool("SomethingNew"), {"beside": fakes.states(1)}),
        # Its ranks mirror different layers of one stage.
        (fakes.pool("LayerSplitDSATokenToKVPool", type("DSATokenToKVPool", (), {}), layer_num=4), {}),
        (v4(_unified_kv=True), {}),
    ],
)
def test_pools_that_are_not_known_are_refused_not_guessed(kvcache: Any, more: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError) as caught:
        read(situation(kvcache, **more))
    assert [finding.code for finding in caught.value.findings] == ["HC453"]


@pytest.mark.parametrize(
    ("kvcache", "more", "pool"),
    [
        (fakes.mha(0), {}, "kv"),
        (fakes.pool("HybridLinearKVPool", full_kv_pool=fakes.mha(0), size=1), {"beside": fakes.states(2)}, "kv"),
        (fakes.swa(2, 0), {"has_swa": True}, "swa"),
    ],
)
def test_a_stage_without_layers_of_a_kind_is_refused_by_its_number(
    kvcache: Any, more: dict[str, Any], pool: str
) -> None:
    with pytest.raises(ConfigurationError) as caught:
        read(situation(kvcache, stage=3, **more))
    (finding,) = caught.value.findings
    assert (finding.code, finding.stage, finding.pool) == ("HC303", 3, pool)
    assert "stage 3" in finding.message
