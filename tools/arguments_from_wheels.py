"""SGLang's server arguments, taken from its wheels into hicache_config/arguments/releases/*.json.

A new SGLang release is a new data file, by running this again. With any Python from 3.10 and its standard library:

    for release in 0.5.10 0.5.10.post1 … 0.5.23; do
        python -m pip download --no-deps --only-binary :all: --python-version 3.11 --dest WHEELS sglang==$release
    done
    python tools/arguments_from_wheels.py WHEELS            write a file for each release among the wheels
    python tools/arguments_from_wheels.py WHEELS --check    write nothing; exit 1 where a file would change
    python tools/arguments_from_parser.py > REAL            with an interpreter that can import SGLang
    python tools/arguments_from_wheels.py WHEELS --against REAL     exit 1 where the real parser or record differs

Needs no network, and neither imports nor runs anything of a wheel. A `.postN` counts as its release: there is one file
a release, read from the newest post where the posts differ; the file names the wheel it was read from.

A file is JSON with one argument a line, in the order of names; hicache_config.arguments.releases reads it and says
what each key means.
"""

from __future__ import annotations

import argparse
import ast
import json
import re
import sys
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from wheel_arguments import (
    SUPPRESS,
    Arguments,
    Option,
    UnknownRulesError,
    automatic_dest,
    element_type,
    literals,
    unwrap_optional,
)
from wheel_values import NotKnownError, Wheel

DATA = Path(__file__).resolve().parent.parent / "hicache_config" / "arguments" / "releases"
WHEEL_NAME = re.compile(r"sglang-(\d+(?:\.\d+)+)(?:\.post(\d+))?-.*\.whl")
KINDS = {
    None: "str",
    "str": "str",
    "int": "int",
    "float": "float",
    "nullable_str": "str",
    "parse_cuda_graph_backend_arg": "str",
    "human_readable_int": "int",
    "json.loads": "json",
    "json_list_type": "json",
    "parse_cuda_graph_config_arg": "json",
}
DEPRECATED = re.compile(r"\W*(note:\s+--\S+\s+is\s+)?deprecated\b", re.IGNORECASE)
NAMED = r"(?:--[a-z]|SGLANG_)[^\s,;)]*[^\s,;).]"
# "use A [and B]" and "alias for A"; not "use A to …", which is advice about something else.
REPLACEMENT = re.compile(
    rf"\b(?:use|alias for)\s+({NAMED}(?:\s+and\s+{NAMED})*)(?!\s+to\b)(?=[\s,;).]|$)", re.IGNORECASE
)


# One argument ----------------------------------------------------------------------------------------------------


def deprecation(option: Option) -> dict[str, Any]:
    """Whether an option is deprecated, what its wheel says to use instead, and whether it ends the launch."""
    text = option.error_message or option.help or ""
    if not option.action.startswith("Deprecated") and not DEPRECATED.match(text):
        return {}
    if option.new_flag:
        replaced_by = [option.new_flag]
    else:
        found = REPLACEMENT.search(text)
        replaced_by = re.split(r"\s+and\s+", found.group(1)) if found else []
    return {"deprecated": True, "replaced_by": replaced_by, "refused": option.error_message is not None}


def value_kind(option: Option) -> str:
    """What a value on the command line is read as; "flag" where the option takes none."""
    return "flag" if option.nargs == 0 else KINDS.get(option.converter, "unknown")


def field_kind(annotation: ast.expr) -> str:
    """The kind of a field that no option sets."""
    inner, _ = unwrap_optional(annotation)
    values = literals(inner)
    text = type(values[0]).__name__ if values else ast.unparse(inner)
    return {"bool": "flag", "int": "int", "float": "float", "str": "str"}.get(text, "other")


def field_type(annotation: ast.expr, kind: str, nargs: object) -> dict[str, Any]:
    """Whether the field's type allows None, and the type as written where kind and nargs do not say the same."""
    inner, optional = unwrap_optional(annotation)
    values = literals(inner)
    if values is not None:
        return {"optional": optional or None in values}
    scalar = "bool" if kind == "flag" else kind
    implied = element_type(inner) if nargs in ("+", "*") else ast.unparse(inner)
    return {"optional": optional} if implied == scalar else {"optional": optional, "type": ast.unparse(annotation)}


def option_part(option: Option) -> dict[str, Any]:
    """The part of a record that the option decides."""
    kind = value_kind(option)
    part: dict[str, Any] = {"flags": list(option.flags), "kind": kind, "choices": option.choices}
    if option.converter not in (None, kind):
        part["converter"] = option.converter
    if option.action not in ("store", "store_true"):
        part["action"] = option.action
    part["nargs"] = option.nargs if isinstance(option.nargs, str) else None
    if option.action != "store_true":
        part["const"] = option.const
    part["required"] = option.required
    part["unknown"] = [key for key in option.unknown if key != "default"]
    return part | deprecation(option)


def field_part(arguments: Arguments, name: str, options: list[Option], part: Mapping[str, Any]) -> dict[str, Any]:
    """The part of a record that the field decides: its type, its default, and what the parser's own default is."""
    item = arguments.fields[name]
    out = field_type(item.annotation, part["kind"], part.get("nargs"))
    unknown = list(part.get("unknown", []))
    if item.arg and "fallback" in item.arg:
        out["fallback"] = item.scope.value(item.arg["fallback"])
    try:
        out["default"] = arguments.field_default(name) if item.value is not None else None
    except NotKnownError as error:
        unknown.append("default")
        arguments.problems.append(f"{name}: default: {error}")
    # argparse takes the default of the first option that sets a name.
    first = next((option for option in options if option.default != SUPPRESS), None)
    if first is not None and not first.required:
        if "default" in first.unknown:
            unknown.append("cli_default")
        elif "default" not in out or not same(out["default"], first.default):
            out["cli_default"] = first.default
    return out | {"unknown": unknown}


def same(left: object, right: object) -> bool:
    """Equal, and of the same type: 1, 1.0 and True are three values here."""
    return repr(left) == repr(right)


KEYS: Mapping[str, object] = {  # in the order of a line; left out where the value is this one
    "field": ...,
    "flags": [],
    "kind": ...,
    "type": None,
    "optional": False,
    "nargs": None,
    "action": None,
    "converter": None,
    "const": None,
    "default": None,
    "cli_default": ...,
    "fallback": None,
    "choices": None,
    "required": False,
    "deprecated": False,
    "replaced_by": [],
    "refused": False,
    "unknown": [],
}


def records(arguments: Arguments) -> dict[str, dict[str, Any]]:
    """Every argument by name. An option that is not its field's first undeprecated one has the name of its own flag."""
    setting: dict[str, list[Option]] = defaultdict(list)
    for option in arguments.options:
        setting[arguments.renamed.get(option.dest, option.dest)].append(option)
    out: dict[str, dict[str, Any]] = {}
    for dest, options in setting.items():
        main = next((option for option in options if not option.action.startswith("Deprecated")), options[0])
        for option in options:
            name = dest if option is main else automatic_dest(option.flags)
            if name in out or (option is not main and name in arguments.fields):
                raise NotKnownError(f"sglang {arguments.wheel.version}: two arguments named {name}")
            out[name] = option_part(option)
            if dest not in arguments.fields:
                out[name] |= {"field": None, "default": None if option.default == SUPPRESS else option.default}
            elif option is main:
                out[name] |= field_part(arguments, dest, options, out[name])
            else:
                out[name]["field"] = dest
    for name, item in arguments.fields.items():
        if name not in out:
            part = {"kind": field_kind(item.annotation)}
            out[name] = part | field_part(arguments, name, [], part)
    return {
        name: {key: out[name][key] for key, usual in KEYS.items() if key in out[name] and out[name][key] != usual}
        for name in sorted(out)
    }


# Files -----------------------------------------------------------------------------------------------------------


def wheels_by_release(folder: Path) -> dict[str, list[Path]]:
    """The wheels of each release, oldest post first."""
    found: dict[str, list[tuple[int, Path]]] = defaultdict(list)
    for path in folder.iterdir():
        match = WHEEL_NAME.fullmatch(path.name)
        if match:
            found[match[1]].append((int(match[2] or 0), path))
    ordered = sorted(found.items(), key=lambda entry: tuple(int(part) for part in entry[0].split(".")))
    return {release: [path for _, path in sorted(paths)] for release, paths in ordered}


def read_wheel(path: Path) -> tuple[str, dict[str, dict[str, Any]]]:
    """A wheel's version and its records. What the syntax trees do not tell is said on standard error."""
    wheel = Wheel(path)
    try:
        arguments = Arguments(wheel)
        table = records(arguments)
    finally:
        wheel.close()
    for problem in arguments.problems:
        print(f"sglang {wheel.version}: not known: {problem}", file=sys.stderr)
    return wheel.version, table


def render(release: str, paths: Iterable[Path]) -> str:
    """The text of a release's file, from its wheels, oldest post first."""
    read = [read_wheel(path) for path in paths]
    _, newest = read[-1]
    alike = [version for version, table in read if table == newest]
    head = {
        "kind": "sglang-arguments",
        "release": release,
        "read_from": alike[0],
        "same_in": alike[1:],
        "differs_in": [version for version, _ in read if version not in alike],
    }
    lines = [f"{json.dumps(name)}:{compact(record)}" for name, record in newest.items()]
    opening = ",\n".join(f"{json.dumps(key)}:{compact(value)}" for key, value in head.items())
    return "{" + opening + ',\n"arguments":{\n' + ",\n".join(lines) + "\n}}\n"


def compact(value: object) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


# Comparison with a real parser -----------------------------------------------------------------------------------


COMPARED = (
    "dest",
    "action",
    "converter",
    "nargs",
    "const",
    "default",
    "choices",
    "required",
    "new_flag",
    "error_message",
)


def differences(arguments: Arguments, real: Mapping[str, Any]) -> list[str]:
    """Where the real parser or record (what arguments_from_parser.py printed) is not what the trees say."""
    out: list[str] = []

    def compare(what: str, ours: object, theirs: object) -> None:
        ours, theirs = json.loads(json.dumps(ours)), json.loads(json.dumps(theirs))
        if not same(ours, theirs):
            out.append(f"{what}: the trees say {ours!r}, SGLang {theirs!r}")

    theirs_by_flag = {option["flags"][0]: option for option in real["options"]}
    ours_by_flag = {option.flags[0]: option for option in arguments.options}
    compare("options", sorted(ours_by_flag), sorted(theirs_by_flag))
    compare("the order of options", *first_difference(list(ours_by_flag), list(theirs_by_flag)))
    for flag in ours_by_flag.keys() & theirs_by_flag.keys():
        ours, theirs = ours_by_flag[flag], theirs_by_flag[flag]
        compare(f"{flag}: flags", spellings(ours), theirs["flags"])
        for key in COMPARED:
            if key not in ours.unknown:
                compare(f"{flag}: {key}", getattr(ours, key), theirs[key])
    table = records(arguments)
    compare("the fields", sorted(arguments.fields), sorted(real["fields"]))
    for name in arguments.fields.keys() & real["fields"].keys():
        record, theirs = table[name], real["fields"][name]
        compare(f"{name}: optional", record.get("optional", False), theirs["optional"])
        compare(f"{name}: has a default", arguments.fields[name].value is not None, "default" in theirs)
        if "default" not in record.get("unknown", []):
            compare(f"{name}: default", record.get("default"), theirs.get("default"))
        if not record.get("required") and not {"default", "cli_default"} <= set(record.get("unknown", [])):
            compare(f"{name}: launched", record.get("cli_default", record.get("default")), real["launched"][name])
    return out + wrong_effects(table, real)


def wrong_effects(table: Mapping[str, Mapping[str, Any]], real: Mapping[str, Any]) -> list[str]:
    """Where a spelling tried on the real command line did not do to the record what the table says."""
    expected: dict[str, tuple[str, Mapping[str, Any]]] = {}
    for name, record in table.items():
        for flag in record.get("flags", []):
            expected[flag] = (name, record)
            if record.get("action") == "BooleanOptionalAction":
                expected["--no-" + flag.removeprefix("--")] = (name, record)
    tried = real["effects"]
    out = [f"{flag}: not tried" for flag in expected.keys() - tried.keys()]
    out += [f"{flag}: not in the table" for flag in tried.keys() - expected.keys()]
    for flag in expected.keys() & tried.keys():
        if not has_effect(flag, *expected[flag], tried[flag]):
            out.append(f"{flag}: the table has {expected[flag][1]!r}, tried on SGLang it does {tried[flag]!r}")
    return sorted(out)


def has_effect(flag: str, name: str, record: Mapping[str, Any], effect: Mapping[str, Any]) -> bool:
    """Whether a spelling that was tried set the field that its record names, and no other."""
    ends = record.get("refused", False) or record.get("action") == "help"
    if ends or "error" in effect:
        return ends and "error" in effect
    changed, field = effect["changed"], record.get("field", name)
    if record["kind"] == "flag":
        stored = record.get("const", flag in record["flags"])
        wanted = {} if field is None or same(stored, record.get("default")) else {field: stored}
        return same(changed, wanted)
    is_default = effect["words"][1:] == [record.get("default")]
    return list(changed) == ([] if field is None or is_default else [field])


def first_difference(ours: list[str], theirs: list[str]) -> tuple[object, object]:
    """The first place where two lists differ, short enough to read; two equal values where they do not."""
    return next(((a, b) for a, b in zip(ours, theirs, strict=False) if a != b), (len(ours), len(theirs)))


def spellings(option: Option) -> list[str]:
    """An option's flags as argparse lists them, those that switch it off included."""
    if option.action != "BooleanOptionalAction":
        return list(option.flags)
    return [text for flag in option.flags for text in (flag, "--no-" + flag.removeprefix("--"))]


def main() -> int:
    parser = argparse.ArgumentParser(description="SGLang's argument tables from its wheels.")
    parser.add_argument("wheels", type=Path, help="folder with downloaded sglang-*.whl files")
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 where a file would change")
    parser.add_argument("--against", type=Path, metavar="REAL", help="compare with arguments_from_parser.py's output")
    given = parser.parse_args()
    releases = wheels_by_release(given.wheels) if given.wheels.is_dir() else {}
    if not releases:
        print(f"{given.wheels}: no folder with sglang-*.whl files", file=sys.stderr)
        return 2
    try:
        if given.against:
            return against(releases, read_real(given.against))
        return write(releases, given.check)
    except (NotKnownError, UnknownRulesError, OSError, ValueError) as error:
        print(error, file=sys.stderr)
        return 1


def read_real(path: Path) -> dict[str, Any]:
    try:
        real = json.loads(path.read_text("utf-8"))
    except ValueError:
        real = None
    if not isinstance(real, dict) or "effects" not in real:
        raise ValueError(f"{path}: not what tools/arguments_from_parser.py prints")
    return real


def against(releases: Mapping[str, list[Path]], real: Mapping[str, Any]) -> int:
    version = real["version"]
    path = next((p for paths in releases.values() for p in paths if p.name.split("-")[1] == version), None)
    if path is None:
        print(f"no wheel of sglang {version} in the folder", file=sys.stderr)
        return 2
    arguments = Arguments(Wheel(path))
    found = differences(arguments, real)
    counts = f"{len(arguments.options)} options, {len(arguments.fields)} fields, {len(found)} differences"
    print(*found, f"sglang {version}: {counts}", sep="\n")
    return 1 if found else 0


def write(releases: Mapping[str, list[Path]], check: bool) -> int:
    changed = []
    for release, paths in releases.items():
        target, text = DATA / f"{release}.json", render(release, paths)
        if target.is_file() and target.read_text("utf-8") == text:
            continue
        changed.append(target.name)
        if not check:
            target.write_text(text, "utf-8")
    print(f"{len(releases)} releases; {'would change' if check else 'written'}: {', '.join(changed) or 'nothing'}")
    return 1 if check and changed else 0


if __name__ == "__main__":
    sys.exit(main())
