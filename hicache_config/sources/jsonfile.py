"""A JSON file that is not a configuration (a pools file): its value, and the place of everything in it.

Must not import anything above this floor.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ..arguments.given import Place
from .document import Noted
from .files import Unreadable, load
from .json_tree import read_json
from .text import Lines
from .tree import parts, plain


@dataclass(frozen=True)
class JsonFile:
    """A file that was read. `value` is None when it has no value; `places` are by JSON pointer, "" the whole."""

    value: Any = None
    places: Mapping[str, Place] = field(default_factory=dict)
    notes: tuple[Noted, ...] = ()
    text: str = ""


def read_json_file(path: str) -> JsonFile:
    """The value of a JSON file with its places; never raises for a bad file. `-` is standard input."""
    try:
        text, notes = load(path, None, "json")
    except Unreadable as error:
        return JsonFile(notes=(error.noted,))
    lines = Lines(text)
    node, found = read_json(text, lines)
    if node is None:
        return JsonFile(notes=(*notes, *found), text=text)
    places = {"": lines.place(node.start, node.end), **dict(parts(node, lines))}
    return JsonFile(plain(node), places, (*notes, *found), text)
