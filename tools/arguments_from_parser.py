"""The server arguments of an installed SGLang as its own parser and record hold them, as JSON on standard output.

Run by an interpreter that can import SGLang (the oracle's): `python tools/arguments_from_parser.py`. It reads nothing
of this project, so that `arguments_from_wheels.py --against` compares two independent readings: every option of the
real argparse parser, every field of the real record, the record that a command line which only names a model makes,
and which field every spelling changes when it is tried.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import importlib.metadata
import io
import json
import sys
import typing
from typing import Any

ODD = "<not JSON>"


def plain(value: object) -> object:
    """A value as JSON holds it; what JSON cannot hold is named."""
    if isinstance(value, (set, frozenset)):
        return sorted(value)
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    return f"{ODD} {value!r}"


def converter(action: argparse.Action) -> str | None:
    if action.type is None:
        return None
    return "json.loads" if action.type is json.loads else getattr(action.type, "__name__", repr(action.type))


def option(action: argparse.Action) -> dict[str, object]:
    """One option: argparse's attributes, and those of SGLang's own actions."""
    names = {"_StoreAction": "store", "_StoreTrueAction": "store_true", "_HelpAction": "help"}
    kind = type(action).__name__
    const = getattr(action, "const_value", None)
    if kind in ("_StoreTrueAction", "DeprecatedStoreTrueAction") or const is None:
        const = action.const
    return {
        "flags": list(action.option_strings),
        "dest": action.dest,
        "action": names.get(kind, kind),
        "converter": converter(action),
        "nargs": action.nargs,
        "const": plain(const),
        "default": plain(action.default),
        "choices": plain(action.choices),
        "required": action.required,
        "new_flag": getattr(action, "new_flag", None),
        "error_message": getattr(action, "error_message", None),
    }


def record_fields(record: Any) -> dict[str, dict[str, object]]:
    """The record's fields: their default (a factory's result) and whether their type allows None."""
    if dataclasses.is_dataclass(record):
        found = [(f.name, f.default, f.default_factory) for f in dataclasses.fields(record)]
        missing: object = dataclasses.MISSING
    else:
        import msgspec

        found = [(f.name, f.default, f.default_factory) for f in msgspec.structs.fields(record)]
        missing = msgspec.NODEFAULT
    hints = typing.get_type_hints(record)
    out: dict[str, dict[str, object]] = {}
    for name, default, factory in found:
        entry: dict[str, object] = {"optional": allows_none(hints[name])}
        if default is not missing:
            entry["default"] = plain(default)
        elif factory is not missing:
            entry["default"] = plain(typing.cast(Any, factory)())
        out[name] = entry
    return out


def allows_none(hint: object) -> bool:
    return hint is type(None) or None in typing.get_args(hint) or type(None) in typing.get_args(hint)


def sample(action: argparse.Action, spelling: str) -> list[str]:
    """Words that set an option, to something else than its default where it takes anything else."""
    if action.nargs == 0:
        return [spelling]
    if action.choices is not None:
        others = [choice for choice in action.choices if choice not in (None, action.default)]
        return [spelling, str(others[0] if others else action.default)]
    samples = {"int": "7", "human_readable_int": "7", "float": "0.123", "json.loads": "[3]", "json_list_type": "[3]"}
    samples["parse_cuda_graph_config_arg"] = "{}"
    return [spelling, samples.get(converter(action) or "str", "a-word")]


def effects(parser: argparse.ArgumentParser, record: Any) -> dict[str, dict[str, object]]:
    """What every spelling does, tried one by one: the fields of the record that change, or the end of the launch."""

    names = list(record_fields(record))

    def launch(words: list[str]) -> dict[str, object]:
        launched = record.from_cli_args(parser.parse_args(["--model-path", "a-model", *words]))
        return {name: plain(getattr(launched, name)) for name in names}

    plainly = launch([])
    out: dict[str, dict[str, object]] = {}
    for action in parser._actions:
        for spelling in action.option_strings:
            words = sample(action, spelling)
            try:
                with contextlib.redirect_stderr(io.StringIO()), contextlib.redirect_stdout(io.StringIO()):
                    launched = launch(words)
            except SystemExit as error:
                out[spelling] = {"words": words, "error": str(error)}
                continue
            changed = {name: value for name, value in launched.items() if repr(value) != repr(plainly[name])}
            out[spelling] = {"words": words, "changed": changed}
    out[""] = {"changed": plainly}
    return out


def main() -> None:
    from sglang.srt.server_args import ServerArgs

    parser = argparse.ArgumentParser(prog="sglang serve")
    ServerArgs.add_cli_args(parser)
    # To 0.5.19 the record resolves itself when it is made, which needs a model: what was asked for is wanted here.
    ServerArgs.__post_init__ = lambda *_: None
    tried = effects(parser, ServerArgs)
    json.dump(
        {
            "version": importlib.metadata.version("sglang"),
            "options": [option(action) for action in parser._actions],
            "fields": record_fields(ServerArgs),
            "launched": tried.pop("")["changed"],
            "effects": tried,
        },
        sys.stdout,
    )


if __name__ == "__main__":
    main()
