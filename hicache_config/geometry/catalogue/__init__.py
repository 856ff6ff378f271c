"""Public models by their public names: the fields of config.json that sizing reads, loaded when first asked for.

Must not import anything above this floor.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import Any


@cache
def _models() -> dict[str, Any]:
    text = resources.files(__package__).joinpath("models.json").read_text(encoding="utf-8")
    models: dict[str, Any] = json.loads(text)["models"]
    return models


def catalogue_names() -> tuple[str, ...]:
    """All names of the catalogue ("org/name"), sorted."""
    return tuple(sorted(_models()))


def catalogue_model(name: str) -> Mapping[str, Any] | None:
    """The config.json fields of a model of the catalogue, or None."""
    found = _models().get(name)
    while isinstance(found, str):  # the same fields as another model
        found = _models().get(found)
    return found
