"""Markdown: the blocks of code in it, each read in its own format. Must not import anything above this floor."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from ..document import Engine, named
from ..sniff import BLOCKS, sniff
from .content import Content, Result

MOST_BLOCKS = 60

_FENCE = re.compile(r"^(?P<indent>[ \t]*(?:>[ \t]?)*)(?P<fence>`{3,}|~{3,})[ \t]*(?P<info>[^`\n]*)$", re.MULTILINE)
#: Formats in which any mapping would count as arguments.
_PLAIN = ("json", "yaml", "toml")
_TELLING = re.compile(r"sglang|hicache|hierarchical")


def read(content: Content) -> Result:
    """The engines of all blocks of code, each named by the line that it begins in."""
    from . import reader

    engines: list[tuple[str | None, Engine]] = []
    for start, end, info in _blocks(content.text):
        block = content.text[start:end].rstrip()
        form = BLOCKS.get(info.lower()) or sniff("", block.strip())
        # Blanks before it keep every character where it stands in the document.
        text = " " * (start - 1) + "\n" + block
        actual, found, _ = reader(form).read(replace(content, text=text, form=None if form == "yaml" else form))
        line = content.lines.line(start)
        engines += [(f"line {line}", each) for each in found if actual not in _PLAIN or _is_about_hicache(each)]
    return "markdown", named(engines), ()


def _is_about_hicache(engine: Engine) -> bool:
    return any("hicache" in each.key or "hierarchical" in each.key for each in engine.given)


def _blocks(text: str) -> Iterator[tuple[int, int, str]]:
    """Start, end and language of the fenced blocks that may hold a server's start."""
    here = count = 0
    while count < MOST_BLOCKS and (opening := _FENCE.search(text, here)) is not None:
        fence, start = opening["fence"], min(opening.end() + 1, len(text))
        closing = re.compile(rf"^[ \t>]*{re.escape(fence[0])}{{{len(fence)},}}[ \t]*$", re.MULTILINE).search(
            text, start
        )
        end = closing.start() if closing is not None else len(text)
        here = closing.end() if closing is not None else len(text)
        if _TELLING.search(text, start, end):
            count += 1
            yield start, end, re.split(r"[\s{,]", opening["info"].strip(), maxsplit=1)[0]
