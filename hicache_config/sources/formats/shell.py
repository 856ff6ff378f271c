"""A shell script. Must not import anything above this floor."""

from __future__ import annotations

from ..container import engines_of_script
from ..document import in_order
from ..text import Traced
from .content import Content, Result


def read(content: Content) -> Result:
    """The servers that a script starts."""
    script = Traced.of(content.text)
    return "shell", in_order(engines_of_script(script, content.lines, content.release)), ()
