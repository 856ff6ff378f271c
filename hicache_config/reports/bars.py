"""A stage as a bar: its pools against the size, with glyphs that differ without colour. Plain values in, lines out.

Must not import anything above this floor.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..core.sizes import StagePlan
from .screen import Line

#: Glyph and style of each pool of a stage, in order; they repeat where a stage has more.
GLYPHS = (("█", "blue"), ("▓", "green"), ("▒", "magenta"), ("░", "cyan"), ("#", "yellow"), ("+", "red"), ("=", "white"))
UNUSED = "·"
LIMIT = "|"
WIDTH = 60
_LEGEND_WIDTH = 80


def bar_lines(stage: StagePlan) -> Iterator[Line]:
    """The bar of a stage and its legend; nothing where bytes are not known or there are none.

    `|` stands where the size ends, `·` is what the size leaves unused.
    """
    total = stage.bytes
    if not total:
        return
    whole = max(total, stage.size_bytes or 0)
    pieces: list[tuple[str, str]] = []
    legend: list[tuple[str, str, str]] = []
    drawn = 0
    filled = 0
    for pool, (glyph, style) in zip(stage.pools, GLYPHS * (len(stage.pools) // len(GLYPHS) + 1), strict=False):
        if not pool.bytes:
            continue
        filled += pool.bytes
        end = _columns(filled, whole)
        pieces.append((glyph * (end - drawn), style))
        drawn = max(drawn, end)
        legend.append((glyph, style, pool.name))
    if stage.size_bytes is not None:
        if drawn < WIDTH and total < whole:
            pieces.append((UNUSED * (WIDTH - drawn), "dim"))
            legend.append((UNUSED, "dim", "unused"))
        pieces = _with_limit(pieces, _columns(stage.size_bytes, whole))
        legend.append((LIMIT, "bold", "the size"))
    yield (("  ", ""), *pieces)
    yield from _legend(legend)


def _legend(entries: list[tuple[str, str, str]]) -> Iterator[Line]:
    """Glyph, style and name of each part, in lines of 80 columns."""
    line: list[tuple[str, str]] = [("  ", "")]
    used = 2
    for glyph, style, name in entries:
        needed = len(f"{glyph} {name}  ")
        if used + needed > _LEGEND_WIDTH:
            yield tuple(line)
            line, used = [("  ", "")], 2
        line += [(glyph, style), (f" {name}  ", "")]
        used += needed
    yield tuple(line)


def node_bar(used: int, room: int) -> Iterator[Line]:
    """The bar of a node: what its ranks take of the room that the host has for them, in bytes per node."""
    whole = max(used, room)
    filled = _columns(used, whole)
    pieces = [("█" * filled, "blue"), (UNUSED * (WIDTH - filled), "dim")]
    yield (("  ", ""), *_with_limit(pieces, _columns(room, whole)), (" the host", ""))


def _columns(part: int, whole: int) -> int:
    """Columns of a part, rounded to nearest."""
    return (part * WIDTH * 2 + whole) // (whole * 2)


def _with_limit(pieces: list[tuple[str, str]], column: int) -> list[tuple[str, str]]:
    """The pieces with the limit put in at a column."""
    out: list[tuple[str, str]] = []
    position = 0
    placed = False
    for text, style in pieces:
        if not placed and position <= column <= position + len(text):
            cut = column - position
            out += [(text[:cut], style), (LIMIT, "bold"), (text[cut:], style)]
            placed = True
        else:
            out.append((text, style))
        position += len(text)
    return out if placed else [*out, (LIMIT, "bold")]
