"""What Python prints for values, read back without evaluating anything: `ServerArgs(a=1, b=[X(c='d')])`, `{'a': None}`.

Must not import anything above this floor.
"""

from __future__ import annotations

import ast
import math
import re

from .json_tree import DEEPEST, LONGEST_NUMBER
from .text import without_surrogates
from .tree import MISSING, Entry, Mapping, Node, Scalar, Sequence

_SPACE = re.compile(r"\s*")
_STRING = re.compile(r"[rbuRBU]?(?:'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\")", re.DOTALL)
_NUMBER = re.compile(r"[-+]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?")
_NAME = re.compile(r"[A-Za-z_][\w.]*")
_ANGLE = re.compile(r"<[^<>]*>")
_NAMED: dict[str, object] = {"None": None, "True": True, "False": False}
_CLOSING = {"(": ")", "[": "]", "{": "}"}


class CutOff(Exception):  # noqa: N818 (what was read so far is in `entries`)
    """The text ends, or stops making sense, at `offset`."""

    def __init__(self, offset: int) -> None:
        super().__init__(offset)
        self.offset = offset


class ReprReader:
    """Reads printed values from a text. `infinite` are offsets of inf and nan, which count as MISSING."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.infinite: list[tuple[int, int]] = []
        self.entries: list[Entry] = []
        self.here = 0

    def record(self, start: int) -> int:
        """Read `Name(key=value, …)` or `{'key': value, …}` from `start`; fills `entries` as it goes and gives the end.

        Raises CutOff where it can't go on.
        """
        self.here = start
        name = _NAME.match(self.text, start)
        if name is not None:
            self.here = name.end()
        opening = self.text[self.here : self.here + 1]
        if opening not in ("(", "{"):
            raise CutOff(self.here)
        self.here += 1
        self._members(_CLOSING[opening], ":" if opening == "{" else "=", self.entries, 0)
        return self.here

    def _members(self, closing: str, sign: str, entries: list[Entry], depth: int) -> None:
        while True:
            self._skip()
            if self._at(closing):
                self.here += 1
                return
            entries.append(self._member(sign, len(entries), depth))
            self._skip()
            if self._at(","):
                self.here += 1
            elif not self._at(closing):
                last = entries[-1].value
                if self.here >= len(self.text) and isinstance(last, Scalar) and last.style == "plain":
                    entries.pop()  # a number or a name may go on behind the cut
                raise CutOff(self.here)

    def _member(self, sign: str, number: int, depth: int) -> Entry:
        start = self.here
        if sign == "=":
            name = _NAME.match(self.text, start)
            equals = name is not None and self.text.startswith("=", name.end())
            key = name[0] if name is not None and equals else str(number)
            if name is not None and not equals and _ends(self.text, name.end()) and name[0] not in _NAMED:
                raise CutOff(start)
            key_end = name.end() if name is not None and equals else start
            self.here = key_end + 1 if equals else start
        else:
            node = self._value(depth + 1)
            key = _key(node, number)
            key_end = self.here
            self._skip()
            if not self._at(":"):
                raise CutOff(start)
            self.here += 1
        self._skip()
        return Entry(key, start, key_end, self._value(depth + 1))

    def _value(self, depth: int) -> Node:
        start = self.here
        if depth > DEEPEST or start >= len(self.text):
            raise CutOff(start)
        char = self.text[start]
        string = _STRING.match(self.text, start)
        if string is not None:
            self.here = string.end()
            return Scalar(self._unquoted(string[0]), start, self.here, "double")
        if char in "([":
            return self._row(char, depth)
        if char == "{":
            return self._braces(start, depth)
        if char == "<":
            return self._angle(start)
        return self._word(start, depth)

    def _row(self, opening: str, depth: int) -> Sequence:
        start = self.here
        self.here += 1
        return self._rest_of_row(_CLOSING[opening], start, [], depth)

    def _rest_of_row(self, closing: str, start: int, items: list[Node], depth: int) -> Sequence:
        while True:
            self._skip()
            if self._at(closing):
                self.here += 1
                return Sequence(tuple(items), start, self.here)
            if items and not self._at(","):
                raise CutOff(self.here)
            self.here += 1 if items else 0
            self._skip()
            if self._at(closing):
                continue
            items.append(self._value(depth + 1))

    def _braces(self, start: int, depth: int) -> Node:
        """A dictionary, or a set, which counts as a list."""
        self.here += 1
        self._skip()
        if self._at("}"):
            self.here += 1
            return Mapping((), start, self.here)
        key_start = self.here
        first = self._value(depth + 1)
        key_end = self.here
        self._skip()
        if not self._at(":"):
            return self._rest_of_row("}", start, [first], depth)
        self.here += 1
        self._skip()
        entries = [Entry(_key(first, 0), key_start, key_end, self._value(depth + 1))]
        self._skip()
        if self._at(","):
            self.here += 1
        elif not self._at("}"):
            raise CutOff(self.here)
        self._members("}", ":", entries, depth)
        return Mapping(tuple(entries), start, self.here)

    def _angle(self, start: int) -> Scalar:
        """`<Mode.X: 'x'>`: an enum prints its value, anything else has none."""
        match = _ANGLE.match(self.text, start)
        if match is None:
            raise CutOff(start)
        self.here = match.end()
        value = re.search(r": ('[^']*'|\"[^\"]*\"|\d+)>$", match[0])
        if value is None:
            return Scalar(MISSING, start, self.here)
        word = value[1]
        return Scalar(int(word) if word.isdigit() and len(word) < 20 else word.strip("'\""), start, self.here)

    def _word(self, start: int, depth: int) -> Node:
        number = _NUMBER.match(self.text, start)
        if number is not None and _ends(self.text, number.end()):
            self.here = number.end()
            return Scalar(self._number(number[0], start), start, self.here)
        sign = 1 if self.text[start] in "-+" else 0
        name = _NAME.match(self.text, start + sign)
        if name is None:
            raise CutOff(start)
        self.here = name.end()
        if name[0] in ("inf", "nan", "float.inf", "math.inf"):
            return Scalar(self._infinite(start), start, self.here)
        if self._at("(") and not sign:
            entries: list[Entry] = []
            self.here += 1
            self._members(")", "=", entries, depth)
            if len(entries) == 1 and entries[0].key == "0":  # PosixPath('/models'), set([1, 2])
                only = entries[0].value
                return Scalar(only.value, start, self.here) if isinstance(only, Scalar) else only
            return Mapping(tuple(entries), start, self.here)
        if name[0] in _NAMED and not sign:
            if not _ends(self.text, self.here):
                raise CutOff(start)
            return Scalar(_NAMED[name[0]], start, self.here)
        if self.here >= len(self.text):
            raise CutOff(start)
        return Scalar(MISSING, start, self.here)

    def _number(self, word: str, start: int) -> object:
        if len(word) > LONGEST_NUMBER:
            return MISSING
        if re.fullmatch(r"[-+]?\d+", word):
            return int(word)
        value = float(word)
        return value if math.isfinite(value) else self._infinite(start)

    def _infinite(self, start: int) -> object:
        self.infinite.append((start, self.here))
        return MISSING

    @staticmethod
    def _unquoted(word: str) -> str:
        try:
            value = ast.literal_eval(word)
        except (ValueError, SyntaxError):
            value = word[1:-1]
        return without_surrogates(value if isinstance(value, str) else str(value))

    def _skip(self) -> None:
        match = _SPACE.match(self.text, self.here)
        self.here = match.end() if match is not None else self.here

    def _at(self, char: str) -> bool:
        return self.text.startswith(char, self.here)


def _key(node: Node, number: int) -> str:
    return str(node.value) if isinstance(node, Scalar) else f"entry {number}"


def _ends(text: str, here: int) -> bool:
    """Whether a word ends here because something that can follow it does."""
    return here >= len(text) or text[here] in ",)]}: \t\n"
