"""A server's log. Must not import anything above this floor."""

from __future__ import annotations

from ..log import read_log
from .content import Content, Result


def read(content: Content) -> Result:
    """The servers whose arguments a log shows."""
    return "log", read_log(content.text, content.lines), ()
