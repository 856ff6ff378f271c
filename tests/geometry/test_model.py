"""Reading of config.json: what is missing or wrong is named, and nothing raises."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hicache_config.geometry import Model, Question, load_model, pipeline_of
from hicache_config.geometry.catalogue import catalogue_names

from .making import DENSE, answer, args, code, rows


def test_text_part_is_found_and_wins() -> None:
    whole = {"architectures": DENSE["architectures"], "num_hidden_layers": 3, "text_config": DENSE}
    assert rows(answer(whole)) == rows(answer(DENSE))


def test_parts_in_the_order_of_sglang() -> None:
    model = Model("m", {"architectures": ["X"], "llm_config": {"a": 1}, "text_config": {"a": 2}})
    assert model.get("a") == 1
    thinker = Model("m", {"architectures": ["X"], "thinker_config": {"text_config": {"a": 3}}, "llm_config": {"a": 1}})
    assert thinker.get("a") == 3


@pytest.mark.parametrize("key", ["num_hidden_layers", "hidden_size", "num_attention_heads"])
def test_a_missing_key_is_named(key: str) -> None:
    """Where no configuration class is known that fills it in."""
    pipeline = answer({name: value for name, value in DENSE.items() if name not in {key, "model_type"}})
    assert code(pipeline) == "HC602"
    assert key in pipeline.findings[0].message


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("num_hidden_layers", "32"),
        ("num_hidden_layers", 0),
        ("num_hidden_layers", -1),
        ("num_hidden_layers", True),
        ("num_hidden_layers", 1.5),
        ("num_hidden_layers", [32]),
        ("num_key_value_heads", {}),
        ("hidden_size", 2**60),
        ("architectures", []),
        ("architectures", "LlamaForCausalLM"),
        ("architectures", [1]),
    ],
)
def test_a_wrong_value_is_named(key: str, value: Any) -> None:
    pipeline = answer({**DENSE, key: value})
    assert code(pipeline) == "HC603"
    assert key in pipeline.findings[0].message


def test_an_unknown_architecture_is_refused_by_name() -> None:
    pipeline = answer({**DENSE, "architectures": ["LlamaForCasualLM"]})
    assert code(pipeline) == "HC601"
    assert "'LlamaForCasualLM'" in pipeline.findings[0].message
    assert "LlamaForCausalLM" in pipeline.findings[0].help


def test_a_known_class_of_no_family_is_refused_by_name() -> None:
    assert code(answer({**DENSE, "architectures": ["MossVLForConditionalGeneration"]})) == "HC601"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 300) | st.floats(allow_nan=True) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=6), inner, max_size=4),
    max_leaves=6,
)


@given(st.data())
def test_no_value_of_a_key_raises(data: st.DataObject) -> None:
    """Whatever stands at a key of a real model, there is an answer: stages, or a finding."""
    name = data.draw(st.sampled_from(catalogue_names()))
    model, _ = load_model(name)
    assert model is not None
    whole = json.loads(json.dumps(model.whole))
    part = next((whole[key] for key in ("text_config", "llm_config") if key in whole), whole)
    key = data.draw(st.sampled_from(sorted(part)))
    part[key] = data.draw(JSON)
    answered = pipeline_of(Model(name, whole), args(tp_size=2, pp_size=2), Question("0.5.23"))
    assert bool(answered.stages) != any(finding.severity == "error" for finding in answered.findings)


@pytest.mark.parametrize("name", catalogue_names())
def test_each_model_of_the_catalogue_has_an_answer(name: str) -> None:
    model, problems = load_model(name)
    assert problems == ()
    assert model is not None
    pipeline = pipeline_of(model, args(tp_size=8), Question("0.5.23"))
    assert pipeline.stages or pipeline.findings[0].code == "HC601"


def test_a_name_that_is_nearly_right() -> None:
    model, problems = load_model("openai/gpt-oss-120B")
    assert model is None
    assert "openai/gpt-oss-120b" in problems[0].help
    _, problems = load_model("gpt-oss-120b")
    assert "openai/gpt-oss-120b" in problems[0].help
    _, problems = load_model("nobody/nothing-like-it-at-all")
    assert "Did you mean" not in problems[0].help


@pytest.mark.parametrize("name", catalogue_names())
def test_every_name_is_proposed_in_other_capitals_and_without_its_organisation(name: str) -> None:
    short = name.split("/")[1]
    for written in {name.lower(), name.upper(), short, short.lower(), short.upper()} - {name}:
        _, problems = load_model(written)
        assert name in problems[0].help, written


PUBLIC = Path(__file__).parents[1] / "models"


@pytest.mark.parametrize(
    "name", [name for name in catalogue_names() if (PUBLIC / f"{name.replace('/', '--')}.json").exists()]
)
def test_an_entry_of_the_catalogue_is_the_public_configuration(name: str) -> None:
    """What the catalogue leaves out of a config.json changes no pool, capacity or context."""
    config = json.loads((PUBLIC / f"{name.replace('/', '--')}.json").read_text(encoding="utf-8"))
    model, _ = load_model(name)
    assert model is not None
    architecture = {"architectures": model.whole["architectures"]}  # two are renamed to what SGLang reads
    for wanted in (
        {"tp_size": 8, "max_total_tokens": 500_000, "max_mamba_cache_size": 300},
        {"tp_size": 2, "pp_size": 2, "hicache_size": 0, "hicache_ratio": 2.0, "speculative_algorithm": "EAGLE"},
        {"tp_size": 4, "disaggregation_mode": "decode", "hicache_size": 0, "max_total_tokens": 500_000},
    ):
        for gpu in ("sm90", "sm100"):
            asked = Question("0.5.23", gpu)
            assert pipeline_of(model, args(**wanted), asked) == pipeline_of(
                Model(name, {**config, **architecture}), args(**wanted), asked
            )


def test_a_folder_a_file_and_what_lies_beside(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(DENSE), encoding="utf-8")
    for path in (tmp_path, tmp_path / "config.json"):
        model, problems = load_model(str(path))
        assert problems == ()
        assert model is not None
        assert model.architecture == "LlamaForCausalLM"
    beside = {"producer": {"name": "modelopt"}, "quantization": {"quant_algo": "FP8", "kv_cache_quant_algo": "FP8"}}
    (tmp_path / "hf_quant_config.json").write_text(json.dumps(beside), encoding="utf-8")
    model, _ = load_model(str(tmp_path))
    assert model is not None
    settled = pipeline_of(model, args(), Question("0.5.23")).settled
    assert settled["kv_cache_dtype"].gets == "fp8_e4m3"


@pytest.mark.parametrize(
    ("text", "why"),
    [(b"{", "not JSON"), (b"[1]", "no JSON object"), (b"\xff\xfe\x00", "not UTF-8"), (b"[" * 100_000, "not JSON")],
)
def test_a_file_that_is_no_model(tmp_path: Path, text: bytes, why: str) -> None:
    (tmp_path / "config.json").write_bytes(text)
    model, problems = load_model(str(tmp_path))
    assert model is None
    assert problems[0].code == "HC609"
    assert why in problems[0].message


def test_a_folder_without_config(tmp_path: Path) -> None:
    model, problems = load_model(str(tmp_path))
    assert model is None
    assert problems[0].code in {"HC609", "HC610"}
