"""Arguments of servers within a larger file: a benchmark's recipe, the values of a chart, an operator's own settings.

Must not import anything above this floor.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from collections.abc import Mapping as Map
from dataclasses import dataclass, field, replace

from ..arguments.names import find
from .tree import MISSING, Mapping, Node, Scalar, Sequence

DEEPEST = 8
#: Names of arguments that other settings are called by as well.
_COMMON = frozenset(
    {"model", "name", "host", "port", "device", "version", "config", "help", "log_level", "dtype", "tp", "dp", "ep"}
)
_ENVIRONMENT = re.compile(r"(?:(?P<role>\w+)_)?env(?:ironment)?")


@dataclass(frozen=True)
class Nested:
    """A mapping of arguments, the keys that lead to it, and the variables that stand beside it."""

    path: tuple[str, ...]
    node: Mapping
    environment: Map[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str | None:
        """What it is called: the key that it stands under."""
        return self.path[-1] if self.path else None


def is_arguments(node: Node, release: str) -> bool:
    """Whether at least half of a mapping's keys are arguments of a server, or one is HiCache's."""
    if not isinstance(node, Mapping):
        return False
    plain = [entry.key for entry in node.entries if not isinstance(entry.value, Mapping)]
    if any("hicache" in key or "hierarchical" in key for key in plain):
        return True
    known = sum(_is_argument(key, release) for key in plain)
    return known > 0 and 2 * known >= len(node.entries)


def nested(node: Mapping, release: str) -> list[Nested]:
    """The mappings of arguments within a mapping that is none itself; none where nothing tells them from others."""
    found = [each for each in _walk(node, release, (), {}) if _tells(each.node, release)]
    counts = Counter(each.name for each in found)
    return [
        replace(each, path=(f"{each.path[0]}/{each.path[-1]}",))
        if counts[each.name] > 1 and len(each.path) > 1
        else each
        for each in found
    ]


def _walk(node: Node, release: str, path: tuple[str, ...], around: Map[str, Map[str, str]]) -> Iterator[Nested]:
    """`around` are the variables by the role that they are for, "" for all."""
    if len(path) > DEEPEST:
        return
    if isinstance(node, Sequence):
        for item in node.items:
            yield from _walk(item, release, path, around)
    if not isinstance(node, Mapping):
        return
    around = {**around, **dict(_variables(node))}
    for entry in node.entries:
        if isinstance(entry.value, Mapping) and is_arguments(entry.value, release):
            yield Nested((*path, entry.key), entry.value, {**around.get("", {}), **around.get(entry.key, {})})
        else:
            yield from _walk(entry.value, release, (*path, entry.key), around)


def _variables(node: Mapping) -> Iterator[tuple[str, Map[str, str]]]:
    """Variables beside the arguments: `environment` for all roles, `prefill_environment` for one."""
    for entry in node.entries:
        match = _ENVIRONMENT.fullmatch(entry.key)
        if match is not None and isinstance(entry.value, Mapping):
            yield match["role"] or "", environment_of(entry.value)


def _tells(node: Mapping, release: str) -> bool:
    """Whether two keys, or one of HiCache's, say that these are a server's arguments."""
    keys = [entry.key for entry in node.entries]
    return any("hicache" in key or "hierarchical" in key for key in keys) or (
        sum(_is_argument(key, release) for key in keys) > 1
    )


def _is_argument(key: str, release: str) -> bool:
    if key.lstrip("-").replace("-", "_") in _COMMON:
        return False
    named = find(key, release)
    return named is not None and not named.is_abbreviation


def environment_of(node: Mapping) -> dict[str, str]:
    """The variables of a mapping of names to values."""
    scalars = ((entry.key, entry.value) for entry in node.entries)
    return {
        key: str(value.value)
        for key, value in scalars
        if isinstance(value, Scalar) and value.value not in (None, MISSING)
    }
