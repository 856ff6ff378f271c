"""From arguments as written to typed ones: every problem at once, in the reader's words, with what to write instead.

Must not import anything above this floor.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic import ValidationError

from ..core.findings import Finding, Fix
from ..core.units import GB, AmountError, format_gb, parse_bytes
from .given import Given
from .names import Named, find
from .printed import asked_for
from .releases import Argument, known, match_flag, table
from .server_args import ServerArgs
from .text import TextError, convert

_FIELDS = frozenset(ServerArgs.model_fields)
#: A number with more digits is not repeated in an advice.
_LONGEST = 20


@dataclass(frozen=True)
class Reading:
    """Typed arguments of one engine, and how they came about.

    `given` holds the last place where each argument was written, by field name. `invalid` are fields whose value
    could not be read; they keep their default in `args`.
    """

    args: ServerArgs
    given: Mapping[str, Given]
    invalid: frozenset[str] = frozenset()
    findings: tuple[Finding, ...] = ()
    values: Mapping[str, Any] = field(default_factory=dict)


def read_arguments(
    given: Sequence[Given], release: str, *, printed: bool = False, not_known: Sequence[str] = ()
) -> Reading:
    """Typed arguments of a release from what was written; a later spelling of an argument wins, as in argparse.

    `printed` is for what a running server says (its log, `/server_info`): keys that are no argument are left alone,
    and so are values that it has by itself, which nobody asked for.
    `not_known` are keys that are written with a value that can't be known (NaN, an unset variable): they count as
    invalid, and not as missing.
    """
    findings: list[Finding] = []
    values: dict[str, Any] = {}
    places: dict[str, Given] = {}
    invalid: set[str] = set()
    for each in asked_for(given, release) if printed else given:
        named = find(each.key, release)
        if named is None and each.key in _FIELDS:
            findings.append(_not_in_release(each, release))
            invalid.add(each.key)
            places[each.key] = each
            continue
        if named is None:
            if not printed:
                findings.append(_unknown(each, release))
            continue
        if named.field in values:
            findings.append(_given_twice(each, named, places[named.field]))
        findings += _abbreviated(each, named)
        places[named.field] = each
        try:
            values[named.field] = _value(each, named)
        except TextError as error:
            findings.append(_wrong_text(each, named, str(error)))
            invalid.add(named.field)
            values.pop(named.field, None)
    for key in not_known:
        named = find(key, release)
        if named is not None:
            invalid.add(named.field)
        elif not printed and key not in _FIELDS:
            findings.append(_unknown(Given(key, None), release))
    args, problems = _validate({name: value for name, value in values.items() if name not in invalid}, release)
    for name, finding in problems:
        findings.append(finding)
        invalid.add(name)
    return Reading(args, places, frozenset(invalid), tuple(findings), values)


def _validate(values: Mapping[str, Any], release: str) -> tuple[ServerArgs, list[tuple[str, Finding]]]:
    """The typed arguments without those that are refused, and a finding for each refused one."""
    kept = dict(values)
    problems: list[tuple[str, Finding]] = []
    context = {"release": release}
    while True:
        try:
            return ServerArgs.model_validate(kept, context=context), problems
        except ValidationError as error:
            wrong: dict[str, Any] = {}
            for detail in error.errors(include_url=False, include_context=True):
                wrong.setdefault(str(detail["loc"][0]), detail)
            for name, detail in wrong.items():
                problems.append((name, _refused(name, detail, release)))
                del kept[name]


def _value(each: Given, named: Named) -> Any:
    if named.argument is None or not (each.as_text or named.as_text):
        return each.value
    value = convert(named.argument, each.value)
    return not value if named.is_negated else value


#: Of so many arguments that a beginning may mean the names are shown.
_MOST_CANDIDATES = 5


# --- findings -----------------------------------------------------------------------------------------------------


def flag_of(name: str, release: str) -> str:
    """The flag of a field in a release, such as `--hicache-size`."""
    argument = table(release).get(name)
    return argument.flags[0] if argument and argument.flags else "--" + name.replace("_", "-")


def _unknown(each: Given, release: str) -> Finding:
    if each.key.startswith("--") and (several := match_flag(release, each.key).candidates):
        return _ambiguous(each, several, release)
    elsewhere = [name for name in known() if find(each.key, name) is not None]
    if elsewhere:
        return _not_in_release(each, release, elsewhere)
    as_flag = each.key.startswith("-") or "-" in each.key
    meant = _close(each.key, release, as_flag=as_flag)
    fix = None
    if meant:
        field_name = meant.lstrip("-").replace("-", "_")
        fix = Fix({each.key: None, field_name: each.value}) if not as_flag else None
    return Finding(
        "HC010",
        "unknown-argument",
        "error",
        f"{each.key} is no argument of SGLang {release}",
        f"Did you mean {meant}?" if meant else "Take it out, or look for its name in `hicache-config explain`.",
        argument=each.key,
        asked=each.value,
        fix=fix,
    )


def _ambiguous(each: Given, candidates: Sequence[str], release: str) -> Finding:
    shown = ", ".join(candidates[:_MOST_CANDIDATES]) + (", …" if len(candidates) > _MOST_CANDIDATES else "")
    return Finding(
        "HC010",
        "unknown-argument",
        "error",
        f"{each.key} is the beginning of several arguments of SGLang {release}, which refuses it",
        f"Write the one that is meant in full: {shown}.",
        argument=each.key,
        asked=each.value,
    )


def _close(key: str, release: str, *, as_flag: bool) -> str | None:
    wanted = key.lstrip("-").replace("-", "_").lower()
    names = [name for name, argument in table(release).items() if argument.flags]
    # The HiCache block first: an equally close name elsewhere is rarely what was meant.
    names.sort(key=lambda name: "hicache" not in name)
    close = difflib.get_close_matches(wanted, names, n=1, cutoff=0.75)
    if not close:
        return None
    return flag_of(close[0], release) if as_flag else close[0]


def _not_in_release(each: Given, release: str, elsewhere: Sequence[str] | None = None) -> Finding:
    having = elsewhere if elsewhere is not None else [name for name in known() if each.key in table(name)]
    if len(having) > 1:
        spelled = f"releases {having[0]} to {having[-1]} have it"
    else:
        spelled = f"release {having[0]} has it" if having else "other releases have it"
    return Finding(
        "HC107",
        "not-in-this-release",
        "error",
        f"{each.key} is no argument of SGLang {release}; {spelled}",
        "Take it out, or run a release that has it.",
        argument=each.key,
        asked=each.value,
    )


def _given_twice(each: Given, named: Named, before: Given) -> Finding:
    return Finding(
        "HC108",
        "given-twice",
        "warning",
        f"{each.key} is given again; the earlier {before.key} is ignored",
        "Write it once.",
        argument=named.field,
        asked=before.value,
        gets=each.value,
    )


def _abbreviated(each: Given, named: Named) -> Iterable[Finding]:
    if named.is_abbreviation and named.argument is not None and len(each.key.lstrip("-")) > len("tp"):
        yield Finding(
            "HC106",
            "abbreviated-flag",
            "note",
            f"{each.key} is completed to {named.argument.flags[0]}; a later release may make it ambiguous",
            f"Write {named.argument.flags[0]}.",
            argument=named.field,
        )


def _wrong_text(each: Given, named: Named, why: str) -> Finding:
    return Finding(
        "HC101",
        "wrong-type",
        "error",
        f"{each.key} {_quoted(each.value)}: {why}",
        ""
        if named.argument is not None and named.argument.kind == "flag"
        else _example(named.field, named.argument, each.value),
        argument=named.field,
        asked=each.value,
    )


#: pydantic's kinds of a broken limit, in words.
_LIMITS = {
    "greater_than": "above",
    "greater_than_equal": "at least",
    "less_than": "below",
    "less_than_equal": "at most",
}


def _refused(name: str, detail: Mapping[str, Any], release: str) -> Finding:
    """One problem of pydantic's as a finding in the reader's words."""
    value, kind = detail["input"], detail["type"]
    context: Mapping[str, Any] = detail.get("ctx") or {}
    argument = table(release).get(name)
    flag = flag_of(name, release)
    about = _unit(name)
    if kind == "choice":
        choices = context["choices"]
        close = difflib.get_close_matches(str(value), choices, n=1, cutoff=0.5)
        meant = f"Did you mean {close[0]}? " if close else ""
        return Finding(
            "HC102", "not-a-choice", "error",
            f"{flag} {_quoted(value)} is not one of its choices in SGLang {release}",
            f"{meant}The choices: {', '.join(choices)}.",
            argument=name, asked=value, fix=Fix({name: close[0]}) if close else None,
        )  # fmt: skip
    if kind == "too_large":
        return Finding(
            "HC104", "number-too-large", "error",
            f"{flag} {_quoted(value)} does not fit into 64 bits", f"Write a smaller number{about}.",
            argument=name, asked=_plain(value),
        )  # fmt: skip
    if kind in _LIMITS:
        limit = next(iter(context.values()))
        unset = " 0 means not set." if name == "hicache_size" else ""
        return Finding(
            "HC103", "out-of-range", "error",
            f"{flag} {_quoted(value)} is out of range{about}", f"Write a number {_LIMITS[kind]} {limit:g}.{unset}",
            argument=name, asked=_plain(value),
        )  # fmt: skip
    if kind == "finite_number":
        return Finding(
            "HC103", "out-of-range", "error",
            f"{flag} {value} is not a finite number{about}", "Write a number.", argument=name, asked=str(value),
        )  # fmt: skip
    if name == "hicache_size" and isinstance(value, float):
        return Finding(
            "HC105", "fractional-size", "error",
            f"{flag} {value} has a fraction; the command line takes whole GB (10**9 bytes) per rank",
            f"Write {int(value)} or {int(value) + 1}.", argument=name, asked=value,
        )  # fmt: skip
    written = flag if value is None else f"{flag} {_quoted(value)}"
    return Finding(
        "HC101", "wrong-type", "error",
        f"{written} is {_kind(value)}; {_expected(argument)} is expected{about}",
        _example(name, argument, value), argument=name, asked=_plain(value),
    )  # fmt: skip


def _unit(name: str) -> str:
    info = ServerArgs.model_fields.get(name)
    extra = info.json_schema_extra if info is not None else None
    if not isinstance(extra, dict):
        return ""
    words = [str(extra[part]) for part in ("unit", "scope") if part in extra]
    return f" ({', '.join(words)})" if words else ""


def _kind(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true or false"
    names = {str: "text", int: "a whole number", float: "a number", dict: "a mapping", list: "a list"}
    return names.get(type(value), type(value).__name__)


def _expected(argument: Argument | None) -> str:
    if argument is not None and argument.choices:
        return "one of " + ", ".join(map(str, argument.choices))
    kind = argument.kind if argument is not None else ""
    words = {"int": "a whole number", "float": "a number", "flag": "true or false", "str": "text", "json": "a mapping"}
    return words.get(kind, "another type")


def _example(name: str, argument: Argument | None, value: Any = None) -> str:
    if name == "hicache_size" and isinstance(value, str):
        try:
            amount = parse_bytes(value)
        except AmountError:
            amount = 0
        if amount >= GB and not value.strip().isdigit():
            exact = "" if amount % GB == 0 else f" ({value.strip()} is {format_gb(amount)})"
            return f"Write {amount // GB}{exact}: a bare number of GB (10**9 bytes)."
    if isinstance(value, str) and argument is not None and argument.kind in ("int", "float"):
        digits = value.strip()
        whole, point, part = digits.partition(".")
        if whole.isdecimal() and whole.isascii() and (not point or (part.isdecimal() and part.isascii())):
            if not point or argument.kind == "float":
                return f"Write {digits} without quotes."
            return f"Write {whole} or {int(whole) + 1}." if len(whole) < _LONGEST else "Write a whole number."
    examples = getattr(ServerArgs.model_fields.get(name), "examples", None)
    return f"Write {examples[0]}, for example." if examples else "Write a value of that type, or leave it out."


def _quoted(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:59] + "…"


def _plain(value: Any) -> Any:
    """The value if a JSON report can hold it, else its text."""
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) >= 2**63:
        return str(value)[:80]
    return value
