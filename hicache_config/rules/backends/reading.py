"""From --hicache-storage-backend-extra-config as written to typed settings: every problem with a pointer to its key.

Must not open files: the contents of `@path` are handed in by the caller. Must not import anything above this floor.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Any, Literal

from pydantic import BaseModel, ValidationError

from .fields import BackendSettings
from .kinds import further_keys, model_of

Kind = Literal["unreadable", "file", "unknown", "missing", "wrong"]
#: What to write instead, by how the kind of a problem begins.
_WANTED = {
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "string": "a text",
    "dict": "a mapping",
}
SUFFIXES = (".json", ".toml", ".yaml", ".yml")


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong. `key` is the route to it inside the settings ("/tensorcast/scratch", "" for all)."""

    kind: Kind
    key: str
    message: str
    help: str = ""
    value: Any = None


@dataclass(frozen=True)
class Settings:
    """Settings as read. `given` is the mapping (None where there is none, or it cannot be read), `typed` the model."""

    backend: str
    given: Mapping[str, Any] | None = None
    typed: BackendSettings | None = None
    path: str | None = None
    problems: tuple[Problem, ...] = field(default=())


def read_settings(backend: str, config: str | Mapping[str, Any] | None) -> Settings:
    """The settings of a backend from text, a mapping, or nothing; for text that names a file (@) `path` is set."""
    if config is None or config == "":
        return _typed(backend, {})
    if isinstance(config, Mapping):
        return _typed(backend, config)
    if config.startswith("@"):
        path = config[1:]
        suffix = PurePath(path).suffix.lower()
        if suffix in SUFFIXES:
            return Settings(backend, path=path)
        problem = Problem(
            "file",
            "",
            f"@{path} has the suffix {suffix or '(none)'}",
            f"Name a file that ends in {', '.join(SUFFIXES)}.",
            config,
        )
        return Settings(backend, path=path, problems=(problem,))
    return read_text(backend, config)


def read_text(backend: str, text: str) -> Settings:
    """The settings from JSON text."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        place = (
            f" (line {error.lineno}, column {error.colno}: {error.msg})"
            if isinstance(error, json.JSONDecodeError)
            else ""
        )
        single = " Keys and texts stand in double quotes." if "'" in text else ""
        return Settings(
            backend,
            problems=(Problem("unreadable", "", f"it is no JSON{place}", f"Write a JSON object.{single}", text),),
        )
    if not isinstance(value, dict):
        return Settings(
            backend, problems=(Problem("unreadable", "", "it is no JSON object", 'Write {"key": value}.', text),)
        )
    return _typed(backend, value)


def _typed(backend: str, given: Mapping[str, Any]) -> Settings:
    model = model_of(backend)
    if model is None:
        return Settings(backend, given)
    problems = list(_unknown(model, given))
    kept = dict(given)
    typed = None
    while typed is None:
        try:
            typed = model.model_validate(kept)
        except ValidationError as error:
            details = error.errors(include_url=False)
            seen = {problem.key.split("/")[1] for problem in problems if problem.key}
            problems += [
                _problem(model, detail) for detail in details if str(next(iter(detail["loc"]), "")) not in seen
            ]
            wrong = {str(detail["loc"][0]) for detail in details if detail["loc"]}
            if not wrong & set(kept):
                break
            kept = {key: value for key, value in kept.items() if key not in wrong}
    once = {(problem.kind, problem.key): problem for problem in reversed(problems)}
    return Settings(backend, given, typed, problems=tuple(reversed(once.values())))


def _unknown(model: type[BackendSettings], given: Mapping[str, Any]) -> Iterator[Problem]:
    known = [*model.model_fields, *further_keys(model.backend)]
    for key in given:
        if key in known:
            continue
        close = difflib.get_close_matches(str(key), known, n=1, cutoff=0.75)
        if close or not model.open_ended:
            meant = f"Did you mean {close[0]}?" if close else f"Its keys: {', '.join(sorted(known))}."
            yield Problem("unknown", f"/{_escaped(key)}", f"{model.backend} knows no key {key!r}", meant, given[key])


def _problem(model: type[BackendSettings], detail: Any) -> Problem:
    route = [part for part in detail["loc"] if isinstance(part, int) or not str(part).startswith("function-")]
    # A union's members are named in the route; they are no keys.
    route = [part for part in route if part not in ("int", "bool", "constrained-int", "float", "nullable")]
    key = "".join(f"/{_escaped(part)}" for part in route)
    name = str(route[-1]) if route else "it"
    kind, value = detail["type"], detail["input"]
    help_ = _about(model, route)
    if kind == "missing":
        return Problem("missing", key, f"{name} is required", f'Add "{name}".')
    if kind == "extra_forbidden":
        return Problem("unknown", key, f"there is no key {name!r}", "Take it out.", value)
    if kind == "literal_error":
        return Problem("wrong", key, f"{name} is {value!r}, and must be {detail['ctx']['expected']}", help_, value)
    if kind == "amount":
        said, _, advice = str(detail["msg"]).partition(": write ")
        return Problem(
            "wrong", key, f"{name} {value!r}: {said}", f"Write {advice}. {help_}" if advice else help_, value
        )
    wanted = next((words for start, words in _WANTED.items() if str(kind).startswith(start)), None)
    help_ = help_ if wanted is None else f"Write {wanted}. {help_}"
    return Problem("wrong", key, f"{name} is {value!r}: {_lowered(detail['msg'])}", help_, value)


def _about(model: type[BackendSettings], route: list[Any]) -> str:
    """What a key is for, with its unit, scope and default."""
    fields: Any = model.model_fields
    info = None
    for part in route:
        info = fields.get(part) if fields else None
        inner = getattr(info, "annotation", None)
        fields = inner.model_fields if isinstance(inner, type) and issubclass(inner, BaseModel) else None
    if info is None:
        return "Write a value of that type, or leave it out."
    extra = info.json_schema_extra if isinstance(info.json_schema_extra, dict) else {}
    unit = ", ".join(str(extra[name]) for name in ("unit", "scope") if name in extra)
    usual = "" if info.is_required() or info.default is None else f" The default is {json.dumps(info.default)}."
    return f"{info.description}{f' ({unit})' if unit else ''}{usual}"


def _lowered(text: str) -> str:
    return text[:1].lower() + text[1:]


def _escaped(part: object) -> str:
    return str(part).replace("~", "~0").replace("/", "~1")
