"""Bytes to text, and text that remembers where each of its characters stands.

Everything that a reader takes apart (a quoted string, a folded block, a shell word after its expansions) is a `Traced`:
a text and, for each character, the offset in the document that it comes from. Places are made last, from offsets.
Must not import anything above this floor.
"""

from __future__ import annotations

import codecs
import re
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from ..arguments.given import Place

if TYPE_CHECKING:
    from .folder import Folder

#: Stands in a text for a part that can't be known; text decoded from a file never holds it.
HOLE = "\udc00"


class NotTextError(ValueError):
    """The bytes are no text; the message says why, `offset` at which character, where that can be told."""

    def __init__(self, why: str, offset: int | None = None) -> None:
        super().__init__(why)
        self.offset = offset


def decode(data: bytes, *, lenient: bool = False) -> str:
    """The text of a file with `\\n` line ends and without a byte order mark; raises NotTextError.

    UTF-8, or UTF-16 with a mark. `lenient` puts U+FFFD in the place of bytes that are none.
    """
    for mark, name in (
        (codecs.BOM_UTF8, "utf-8"),
        (codecs.BOM_UTF16_LE, "utf-16-le"),
        (codecs.BOM_UTF16_BE, "utf-16-be"),
    ):
        if data.startswith(mark):
            data, encoding = data[len(mark) :], name
            break
    else:
        encoding = "utf-8"
    if encoding == "utf-8" and b"\0" in data[:65536]:
        raise NotTextError("it holds zero bytes, so it is a binary file")
    try:
        text = data.decode(encoding, "replace" if lenient else "strict")
    except UnicodeDecodeError as error:
        offset = len(unify_lines(data[: error.start].decode(encoding, "replace")))
        raise NotTextError(f"byte 0x{data[error.start]:02x} is not {encoding.upper()}", offset) from None
    return unify_lines(text)


def unify_lines(text: str) -> str:
    """The text with `\\n` for every line end, and U+FFFD for lone surrogates."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    return without_surrogates(text.removeprefix("\ufeff"))


def without_surrogates(text: str) -> str:
    """The text with U+FFFD for lone surrogates, which no output could carry."""
    return re.sub("[\ud800-\udfff]", "\ufffd", text)


class Lines:
    """Turns offsets of a text into places.

    Another file that the text names can be added: it has offsets of its own, far behind those of the text, so that
    whatever is taken from it keeps its place.
    """

    #: Offsets of one text; no file that is read has as many characters.
    APART = 2**26

    def __init__(self, text: str, file: str = "", folder: Folder | None = None) -> None:
        """`file` is what places name (another file than the source), `folder` where the files lie that it names."""
        self.text, self.file, self.folder = text, file, folder
        self.others: list[Lines] = []
        self._starts = [0, *(match.end() for match in re.finditer("\n", text))]

    def add(self, other: Lines) -> int:
        """Make another file's offsets known: they count from the number given on."""
        self.others.append(other)
        return len(self.others) * self.APART

    def place(self, start: int, end: int) -> Place:
        """The place of a stretch; offsets beyond the text count as its end, those of another text as the start."""
        number, inside = divmod(start, self.APART)
        lines = self if number == 0 else self.others[min(number, len(self.others)) - 1]
        last = end - number * self.APART
        return lines._own(inside, last if inside <= last < self.APART else inside)

    def _own(self, start: int, end: int) -> Place:
        end = min(end, len(self.text))
        start = min(start, end)
        first, last = bisect_right(self._starts, start) - 1, bisect_right(self._starts, end) - 1
        return Place(first + 1, start - self._starts[first] + 1, last + 1, end - self._starts[last] + 1, self.file)

    def line(self, offset: int) -> int:
        """The line, from 1, that an offset lies on."""
        return self.place(offset, offset).line


@dataclass(frozen=True)
class Unknown:
    """A part of a text that can't be known without running something.

    `shown` is what is written there (`$MODEL`), `why` a clause that says why it is not known, `code` HC008 for a
    variable without a value and HC009 for everything else, `start` and `end` its offsets in the document.
    """

    shown: str
    why: str
    start: int
    end: int
    code: str = "HC008"


@dataclass(frozen=True)
class Traced:
    """A text, the document's offset of each of its characters, and the stretch it was read from (quotes included).

    `unknown` tells for each HOLE in the text what stands there.
    """

    text: str
    starts: Sequence[int]
    begin: int
    end: int
    unknown: Mapping[int, Unknown] = field(default_factory=dict)

    @classmethod
    def of(cls, text: str, offset: int = 0) -> Traced:
        """A text that stands in the document as it is, from `offset` on."""
        return cls(text, range(offset, offset + len(text)), offset, offset + len(text))

    @classmethod
    def at(cls, text: str, begin: int, end: int) -> Traced:
        """A text that stands for a whole stretch of the document."""
        return cls(text, [begin] * len(text), begin, end)

    @classmethod
    def hole(cls, unknown: Unknown) -> Traced:
        """A text that is not known at all."""
        return cls(HOLE, [unknown.start], unknown.start, unknown.end, {0: unknown})

    def part(self, start: int, end: int) -> Traced:
        """The characters from `start` to `end`; the whole text keeps the quotes around it, a part has none."""
        end = max(start, min(end, len(self.text)))
        if start == 0 and end == len(self.text):
            return self
        unknown = {index - start: each for index, each in self.unknown.items() if start <= index < end}
        begin = self.offset(start)
        stop = max(begin, self.end_at(end)) if end > start else begin
        return Traced(self.text[start:end], self.starts[start:end], begin, stop, unknown)

    def behind(self, index: int) -> Traced:
        """What follows the character before `index` (an equals sign), with quotes of its own."""
        rest = self.part(index, len(self.text))
        begin = self.starts[index - 1] + 1 if index and index - 1 < len(self.starts) else self.begin
        end = self.end_at(len(self.text))
        return replace(rest, begin=begin, end=max(begin, end)) if begin <= rest.begin else rest

    def offset(self, index: int) -> int:
        """The document's offset of a character, or the end behind the last one."""
        return self.starts[index] if index < len(self.starts) else self.end_at(index)

    def end_at(self, index: int) -> int:
        """The document's offset behind the characters before `index`, without quotes around the whole text."""
        if index == 0 or not self.text:
            return self.begin
        is_quoted = self.begin != self.starts[0]
        if index >= len(self.text) and not is_quoted:
            return self.end
        index = min(index, len(self.text))
        here = self.starts[index - 1]
        following = self.starts[index] if index < len(self.text) else here + 1
        unknown = self.unknown.get(index - 1)
        if unknown is not None and unknown.end > here:
            return unknown.end
        return following if following > here else here + 1

    def moved_to(self, begin: int, end: int) -> Traced:
        """The same text, standing for another stretch; what is not known is not known there."""
        unknown = {index: replace(each, start=begin, end=end) for index, each in self.unknown.items()}
        return Traced(self.text, [begin] * len(self.text), begin, end, unknown)

    def located(self, inner: Traced) -> Traced:
        """A text that was read from this one's characters, with the offsets of the document."""
        starts = [self.offset(start) for start in inner.starts]
        unknown = {
            index: replace(each, start=self.offset(each.start), end=self.end_at(each.end))
            for index, each in inner.unknown.items()
        }
        return Traced(inner.text, starts, self.offset(inner.begin), self.end_at(inner.end), unknown)

    def shifted(self, by: int) -> Traced:
        """The same text with other offsets: one of another file, in a document that took it in."""
        if not by:
            return self
        moved = range(self.starts.start + by, self.starts.stop + by) if isinstance(self.starts, range) else None
        starts = moved if moved is not None else [start + by for start in self.starts]
        unknown = {
            index: replace(each, start=each.start + by, end=each.end + by) for index, each in self.unknown.items()
        }
        return Traced(self.text, starts, self.begin + by, self.end + by, unknown)

    @property
    def is_known(self) -> bool:
        """Whether no part of the text is missing."""
        return not self.unknown

    def shown(self) -> str:
        """The text for people, with what is written where a part is not known."""
        if not self.unknown:
            return self.text
        return "".join(
            self.unknown[index].shown if index in self.unknown else char for index, char in enumerate(self.text)
        )


class Builder:
    """Puts a Traced together character by character."""

    def __init__(self, begin: int) -> None:
        self.begin = begin
        self._chars: list[str] = []
        self._starts: list[int] = []
        self._unknown: dict[int, Unknown] = {}

    def __len__(self) -> int:
        return len(self._chars)

    def add(self, char: str, start: int, unknown: Unknown | None = None) -> None:
        """One character, or a HOLE and what stands there."""
        if unknown is not None:
            self._unknown[len(self._chars)] = unknown
        self._chars.append(char)
        self._starts.append(start)

    def add_from(self, source: Traced, index: int) -> None:
        """One character of another text."""
        self.add(source.text[index], source.starts[index], source.unknown.get(index))

    def add_all(self, source: Traced) -> None:
        """All characters of another text."""
        for index in range(len(source.text)):
            self.add_from(source, index)

    def add_hole(self, unknown: Unknown) -> None:
        """A part that is not known."""
        self.add(HOLE, unknown.start, unknown)

    def done(self, end: int) -> Traced:
        """The text; `end` is where it ends in the document."""
        return Traced("".join(self._chars), self._starts, self.begin, end, self._unknown)


class InnerLines(Lines):
    """Turns offsets of a text that stands within a document (a file in a ConfigMap) into places of the document."""

    def __init__(self, inner: Traced, outer: Lines) -> None:
        super().__init__(inner.text, outer.file, outer.folder)
        self._inner, self._outer = inner, outer

    def place(self, start: int, end: int) -> Place:
        """The place in the document."""
        return self._outer.place(self._inner.offset(start), self._inner.end_at(end))
