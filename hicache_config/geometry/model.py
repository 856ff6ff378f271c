"""A model's config.json as sizing reads it: architectures, the text part, and getters that name what is wrong.

A value that is missing or impossible ends the reading of this model with a `RefusedError`, which the entry point
turns into the finding it carries; nothing else of the project sees it. Must not import arguments or anything above.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from ..core.findings import Finding
from .filled import filled_in, nested_type

_LARGEST = 2**40
#: Names that SGLang reads as another class (0.5.23, configs/olmo3.py, deepseek_v41.py, hf_transformers/config.py).
_RENAMED = {
    "DeepseekV41ForCausalLM": "DeepseekV4ForCausalLM",
    "LongcatCausalLM": "LongcatFlashForCausalLM",
    "LongcatFlashNgramForCausalLM": "LongcatFlashForCausalLM",
    "Olmo3ForCausalLM": "Olmo2ForCausalLM",
}
_OLDER = {
    "num_hidden_layers": ("n_layer", "n_layers", "num_layers", "encoder_layers"),
    "hidden_size": ("n_embd", "d_model"),
    "num_attention_heads": ("n_head", "n_heads", "encoder_attention_heads"),
}
#: Keys that say how large a model is, whose absence is worth a word where its configuration class fills them in.
_SIZES = (
    "num_hidden_layers",
    "hidden_size",
    "num_attention_heads",
    "num_key_value_heads",
    "head_dim",
    "kv_lora_rank",
    "qk_rope_head_dim",
)
_PARTS = ("thinker_config", "llm_config", "language_config", "text_config")


class RefusedError(Exception):
    """A model, or a model with these arguments, for which there is no answer; carries the finding."""

    def __init__(self, finding: Finding) -> None:
        super().__init__(finding.message)
        self.finding = finding


def refuse(code: str, name: str, message: str, help_: str, **more: Any) -> RefusedError:
    """A refusal with an error finding of this code and name."""
    return RefusedError(Finding(code, name, "error", message, help_, **more))


@dataclass(frozen=True)
class Model:
    """A config.json. `text` is the part of the language model, `whole` the file; `name` is what it was asked by.

    `quantisation` is the content of hf_quant_config.json beside it, empty where there is none.
    Getters look into the text part first and then into the whole file.
    """

    name: str
    whole: Mapping[str, Any]
    quantisation: Mapping[str, Any] = field(default_factory=dict)

    @cached_property
    def text(self) -> Mapping[str, Any]:
        """The part that describes the language model, in SGLang's order of preference; the whole file without one.

        Source: SGLang 0.5.23, utils/hf_transformers/common.py:get_hf_text_config.
        """
        listed = self.whole.get("architectures")
        name = listed[0] if isinstance(listed, list | tuple) and listed else None
        if isinstance(name, str) and name.startswith("Llava") and name.endswith("ForCausalLM"):
            return self.whole
        for key in _PARTS:
            part = self.whole.get(key)
            if isinstance(part, Mapping):
                inner = part.get("text_config") if key == "thinker_config" else None
                return inner if isinstance(inner, Mapping) else part
        return self.whole

    @cached_property
    def architectures(self) -> tuple[str, ...]:
        """The names under `architectures`, as SGLang reads them; a missing or empty list is a refusal."""
        value = self.whole.get("architectures")
        if isinstance(value, list | tuple) and value and all(isinstance(name, str) for name in value):
            return tuple(_RENAMED.get(str(name), str(name)) for name in value)
        raise self.wrong("architectures", value, "a list with the name of the model class")

    @property
    def architecture(self) -> str:
        """The first architecture, the one that SGLang goes by."""
        return self.architectures[0]

    @property
    def model_type(self) -> str:
        """`model_type` of the whole file, empty where it is missing."""
        value = self.whole.get("model_type")
        return value if isinstance(value, str) else ""

    def has(self, key: str) -> bool:
        """Whether the key is there with a value that is not null."""
        return self.get(key) is not None

    @cached_property
    def text_type(self) -> str:
        """`model_type` of the language model: its own, or the one that its configuration takes it for."""
        own = self.text.get("model_type")
        if isinstance(own, str):
            return own
        return "" if self.text is self.whole else nested_type(self.model_type)

    def get(self, key: str, default: Any = None) -> Any:
        """The raw value of a key, from the text part, or what its configuration class fills in, or the whole file.

        `default` is for a missing one and null. Older models write some keys in another way, which transformers reads
        as well.
        """
        names = (key, *_OLDER.get(key, ()))
        silent = not any(name in self.text for name in names)
        for part in (self.text, filled_in(self.text_type) if silent else {}, self.whole):
            for name in names:
                if part.get(name) is not None:
                    return part[name]
        return default

    @property
    def filled_sizes(self) -> Mapping[str, Any]:
        """The sizes that config.json is silent about and its configuration class fills in."""
        filled = filled_in(self.text_type)
        silent = [key for key in _SIZES if not any(name in self.text for name in (key, *_OLDER.get(key, ())))]
        return {key: self.get(key) for key in silent if any(name in filled for name in (key, *_OLDER.get(key, ())))}

    def integer(self, key: str, default: int | None = None, *, least: int = 1) -> int:
        """A whole number of at least `least`; missing without a default is a refusal."""
        value = self.get(key)
        if value is None:
            if default is None:
                raise self.missing(key)
            return default
        return self._whole(key, value, least)

    def maybe_integer(self, key: str, *, least: int = 0) -> int | None:
        """A whole number of at least `least`, or None where the key is missing or null."""
        value = self.get(key)
        return None if value is None else self._whole(key, value, least)

    def number(self, key: str, default: float) -> float:
        """A finite number above 0."""
        value = self.get(key)
        if value is None:
            return default
        if isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < _LARGEST:
            return float(value)
        raise self.wrong(key, value, "a number above 0")

    def word(self, key: str, default: str = "") -> str:
        """A text; `default` where it is missing."""
        value = self.get(key)
        if value is None:
            return default
        if isinstance(value, str):
            return value
        raise self.wrong(key, value, "a text")

    def words(self, key: str) -> tuple[str, ...] | None:
        """A list of texts, or None where it is missing."""
        value = self.get(key)
        if value is None:
            return None
        if isinstance(value, Sequence) and not isinstance(value, str) and all(isinstance(item, str) for item in value):
            return tuple(value)
        raise self.wrong(key, value, "a list of texts")

    def integers(self, key: str) -> tuple[int, ...] | None:
        """A list of whole numbers of at least 0, or None where it is missing."""
        value = self.get(key)
        if value is None:
            return None
        if isinstance(value, Sequence) and not isinstance(value, str):
            return tuple(self._whole(key, item, 0) for item in value)
        raise self.wrong(key, value, "a list of whole numbers")

    def table(self, key: str) -> Model | None:
        """A nested object with the same getters, or None where it is missing."""
        value = self.get(key)
        if value is None:
            return None
        if isinstance(value, Mapping):
            return Part(self.name, value, key=key)
        raise self.wrong(key, value, "an object")

    def missing(self, key: str) -> RefusedError:
        """The refusal for a key that sizing needs and that is not there."""
        return refuse(
            "HC602",
            "model-key-missing",
            f"{self.shown}: {self.path_of(key)} is missing, and the sizes depend on it",
            "Give the complete config.json of the model.",
            argument="model_path",
            detail={"key": self.path_of(key)},
        )

    def wrong(self, key: str, value: Any, expected: str) -> RefusedError:
        """The refusal for a key whose value can't be used."""
        shown = "missing" if value is None else repr(value)
        shown = shown if len(shown) < 80 else shown[:77] + "..."
        return refuse(
            "HC603",
            "model-key-wrong",
            f"{self.shown}: {self.path_of(key)} is {shown}, expected {expected}",
            "Correct the config.json of the model.",
            argument="model_path",
            detail={"key": self.path_of(key)},
        )

    @property
    def shown(self) -> str:
        """The model as messages name it."""
        return f"model {self.name}"

    def path_of(self, key: str) -> str:
        """The key with the part of the file that it stands in."""
        if self.text is not self.whole and (key in self.text or key not in self.whole):
            part = next((name for name in _PARTS if self.whole.get(name) is self.text), None)
            return f"{part}.{key}" if part else key
        return key

    def _whole(self, key: str, value: Any, least: int) -> int:
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if isinstance(value, int) and not isinstance(value, bool) and least <= value <= _LARGEST:
            return value
        raise self.wrong(key, value, f"a whole number of at least {least}")


@dataclass(frozen=True)
class Part(Model):
    """A nested object of a config.json, with the getters of the whole."""

    key: str = ""

    @cached_property
    def text(self) -> Mapping[str, Any]:
        return self.whole

    def path_of(self, key: str) -> str:
        return f"{self.key}.{key}"
