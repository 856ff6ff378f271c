"""Manifests with `{{ … }}` in them, as Helm charts have: read without their values, which stay unknown.

Each expression is overlaid with as many characters that no file holds, so that everything keeps its offset.
Must not import anything above this floor.
"""

from __future__ import annotations

import re

from .text import Builder, Lines, Traced, Unknown

#: Overlays an expression; a private character.
MASK = "\ue000"

#: Expressions of one text; no chart has as many.
MOST = 2_000

_COMMENT = re.compile(r"\{\{-?[ \t]*/\*.{0,4000}?\*/[ \t]*-?\}\}", re.DOTALL)
_EXPRESSION = re.compile(r"\{\{(?:\"[^\"\n]{0,80}\"|`[^`\n]{0,80}`|[^{}\"`\n]){0,300}\}\}")
_CONDITION = re.compile(r"\{\{-?[ \t]*(?:if|else|range|with)\b")


def is_template(text: str) -> bool:
    """Whether a text has such expressions."""
    return 0 < text.count("{{") <= MOST and _EXPRESSION.search(text) is not None


def masked(text: str) -> str:
    """The text with each expression overlaid: by blanks where it has its line for itself, else by MASK."""
    text = _COMMENT.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), text.replace(MASK, "\ufffd"))
    return "\n".join(_line(line) if "{{" in line else line for line in text.split("\n"))


def _line(line: str) -> str:
    over = MASK if _EXPRESSION.sub("", line).strip() else " "
    return _EXPRESSION.sub(lambda match: over * len(match[0]), line)


def conditions(text: str) -> tuple[int, int] | None:
    """Where the first part begins that a template may leave out, or None."""
    match = _CONDITION.search(text)
    return match.span() if match is not None else None


def with_holes(text: Traced, lines: Lines) -> Traced:
    """A text with a hole for each expression."""
    if MASK not in text.text:
        return text
    out = Builder(text.begin)
    here = 0
    for match in re.finditer(f"{MASK}+", text.text):
        for index in range(here, match.start()):
            out.add_from(text, index)
        begin = text.offset(match.start())
        end = begin + len(match[0])
        shown = " ".join(lines.text[begin:end].split())
        out.add_hole(Unknown(shown, "is filled in by a template", begin, end, "HC009"))
        here = match.end()
    for index in range(here, len(text.text)):
        out.add_from(text, index)
    return out.done(text.end)
