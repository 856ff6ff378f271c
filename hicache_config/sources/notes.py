"""The findings that readers make: codes, names and severities in one place, and a short way to write one.

The pages of these rules are declared in rules/elsewhere.py. Must not import anything above this floor.
"""

from __future__ import annotations

from collections.abc import Mapping

from ..arguments.given import Place
from ..core.findings import Finding, Severity
from .document import Noted
from .text import HOLE, Lines, Unknown

KINDS: Mapping[str, tuple[str, Severity]] = {
    "HC001": ("unreadable-source", "error"),
    "HC002": ("syntax-error", "error"),
    "HC003": ("duplicate-key", "error"),
    "HC004": ("not-a-number", "error"),
    "HC005": ("too-deep-or-too-large", "error"),
    "HC006": ("not-text", "error"),
    "HC007": ("no-engine-found", "error"),
    "HC008": ("unset-variable", "warning"),
    "HC009": ("not-followed", "warning"),
    "HC011": ("broken-continuation", "error"),
    "HC012": ("typographic-dash", "error"),
    "HC013": ("yaml-value-that-sglang-breaks", "warning"),
    "HC014": ("flag-of-another-program", "note"),
    "HC015": ("missing-value", "error"),
    "HC016": ("stray-word", "error"),
    "HC017": ("prompt-in-command", "error"),
    "HC018": ("several-words-in-one", "error"),
    "HC019": ("cut-off", "warning"),
    "HC020": ("config-file-refused", "error"),
}
_LONGEST = 60
_LONGEST_MESSAGE = 400


def note(
    code: str,
    message: str,
    help: str = "",
    place: Place | None = None,
    *,
    argument: str | None = None,
    severity: Severity | None = None,
) -> Noted:
    """A finding of a reader at its place; `severity` where this one weighs less than its kind."""
    name, usual = KINDS[code]
    return Noted(Finding(code, name, severity or usual, _plain(message), _plain(help), argument=argument), place)


class NoteList(list[Noted]):
    """The notes of one text: of many of a kind the first ones, for a source with endless trouble."""

    MOST = 100

    def append(self, noted: Noted) -> None:
        """Add a note, unless there are enough."""
        if len(self) < self.MOST:
            super().append(noted)

    def put_first(self, noted: Noted) -> None:
        """Add a note that must not be lost: why the reading ended."""
        self.insert(0, noted)


def _plain(text: str) -> str:
    """A message without what a source could do to a terminal: line ends, control characters, endless length."""
    shown = (
        text.replace(HOLE, "…")
        if len(text) <= _LONGEST_MESSAGE
        else text[: _LONGEST_MESSAGE - 1].replace(HOLE, "…") + "…"
    )
    return (
        shown
        if shown.isprintable()
        else "".join(c if c.isprintable() else " " if c.isspace() else "\ufffd" for c in shown)
    )


def not_known(unknown: Unknown, lines: Lines, argument: str | None = None) -> Noted:
    """The finding for a part that can't be known; `argument` is the flag whose value it is in."""
    about = f" of {argument}" if argument else ""
    help = (
        "Write the value there, or give the variable a value in this file."
        if unknown.code == "HC008"
        else "Write the value there; nothing in a file is ever run."
    )
    message = f"the value{about} is not known: {shortened(unknown.shown)} {unknown.why}"
    return note(unknown.code, message, help, lines.place(unknown.start, unknown.end), argument=argument)


def shortened(text: str) -> str:
    """A piece of a source for a message: one line, at most 60 characters."""
    flat = " ".join(text.split())
    return flat if len(flat) <= _LONGEST else flat[: _LONGEST - 1] + "…"
