"""How many layers a model has, as SGLang counts them. Must not import anything above this floor."""

from __future__ import annotations

from .model import Model
from .states import NEMOTRON_H, nemotron_layers


def layers_of(model: Model) -> int:
    """Layers of the whole model that have a place in the pipeline split."""
    if model.architecture in NEMOTRON_H:
        return len(nemotron_layers(model))
    if model.architecture == "HrmTextForCausalLM" and not model.has("num_layers_per_stack"):
        # config.json counts the layers of a stack, and its configuration class every run through them
        cycles = model.integer("H_cycles", 2) * (model.integer("L_cycles", 3) + 1)
        return model.integer("num_hidden_layers") * cycles
    return model.integer("num_hidden_layers")
