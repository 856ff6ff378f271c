"""Changing an argument where it stands in a text: taken out, given another value, or another one put beside it.

Comments and layout stay. Formats whose places do not tell where a whole argument begins and ends are not changed.
Must not import anything above this floor.
"""

from __future__ import annotations

import json
import re
import shlex
from dataclasses import dataclass
from typing import Any, Protocol

from ..arguments import Given, Place
from ..arguments.reading import flag_of


@dataclass(frozen=True)
class Edit:
    """Put `text` in the place of the characters from `start` to `end` (exclusive)."""

    start: int
    end: int
    text: str


class Splicer(Protocol):
    """The ways in which an argument of one format is changed; None where it can't be done safely."""

    def remove(self, given: Given) -> Edit | None:
        """Take the argument out."""

    def replace(self, given: Given, value: Any) -> Edit | None:
        """Give it another value."""

    def insert(self, beside: Given, argument: str, value: Any) -> Edit | None:
        """Write another argument behind this one, in its style."""


def splicer_for(form: str, text: str, release: str) -> Splicer | None:
    """The splicer of a format, or None for a format that is only shown."""
    made: dict[str, Splicer] = {
        "json": JsonSplicer(text),
        "yaml": LineSplicer(text, ": ", _yaml),
        "toml": LineSplicer(text, " = ", _toml),
        "shell": WordSplicer(text, release),
    }
    return made.get(form)


def apply(text: str, edits: list[Edit]) -> str:
    """The text with edits that do not overlap."""
    for edit in sorted(edits, key=lambda edit: edit.start, reverse=True):
        text = text[: edit.start] + edit.text + text[edit.end :]
    return text


class _Text:
    def __init__(self, text: str) -> None:
        self.text = text
        self._starts = [0, *(match.end() for match in re.finditer("\n", text))]

    def span(self, place: Place) -> tuple[int, int]:
        """The offsets of a place."""
        return (
            self._starts[place.line - 1] + place.column - 1,
            self._starts[place.end_line - 1] + place.end_column - 1,
        )

    def line_of(self, offset: int) -> tuple[int, int]:
        """Start and end of the line that an offset lies on, its line end excluded."""
        start = self.text.rfind("\n", 0, offset) + 1
        end = self.text.find("\n", offset)
        return start, len(self.text) if end < 0 else end


class JsonSplicer(_Text):
    """Members of a JSON object, with the comma that parts them."""

    def remove(self, given: Given) -> Edit | None:
        if given.place is None:
            return None
        start, end = self.span(given.place)
        after = re.compile(r"\s*,[ \t]*").match(self.text, end)
        if after is not None:
            end = after.end()
            line_start, _ = self.line_of(start)
            if not self.text[line_start:start].strip() and self.text[end : end + 1] == "\n":
                return Edit(line_start, end + 1, "")
            return Edit(start, end, "")
        before = re.compile(r",\s*$").search(self.text, 0, start)
        return Edit(before.start() if before else start, end, "")

    def replace(self, given: Given, value: Any) -> Edit | None:
        if given.value_place is None:
            return None
        return Edit(*self.span(given.value_place), json.dumps(value, ensure_ascii=False))

    def insert(self, beside: Given, argument: str, value: Any) -> Edit | None:
        if beside.place is None:
            return None
        start, end = self.span(beside.place)
        line_start, _ = self.line_of(start)
        before = self.text[line_start:start]
        gap = f"\n{before}" if not before.strip() else " "
        return Edit(end, end, f",{gap}{json.dumps(argument)}: {json.dumps(value, ensure_ascii=False)}")


class LineSplicer(_Text):
    """Arguments with a line of their own, as in YAML and TOML; others are left alone."""

    def __init__(self, text: str, sign: str, written: Any) -> None:
        super().__init__(text)
        self._sign = sign
        self._written = written

    def _line(self, given: Given) -> tuple[int, int] | None:
        """The line of the argument where it has one alone, a comment behind it included."""
        if given.place is None or given.place.line != given.place.end_line:
            return None
        start, end = self.span(given.place)
        line_start, line_end = self.line_of(start)
        rest = self.text[end:line_end].strip()
        if self.text[line_start:start].strip() or (rest and not rest.startswith("#")):
            return None
        return line_start, line_end

    def remove(self, given: Given) -> Edit | None:
        line = self._line(given)
        return None if line is None else Edit(line[0], min(line[1] + 1, len(self.text)), "")

    def replace(self, given: Given, value: Any) -> Edit | None:
        if self._line(given) is None or given.value_place is None:
            return None
        return Edit(*self.span(given.value_place), self._written(value))

    def insert(self, beside: Given, argument: str, value: Any) -> Edit | None:
        line = self._line(beside)
        if line is None or beside.place is None:
            return None
        indent = self.text[line[0] : self.span(beside.place)[0]]
        name = argument.replace("_", "-") if "-" in beside.key else argument
        return Edit(line[1], line[1], f"\n{indent}{name}{self._sign}{self._written(value)}")


class WordSplicer(_Text):
    """Words of a command in a script; a continued line that would be left empty goes too."""

    def __init__(self, text: str, release: str) -> None:
        super().__init__(text)
        self._release = release

    def remove(self, given: Given) -> Edit | None:
        if given.place is None or not given.key.startswith("-"):
            return None
        start, end = self.span(given.place)
        line_start, line_end = self.line_of(start)
        rest = self.text[end:line_end]
        if self.text[line_start:start].strip() or line_start == 0:
            blank = len(self.text[:start]) - len(self.text[:start].rstrip(" \t"))
            return Edit(start - blank, end, "")
        if rest.strip() == "\\":
            return Edit(line_start, line_end + 1, "")
        if not rest.strip():
            # The last of several lines: the line before no longer goes on.
            head = self.text[: line_start - 1]
            if not head.endswith("\\"):
                return None
            return Edit(len(head[:-1].rstrip(" \t")), end, "")
        return Edit(start, end + len(rest) - len(rest.lstrip(" \t")), "")

    def replace(self, given: Given, value: Any) -> Edit | None:
        if given.value_place is None or isinstance(value, bool):
            return None
        return Edit(*self.span(given.value_place), shlex.quote(_word(value)))

    def insert(self, beside: Given, argument: str, value: Any) -> Edit | None:
        if beside.place is None or value is False:
            return None
        _, end = self.span(beside.place)
        words = [flag_of(argument, self._release), *([] if value is True else [shlex.quote(_word(value))])]
        return Edit(end, end, " " + " ".join(words))


def _word(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _yaml(value: Any) -> str:
    """A YAML scalar that reads back as the value."""
    words = ("true", "false", "null", "yes", "no", "on", "off", "y", "n")
    if isinstance(value, str) and re.fullmatch(r"[A-Za-z][A-Za-z0-9_.-]*", value) and value.lower() not in words:
        return value
    return json.dumps(value, ensure_ascii=False)


def _toml(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
