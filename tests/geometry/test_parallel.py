"""Laws of ranks, layers and machines."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hicache_config.geometry.model import RefusedError
from hicache_config.geometry.parallel import PARTITION, placement, split_layers, stages_never_started

from .making import DENSE, answer, code, rows

LAYERS, STAGES = st.integers(0, 200), st.integers(1, 40)


@given(LAYERS, STAGES)
def test_a_split_covers_all_layers_once_in_order(layers: int, stages: int) -> None:
    bounds = split_layers(layers, stages, {})
    assert len(bounds) == stages
    assert [layer for first, end in bounds for layer in range(first, end)] == list(range(layers))


@given(LAYERS, STAGES)
def test_the_last_stages_take_the_remainder(layers: int, stages: int) -> None:
    counts = [end - first for first, end in split_layers(layers, stages, {})]
    assert counts == sorted(counts)
    assert max(counts) - min(counts) <= 1


@given(st.lists(st.integers(0, 30), min_size=2, max_size=12))
def test_a_partition_is_followed(counts: list[int]) -> None:
    bounds = split_layers(sum(counts), len(counts), {PARTITION: ",".join(map(str, counts))})
    assert [end - first for first, end in bounds] == counts


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("10,x", "is not a list of whole numbers"),
        ("10,10,12", "has 3 numbers, and --pp-size is 2"),
        ("10,10", "sums to 20, and the model has 32 layers"),
        ("-1,33", "has a negative number"),
        ("", "is not a list of whole numbers"),
    ],
)
def test_a_wrong_partition_is_refused_with_one_that_works(text: str, why: str) -> None:
    with pytest.raises(RefusedError) as caught:
        split_layers(32, 2, {PARTITION: text})
    assert why in caught.value.finding.message
    assert "16,16" in caught.value.finding.help


def test_a_partition_does_not_matter_without_stages() -> None:
    assert split_layers(32, 1, {PARTITION: "3,1"}) == ((0, 32),)


@given(st.integers(1, 16), st.integers(1, 16), st.integers(1, 8), st.integers(1, 3))
def test_placement_starts_each_rank_once_where_sizes_divide(tensor: int, times: int, nodes: int, replicas: int) -> None:
    """With whole stages on a machine, or a stage over whole machines, every rank lies somewhere, once."""
    for width, stages in ((tensor, times * nodes), (tensor * nodes, 1)):
        held = placement(width, stages, nodes, replicas)
        assert [node.node for node in held] == list(range(nodes))
        for stage in range(stages):
            assert sum(node.ranks_by_stage.get(stage, 0) for node in held) == width * replicas
        assert stages_never_started(width, stages, nodes) == ()


def test_whole_stages_lie_on_a_machine() -> None:
    held = placement(tensor=4, stages=4, nodes=2)
    assert [dict(node.ranks_by_stage) for node in held] == [{0: 4, 1: 4}, {2: 4, 3: 4}]
    assert [node.ranks for node in held] == [8, 8]


def test_tensor_ranks_are_spread_over_machines() -> None:
    held = placement(tensor=16, stages=1, nodes=2)
    assert [dict(node.ranks_by_stage) for node in held] == [{0: 8}, {0: 8}]


def test_replicas_lie_on_the_same_machine() -> None:
    assert placement(tensor=4, stages=1, nodes=1, replicas=2)[0].ranks == 8


def test_stages_that_no_machine_starts() -> None:
    """Three stages on two machines: each machine takes one, the last stage is never launched."""
    assert stages_never_started(tensor=2, stages=3, nodes=2) == (2,)


def test_heads_are_shared_by_the_ranks_of_attention() -> None:
    one_head = 128 * 2 * 2 * 32
    assert rows(answer(DENSE, tp_size=8)) == [{"kv": one_head}]
    assert rows(answer(DENSE, tp_size=8, attn_dp_size=4)) == [{"kv": 4 * one_head}]
    assert rows(answer(DENSE, tp_size=8, dp_size=4, enable_dp_attention=True)) == [{"kv": 4 * one_head}]
    assert rows(answer(DENSE, tp_size=8, attn_cp_size=2)) == [{"kv": 2 * one_head}]
    assert rows(answer(DENSE, tp_size=32)) == [{"kv": one_head}]  # more ranks than heads: each keeps one
    assert rows(answer(DENSE, tp_size=8, dp_size=2)) == [{"kv": one_head}]  # replicas are engines of their own


def test_indivisible_groups_are_refused() -> None:
    assert code(answer(DENSE, tp_size=8, attn_dp_size=3)) == "HC412"
    assert code(answer(DENSE, tp_size=8, dcp_size=3)) == "HC413"


def test_uneven_and_empty_stages() -> None:
    of_one_layer = 8 * 128 * 2 * 2
    assert [row["kv"] for row in rows(answer(DENSE, pp_size=3))] == [
        10 * of_one_layer,
        11 * of_one_layer,
        11 * of_one_layer,
    ]
    empty = answer({**DENSE, "num_hidden_layers": 3}, pp_size=4)
    assert [row["kv"] for row in rows(empty)] == [0, of_one_layer, of_one_layer, of_one_layer]


def test_a_class_that_does_not_tell_its_layers_has_all_of_them_on_every_stage() -> None:
    pipeline = answer("MiniMaxAI/MiniMax-M2.5", tp_size=8, pp_size=4)
    assert rows(pipeline) == [{"kv": 31_744}] * 4
    assert [stage.layers for stage in pipeline.stages] == [62] * 4
    assert any("does not tell its pools" in text for text in pipeline.assumptions)


def test_a_class_that_refuses_stages() -> None:
    assert code(answer("meta-llama/Llama-4-Scout-17B-16E-Instruct", tp_size=4, pp_size=2)) == "HC415"
