"""Keys and values of Gemma 4, whose full and sliding layers have heads of their own.

SGLang reads them as transformers splits them (0.5.23, utils/hf_transformers/config.py:_apply_gemma4_attention_overrides
and transformers 5.19.0, models/gemma4/configuration_gemma4.py). Must not import anything above this floor.
"""

from __future__ import annotations

from collections.abc import Mapping

from .model import Model
from .pieces import Heads
from .sliding import layer_types

_TYPES = frozenset({"diffusion_gemma", "embedding_gemma2", "gemma4", "gemma4_text", "gemma4_unified"})
#: Full layers have KV heads of their own only where they use keys as values.
_GATED = frozenset({"gemma4_text", "gemma4_unified_text"})
_GLOBAL_WIDTH = 512
_GLOBAL_HEADS = {"embedding_gemma2_text": 1}


def is_two_shaped_gemma(model: Model) -> bool:
    """Whether full attention has its own head width and number of KV heads."""
    return model.model_type in _TYPES


def gemma_heads(model: Model, kind: str) -> Heads:
    """Heads of the layers of one kind, "full_attention" or "sliding_attention".

    A file that transformers 5 wrote lists what differs by layer (`per_layer_config`); older ones have
    `global_head_dim` and `num_global_key_value_heads`.
    """
    if model.model_type == "gemma4_text":
        raise model.wrong("model_type", "gemma4_text", "gemma4, with the language model under text_config")
    width, count = model.integer("head_dim"), model.integer("num_key_value_heads")
    listed = model.get("per_layer_config")
    if isinstance(listed, Mapping):
        return _listed(model, listed, kind, Heads(count, width, width))
    if kind == "full_attention":
        width = model.maybe_integer("global_head_dim", least=1) or _GLOBAL_WIDTH
        count = _global_heads(model) or count
    return Heads(count, width, width)


def _global_heads(model: Model) -> int | None:
    if model.text_type in _GATED and not model.get("attention_k_eq_v"):
        return None
    if "num_global_key_value_heads" in model.text:
        return model.maybe_integer("num_global_key_value_heads", least=1)
    return _GLOBAL_HEADS.get(model.text_type)


def _listed(model: Model, listed: Mapping[str, object], kind: str, plain: Heads) -> Heads:
    """The one shape that the layers of a kind have; several are refused, as SGLang refuses them."""
    shapes = set()
    own = {int(key): value for key, value in listed.items() if str(key).isdecimal() and isinstance(value, Mapping)}
    for layer, found in enumerate(layer_types(model)):
        if found == kind:
            change = own.get(layer, {})
            width, count = change.get("head_dim", plain.key), change.get("num_key_value_heads", plain.count)
            shapes.add((count, width))
    sizes = [size for shape in shapes for size in shape]
    if len(shapes) > 1 or not all(isinstance(size, int) and size > 0 for size in sizes):
        raise model.wrong("per_layer_config", f"{len(shapes)} shapes of {kind}", "one shape for all layers of a kind")
    (count, width) = next(iter(shapes), (plain.count, plain.key))
    return Heads(count, width, width)
