"""A Python launcher. Must not import anything above this floor."""

from __future__ import annotations

from ..document import in_order
from ..notes import note
from ..python_launch import PythonReader
from ..python_values import parsed
from .content import Content, Result


def read(content: Content) -> Result:
    """The servers that a program starts."""
    reader = PythonReader(content.text, content.lines, content.release)
    engines = reader.read()
    if reader.is_cut:
        cut = note("HC005", "only the first part of this program is looked at", "Name the file that starts the server.")
        return "python", in_order(engines), [cut]
    if not engines and parsed(content.text) is None:
        return "python", (), [note("HC002", "Python can't parse this program", "Run python -m py_compile on it.")]
    return "python", in_order(engines), ()
