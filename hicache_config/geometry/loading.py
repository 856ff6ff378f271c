"""A model by a config.json, its folder, or a name from the shipped catalogue.

Must not import anything above this floor.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..core.findings import Finding
from .catalogue import catalogue_model, catalogue_names
from .model import Model

_LARGEST_FILE = 64 * 2**20


def load_model(path_or_name: str) -> tuple[Model | None, tuple[Finding, ...]]:
    """The model, or None with the findings that say why there is none.

    A folder holds config.json, and hf_quant_config.json beside it where the KV type depends on it; a file is a
    config.json itself; anything else is a name from the catalogue ("org/name").
    """
    found = _load(path_or_name)
    return (None, (found,)) if isinstance(found, Finding) else (found, ())


def _load(path_or_name: str) -> Model | Finding:
    path = Path(path_or_name)
    try:
        if path.is_dir():
            path = path / "config.json"
        if path.is_file():
            return _read(path, path_or_name)
    except OSError as problem:
        return _unreadable(path_or_name, problem.strerror or "it can't be opened")
    found = catalogue_model(path_or_name)
    if found is not None:
        return Model(path_or_name, found)
    return _unknown(path_or_name)


def _read(path: Path, name: str) -> Model | Finding:
    whole = _object(path)
    if isinstance(whole, str):
        return _unreadable(str(path), whole)
    beside: Mapping[str, Any] = {}
    extra = path.parent / "hf_quant_config.json"
    if extra.is_file():
        read = _object(extra)
        if isinstance(read, str):
            return _unreadable(str(extra), read)
        beside = read
    return Model(name, whole, beside)


def _object(path: Path) -> Mapping[str, Any] | str:
    """The JSON object in a file, or what is wrong with it."""
    if path.stat().st_size > _LARGEST_FILE:
        return "it is larger than 64 MiB"
    try:
        value = json.loads(path.read_text(encoding="utf-8-sig"))
    except UnicodeDecodeError:
        return "it is not UTF-8 text"
    except (ValueError, RecursionError) as problem:
        return f"it is not JSON ({problem})"
    return value if isinstance(value, dict) else "it holds no JSON object"


def _unreadable(name: str, why: str) -> Finding:
    return Finding(
        "HC609",
        "model-unreadable",
        "error",
        f"{name} can't be read as a model: {why}",
        "Give a config.json, the folder that holds it, or a name from the catalogue.",
        argument="model_path",
        asked=name,
    )


def _unknown(name: str) -> Finding:
    names = catalogue_names()
    lowered = {known.lower(): known for known in names}
    close = [lowered[match] for match in difflib.get_close_matches(name.lower(), lowered, n=3, cutoff=0.6)]
    short = [known for known in names if known.split("/")[1].lower() == name.lower()]
    hint = f" Did you mean {' or '.join(dict.fromkeys(short + close))}?" if short or close else ""
    return Finding(
        "HC610",
        "model-unknown",
        "error",
        f"{name!r} is neither a folder or file on this machine nor one of the {len(names)} models of the catalogue",
        f"Give the path of its config.json with --model.{hint}",
        argument="model_path",
        asked=name,
    )
