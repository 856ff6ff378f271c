"""Which argument a spelling means: field names, flags, aliases and abbreviations of a release.

Must not import anything above this floor.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ..core.releases import NEWEST
from .releases import Argument, match_flag, table
from .text import TextError, convert


@dataclass(frozen=True)
class Named:
    """The argument that a key means: its field name and, where the key is in flag spelling, that the value is text.

    `argument` is None for fields that only this program knows of another release; `is_abbreviation` tells that
    argparse completed the flag, `is_negated` that it is a `--no-…` form.
    """

    field: str
    argument: Argument | None
    as_text: bool
    is_abbreviation: bool = False
    is_negated: bool = False


def find(key: str, release: str) -> Named | None:
    """The argument of a release that `key` spells, or None. Field names come first, then flags."""
    known = table(release)
    if key in known:
        return Named(known[key].field or key, known[key], as_text=False)
    if not key.startswith("-") and "_" in key:
        return None
    flag = key if key.startswith("-") else "--" + key
    match = match_flag(release, flag)
    if match.argument is None:
        return None
    return Named(
        match.argument.field or match.argument.name,
        match.argument,
        as_text=True,
        is_abbreviation=match.kind == "prefix",
        is_negated=match.flag not in match.argument.flags,
    )


@dataclass(frozen=True)
class SortedOut:
    """A mapping of arguments, sorted: typed fields, other known arguments, unknown keys, and a release's defaults."""

    fields: dict[str, Any] = field(default_factory=dict)
    others: dict[str, Any] = field(default_factory=dict)
    unknown: dict[str, Any] = field(default_factory=dict)
    defaults: dict[str, Any] = field(default_factory=dict)


def sort_out(data: Mapping[Any, Any], fields: frozenset[str], release: str) -> SortedOut:
    """Sort the keys of `data` by what they mean in a release; text of flag spellings is converted.

    Text that does not convert stays as it is, so that the typed field refuses it by its own name.
    """
    out = SortedOut(defaults=defaults(fields, release))
    for key, value in data.items():
        named = find(str(key), release)
        if named is None and key in fields:
            named = Named(key, None, as_text=False)
        if named is None:
            out.unknown[str(key)] = value
            continue
        target = out.fields if named.field in fields else out.others
        target[named.field] = _typed(named, value)
    return out


def _typed(named: Named, value: Any) -> Any:
    if not named.as_text or named.argument is None:
        return value
    try:
        converted = convert(named.argument, value)
    except TextError:
        return value
    return not converted if named.is_negated and isinstance(converted, bool) else converted


def defaults(fields: Iterable[str], release: str) -> dict[str, Any]:
    """Defaults of a release for those fields whose default is another one than in the newest release."""
    if release == NEWEST:
        return {}
    old, new = table(release), table(NEWEST)
    return {
        name: old[name].default
        for name in fields
        if name in old and name in new and old[name].default != new[name].default and "default" not in old[name].unknown
    }
