"""String literals of Python to their texts, each character with its place. Nothing is evaluated.

Must not import anything above this floor.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable

from .text import Builder, Traced

_LITERAL = re.compile(
    r"(?P<prefix>[A-Za-z]{0,2})(?P<quote>'''|\"\"\"|'|\")(?P<body>(?:\\.|(?!(?P=quote))[^\\])*)(?P=quote)", re.DOTALL
)
_ESCAPE = re.compile(
    r"\\(?:\n|[0-7]{1,3}|x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|N\{[^}\n]{1,80}\}|.)", re.DOTALL
)
_SIMPLE = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v", "\n": ""}
_SIMPLE |= {char: char for char in "\\'\""}
_FORMAT = re.compile(r"(?:!r|!s|!a|=)?(?::[^{}]*)?\Z")

#: Puts in what an expression of an f-string stands for: its text, and the stretch of the document from brace to brace.
Fill = Callable[[str, int, int], Traced]


def literal(text: str, begin: int, end: int, fill: Fill) -> Traced:
    """The text of a string literal, of several that stand behind each other, or of an f-string."""
    out = Builder(begin)
    for match in _LITERAL.finditer(text, begin, end):
        prefix = match["prefix"].lower()
        if "f" in prefix:
            _formatted(out, match["body"], match.start("body"), fill, raw="r" in prefix)
        else:
            _characters(out, match["body"], match.start("body"), raw="r" in prefix)
    return out.done(end)


def _characters(out: Builder, body: str, start: int, *, raw: bool) -> None:
    here = 0
    while here < len(body):
        escape = None if raw or body[here] != "\\" else _ESCAPE.match(body, here)
        if escape is None:
            out.add(body[here], start + here)
            here += 1
            continue
        for char in _unescaped(escape[0]):
            out.add(char, start + here)
        here = escape.end()


def _unescaped(escape: str) -> str:
    kind, rest = escape[1], escape[2:]
    if kind in _SIMPLE:
        return _SIMPLE[kind]
    if kind == "N":
        return unicodedata.lookup(rest[1:-1]) if _is_named(rest[1:-1]) else escape
    if kind in "xuU" or kind.isdigit():
        code = int(rest, 16) if kind in "xuU" and rest else int(escape[1:], 8) if kind in "01234567" else -1
        return chr(code) if 0 <= code < 0x110000 and not 0xD800 <= code < 0xE000 else escape
    return escape


def _is_named(name: str) -> bool:
    try:
        return bool(unicodedata.lookup(name))
    except KeyError:
        return False


def _formatted(out: Builder, body: str, start: int, fill: Fill, *, raw: bool) -> None:
    here = plain = 0
    while here < len(body):
        if body[here : here + 2] in ("{{", "}}"):
            _characters(out, body[plain : here + 1], start + plain, raw=raw)
            here = plain = here + 2
        elif body[here] == "{":
            _characters(out, body[plain:here], start + plain, raw=raw)
            stop = _closing(body, here)
            expression = _FORMAT.sub("", body[here + 1 : stop], count=1)
            out.add_all(fill(expression.strip(), start + here, start + min(stop + 1, len(body))))
            here = plain = stop + 1
        else:
            here += 1
    _characters(out, body[plain:], start + plain, raw=raw)


def _closing(body: str, start: int) -> int:
    depth = 0
    for index in range(start, len(body)):
        depth += {"{": 1, "}": -1}.get(body[index], 0)
        if depth == 0:
            return index
    return len(body)
