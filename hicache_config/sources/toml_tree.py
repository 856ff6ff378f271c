"""TOML to a tree with the place of every key and value. The standard library's reader has no places, and none on 3.10.

Dates and times are kept as text: no argument takes one. Must not import anything above this floor.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from typing import Any, NoReturn

from ..arguments.given import Place
from .document import Noted
from .json_tree import DEEPEST, LONGEST_NUMBER, MOST_NODES
from .notes import NoteList, note, shortened
from .text import Lines, without_surrogates
from .tree import MISSING, Entry, Mapping, Node, Scalar, Sequence

_BLANK = re.compile(r"[ \t]*")
_BLANKS = re.compile(r"(?:[ \t\n]|#[^\n]*)*")
_BARE = re.compile(r"[A-Za-z0-9_-]+")
_LITERAL = re.compile(r"'([^'\n]*)'")
_BASIC = re.compile(r'"((?:[^"\\\n]|\\[^\n])*)"')
_LONG_LITERAL = re.compile(r"'''\n?(.*?)'''('{0,2})", re.DOTALL)
_LONG_BASIC = re.compile(r'"""\n?((?:[^"\\]|\\.|"{1,2}(?!"))*)"""("{0,2})', re.DOTALL)
_WORD = re.compile(r"[^\s,\]\}#]+(?: \d\d:\d\d:\d\d[^\s,\]\}#]*)?")
_INTEGER = re.compile(
    r"[-+]?(?:0|[1-9](?:_?\d)*)|0x[0-9A-Fa-f](?:_?[0-9A-Fa-f])*|0o[0-7](?:_?[0-7])*|0b[01](?:_?[01])*"
)
_FLOAT = re.compile(r"[-+]?(?:0|[1-9](?:_?\d)*)(?:\.\d(?:_?\d)*)?(?:[eE][-+]?\d(?:_?\d)*)?")
_DATE = re.compile(r"\d{4}-\d\d-\d\d.*|\d\d:\d\d:\d\d.*")
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|\n[ \t\n]*|[ \t]+\n[ \t\n]*|(.))", re.DOTALL)
_SIMPLE = {"b": "\b", "t": "\t", "n": "\n", "f": "\f", "r": "\r", "e": "\x1b", '"': '"', "\\": "\\"}


class _Stop(Exception):  # noqa: N818 (it ends the reading; the notes say why)
    pass


@dataclass
class _Table:
    """A table while it is filled: keys with their places, values final or open tables and lists of tables."""

    start: int
    end: int
    entries: dict[str, tuple[int, int, Node | _Table | list[_Table]]] = field(default_factory=dict)
    is_closed: bool = False

    def node(self) -> Mapping:
        return Mapping(
            tuple(Entry(key, a, b, _node(value)) for key, (a, b, value) in self.entries.items()), self.start, self.end
        )


def _node(value: Node | _Table | list[_Table]) -> Node:
    if isinstance(value, _Table):
        return value.node()
    if isinstance(value, list):
        return Sequence(tuple(each.node() for each in value), value[0].start, value[-1].end)
    return value


class TomlReader:
    """Reads one TOML text; the first syntax error ends it."""

    def __init__(self, text: str, lines: Lines) -> None:
        self.text, self.lines = text, lines
        self.notes = NoteList()
        self.here = 0
        self.count = 0

    def read(self) -> Node | None:
        """The whole file as a mapping, or None."""
        root = _Table(0, len(self.text))
        table = root
        try:
            while self._skip(_BLANKS) < len(self.text):
                if self.text.startswith("[", self.here):
                    table = self._header(root)
                else:
                    self._pair(table, 0)
                self._line_end()
                table.end = max(table.end, self.here)
        except _Stop:
            return None
        return root.node()

    # --- structure ------------------------------------------------------------------------------------------------

    def _header(self, root: _Table) -> _Table:
        is_list = self.text.startswith("[[", self.here)
        start = self.here
        self.here += 2 if is_list else 1
        keys = self._keys()
        closing = "]]" if is_list else "]"
        if not self.text.startswith(closing, self.here):
            self._wrong(f"{closing} is expected behind the name of a table")
        self.here += len(closing)
        table = self._descend(root, keys[:-1])
        name, begin, end = keys[-1]
        known = table.entries.get(name)
        new = _Table(start, self.here)
        if is_list and (known is None or isinstance(known[2], list)):
            listed = known[2] if known is not None and isinstance(known[2], list) else []
            listed.append(new)
            table.entries[name] = (begin, end, listed)
            return new
        if not is_list and known is not None and isinstance(known[2], _Table) and not known[2].is_closed:
            return known[2]
        if known is not None:
            self._duplicate(name, begin, end, known[0])
        table.entries[name] = (begin, end, [new] if is_list else new)
        return new

    def _pair(self, table: _Table, depth: int) -> None:
        keys = self._keys()
        if not self.text.startswith("=", self.here):
            self._wrong("an equals sign is expected behind a key", "Write key = value.")
        self.here += 1
        self._skip(_BLANK)
        value = self._value(depth)
        inner = self._descend(table, keys[:-1])
        name, begin, end = keys[-1]
        if name in inner.entries:
            self._duplicate(name, begin, end, inner.entries[name][0])
        inner.entries[name] = (begin, end, value)
        inner.end = max(inner.end, self.here)

    def _descend(self, table: _Table, keys: list[tuple[str, int, int]]) -> _Table:
        for name, begin, end in keys:
            known = table.entries.get(name)
            value: Node | _Table | list[_Table] = known[2] if known is not None else _Table(begin, end)
            if known is None:
                table.entries[name] = (begin, end, value)
            if isinstance(value, list):
                value = value[-1]
            if not isinstance(value, _Table):
                self._wrong(f"{shortened(name)} is a value already and can't hold keys")
            table = value
        return table

    def _keys(self) -> list[tuple[str, int, int]]:
        keys: list[tuple[str, int, int]] = []
        while True:
            begin = self._skip(_BLANK)
            if self.text[begin : begin + 1] in ("'", '"') and begin < len(self.text):
                name = str(self._string().value)
            else:
                match = _BARE.match(self.text, begin)
                if match is None:
                    self._wrong("a key is expected")
                name, self.here = match[0], match.end()
            keys.append((name, begin, self.here))
            self._skip(_BLANK)
            if not self.text.startswith(".", self.here) or len(keys) > DEEPEST:
                return keys
            self.here += 1

    def _line_end(self) -> None:
        self._skip(_BLANK)
        if self.here < len(self.text) and self.text[self.here] not in "\n#":
            self._wrong("the line should end here", "One key and its value a line; text stands in quotes.")

    # --- values ---------------------------------------------------------------------------------------------------

    def _value(self, depth: int) -> Node:
        self.count += 1
        if self.count > MOST_NODES:
            message = f"the text holds more than {MOST_NODES:,} values"
            self.notes.put_first(note("HC005", message, "Is it the right file?", self._place()))
            raise _Stop
        if depth > DEEPEST:
            self.notes.put_first(
                note("HC005", f"values are nested deeper than {DEEPEST} levels", "Write it flatter.", self._place())
            )
            raise _Stop
        char = self.text[self.here : self.here + 1]
        if char == "[":
            return self._array(depth)
        if char == "{":
            return self._inline(depth)
        if char and char in "'\"":
            return self._string()
        return self._word()

    def _array(self, depth: int) -> Node:
        start = self.here
        self.here += 1
        items: list[Node] = []
        while not self.text.startswith("]", self._skip(_BLANKS)):
            items.append(self._value(depth + 1))
            if self.text.startswith(",", self._skip(_BLANKS)):
                self.here += 1
            elif not self.text.startswith("]", self.here):
                self._wrong("a comma or ] is expected in a list")
        self.here += 1
        return Sequence(tuple(items), start, self.here)

    def _inline(self, depth: int) -> Node:
        table = _Table(self.here, self.here)
        self.here += 1
        while not self.text.startswith("}", self._skip(_BLANKS)):
            self._pair(table, depth + 1)
            if self.text.startswith(",", self._skip(_BLANKS)):
                self.here += 1
            elif not self.text.startswith("}", self.here):
                self._wrong("a comma or } is expected in an inline table")
        self.here += 1
        node = table.node()
        return Mapping(node.entries, table.start, self.here)

    def _string(self) -> Scalar:
        start = self.here
        for pattern, mark, escapes in (
            (_LONG_BASIC, '"""', True), (_LONG_LITERAL, "'''", False), (_BASIC, '"', True), (_LITERAL, "'", False),
        ):  # fmt: skip
            if self.text.startswith(mark, start):
                match = pattern.match(self.text, start)
                if match is None:
                    self._wrong("this text is never closed", f"Put {mark} at its end.")
                body = match[1] + (match[2] if len(mark) == 3 else "")
                self.here = match.end()
                value = self._unescaped(body, start) if escapes else body
                return Scalar(without_surrogates(value), start, self.here, "double" if escapes else "single")
        raise _Stop

    def _unescaped(self, body: str, start: int) -> str:
        def one(match: re.Match[str]) -> str:
            if match[1] or match[2]:
                number = int(match[1] or match[2], 16)
                return chr(number) if number < 0x110000 else "\ufffd"
            if match[3] is None:
                return ""
            if match[3] not in _SIMPLE:
                self.here = start
                self._wrong(
                    f"\\{match[3]} is no escape that TOML has", "Write \\\\ for a backslash, or use single quotes."
                )
            return _SIMPLE[match[3]]

        return _ESCAPE.sub(one, body)

    def _word(self) -> Scalar:
        match = _WORD.match(self.text, self.here)
        if match is None:
            self._wrong("a value is expected")
        start, word = self.here, match[0]
        self.here = match.end()
        return Scalar(self._typed(word, start), start, self.here)

    def _typed(self, word: str, start: int) -> Any:
        if word in ("true", "false"):
            return word == "true"
        if word.lstrip("+-") in ("inf", "nan") or len(word) > LONGEST_NUMBER:
            return self._no_number(word, start)
        if _INTEGER.fullmatch(word):
            return int(word.replace("_", ""), 0 if word[:1] == "0" and word[1:2].isalpha() else 10)
        if _FLOAT.fullmatch(word):
            value = float(word.replace("_", ""))
            return value if math.isfinite(value) else self._no_number(word, start)
        if not _DATE.fullmatch(word):
            self.here = start
            self._wrong(
                f"{shortened(word)} is no TOML value", "Text stands in quotes; true and false are written small."
            )
        return word

    # --- notes ----------------------------------------------------------------------------------------------------

    def _no_number(self, word: str, start: int) -> Any:
        message = f"{shortened(word)} is not a number that SGLang could use"
        self.notes.append(
            note("HC004", message, "Write a finite number, or leave it out.", self.lines.place(start, self.here))
        )
        return MISSING

    def _duplicate(self, name: str, begin: int, end: int, first: int) -> None:
        message = (
            f"the key {shortened(name)} is written twice, first in line {self.lines.line(first)}; TOML forbids that"
        )
        self.notes.append(note("HC003", message, "Keep one of them.", self.lines.place(begin, max(end, self.here))))

    def _wrong(self, message: str, help: str = "") -> NoReturn:
        self.notes.put_first(note("HC002", f"TOML: {message}", help, self._place()))
        raise _Stop

    def _place(self) -> Place:
        return self.lines.place(self.here, self.here + 1)

    def _skip(self, pattern: re.Pattern[str]) -> int:
        match = pattern.match(self.text, self.here)
        self.here = match.end() if match is not None else self.here
        return self.here


def read_toml(text: str, lines: Lines) -> tuple[Node | None, list[Noted]]:
    """The tree of a TOML text and what was found; no tree when it has a syntax error."""
    reader = TomlReader(text, lines)
    return reader.read(), reader.notes
