"""Values of a YAML file that SGLang's own `--config` reader changes or breaks.

Source: ConfigArgumentMerger (0.5.10 to 0.5.18 srt/server_args_config_parser.py, since 0.5.19 srt/utils/): it
writes each key and value as words of a command line, reads YAML 1.1, and knows no sections.

Must not import anything above this floor.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache

from ..arguments.given import Given
from ..arguments.releases import Argument, match_flag, table
from ..core.releases import release_key
from .document import Noted
from .notes import note, shortened
from .text import Lines
from .tree import Entry, Mapping, Scalar, Sequence

#: Words that are text in YAML 1.2 and a switch, or a number to another base, in YAML 1.1.
_SWITCHES = re.compile(r"(?:yes|Yes|YES|no|No|NO|on|On|ON|off|Off|OFF)")
_OTHER_BASE = re.compile(r"[-+]?0[0-7_]+|[-+]?[1-9][0-9_]*(?::[0-5]?[0-9])+(?:\.[0-9_]*)?")


def broken_values(entries: Iterable[Entry], given: Iterable[Given], text: str, release: str) -> Iterator[Noted]:
    """A note for each value that would reach SGLang as something else than what is written."""
    places = {each.key: each.place for each in given}
    for entry in entries:
        if entry.key not in places:
            continue
        for message, help in _of_entry(entry, text, release):
            yield note("HC013", message, help, places[entry.key], argument=entry.key)


def underscores(given: Iterable[Given]) -> Iterator[Noted]:
    """One note for keys with underscores: SGLang makes `--hicache_size` of them, which its parser does not have."""
    keys = [each for each in given if "_" in each.key and not each.key.startswith("-")]
    if keys:
        first = keys[0]
        dashed = first.key.replace("_", "-")
        message = f"as a file for --config, SGLang would read {first.key} as --{first.key}, which is no flag of it"
        more = f" The same holds for {len(keys) - 1} more." if len(keys) > 1 else ""
        yield note("HC013", message, f"For --config write {dashed}.{more}", first.place, severity="note")


def sections(entries: Iterable[Entry], lines: Lines) -> Noted:
    """The note for sections per role."""
    named = list(entries)
    shown = shortened(", ".join(entry.key for entry in named))
    message = f"the sections {shown} are read as an engine each; SGLang's own --config knows no sections"
    place = lines.place(named[0].key_start, named[0].key_end)
    return note("HC013", message, "Hand SGLang one section as a file of its own.", place, severity="note")


def _of_entry(entry: Entry, text: str, release: str) -> Iterator[tuple[str, str]]:
    key, value = entry.key, entry.value
    argument = _argument(key, release)
    if isinstance(value, Mapping):
        if release_key(release) < (0, 5, 14):
            yield (
                f"SGLang {release} hands the mapping {key} on as Python text with single quotes, which is no JSON",
                f"Write it as JSON text in single quotes: {key}: '{{\"…\": …}}'.",
            )
    elif isinstance(value, Sequence):
        if not value.items:
            yield f"SGLang leaves the empty list {key} out", "Leave it out, or write a value."
        elif argument is not None and argument.nargs not in ("+", "*"):
            yield (
                f"SGLang makes a word of each item of the list {key}, and the flag takes one value",
                "Write a single value.",
            )
        elif any(not isinstance(item, Scalar) for item in value.items):
            yield f"SGLang hands the nested items of {key} on as Python text", "Write each item as JSON text in quotes."
    elif isinstance(value, Scalar) and value.style == "plain":
        yield from _of_scalar(key, value, text[value.start : value.end], release)


def _of_scalar(key: str, value: Scalar, raw: str, release: str) -> Iterator[tuple[str, str]]:
    if value.value is None:
        yield f"SGLang hands an empty {key} on as the text None", "Leave the key out."
    elif isinstance(value.value, bool) and not _is_switch(key, release):
        yield f"SGLang hands {key} on with the text {str(value.value).lower()}", "Write the value that the flag takes."
    elif isinstance(value.value, bool) and is_refused(key, release):
        yield f"SGLang's --config reader refuses {key}, which it can't hand on", f"Give --{key} on the command line."
    elif _SWITCHES.fullmatch(raw):
        yield f"SGLang reads YAML 1.1, where {raw} is true or false", "Write true or false, or put quotes around it."
    elif _OTHER_BASE.fullmatch(raw):
        yield (
            f"SGLang reads YAML 1.1, where {shortened(raw)} is a number to another base",
            "Write it without leading zeros and colons.",
        )


def _argument(key: str, release: str) -> Argument | None:
    known = table(release)
    return known.get(key.replace("-", "_")) or match_flag(release, "--" + key.lstrip("-")).argument


def _is_switch(key: str, release: str) -> bool:
    argument = _argument(key, release)
    return argument is None or argument.kind == "flag"


def is_switch(key: str, release: str) -> bool:
    """Whether the merger hands a true value of a key on as a flag alone, and leaves a false one out."""
    return key.replace("-", "_") in _keys(release).switches


def is_refused(key: str, release: str) -> bool:
    """Whether the merger stops at a key: its option is neither a plain switch nor takes one value or a list.

    Until 0.5.22 it compares the name that an option stores to, since 0.5.23 every long spelling.
    """
    return key.replace("-", "_") in _keys(release).refused


@dataclass(frozen=True)
class _Keys:
    """What the merger of a release knows of keys, with underscores."""

    switches: frozenset[str]
    refused: frozenset[str]


@cache
def _keys(release: str) -> _Keys:
    options = [each for each in table(release).values() if each.flags and each.name not in ("config", "help")]
    carried = {name for each in options if _is_carried(each, release) for name in _names(each, release)}
    switches = {name for each in options if _is_plain_switch(each) for name in _names(each, release)}
    every = {name for each in options for name in _names(each, release)}
    return _Keys(frozenset(switches), frozenset(every - carried))


def _names(option: Argument, release: str) -> set[str]:
    names = {option.field or option.name}
    if release_key(release) >= (0, 5, 23):
        names |= {flag[2:].replace("-", "_") for flag in option.spellings if flag.startswith("--")}
    return names


def _is_plain_switch(option: Argument) -> bool:
    return option.kind == "flag" and option.action is None


def _is_carried(option: Argument, release: str) -> bool:
    if option.action is None:
        return True
    return release_key(release) >= (0, 5, 23) and option.kind != "flag" and option.nargs is None
