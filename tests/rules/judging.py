"""How the tests of rules ask: arguments, a tiny model of a class, and what an example's settings name."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hicache_config.app.examining import Examined, examine
from hicache_config.app.options import Options
from hicache_config.arguments import Given
from hicache_config.core.findings import Finding
from hicache_config.core.units import parse_bytes
from hicache_config.sources.document import Engine

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "oracle"))
import recordings  # lies beside the drivers, like the models
from resolution_models import MODELS
from resolution_wide import configurations, wide_cases

__all__ = ["MODELS", "TINY", "configurations", "examined", "findings", "recordings", "wide_cases"]

#: Tiny models of further classes, made up: only what resolution and sizing read.
MORE: dict[str, dict[str, Any]] = {
    "MiniCPMSALAForCausalLM": {
        **MODELS["mha"],
        "architectures": ["MiniCPMSALAForCausalLM"],
        "model_type": "minicpm_sala",
        "mixer_types": ["minicpm4", "lightning-attn", "minicpm4", "lightning-attn"],
        "sparse_config": {"block_size": 64},
    },
    "WhisperForConditionalGeneration": {
        "architectures": ["WhisperForConditionalGeneration"],
        "model_type": "whisper",
        "d_model": 1280,
        "encoder_layers": 32,
        "encoder_attention_heads": 20,
    },
    "Mamba2ForCausalLM": {
        "architectures": ["Mamba2ForCausalLM"],
        "model_type": "mamba2",
        "num_hidden_layers": 4,
        "hidden_size": 512,
        "intermediate_size": 1024,
        "num_heads": 16,
        "head_dim": 64,
        "n_groups": 8,
        "state_size": 128,
        "conv_kernel": 4,
    },
    "ZayaForCausalLM": {
        "architectures": ["ZayaForCausalLM"],
        "model_type": "zaya",
        "num_hidden_layers": 4,
        "hidden_size": 512,
        "num_attention_heads": 8,
        "num_key_value_heads": 2,
        "head_dim": 64,
    },
}
TINY: dict[str, dict[str, Any]] = {model["architectures"][0]: model for model in MODELS.values()} | MORE


def examined(
    arguments: Mapping[str, Any], settings: Mapping[str, Any] | None = None, folder: Path | None = None
) -> Examined:
    """One engine examined. `settings` may name sglang, gpu, architecture (with patch), model, environment, host_memory,
    ranks_per_node and device_slots; a model of a class is written into `folder`."""
    asked = dict(settings or {})
    model = asked.get("model")
    if "architecture" in asked:
        assert folder is not None
        config = {**TINY[asked["architecture"]], **asked.get("patch", {})}
        (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
        model = str(folder)
    memory = asked.get("host_memory")
    options = Options(
        sglang=asked.get("sglang", "0.5.23"),
        model=model,
        gpu=asked.get("gpu", "sm90"),
        environment=asked.get("environment", {}),
        host_memory_bytes=None if memory is None else parse_bytes(memory),
        ranks_per_node=asked.get("ranks_per_node"),
        device_slots=asked.get("device_slots", {}),
    )
    given = tuple(Given(key, value, as_text=key.startswith("-")) for key, value in arguments.items())
    return examine(Engine(given=given), "json", options)


def findings(*args: Any, **more: Any) -> tuple[Finding, ...]:
    """All findings of an engine, those of its plan included."""
    found = examined(*args, **more)
    notes = tuple(noted.finding for noted in found.notes)
    return (*found.findings, *found.of_sizing("sglang"), *notes)
