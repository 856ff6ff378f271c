"""Files, folders and standard input to text, within bounded memory; whatever can't be read is a note.

Must not import anything above this floor.
"""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterator
from pathlib import Path

from .document import Noted
from .notes import note
from .text import Lines, NotTextError, decode, unify_lines

#: Of a longer file nothing is read, of a longer log its beginning.
LARGEST = 16 * 2**20
MOST_FILES = 10_000
_LOG_MARK = b"server_args="
_READ_IN_FOLDERS = (
    ".json",
    ".yaml",
    ".yml",
    ".toml",
    ".sh",
    ".bash",
    ".slurm",
    ".sbatch",
    ".service",
    ".container",
    ".log",
    ".txt",
)


class Unreadable(Exception):  # noqa: N818 (a finding, not an error of the program)
    """A source that can't be read; `noted` says why, `text` is what its place counts in."""

    def __init__(self, noted: Noted, text: str = "") -> None:
        super().__init__(noted.finding.message)
        self.noted, self.text = noted, text


def load(source: str, given: str | bytes | None = None, form: str | None = None) -> tuple[str, list[Noted]]:
    """The text of a source and what was found on the way; raises Unreadable."""
    if isinstance(given, str):
        if len(given) > LARGEST:
            raise Unreadable(_too_large(source))
        if "\0" in given:
            raise Unreadable(note("HC006", f"{source} is not text: it holds zero characters", "Name a text file."))
        return unify_lines(given), []
    data = given if given is not None else _bytes(source)
    notes: list[Noted] = []
    is_log = form == "log" or (form is None and (source.endswith(".log") or _LOG_MARK in data[: LARGEST // 16]))
    if len(data) > LARGEST:
        if not is_log:
            raise Unreadable(_too_large(source))
        data = data[:LARGEST].rpartition(b"\n")[0]
        message = f"{source} is larger than {LARGEST // 2**20} MiB; its beginning is read"
        notes.append(note("HC005", message, "Give the part that holds the server's start.", severity="note"))
    try:
        return decode(data), notes
    except NotTextError as error:
        why, offset = str(error), error.offset
    if offset is None:
        raise Unreadable(note("HC006", f"{source} is not text: {why}", "Name a text file."))
    text = decode(data, lenient=True)
    place = Lines(text).place(offset, offset + 1)
    if not is_log:
        raise Unreadable(note("HC006", f"{source} is not text: {why}", "Save it as UTF-8 text.", place), text)
    message = f"{source} holds bytes that are no UTF-8 ({why}); they are passed over"
    return text, [*notes, note("HC006", message, "", place, severity="note")]


def _too_large(source: str) -> Noted:
    message = f"{source} is larger than {LARGEST // 2**20} MiB, which no configuration is"
    return note(
        "HC005", message, "Is it the right file? Of a log, give the part with the server's start, or --from log."
    )


def _bytes(source: str) -> bytes:
    try:
        if source == "-":
            if sys.stdin is None:
                raise Unreadable(
                    note(
                        "HC001",
                        "standard input is closed",
                        "Name a file, or send one in: hicache-config validate - < FILE",
                    )
                )
            return sys.stdin.buffer.read(LARGEST + 1)
        with Path(source).open("rb") as file:
            return file.read(LARGEST + 1)
    except (OSError, ValueError) as error:
        raise Unreadable(_why(source, error)) from None


def _why(source: str, error: OSError | ValueError) -> Noted:
    """Why a source can't be opened, in the reader's words."""
    shown = "standard input" if source == "-" else repr(source) if not source.isprintable() or not source else source
    if isinstance(error, FileNotFoundError):
        if _is_link(source):
            return note("HC001", f"{shown} is a link to a file that is not there", "Name the file itself.")
        return note("HC001", f"{shown} is not there", "Name a file, a folder, or - for standard input.")
    if isinstance(error, PermissionError):
        return note("HC001", f"{shown} may not be read by this user", "Change its permissions, or run as its owner.")
    if isinstance(error, IsADirectoryError):
        return note("HC001", f"{shown} is a folder", "Name a file in it.")
    reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return note(
        "HC001",
        f"{shown} can't be read: {reason[:1].lower()}{reason[1:]}",
        "Name a file, a folder, or - for standard input.",
    )


def _is_link(source: str) -> bool:
    try:
        return Path(source).is_symlink()
    except (OSError, ValueError):
        return False


def is_folder(source: str) -> bool:
    """Whether a source is a folder; a name that can't be one is none."""
    try:
        return source != "-" and Path(source).is_dir()
    except (OSError, ValueError):
        return False


def walk(folder: str) -> Iterator[str | Noted]:
    """The files of a folder that may hold a configuration, in the order of their names; notes for what can't be listed.

    Hidden files and folders, links to folders and whatever is no regular file are left out.
    """
    problems: list[OSError] = []
    count = 0
    for place, folders, files in os.walk(folder, onerror=problems.append):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(files):
            path = str(Path(place) / name)
            if name.startswith(".") or not _may_hold(name) or not _is_regular(path):
                continue
            count += 1
            if count > MOST_FILES:
                yield note(
                    "HC005",
                    f"{folder} holds more than {MOST_FILES:,} files; the first ones are read",
                    "Name a smaller folder.",
                )
                return
            yield path
    for problem in problems:
        yield _why(str(problem.filename), problem)


def _may_hold(name: str) -> bool:
    lower = name.lower()
    return (
        lower.endswith(_READ_IN_FOLDERS)
        or lower.startswith(("dockerfile", "containerfile"))
        or lower.endswith(".dockerfile")
    )


def _is_regular(path: str) -> bool:
    """Whether a path is a file; one that can't be looked at is, so that it is named."""
    try:
        return stat.S_ISREG(Path(path).stat().st_mode)
    except OSError:
        return True
