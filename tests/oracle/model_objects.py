"""Objects of SGLang's model classes, without weights: what sizing and the layer range ask of a model.

A part of models.py; runs in the oracle's environment.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from types import SimpleNamespace
from typing import Any

from sglang.srt.configs.load_config import LoadConfig
from sglang.srt.configs.model_config import ModelConfig
from sglang.srt.distributed.utils import get_pp_indices
from sglang.srt.model_executor.model_runner_components.load_model_utils import resolve_sliding_window_size
from sglang.srt.model_loader.weight_utils import get_quant_config
from torch import nn


def _attributes_set_by_init(model_class: type, names: set[str]) -> set[str]:
    """Which of these attributes the class's own constructors set on the model object."""
    found = set()
    for base in model_class.__mro__:
        if not base.__module__.startswith("sglang") or "__init__" not in vars(base):
            continue
        for node in ast.walk(ast.parse(textwrap.dedent(inspect.getsource(base.__init__)))):
            stored = isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)
            if stored and isinstance(node.value, ast.Name) and node.value.id == "self" and node.attr in names:
                found.add(node.attr)
    return found


def takes_stages(model_class: type) -> bool:
    """Whether the class runs as one stage of several, as ModelRunner asks it."""
    forward = getattr(model_class, "forward", None)
    return forward is not None and "pp_proxy_tensors" in inspect.signature(forward).parameters


def empty_model(model_class: type, attributes: dict[str, Any]) -> nn.Module:
    """An object of the real class without its constructor having run, with these attributes."""
    model = object.__new__(model_class)
    if issubclass(model_class, nn.Module):  # MiniCPM-V is a wrapper around one
        nn.Module.__init__(model)
    for name, value in attributes.items():
        if not isinstance(getattr(model_class, name, None), property):
            object.__setattr__(model, name, value)
    return model


def stage_model(model_class: type, config: ModelConfig, stage: int, stages: int, quant_config: Any) -> nn.Module:
    """What the runner of a pipeline stage would see: the layer range only where the class tells it."""
    layers = config.hf_text_config.num_hidden_layers
    first, end = get_pp_indices(layers, stage, stages)
    inner = SimpleNamespace(start_layer=first, end_layer=end, layers=[None] * layers)
    inner.model = inner
    known = {"model": inner, "language_model": inner, "minicpmv": inner, "config": config.hf_config}
    model = empty_model(model_class, known)
    told = _attributes_set_by_init(model_class, {"start_layer", "end_layer", "quant_config"})
    if "start_layer" in told:
        object.__setattr__(model, "start_layer", first)
        object.__setattr__(model, "end_layer", end)
    if "quant_config" in told:
        object.__setattr__(model, "quant_config", quant_config)
    return model


def quantization_of(config: ModelConfig) -> Any:
    """The checkpoint's quantisation as SGLang reads it; None without one, or where it needs files that are not here."""
    if config.quantization is None:
        return None
    try:
        return get_quant_config(config, LoadConfig(), {})
    except Exception:  # a checkpoint's own files: only the KV dtype "auto" would look at them
        return None


def sliding_window(model: Any, config: ModelConfig) -> int | None:
    """The window as the model object tells it, else as the configuration does (some classes ask their layers)."""
    try:
        return resolve_sliding_window_size(model, config)
    except (AttributeError, TypeError, IndexError):
        return config.sliding_window_size
