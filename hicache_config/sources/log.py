"""Server logs to the arguments that a server printed, and to what later lines say was allocated.

Until 0.5.18 SGLang prints `server_args=ServerArgs(…)`, since 0.5.19 a dictionary. Lines may carry the prefix of Compose
or Kubernetes and a rank; a terminal may have broken them; the end may be cut off.

Must not import anything above this floor.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from ..arguments.given import Given
from .allocations import Allocations
from .arguments_file import given_of
from .document import Engine, Noted, named
from .notes import note, shortened
from .python_repr import CutOff, ReprReader
from .text import Lines, Traced
from .tree import MISSING, Entry, Scalar, moved

_START = re.compile(r"server_args=(?=ServerArgs\(|\{)")
_TIME = r"\[?\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d"
#: What begins a new record, so that a broken line ends there.
_NEW_RECORD = re.compile(rf"(?:[\w./-]+[ \t]*\|[ \t]*)?(?:{_TIME}|(?:INFO|WARNING|ERROR|DEBUG)\b|Traceback )")
_PREFIX = re.compile(r"(?P<prefix>[\w./-]+)[ \t]*\|[ \t]*|\[(?P<pod>[\w./-]+)\] (?=\[)")
MOST_ENGINES = 50
#: Printed arguments come to some 20,000 characters, lines about pools to some hundred.
LONGEST_RECORD = 60_000
LONGEST_LINE = 1_000


@dataclass
class _Seen:
    """A server found in a log and the prefix of its lines."""

    prefix: str
    given: tuple[Given, ...]
    not_known: tuple[str, ...]
    notes: list[Noted]
    allocations: Allocations = field(default_factory=Allocations)

    def engine(self) -> Engine:
        """The server with what later lines said of it."""
        return Engine(
            given=self.given,
            reported=self.allocations.reported(),
            notes=tuple(self.notes),
            not_known=self.not_known,
        )


def read_log(text: str, lines: Lines) -> tuple[Engine, ...]:
    """The servers whose arguments a log shows, with what it says of their pools."""
    seen: list[_Seen] = []
    for start, line in _lines(text):
        prefix = _prefix(line)
        found = _START.search(line)
        if found is not None and len(seen) < MOST_ENGINES:
            seen.append(_arguments(text, start + found.end(), prefix, lines))
            continue
        owner = next((each for each in reversed(seen) if each.prefix == prefix), seen[-1] if seen else None)
        if owner is not None:
            owner.allocations.line(line[:LONGEST_LINE], lines.line(start))
    return named([(each.prefix or None, each.engine()) for each in seen])


def _lines(text: str) -> Iterator[tuple[int, str]]:
    for match in re.finditer(r"[^\n]+", text):
        yield match.start(), match[0]


def _prefix(line: str) -> str:
    match = _PREFIX.match(line[:200])
    return (match["prefix"] or match["pod"] or "") if match is not None else ""


def _arguments(text: str, start: int, prefix: str, lines: Lines) -> _Seen:
    """The arguments printed from `start` on."""
    joined = _joined(text, start)
    reader = ReprReader(joined.text)
    notes: list[Noted] = []
    try:
        reader.record(0)
    except CutOff as cut:
        notes.append(_cut_off(joined, cut, reader, lines))
    for begin, end in reader.infinite:
        part = joined.part(begin, end)
        message = f"{part.text} has no end; the argument is not read"
        place = lines.place(part.begin, part.end)
        # A server prints it of settings where it means "never"; nobody wrote it.
        notes.append(note("HC004", message, "", place, severity="note"))
    missing = {
        entry.key for entry in reader.entries if isinstance(entry.value, Scalar) and entry.value.value is MISSING
    }
    given = tuple(given_of(_moved(entry, joined), text, lines) for entry in reader.entries if entry.key not in missing)
    return _Seen(prefix, given, tuple(sorted(missing)), notes)


def _moved(entry: Entry, source: Traced) -> Entry:
    value = moved(entry.value, source)
    end = source.end_at(entry.value.end)
    if isinstance(value, Scalar):
        value = Scalar(value.value, value.start, end, value.style)
    return Entry(entry.key, source.offset(entry.key_start), source.end_at(entry.key_end), value)


def _joined(text: str, start: int) -> Traced:
    """From `start` to the end of the record, without the line ends that a terminal or a mail put in."""
    end = text.find("\n", start)
    # One character more than is read, so that a longer record counts as cut off.
    pieces = [(start, min(len(text) if end < 0 else end, start + LONGEST_RECORD + 1))]
    while end >= 0 and not _is_complete(text, start, end):
        begin = end + 1
        following = text.find("\n", begin)
        stop = len(text) if following < 0 else following
        line = text[begin:stop]
        if not line.strip() or _NEW_RECORD.match(line) or len(pieces) > 200:
            break
        prefix = _PREFIX.match(line)
        pieces.append((begin + (prefix.end() if prefix is not None else 0), stop))
        end = following
    chars = "".join(text[a:b] for a, b in pieces)
    starts = [offset for a, b in pieces for offset in range(a, b)]
    whole = Traced(chars, starts, start, pieces[-1][1])
    return whole if len(chars) <= LONGEST_RECORD else whole.part(0, LONGEST_RECORD)


def _is_complete(text: str, start: int, end: int) -> bool:
    return text[start:end].rstrip().endswith((")", "}"))


def _cut_off(source: Traced, cut: CutOff, reader: ReprReader, lines: Lines) -> Noted:
    part = source.part(cut.offset, len(source.text))
    last = reader.entries[-1].key if reader.entries else None
    after = f"behind {last}" if last is not None else "before the first argument"
    rest = f" ({shortened(part.text)})" if part.text else ""
    message = f"the printed arguments are cut off or broken {after}{rest}; those that follow are not known"
    return note(
        "HC019",
        message,
        "Take the whole line from the log, or ask the server for /server_info.",
        lines.place(part.begin, part.end),
    )
