"""SGLang's server arguments as each release has them: flags, kinds, defaults, choices, deprecations.

The tables are the JSON files beside this module, one a release, taken from SGLang's own wheels (`sglang/srt/
server_args.py`, and from 0.5.20 `sglang/srt/arg_groups/fields/`) by `tools/arguments_from_wheels.py`. A `.postN` counts
as its release. Plugins and platforms may add choices when a server starts: the tables hold what the wheel itself has.

Standard library only. Must not import pydantic, nor anything of this project.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from functools import cache
from importlib.resources import files
from types import MappingProxyType
from typing import Any, Literal

_RELEASE = re.compile(r"\d+(\.\d+)*")
_POST = re.compile(r"\.post\d+$")


class UnknownReleaseError(LookupError):
    """There is no table for a release. The text names the releases that there are."""


@dataclass(frozen=True)
class Argument:
    """One server argument of one release.

    Most are a field of SGLang's ServerArgs with one option of its command line. Others are an option without a field
    (`field` is None: `--config`, `--help`, a retired flag), a second option of a field (a deprecated spelling that
    stores into it), or a field without an option (`flags` is empty).
    """

    name: str
    """The field's name; an option that is not its field's own has the name of its flag, with underscores."""
    field: str | None
    """The field of ServerArgs that it sets, None where it sets none."""
    kind: str
    """What a value is read as: flag (no value), int, float, str, json; also other for a field without an option, and
    unknown where a converter is not one that the script knows."""
    flags: tuple[str, ...] = ()
    """Its spellings on the command line as SGLang lists them, without those that switch it off."""
    type: str | None = None
    """The field's Python type as SGLang writes it, None where kind, optional and nargs already say it."""
    optional: bool = False
    """Whether the field may be None."""
    nargs: str | None = None
    """argparse's "+", "*" (several values, a list) or "?" (the value may be left out); None for one value or none."""
    action: str | None = None
    """argparse's or SGLang's action where it is neither the usual store nor store_true."""
    converter: str | None = None
    """SGLang's function that reads the value where it is not kind's own: human_readable_int, json.loads, …"""
    const: Any = None
    """What is stored when the flag stands without a value (deprecated flags, nargs "?"); None elsewhere."""
    default: Any = None
    """The field's default (a list as a tuple), None also where there is none (`required`) or `unknown` names it."""
    cli_default: Any = None
    """What the command line gives when the flag is absent: `default` but for three fields of 0.5.10 to 0.5.13."""
    fallback: Any = None
    """What SGLang takes for a field that is None after its resolution, None where it declares nothing."""
    choices: tuple[Any, ...] | None = None
    """The values that the command line accepts, None where it accepts any."""
    required: bool = False
    """Whether the command line must have it."""
    deprecated: bool = False
    """Whether SGLang calls it deprecated."""
    replaced_by: tuple[str, ...] = ()
    """What SGLang says to write instead: flags, with their value where it names one, or environment variables."""
    refused: bool = False
    """Whether the flag ends the launch with a message."""
    unknown: tuple[str, ...] = ()
    """The parts that depend on the machine or are computed, so that the wheel does not tell them."""

    @property
    def spellings(self) -> tuple[str, ...]:
        """Every spelling, with those that switch it off (`--no-…`), in argparse's order."""
        if self.action != "BooleanOptionalAction":
            return self.flags
        return tuple(text for flag in self.flags for text in (flag, "--no-" + flag.removeprefix("--")))


@cache
def known() -> tuple[str, ...]:
    """The releases that there are tables for, oldest first."""
    names = (entry.name.removesuffix(".json") for entry in files(__name__).iterdir() if entry.name.endswith(".json"))
    return tuple(sorted(names, key=lambda name: tuple(map(int, name.split(".")))))


def table(release: str) -> Mapping[str, Argument]:
    """The arguments of a release by name, in the order of names; a `.postN` is its release.

    Raises UnknownReleaseError.
    """
    return _table(_POST.sub("", release))


@cache
def _table(release: str) -> Mapping[str, Argument]:
    # The name of a file is made from `release`, so it must look like one.
    source = files(__name__) / f"{release}.json"
    if not _RELEASE.fullmatch(release) or not source.is_file():
        raise UnknownReleaseError(f"no argument table of SGLang {release}: there are {known()[0]} to {known()[-1]}")
    entries = json.loads(source.read_text("utf-8"))["arguments"]
    return MappingProxyType({name: _argument(name, entry) for name, entry in entries.items()})


def _argument(name: str, entry: Mapping[str, Any]) -> Argument:
    # A file leaves out what is usual: the defaults of Argument, and the two that another part decides.
    values: dict[str, Any] = {key: tuple(value) if isinstance(value, list) else value for key, value in entry.items()}
    values.setdefault("field", name)
    values.setdefault("cli_default", values.get("default"))
    return Argument(name, **values)


def by_flag(release: str) -> Mapping[str, Argument]:
    """The arguments of a release by every spelling on the command line, `--no-…` forms included.

    Raises UnknownReleaseError.
    """
    return _by_flag(_POST.sub("", release))


@cache
def _by_flag(release: str) -> Mapping[str, Argument]:
    return MappingProxyType({flag: entry for entry in table(release).values() for flag in entry.spellings})


@dataclass(frozen=True)
class FlagMatch:
    """What a release's command line takes a word for."""

    kind: Literal["exact", "prefix", "ambiguous", "none"]
    """exact; prefix: the beginning of one spelling; ambiguous: of several, an error; none: no option at all."""
    flag: str | None = None
    """The whole spelling, where there is one."""
    argument: Argument | None = None
    value: str | None = None
    """The value within the word, after "=" (`--hicache-size=100`); None where there is none."""
    candidates: tuple[str, ...] = ()
    """The spellings that an ambiguous word could mean, in the order of names."""


def match_flag(release: str, text: str) -> FlagMatch:
    """What a word of a command line is taken for, by argparse's rules: a spelling, a spelling and its value, or the
    beginning of exactly one spelling. SGLang's parser keeps argparse's abbreviations on.

    Two spellings of one argument make a word ambiguous, too, as argparse has it. Raises UnknownReleaseError.
    """
    spellings = by_flag(release)
    if text in spellings:
        return FlagMatch("exact", text, spellings[text])
    start, sign, value = text.partition("=")
    given = value if sign else None
    if sign and start in spellings:
        return FlagMatch("exact", start, spellings[start], given)
    if text[:2] in spellings and not text.startswith("--"):
        return FlagMatch("exact", text[:2], spellings[text[:2]], text[2:])  # one letter, its value attached
    found = [flag for flag in spellings if flag.startswith(start)] if text.startswith("--") and text != "--" else []
    if len(found) > 1:
        return FlagMatch("ambiguous", value=given, candidates=tuple(found))
    if found:
        return FlagMatch("prefix", found[0], spellings[found[0]], given)
    return FlagMatch("none")


@dataclass(frozen=True)
class Difference:
    """One thing that two releases have differently about an argument."""

    name: str
    what: str
    """added, removed, or the attribute of Argument that changed (default, choices, flags, kind, deprecated, …)."""
    old: Any
    """The value in the older release, the Argument itself where it was removed, None where it was added."""
    new: Any


_COMPARED = tuple(each.name for each in fields(Argument) if each.name not in ("name", "type", "converter", "unknown"))


def differences(old: str, new: str) -> list[Difference]:
    """What changed about the arguments from one release to another, in the order of names.

    A change of `cli_default` is listed only where it is not that of `default`. Raises UnknownReleaseError.
    """
    return list(_differences(table(old), table(new)))


def _differences(old: Mapping[str, Argument], new: Mapping[str, Argument]) -> Iterator[Difference]:
    for name in sorted(old.keys() | new.keys()):
        before, after = old.get(name), new.get(name)
        if before is None or after is None:
            yield Difference(name, "added" if before is None else "removed", before, after)
            continue
        for what in _COMPARED:
            left, right = getattr(before, what), getattr(after, what)
            same_as_default = what == "cli_default" and (left, right) == (before.default, after.default)
            if repr(left) != repr(right) and not same_as_default:
                yield Difference(name, what, left, right)
