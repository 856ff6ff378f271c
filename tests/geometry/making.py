"""Small models and questions for the tests of geometry."""

from __future__ import annotations

from typing import Any

from hicache_config.arguments import ServerArgs
from hicache_config.geometry import Model, Pipeline, Question, load_model, pipeline_of

DENSE: dict[str, Any] = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "dtype": "bfloat16",
    "hidden_size": 4096,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
}


def args(**given: Any) -> ServerArgs:
    return ServerArgs.model_validate({"enable_hierarchical_cache": True, "hicache_size": 100, **given})


def answer(
    config: dict[str, Any] | str, gpu: str = "sm90", environment: dict[str, str] | None = None, **given: Any
) -> Pipeline:
    """The pipeline of a config.json, or of a name from the catalogue."""
    if isinstance(config, str):
        model, problems = load_model(config)
        assert model is not None, problems
    else:
        model = Model("a-model", config)
    slots = given.pop("device_slots", {})
    return pipeline_of(model, args(**given), Question("0.5.23", gpu, environment or {}, slots))


def rows(pipeline: Pipeline) -> list[dict[str, int | None]]:
    """Bytes of a slot of each pool, by stage."""
    assert pipeline.stages, pipeline.findings
    return [{pool.name: pool.bytes_per_slot for pool in stage.pools} for stage in pipeline.stages]


def code(pipeline: Pipeline) -> str:
    """The code of the finding with which a pipeline is refused."""
    assert pipeline.stages == ()
    (finding,) = pipeline.findings
    assert finding.severity == "error"
    assert finding.message
    assert finding.help
    return finding.code
