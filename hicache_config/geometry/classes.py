"""What SGLang's model classes can do that sizing depends on: run in stages, tell their layers, quantise.

The data file names each class of SGLang 0.5.23's model registry, how it was found out (tools/model_classes.py), and
the release that brought it (tools/class_releases.py).
Must not import anything above this floor.
"""

from __future__ import annotations

import difflib
import json
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

from .model import Model, RefusedError, refuse


@dataclass(frozen=True)
class ModelClass:
    """One class: whether it runs in pipeline stages, tells its pools which layers it has, has a quantisation."""

    name: str
    runs_in_stages: bool
    tells_layers: bool
    quantises: bool


@cache
def _table() -> dict[str, Any]:
    text = resources.files(__package__).joinpath("classes-0.5.23.json").read_text(encoding="utf-8")
    content: dict[str, Any] = json.loads(text)
    return content


@cache
def known_classes() -> dict[str, ModelClass]:
    """All classes by name."""
    return {
        name: ModelClass(name, "p" in letters, "s" in letters, "q" in letters)
        for name, letters in _table()["classes"].items()
    }


def class_since(name: str) -> str | None:
    """The SGLang release that brought a class; None for one that the oldest supported release has."""
    return next((release for release, names in _table()["since"].items() if name in names), None)


def class_of(model: Model) -> ModelClass:
    """The first of the model's architectures that SGLang has a class for; none is a refusal that names it."""
    classes = known_classes()
    for name in model.architectures:
        found = classes.get(name)
        if found is not None:
            return found
    raise unknown_architecture(model)


def unknown_architecture(model: Model) -> RefusedError:
    """The refusal of an architecture that is not known, with names that are close to it."""
    name = model.architecture
    close = difflib.get_close_matches(name, known_classes(), n=3, cutoff=0.75)
    hint = f" Close to it: {', '.join(close)}." if close else ""
    if name in known_classes():
        hint, what = "", "a model class of SGLang 0.5.23 that belongs to none of the families"
    else:
        what = "none of the model classes of SGLang 0.5.23 that were read"
    return refuse(
        "HC601",
        "architecture-unknown",
        f"{model.shown}: the pools of architecture {name!r} are not known: it is {what}",
        f"Check `architectures` in config.json, or give the pools themselves with --pools.{hint}",
        argument="model_path",
        asked=name,
    )


def check_stages(model_class: ModelClass, stages: int) -> None:
    """Refuse pipeline parallelism for a class that does not run under it.

    Source: SGLang 0.5.23, model_executor/model_runner.py: the assertion comes after the weights are loaded.
    """
    if stages > 1 and not model_class.runs_in_stages:
        raise refuse(
            "HC415",
            "model-refuses-stages",
            f"{model_class.name} does not run under pipeline parallelism (--pp-size {stages}): SGLang stops with an "
            "assertion after the weights are loaded",
            "Write --pp-size 1 and use more tensor ranks.",
            argument="pp_size",
            asked=stages,
        )
