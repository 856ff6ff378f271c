"""Lines with styles, for a terminal or for anything else: colour only where a person looks at a terminal.

Must not import anything above this floor; rich is loaded only where colour is used.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Sequence

#: A stretch of text with a style of rich's ("bold red"), or "" for none.
Piece = tuple[str, str]
Line = Sequence[Piece]


def plain(text: str = "") -> Line:
    """A line without style."""
    return ((text, ""),)


def wants_color(allowed: bool) -> bool:
    """Whether standard output is a terminal that should be coloured (NO_COLOR and `--no-color` say no)."""
    return allowed and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb" and sys.stdout.isatty()


def _visible(text: str) -> str:
    """The text with escapes for what a terminal would obey or could not show, such as in the name of a file."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)


def render(lines: Iterable[Line], *, color: bool) -> str:
    """The lines as text, with terminal colours where `color` holds."""
    if not color:
        return "".join(_visible("".join(text for text, _ in line)).rstrip() + "\n" for line in lines)
    from io import StringIO

    from rich.console import Console
    from rich.text import Text

    buffer = StringIO()
    console = Console(file=buffer, force_terminal=True, width=10_000, highlight=False, soft_wrap=True)
    for line in lines:
        console.print(Text.assemble(*((_visible(text), style) for text, style in line)))
    return buffer.getvalue()
