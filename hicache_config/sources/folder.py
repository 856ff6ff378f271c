"""The files that a source names (`--config FILE`, `env_file`, `source FILE`), opened where they lie and nowhere else.

Read are regular files of at most a mebibyte in the folder of the source, in the folder where this program runs, and
below them: a manifest from elsewhere must not show what else is on this machine. Who types a launch command may name
any file. Must not import anything above this floor.
"""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass, field
from pathlib import Path, PurePath

from .files import Unreadable, load
from .notes import shortened
from .text import HOLE, InnerLines, Lines, Traced

LARGEST = 2**20
MOST_FILES = 50
MOST_TRIES = 500


class NotOpened(Exception):  # noqa: N818 (what a reader notes at the name's place)
    """A file that is not read; the message is a clause that says why: "is not there"."""


@dataclass(frozen=True)
class Opened:
    """Another file that was read. `base` is what its offsets count from in the document that names it.

    `within` is the text of a file that stands in the document itself.
    """

    path: Path
    lines: Lines
    base: int = 0
    within: Traced | None = None

    @property
    def text(self) -> str:
        """What is in it."""
        return self.lines.text

    def located(self, inner: Traced) -> Traced:
        """A text that was read from the file, with the offsets that it has in the document."""
        return inner.shifted(self.base) if self.within is None else self.within.located(inner)


@dataclass
class Folder:
    """Where a source lies. `is_free`: any file of this machine may be named.

    `mounted` are files that the source itself holds, by their names without folders: a ConfigMap's.
    """

    here: Path
    is_free: bool = False
    mounted: dict[str, Traced] = field(default_factory=dict)
    _opened: dict[Path, Opened] = field(default_factory=dict)
    _tries: int = 0

    @classmethod
    def of(cls, source: str) -> Folder:
        """The folder of a source; of standard input the one where this program runs."""
        return cls(Path() if source == "-" else Path(source).parent)

    def open(self, name: str, lines: Lines, beside: Path | None = None) -> Opened:
        """The file of a name in a document, or in the folder `beside` of another file. Raises NotOpened."""
        if not name or HOLE in name or "\0" in name:
            raise NotOpened("is no name of a file that is known")
        self._tries += 1
        if self._tries > MOST_TRIES:
            raise NotOpened(f"is one of more than {MOST_TRIES} files that the source names")
        held = self.mounted.get(PurePath(name).name)
        if held is not None:
            return Opened(Path(name), InnerLines(held, lines), within=held)
        path = Path(os.path.normpath((self.here if beside is None else beside) / name))
        try:
            real = path.resolve(strict=True)
            state = real.stat()
        except (OSError, RuntimeError, ValueError):
            raise NotOpened("is not there") from None
        if real in self._opened:
            return self._opened[real]
        if not self._is_within(real):
            raise NotOpened("lies outside the folder of the source and the one where this program runs")
        if not stat.S_ISREG(state.st_mode):
            raise NotOpened("is no file")
        if state.st_size > LARGEST:
            raise NotOpened("is larger than a mebibyte")
        if len(self._opened) >= MOST_FILES:
            raise NotOpened(f"is one of more than {MOST_FILES} files that the source names")
        try:
            text, _ = load(str(path))
        except Unreadable as error:
            raise NotOpened(shortened(error.noted.finding.message.removeprefix(f"{path} "))) from None
        found = Lines(text, path.as_posix())
        self._opened[real] = Opened(path, found, lines.add(found))
        return self._opened[real]

    def _is_within(self, path: Path) -> bool:
        if self.is_free:
            return True
        roots = (each.resolve() for each in (self.here, Path()))
        return any(root != Path(root.anchor) and path.is_relative_to(root) for root in roots)
