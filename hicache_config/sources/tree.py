"""One shape for what JSON, YAML and TOML hold: scalars, sequences and mappings that know their offsets.

Must not import anything above this floor.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

from ..arguments.given import Place
from .text import Builder, Lines, Traced


class Missing:
    """The value of a scalar that was named in a finding and counts as not written."""

    def __repr__(self) -> str:
        return "MISSING"


MISSING = Missing()


@dataclass(frozen=True)
class Scalar:
    """A value without parts. `style` says how it is written: plain, single, double, literal or folded."""

    value: Any
    start: int
    end: int
    style: str = "plain"

    def traced(self, text: str) -> Traced:
        """The characters of a text, or of a number as it is written, each with its offset in the document."""
        raw = text[self.start : self.end]
        if self.style == "plain" or not isinstance(self.value, str):
            shown = self.value if isinstance(self.value, str) else raw
            if shown == raw:
                return Traced.of(raw, self.start)
            return _aligned(shown, text, self.start, self.start, self.end, escapes=False)
        first = self.start + 1
        if self.style in ("literal", "folded"):
            first = text.find("\n", self.start) + 1 or self.end
        return _aligned(
            self.value, text, self.start, first, self.end, escapes=self.style == "double", quote=self.style == "single"
        )


@dataclass(frozen=True)
class Entry:
    """A key of a mapping and its value."""

    key: str
    key_start: int
    key_end: int
    value: Node


@dataclass(frozen=True)
class Sequence:
    """Values in a row."""

    items: tuple[Node, ...]
    start: int
    end: int


@dataclass(frozen=True)
class Mapping:
    """Keys with values, as written; of a key written twice the last one counts."""

    entries: tuple[Entry, ...]
    start: int
    end: int

    def get(self, key: str) -> Node | None:
        """The value of a key, or None."""
        return next((entry.value for entry in reversed(self.entries) if entry.key == key), None)

    def at(self, *keys: str) -> Node | None:
        """The value behind several keys, or None."""
        node: Node | None = self
        for key in keys:
            node = node.get(key) if isinstance(node, Mapping) else None
        return node


_MANIFEST_KEYS = frozenset({"apiVersion", "kind", "containers", "services", "spec", "metadata", "image"})

Node: TypeAlias = "Scalar | Sequence | Mapping"


def plain(node: Node) -> Any:
    """The node as Python values, without what is MISSING."""
    if isinstance(node, Scalar):
        return node.value
    if isinstance(node, Sequence):
        return [value for value in map(plain, node.items) if value is not MISSING]
    pairs = ((entry.key, plain(entry.value)) for entry in node.entries)
    return {key: value for key, value in pairs if value is not MISSING}


def text_of(node: Node | None) -> str | None:
    """The text of a scalar that is one, else None."""
    return node.value if isinstance(node, Scalar) and isinstance(node.value, str) else None


def parts(node: Node, lines: Lines, pointer: str = "") -> Iterator[tuple[str, Place]]:
    """The places of everything inside a node, key to the end of the value, by JSON pointer."""
    if isinstance(node, Mapping):
        for entry in node.entries:
            inside = f"{pointer}/{escaped(entry.key)}"
            yield inside, lines.place(entry.key_start, max(entry.key_end, entry.value.end))
            yield from parts(entry.value, lines, inside)
    elif isinstance(node, Sequence):
        for index, item in enumerate(node.items):
            yield f"{pointer}/{index}", lines.place(item.start, item.end)
            yield from parts(item, lines, f"{pointer}/{index}")


def is_manifest(node: Node) -> bool:
    """Whether a document has the shape of a manifest, a Compose file or a list of patches."""
    if isinstance(node, Sequence):
        return any(isinstance(item, Mapping) and None not in (item.get("op"), item.get("path")) for item in node.items)
    return isinstance(node, Mapping) and any(entry.key in _MANIFEST_KEYS for entry in node.entries)


def escaped(key: str) -> str:
    """A key as a token of a JSON pointer."""
    return key.replace("~", "~0").replace("/", "~1")


def moved(node: Node, source: Traced) -> Node:
    """A node read from `source.text`, with the offsets of the document that `source` comes from."""

    def at(offset: int) -> int:
        return source.offset(offset)

    if isinstance(node, Scalar):
        return Scalar(node.value, at(node.start), at(node.end), node.style)
    if isinstance(node, Sequence):
        return Sequence(tuple(moved(item, source) for item in node.items), at(node.start), at(node.end))
    entries = (
        Entry(each.key, at(each.key_start), at(each.key_end), moved(each.value, source)) for each in node.entries
    )
    return Mapping(tuple(entries), at(node.start), at(node.end))


_SURROGATES = re.compile(r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}")
_ESCAPE = re.compile(r"\\(?:u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|x[0-9a-fA-F]{2}|[^\n])")
_LINE_JOIN = re.compile(r"\\\n[ \t]*")


def _aligned(value: str, text: str, begin: int, first: int, end: int, *, escapes: bool, quote: bool = False) -> Traced:
    """The characters of a decoded text, each at the offset it was written at.

    Walks both in step: escapes stand for one character, and white space of the source that is not in the value
    (indentation, folded lines) is passed over.
    """
    out = Builder(begin)
    here = first
    for char in value:
        start, here = _next(char, text, here, end, escapes=escapes)
        if quote and char == "'" and text[start : start + 2] == "''":
            here = start + 2
        out.add(char, start)
    return out.done(end)


def _next(char: str, text: str, here: int, end: int, *, escapes: bool) -> tuple[int, int]:
    """Where `char` is written at or behind `here`, and where the next one may begin."""
    while here < end:
        raw = text[here]
        if escapes and raw == "\\":
            join = _LINE_JOIN.match(text, here)
            if join is None:
                escape = _SURROGATES.match(text, here) or _ESCAPE.match(text, here)
                return here, min(escape.end() if escape else here + 1, end)
            here = join.end()
        elif raw == char or (char in " \n" and raw in " \n\t"):
            return here, here + 1
        elif raw in " \n\t":
            here += 1
        else:
            return here, here + 1
    return end, end
