"""JSON Schemas (2020-12) of all file shapes, generated from the models. Must not import anything above this floor."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import BaseModel

from ..arguments import ServerArgs
from ..arguments.pools_file import PoolsFile
from ..arguments.releases import Argument, known, table
from ..core.releases import NEWEST
from .shapes import PlanShape, ReportShape

_DIALECT = "https://json-schema.org/draft/2020-12/schema"
_SHAPES: Mapping[str, type[BaseModel]] = {"pools": PoolsFile, "plan": PlanShape, "report": ReportShape}
_TYPES = {"int": "integer", "float": "number", "str": "string", "flag": "boolean"}
_INT64 = {"minimum": -(2**63), "maximum": 2**63 - 1}


def schema_of(name: str, release: str = NEWEST) -> dict[str, Any]:
    """The schema named args, pools, plan or report; that of the arguments is of one SGLang release."""
    made = _args_schema(release) if name == "args" else _SHAPES[name].model_json_schema(mode="validation")
    suffix = f"-{release}" if name == "args" else ""
    return {"$schema": _DIALECT, "$id": f"urn:hicache-config:{name}{suffix}:1", **_without_titles(made)}


def schema_text(name: str, release: str = NEWEST) -> str:
    """The schema as the text that is committed and printed."""
    return json.dumps(schema_of(name, release), indent=1, ensure_ascii=False) + "\n"


def breaches(data: bytes, name: str, release: str = NEWEST) -> list[str]:
    """How a JSON text departs from a schema, one line each with its JSON pointer; raises ValueError for no JSON."""
    from jsonschema import Draft202012Validator

    constants: list[str] = []

    def constant(name: str) -> float:
        constants.append(name)
        return float(name)

    try:
        value = json.loads(data, parse_constant=constant)
    except RecursionError:
        raise ValueError("it is nested too deep") from None
    errors = Draft202012Validator(schema_of(name, release)).iter_errors(value)
    lines = [f"{''.join(f'/{part}' for part in error.absolute_path) or '/'}: {error.message}" for error in errors]
    return sorted([*lines, *(f"/: {name} is no number of JSON" for name in dict.fromkeys(constants))])


def schema_files() -> Iterator[tuple[str, str]]:
    """File name and text of every committed schema: one of each shape, and the arguments of every known release."""
    for name in ("args", *_SHAPES):
        yield f"{name}.schema.json", schema_text(name)
    for release in known():
        yield f"args-{release}.schema.json", schema_text("args", release)


def _args_schema(release: str) -> dict[str, Any]:
    """Arguments of a release: typed ones with our descriptions, the others with their kind, and flag spellings."""
    schema = ServerArgs.model_json_schema(mode="validation")
    arguments = table(release)
    properties: dict[str, Any] = {}
    for name, argument in arguments.items():
        if argument.field is None:
            continue
        mine = schema["properties"].get(name)
        properties[name] = _of_release(mine, argument) if mine is not None else _plain(argument)
    schema["properties"] = dict(sorted(properties.items()))
    # Flag spellings and aliases carry what a command line would.
    schema["patternProperties"] = {"^--?[a-z]": {}, "^[a-z0-9]+(-[a-z0-9]+)*$": {}}
    schema["title"] = f"SGLang {release} server arguments"
    schema["description"] = (
        "Server arguments by SGLang's field names. Those that host sizes depend on have our descriptions, units and "
        "scopes, the others their kind and choices."
    )
    return schema


def _of_release(mine: Mapping[str, Any], argument: Argument) -> dict[str, Any]:
    out = dict(mine)
    if "default" not in argument.unknown:
        out["default"] = list(argument.default) if isinstance(argument.default, tuple) else argument.default
    branches = out.get("anyOf", [out])
    for branch in branches:
        if branch.get("type") == "integer":
            branch.setdefault("minimum", _INT64["minimum"])
            branch.setdefault("maximum", _INT64["maximum"])
        if branch.get("type") == "string" and argument.choices:
            branch["enum"] = list(argument.choices)
    return out


def _plain(argument: Argument) -> dict[str, Any]:
    kind = _TYPES.get(argument.kind)
    if kind is None:
        return {}
    one: dict[str, Any] = {"type": kind}
    if argument.choices and kind == "string":
        one["enum"] = list(argument.choices)
    value = {"type": "array", "items": one} if argument.nargs in ("+", "*") else one
    return {"anyOf": [value, {"type": "null"}]} if argument.optional else value


def _without_titles(value: Any, *, is_map: bool = False) -> Any:
    """Field titles that pydantic makes of names say nothing; titles of whole shapes stay."""
    if isinstance(value, list):
        return [_without_titles(item) for item in value]
    if not isinstance(value, dict):
        return value
    has_fields = "properties" in value
    return {
        key: _without_titles(item, is_map=key in ("properties", "$defs"))
        for key, item in value.items()
        if is_map or key != "title" or has_fields
    }
