"""JSON to a tree with the place of every key and value; duplicate keys, NaN and infinity are notes, the rest is read.

After a syntax error the scanner goes on where it can, to name the others too. The standard library's string scanner
reads strings. Must not import anything above this floor.
"""

from __future__ import annotations

import json
import math
import re
from dataclasses import replace
from json.decoder import scanstring  # type: ignore[attr-defined]  # not in the stubs
from typing import Any

from ..arguments.given import Place
from .document import Noted
from .notes import NoteList, note, shortened
from .text import Lines, Traced, without_surrogates
from .tree import MISSING, Entry, Mapping, Node, Scalar, Sequence, moved, parts

DEEPEST = 100
LONGEST_NUMBER = 400
MOST_ERRORS = 20
#: Values of one text; the largest answers of a server that we met have some ten thousand.
MOST_NODES = 200_000

_NOWHERE = Place(0, 0, 0, 0)
_SPACE = re.compile(r"[ \t\n]*")
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?P<fraction>\.[0-9]+)?(?P<exponent>[eE][-+]?[0-9]+)?")
_WORD = re.compile(r"[^\s,:\[\]{}\"'#/]+")
_COMMENT = re.compile(r"//[^\n]*|#[^\n]*|/\*.*?(?:\*/|$)", re.DOTALL)
_NAMED: dict[str, Any] = {"true": True, "false": False, "null": None}
_PYTHON: dict[str, tuple[str, Any]] = {"True": ("true", True), "False": ("false", False), "None": ("null", None)}
_NOT_A_NUMBER = frozenset({"nan", "inf", "infinity"})


class Stop(Exception):  # noqa: N818 (it ends the reading and is no error of the program)
    """The scanner can't go on; the notes say why."""


class JsonScanner:
    """Reads one JSON value. `notes` then hold what was found; `node` is None when nothing could be read."""

    def __init__(self, text: str, lines: Lines | None = None) -> None:
        self.text = text
        self.lines = lines or Lines(text)
        self.notes = NoteList()
        self.errors = 0
        self.count = 0

    def read(self) -> Node | None:
        """The value of the whole text."""
        try:
            node, here = self._value(self._skip(0), 0)
            here = self._skip(here)
            if here < len(self.text):
                self._wrong(
                    here, len(self.text), "something follows behind the value", "One file holds one JSON value."
                )
        except Stop:
            return None
        return node

    # --- values ---------------------------------------------------------------------------------------------------

    def _value(self, here: int, depth: int) -> tuple[Node, int]:
        self.count += 1
        if self.count > MOST_NODES:
            message = f"the text holds more than {MOST_NODES:,} values"
            self.notes.put_first(note("HC005", message, "Is it the right file?", self.lines.place(here, here + 1)))
            raise Stop
        if depth > DEEPEST:
            self.notes.put_first(
                note(
                    "HC005",
                    f"values are nested deeper than {DEEPEST} levels",
                    "Write it flatter.",
                    self.lines.place(here, here + 1),
                )
            )
            raise Stop
        char = self.text[here : here + 1]
        if char == "{":
            return self._mapping(here, depth)
        if char == "[":
            return self._sequence(here, depth)
        if char in ('"', "'") and char:
            return self._string(here)
        return self._word(here)

    def _mapping(self, start: int, depth: int) -> tuple[Node, int]:
        entries: list[Entry] = []
        seen: dict[str, int] = {}
        here = self._skip(start + 1)
        while self.text[here : here + 1] != "}":
            entry, here = self._entry(here, depth)
            if entry.key in seen:
                self._duplicate(entry, seen[entry.key], depth)
            seen[entry.key] = entry.key_start
            entries.append(entry)
            here = self._separator(here, "}")
        return Mapping(tuple(entries), start, here + 1), here + 1

    def _entry(self, here: int, depth: int) -> tuple[Entry, int]:
        start = here
        if self.text[here : here + 1] in ('"', "'"):
            key, here = self._string(here)
            name = str(key.value)
        else:
            match = _WORD.match(self.text, here)
            if match is None:
                self._end_or(here, "a key in double quotes is expected")
                raise Stop
            name, here = match[0], match.end()
            self._wrong(start, here, f"the key {shortened(name)} has no quotes", f'Write "{shortened(name)}".')
        key_end = here
        here = self._skip(here)
        if self.text[here : here + 1] == ":":
            here = self._skip(here + 1)
        else:
            self._end_or(here, f"a colon is expected behind the key {shortened(name)}")
            here = self._skip(here + (self.text[here] == "="))
        known = len(self.notes)
        value, here = self._value(here, depth + 1)
        if depth == 0 and isinstance(value, Scalar) and value.value is MISSING and len(self.notes) > known:
            noted = self.notes[-1]  # what the value was refused for
            self.notes[-1] = replace(noted, finding=replace(noted.finding, argument=name))
        return Entry(name, start, key_end, value), here

    def _sequence(self, start: int, depth: int) -> tuple[Node, int]:
        items: list[Node] = []
        here = self._skip(start + 1)
        while self.text[here : here + 1] != "]":
            item, here = self._value(here, depth + 1)
            items.append(item)
            here = self._separator(here, "]")
        return Sequence(tuple(items), start, here + 1), here + 1

    def _separator(self, here: int, closing: str) -> int:
        """Behind a value: over the comma to what follows, or to the closing bracket."""
        here = self._skip(here)
        char = self.text[here : here + 1]
        if char == closing:
            return here
        if char == ",":
            after = self._skip(here + 1)
            if self.text[after : after + 1] == closing:
                self._wrong(here, here + 1, f"a comma before {closing}", "Take the comma out.")
            return after
        self._end_or(here, f"a comma or {closing} is expected", "Put a comma behind the value before.")
        if char in ("}", "]", ":"):
            raise Stop
        return here

    def _string(self, here: int) -> tuple[Scalar, int]:
        if self.text[here] == "'":
            return self._single_quoted(here)
        try:
            value, end = scanstring(self.text, here + 1, True)
        except json.JSONDecodeError as error:
            at = min(error.pos, len(self.text))
            if error.msg.startswith("Unterminated"):
                self._wrong(here, here + 1, "this text is never closed", 'Put a " at its end.')
                raise Stop from None
            if error.msg.startswith("Invalid control"):
                self._wrong(at, at + 1, "a line break or control character inside a text", "Write \\n or \\t instead.")
            else:
                self._wrong(at, at + 1, "not an escape that JSON has", 'Write \\\\ for a backslash, \\" for a quote.')
            value, end = self._to_quote(here)
        return Scalar(without_surrogates(value), here, end, "double"), end

    def _to_quote(self, here: int) -> tuple[str, int]:
        match = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL).match(self.text, here)
        if match is None:
            raise Stop
        return match[0][1:-1], match.end()

    def _single_quoted(self, here: int) -> tuple[Scalar, int]:
        match = re.compile(r"'((?:[^'\\\n]|\\.)*)'").match(self.text, here)
        if match is None:
            self._wrong(here, here + 1, "text in single quotes", "Write double quotes.")
            raise Stop
        self._wrong(here, match.end(), "text in single quotes", "Write double quotes.")
        return Scalar(match[1], here, match.end(), "single"), match.end()

    def _word(self, here: int) -> tuple[Scalar, int]:
        match = _WORD.match(self.text, here)
        if match is None:
            self._end_or(here, "a value is expected")
            raise Stop
        word, end = match[0], match.end()
        if word in _NAMED:
            return Scalar(_NAMED[word], here, end), end
        if word.lstrip("+-").lower() in _NOT_A_NUMBER:
            return self._no_number(word, here, end, "is not a number that SGLang could use")
        if word in _PYTHON:
            written, value = _PYTHON[word]
            self._wrong(here, end, f"{word} is Python, not JSON", f"Write {written}.")
            return Scalar(value, here, end), end
        number = _NUMBER.fullmatch(word)
        if number is None:
            self._wrong(here, end, f"{shortened(word)} is no JSON value", "Text stands in double quotes.")
            return Scalar(word, here, end), end
        return self._number(number, here, end)

    def _number(self, match: re.Match[str], here: int, end: int) -> tuple[Scalar, int]:
        word = match[0]
        if len(word) > LONGEST_NUMBER:
            return self._no_number(shortened(word), here, end, "has more digits than any number that SGLang takes")
        if match["fraction"] is None and match["exponent"] is None:
            return Scalar(int(word), here, end), end
        value = float(word)
        if math.isinf(value):
            return self._no_number(word, here, end, "is beyond the largest float")
        return Scalar(value, here, end), end

    # --- notes ----------------------------------------------------------------------------------------------------

    def _no_number(self, word: str, here: int, end: int, why: str) -> tuple[Scalar, int]:
        self.notes.append(
            note("HC004", f"{word} {why}", "Write a finite number, or null for not set.", self.lines.place(here, end))
        )
        return Scalar(MISSING, here, end), end

    def _duplicate(self, entry: Entry, first: int, depth: int) -> None:
        line = self.lines.line(first)
        self.notes.append(
            note(
                "HC003",
                f"the key {shortened(entry.key)} is written twice, first in line {line}; the last value counts",
                "Keep one of them.",
                self.lines.place(entry.key_start, max(entry.key_end, entry.value.end)),
                argument=entry.key if depth == 0 else None,
            )
        )

    def _wrong(self, start: int, end: int, message: str, help: str = "") -> None:
        self.errors += 1
        self.notes.put_first(note("HC002", f"JSON: {message}", help, self.lines.place(start, end)))
        if self.errors >= MOST_ERRORS:
            raise Stop

    def _end_or(self, here: int, expected: str, help: str = "") -> None:
        if here >= len(self.text):
            self._wrong(
                here, here, f"the text ends, but {expected}", "Is the file cut off? Close every bracket and quote."
            )
            raise Stop
        self._wrong(here, here + 1, f"{expected}, not {shortened(self.text[here : here + 20])}", help)

    def _skip(self, here: int) -> int:
        """Over white space and comments; JSON has no comments."""
        while True:
            match = _SPACE.match(self.text, here)
            here = match.end() if match else here
            comment = _COMMENT.match(self.text, here)
            if comment is None:
                return here
            self._wrong(here, comment.end(), "comments are not allowed", "Take it out, or write the file as YAML.")
            here = comment.end()


def read_json(text: str, lines: Lines | None = None) -> tuple[Node | None, list[Noted]]:
    """The tree of a JSON text and what was found; no tree when it has a syntax error."""
    scanner = JsonScanner(text, lines)
    node = scanner.read()
    return (None if scanner.errors else node), sorted(scanner.notes, key=lambda noted: noted.place or _NOWHERE)


def inside_text(value: Traced, lines: Lines) -> dict[str, Place]:
    """The places inside a text that is a JSON mapping, by JSON pointer; nothing for any other text."""
    if not value.text.lstrip().startswith("{"):
        return {}
    node, _ = read_json(value.text)
    if node is None:
        return {}
    if len(set(value.starts)) == 1:  # it is written otherwise, so that nothing in it has a place of its own
        return dict.fromkeys((pointer for pointer, _ in parts(node, lines)), lines.place(value.begin, value.end))
    return dict(parts(moved(node, value), lines))
