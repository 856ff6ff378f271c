"""What a configuration class fills in where config.json is silent: the number that SGLang takes, never a guess."""

from __future__ import annotations

from typing import Any

import pytest

from hicache_config.geometry import Model
from hicache_config.geometry.filled import filled_in, nested_type

from .making import DENSE, answer, code, rows

#: The text part of google/gemma-3-4b-it as its public config.json has it.
GEMMA_3 = {
    "architectures": ["Gemma3ForConditionalGeneration"],
    "model_type": "gemma3",
    "torch_dtype": "bfloat16",
    "text_config": {"hidden_size": 2560, "model_type": "gemma3_text", "num_hidden_layers": 34, "sliding_window": 1024},
}
GEMMA_4: dict[str, Any] = {
    "model_type": "gemma4_text",
    "head_dim": 256,
    "num_key_value_heads": 8,
    "hidden_size": 2816,
    "num_attention_heads": 16,
    "num_hidden_layers": 6,
    "sliding_window": 1024,
}


def gemma4(kind: str = "gemma4", **text: Any) -> dict[str, Any]:
    architecture = {"gemma4": "Gemma4ForConditionalGeneration", "embedding_gemma2": "EmbeddingGemma2Model"}[kind]
    whole = {"architectures": [architecture], "model_type": kind, "dtype": "bfloat16"}
    return {**whole, "text_config": {**GEMMA_4, **text}}


def test_missing_keys_are_those_of_the_class_and_the_plan_says_so() -> None:
    pipeline = answer(GEMMA_3)
    assert rows(pipeline) == [{"kv": 4 * (256 + 256) * 2 * 34}]
    (said,) = [text for text in pipeline.assumptions if "is silent" in text]
    assert "num_attention_heads 8, num_key_value_heads 4, head_dim 256" in said


def test_a_null_is_not_silence() -> None:
    """Without heads of their own keys and values have those of the queries, whatever the class would fill in."""
    mistral = {**DENSE, "architectures": ["MistralForCausalLM"], "model_type": "mistral"}
    silent = {key: value for key, value in mistral.items() if key != "num_key_value_heads"}
    assert filled_in("mistral")["num_key_value_heads"] == 8
    assert rows(answer(silent)) == rows(answer(mistral))
    assert rows(answer({**mistral, "num_key_value_heads": None})) == [{"kv": 32 * 2 * 128 * 2 * 32}]


def test_a_nested_model_that_names_no_type_has_that_of_the_whole() -> None:
    text = {key: value for key, value in GEMMA_3["text_config"].items() if key != "model_type"}  # type: ignore[attr-defined]
    assert nested_type("gemma3") == "gemma3_text"
    assert rows(answer({**GEMMA_3, "text_config": text})) == rows(answer(GEMMA_3))


def test_an_unknown_type_fills_nothing_in() -> None:
    assert filled_in("no_such_type") == {}
    assert nested_type("no_such_type") == ""
    assert Model("m", {"architectures": ["X"], "model_type": "no_such_type"}).filled_sizes == {}


@pytest.mark.parametrize(
    ("text", "full", "sliding"),
    [
        ({}, (8, 512), (8, 256)),
        ({"global_head_dim": 384}, (8, 384), (8, 256)),
        ({"num_global_key_value_heads": 2}, (8, 512), (8, 256)),  # only where keys are used as values
        ({"num_global_key_value_heads": 2, "attention_k_eq_v": True}, (2, 512), (8, 256)),
        ({"per_layer_config": {"5": {"head_dim": 320, "num_key_value_heads": 4}}}, (4, 320), (8, 256)),
        ({"per_layer_config": {"05": {"head_dim": 320}}}, (8, 320), (8, 256)),
    ],
)
def test_full_and_sliding_rows_of_gemma_4(
    text: dict[str, Any], full: tuple[int, int], sliding: tuple[int, int]
) -> None:
    (row,) = rows(answer(gemma4(**text)))
    assert row == {"kv": full[0] * full[1] * 2 * 2, "swa": sliding[0] * sliding[1] * 2 * 2 * 5}


def test_the_last_layer_of_gemma_4_has_full_attention() -> None:
    (row,) = rows(answer(gemma4(layer_types=["sliding_attention"] * 6)))
    assert row == {"kv": 8 * 512 * 2 * 2, "swa": 8 * 256 * 2 * 2 * 5}


def test_layers_of_one_kind_with_several_shapes_are_refused() -> None:
    assert code(answer(gemma4(per_layer_config={"0": {"head_dim": 128}, "5": {"head_dim": 512}}))) == "HC603"
    assert code(answer(gemma4(per_layer_config={"5": {"head_dim": "512"}}))) == "HC603"


def test_a_text_model_of_gemma_4_alone_is_refused() -> None:
    """SGLang reads its heads layer by layer only under the type of the whole."""
    assert (
        code(answer({**gemma4()["text_config"], "architectures": ["Gemma4ForCausalLM"], "dtype": "bfloat16"}))
        == "HC603"
    )
