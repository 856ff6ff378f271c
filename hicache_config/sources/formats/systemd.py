"""A systemd unit or a quadlet. Must not import anything above this floor."""

from __future__ import annotations

from ..document import in_order
from ..text import Traced
from ..unit import read_unit
from .content import Content, Result


def read(content: Content) -> Result:
    """The servers that a unit starts."""
    return "systemd", in_order(read_unit(Traced.of(content.text), content.lines, content.release)), ()
