"""A launch command, as a text or as words. Must not import anything above this floor."""

from __future__ import annotations

from collections.abc import Sequence

from ..container import engine_of_launch, engines_of_words
from ..document import Engine, in_order
from ..launch import Launch
from ..manifest import split_words
from ..text import Lines, Traced
from .content import Content, Result

_DASHES = "-\u2010\u2011\u2012\u2013\u2014\u2015\u2212"


def read(content: Content) -> Result:
    """The engines of a command that stands in a text."""
    words = split_words(Traced.of(content.text))
    return "command", in_order(of_words(words, content.lines, content.release)), ()


def of_words(words: Sequence[Traced], lines: Lines, release: str) -> list[Engine]:
    """Engines of a command that is said to be one: flags alone count, whichever they are."""
    engines = engines_of_words(words, lines, release)
    if not engines and words and words[0].text and words[0].text[0] in _DASHES:
        return [engine_of_launch(Launch(tuple(words), ()), lines, release)]
    return engines
