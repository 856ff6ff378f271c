"""What a configuration class fills in where config.json is silent, by model type.

The data are declared defaults of the classes that SGLang 0.5.23 reads a config.json with (tools/filled_in.py); what a
class works out from other keys is not among them. Must not import anything above this floor.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import Any


@cache
def _table() -> Mapping[str, Any]:
    text = resources.files(__package__).joinpath("filled-0.5.23.json").read_text(encoding="utf-8")
    content: Mapping[str, Any] = json.loads(text)
    return content


def filled_in(model_type: str) -> Mapping[str, Any]:
    """The values of keys that are missing altogether, for one type; empty for a type that is not known."""
    found: Mapping[str, Any] = _table()["types"].get(model_type, {})
    return found


def nested_type(model_type: str) -> str:
    """The type of the language model inside a configuration that names none itself; empty where there is none."""
    found: str = _table()["texts"].get(model_type, "")
    return found
