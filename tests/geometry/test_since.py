"""What older SGLang releases do otherwise (read in their wheels)."""

from __future__ import annotations

from typing import Any

import pytest

from hicache_config.geometry import Model, Pipeline, Question, load_model, pipeline_of

from .making import DENSE, args, code, rows
from .test_families import EAGLE


def at(release: str, config: dict[str, Any] | str, gpu: str = "sm90", **given: Any) -> Pipeline:
    model = load_model(config)[0] if isinstance(config, str) else Model("a-model", config)
    assert model is not None
    return pipeline_of(model, args(**given), Question(release, gpu))


@pytest.mark.parametrize(
    ("model", "first", "given"),
    [
        ("openai/gpt-oss-120b", "0.5.12", {}),  # host pools of sliding windows
        ("google/gemma-4-26B-A4B", "0.5.12", {}),
        ("XiaomiMiMo/MiMo-V2-Flash", "0.5.14", {}),  # keys and values of different widths
        ("moonshotai/Kimi-K3", "0.5.17", {}),  # the model class
        ("deepseek-ai/DeepSeek-V4-Flash", "0.5.12", {}),
        ("MiniMaxAI/MiniMax-M3", "0.5.16", {"page_size": 128}),
        ({**DENSE, "v_head_dim": 64}, "0.5.14", {}),
        (DENSE, "0.5.10", {}),
    ],
)
def test_first_release(model: Any, first: str, given: dict[str, Any]) -> None:
    number = int(first.rpartition(".")[2])
    if number > 10:
        assert code(at(f"0.5.{number - 1}", model, tp_size=8, **given)) == "HC613"
    assert at(first, model, tp_size=8, **given).stages


def test_index_keys_lie_in_the_row_up_to_0_5_10() -> None:
    sparse = "deepseek-ai/DeepSeek-V3.2"
    assert rows(at("0.5.10", sparse)) == [{"kv": 61 * (1152 + 132)}]
    assert rows(at("0.5.11", sparse)) == [{"kv": 61 * 1152, "indexer": 61 * 132}]


def test_a_draft_lies_beside_the_model_up_to_0_5_17() -> None:
    latent = "deepseek-ai/DeepSeek-V3"
    assert rows(at("0.5.10", latent, **EAGLE)) == [{"kv": 61 * 1152}]
    assert rows(at("0.5.17", latent, **EAGLE)) == [{"kv": 61 * 1152, "draft": 1152}]
    assert rows(at("0.5.18", latent, **EAGLE)) == [{"kv": 62 * 1152}]


def test_an_older_release_is_an_assumption() -> None:
    assert at("0.5.23", DENSE).assumptions == ()
    (text,) = at("0.5.17", DENSE).assumptions
    assert "0.5.17" in text
