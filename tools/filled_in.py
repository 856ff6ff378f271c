"""Take from the configuration classes of a release what they fill in where a config.json is silent.

    python tools/oracle.py run tools/filled_in.py > hicache_config/geometry/filled-0.5.23.json

Runs in the oracle's environment. A number or text that a class declares as the default of a key that sizing reads is
kept by model type; what a class works out, or leaves empty, is not. `texts` names the type of a nested language model
that says none itself.
"""

from __future__ import annotations

import contextlib
import inspect
import json
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "oracle"))
sys.path.insert(0, str(Path(__file__).resolve().parent))

import harness
import transformers
from catalogue import KEYS, PARTS
from sglang.srt.utils.hf_transformers.common import _CONFIG_REGISTRY
from transformers.models.auto import modeling_auto
from transformers.models.auto.configuration_auto import CONFIG_MAPPING

NOT_SIZES = frozenset({"architectures", "model_type", "dtype", "torch_dtype"})


def all_classes() -> dict[str, type]:
    """Every configuration class by its type, SGLang's own before those of transformers."""
    return {**{name: CONFIG_MAPPING[name] for name in CONFIG_MAPPING.keys()}, **_CONFIG_REGISTRY}  # noqa: SIM118 - lazy


def declared(config_class: type, key: str) -> Any:
    """The default that a configuration class declares for a key, None where it declares none."""
    parameter = inspect.signature(config_class.__init__).parameters.get(key)
    if parameter is not None and parameter.default is not inspect.Parameter.empty:
        return parameter.default
    return inspect.getattr_static(config_class, key, None)


def plain_defaults(config_class: type) -> dict[str, Any]:
    """The declared defaults of sizing's keys that are numbers or texts, or a switch that is on."""
    found = {key: declared(config_class, key) for key in sorted(KEYS - NOT_SIZES)}
    return {key: value for key, value in found.items() if isinstance(value, int | float | str) and value is not False}


def nested(config_class: type) -> type | None:
    """The class of the language model in a configuration that is silent about it."""
    with contextlib.suppress(Exception):  # a class that needs arguments has no default to look at
        config = config_class()
        for part in PARTS:
            inner = getattr(config, part, None)
            if isinstance(inner, transformers.PretrainedConfig):
                return type(getattr(inner, "text_config", inner) if part == "thinker_config" else inner)
    return None


def main() -> None:
    classes, types, texts = all_classes(), {}, {}
    for name, config_class in classes.items():
        types[name] = plain_defaults(config_class)
        inner = nested(config_class)
        if inner is not None:
            texts[name] = inner.model_type
            types.setdefault(inner.model_type, plain_defaults(inner))
    language = {*modeling_auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES, *texts.values(), *_CONFIG_REGISTRY}
    types = {name: found for name, found in types.items() if name in language and found}
    lines = [f" {json.dumps(name)}: {json.dumps(types[name])}" for name in sorted(types)]
    print('{"sglang": ' + json.dumps(harness.versions()["sglang"]), end=", ")
    print('"transformers": ' + json.dumps(transformers.__version__) + ",")
    print('"texts": ' + json.dumps(dict(sorted(texts.items()))) + ",")
    print('"types": {\n' + ",\n".join(lines) + "\n}}")


if __name__ == "__main__":
    main()
