"""Files of variables to their values: Compose's `.env` and `env_file`, systemd's `EnvironmentFile`.

One `NAME=value` a line, `export` before it or not, quotes as in a shell, comments. Must not import anything above this
floor.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from .document import Noted
from .folder import NotOpened
from .notes import note, shortened
from .text import Builder, Lines, Traced

#: Variables of one file; more are no settings.
MOST = 2_000

_LINE = re.compile(r"^[ \t]*(?:export[ \t]+)?([A-Za-z_][\w.]*)[ \t]*=[ \t]*", re.MULTILINE | re.ASCII)
_BEHIND = re.compile(r"(?:(?<=[ \t=])|[ \t]+)#")
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r"}


def read_env_file(
    text: str, base: int, substitute: Callable[[Traced, dict[str, Traced]], Traced], *, comments: bool = True
) -> dict[str, Traced]:
    """The variables of a file; offsets in it count from `base`. A later line of a name wins.

    `comments`: whether one may stand behind a value, as Compose has it and systemd has not.

    `substitute` puts in what `$NAME` stands for in a value without single quotes, given the variables so far.
    """
    source = Traced.of(text, base)
    found: dict[str, Traced] = {}
    here = 0
    while len(found) < MOST and (line := _LINE.search(text, here)) is not None:
        value, here, is_literal = _value(source, line.end(), comments=comments)
        found[line[1]] = value if is_literal else substitute(value, found)
    return found


def variables_of(named: Traced, lines: Lines, what: str) -> tuple[dict[str, Traced], list[Noted]]:
    """The variables of a file that docker or systemd is told of (`what`), and the note where it can't be read.

    Neither of them puts anything in for `$NAME`, and neither knows a comment behind a value.
    """
    try:
        if lines.folder is None or not named.is_known:
            raise NotOpened("has a name that is not known")
        opened = lines.folder.open(named.text, lines)
    except NotOpened as why:
        message = f"{shortened(named.shown())} of {what} {why}, so what it sets is not checked"
        place = lines.place(named.begin, named.end)
        return {}, [note("HC009", message, "Check it together with its file.", place, severity="note")]
    return read_env_file(opened.text, opened.base, lambda value, _: value, comments=False), []


def _value(source: Traced, start: int, *, comments: bool) -> tuple[Traced, int, bool]:
    """A value, where it ends, and whether it stands in single quotes."""
    text = source.text
    quote = text[start : start + 1]
    if quote not in ("'", '"'):
        stop = text.find("\n", start)
        stop = len(text) if stop < 0 else stop
        comment = _BEHIND.search(text, start, stop) if comments else None
        plain = source.part(start, comment.start() if comment is not None else stop)
        return plain.part(0, len(plain.text.rstrip())), stop, False
    out = Builder(source.offset(start))
    here = start + 1
    while here < len(text) and text[here] != quote:
        if text[here] == "\\" and quote == '"' and here + 1 < len(text):
            here += 1
            out.add(_ESCAPES.get(text[here], text[here]), source.offset(here))
        else:
            out.add_from(source, here)
        here += 1
    return out.done(source.end_at(min(here + 1, len(text)))), here + 1, quote == "'"
