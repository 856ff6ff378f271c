"""Files that a script takes in with `source FILE`: read where they lie beside it, never run.

Must not import anything above this floor.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from .folder import NotOpened, Opened
from .notes import NoteList, note, shortened
from .text import HOLE, Lines, Traced

#: Characters of other scripts that are read for one script.
LONGEST = 600_000
MOST_TIMES = 100

#: `$(dirname "$0")` and `$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)`: the folder of the script itself.
_OWN_FOLDER = re.compile(r"\$\([^()]*(?:\$\([^()]*\))?[^()]*\)|\$\{(?:BASH_SOURCE(?:\[0\])?|0)%/\*\}")


class Beside:
    """Opens the files that a script names. `unread` has a note for each that could not be read."""

    def __init__(self, lines: Lines) -> None:
        self.lines = lines
        self.unread = NoteList()
        self._open: list[Path] = []
        self._left, self._times = LONGEST, MOST_TIMES

    @contextmanager
    def open(self, named: Traced) -> Iterator[Traced | None]:
        """The script of a name, or None; while it is open, it is not opened again."""
        try:
            self._times -= 1
            if self._times < 0:
                raise NotOpened("is one too many to be read")
            found = self._found(named)
            if found.path in self._open:
                raise NotOpened("is being read already")
            self._left -= len(found.text)
            if self._left < 0:
                raise NotOpened("is one too many to be read")
        except NotOpened as why:
            self._note(named, str(why))
            yield None
            return
        self._open.append(found.path)
        try:
            yield Traced.of(found.text, found.base)
        finally:
            self._open.pop()

    def _found(self, named: Traced) -> Opened:
        """The file: beside the one that names it where it says so, else where the script or this program runs."""
        name, folder = _with_own_folder(named), self.lines.folder
        if folder is None or HOLE in name:
            raise NotOpened("has a name that is not known")
        if name != named.text:
            return folder.open(name, self.lines, self._open[-1].parent if self._open else None)
        try:
            return folder.open(name, self.lines)
        except NotOpened:
            return folder.open(name, self.lines, Path())

    def _note(self, named: Traced, why: str) -> None:
        message = f"{shortened(named.shown())} {why}, so what it sets is not known"
        place = self.lines.place(named.begin, named.end)
        self.unread.append(note("HC009", message, "Check it together with its file.", place, severity="note"))


def _with_own_folder(named: Traced) -> str:
    """The name of a file, with the folder of the script where it is computed from the script's own name."""
    chars = []
    for index, char in enumerate(named.text):
        unknown = named.unknown.get(index)
        own = unknown is not None and _OWN_FOLDER.fullmatch(unknown.shown) and _is_own(unknown.shown)
        chars.append("." if own else char)
    return "".join(chars)


def _is_own(shown: str) -> bool:
    return ("dirname" in shown and ("$0" in shown or "BASH_SOURCE" in shown)) or shown.startswith("${")
