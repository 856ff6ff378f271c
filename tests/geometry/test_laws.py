"""Laws of geometry: whatever a config.json says, the answer is pools or a finding, the same each time."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from hicache_config.geometry import Model, Question, pipeline_of
from hicache_config.geometry.catalogue import catalogue_names
from hicache_config.geometry.loading import load_model

from .making import args

MADE = json.loads((Path(__file__).parent / "settings-0.5.23.json").read_text(encoding="utf-8"))["configs"]
ARGUMENTS: list[dict[str, Any]] = [
    {},
    {"pp_size": 3, "page_size": 64},
    {"kv_cache_dtype": "fp8_e4m3"},
    {"speculative_algorithm": "NEXTN"},
    {"max_total_tokens": 100_000, "max_mamba_cache_size": 100},
    {"enable_dp_attention": True, "dp_size": 4},
    {"disable_hybrid_swa_memory": True},
    {"disaggregation_mode": "decode", "disaggregation_decode_enable_radix_cache": True},
]
ODD: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4) | st.just("full_attention"),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=4,
)


def configs() -> list[dict[str, Any]]:
    found = [load_model(name)[0] for name in catalogue_names()]
    return [*(dict(model.whole) for model in found if model is not None), *MADE.values()]


CONFIGS = configs()


@st.composite
def damaged(draw: st.DrawFn) -> dict[str, Any]:
    """A config.json with one or two keys that have an odd value or are gone."""
    config: dict[str, Any] = json.loads(json.dumps(draw(st.sampled_from(CONFIGS))))
    parts = [config, *(value for value in config.values() if isinstance(value, dict) and value)]
    for _ in range(draw(st.integers(1, 2))):
        part = draw(st.sampled_from(parts))
        key = draw(st.sampled_from(sorted(part) or ["num_hidden_layers"]))
        part[key] = draw(ODD)
        if draw(st.booleans()):
            del part[key]
    return config


@given(
    config=damaged(),
    arguments=st.sampled_from(ARGUMENTS),
    ranks=st.sampled_from([1, 4, 8]),
    gpu=st.sampled_from(["sm80", "sm90", "sm100", "sm120", "B200", "a GPU"]),
    release=st.sampled_from(["0.5.10", "0.5.17", "0.5.23"]),
)
def test_pools_or_a_finding(
    config: dict[str, Any], arguments: dict[str, Any], ranks: int, gpu: str, release: str
) -> None:
    asked = args(tp_size=ranks, **arguments)
    question = Question(release, gpu, {}, {})
    made = pipeline_of(Model("a-model", config), asked, question)
    assert bool(made.stages) != any(finding.severity == "error" for finding in made.findings)
    assert made == pipeline_of(Model("a-model", config), asked, question)
    assert made.stages == () or len(made.stages) == asked.pp_size
