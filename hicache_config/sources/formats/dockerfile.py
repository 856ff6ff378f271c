"""A Dockerfile. Must not import anything above this floor."""

from __future__ import annotations

from ..dockerfile import read_dockerfile
from ..document import in_order
from ..text import Traced
from .content import Content, Result


def read(content: Content) -> Result:
    """The server that an image of this file starts."""
    engines = read_dockerfile(Traced.of(content.text), content.lines, content.release)
    return "dockerfile", in_order(engines), ()
