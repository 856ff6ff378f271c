"""TOML: a file of arguments. Must not import anything above this floor."""

from __future__ import annotations

from ..arguments_file import ArgumentsReader
from ..document import named
from ..toml_tree import read_toml
from .content import Content, Result


def read(content: Content) -> Result:
    """The engines of a TOML text."""
    node, notes = read_toml(content.text, content.lines)
    if node is None:
        return "toml", (), notes
    collected = ArgumentsReader(content.text, content.lines, content.release).read(node)
    return "toml", named(collected.engines), [*notes, *collected.notes]
