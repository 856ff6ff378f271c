"""JSON: arguments, the answer of /server_info, a manifest. Must not import anything above this floor."""

from __future__ import annotations

from ..arguments_file import ArgumentsReader
from ..document import named
from ..json_tree import read_json
from ..tree import is_manifest
from .content import Content, Result


def read(content: Content) -> Result:
    """The engines of a JSON text."""
    node, notes = read_json(content.text, content.lines)
    if node is None:
        return content.form or "json", (), notes
    if content.form is None and is_manifest(node):
        from .yaml import read_manifest

        return read_manifest([node], content, notes)
    collected = ArgumentsReader(content.text, content.lines, content.release).read(node)
    actual = content.form or ("server-info" if collected.is_server_info else "json")
    return actual, named(collected.engines), [*notes, *collected.notes]
