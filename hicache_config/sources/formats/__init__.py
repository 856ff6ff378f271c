"""The formats of sources: one module each with `read(content)`, loaded when a source is in it.

Must not import anything above this floor.
"""

from __future__ import annotations

from importlib import import_module
from typing import Protocol, cast

from .content import Content, Result

#: The module of each format, beside this one.
READERS = {
    "json": "json", "server-info": "json", "yaml": "yaml", "kubernetes": "yaml", "compose": "yaml", "toml": "toml",
    "command": "command", "shell": "shell", "dockerfile": "dockerfile", "log": "log", "systemd": "systemd",
    "python": "python", "markdown": "markdown",
}  # fmt: skip


class Reader(Protocol):
    """What each of the modules has."""

    def read(self, content: Content) -> Result:
        """The format that the text is really in, its engines, and what was found beside them."""


def reader(form: str) -> Reader:
    """The module that reads a format."""
    return cast("Reader", import_module(f".{READERS[form]}", __name__))


__all__ = ["READERS", "Content", "Result", "reader"]
