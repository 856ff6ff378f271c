"""Bytes to a document that knows where each value stands: json, yaml, toml, command line, shell, manifests, logs.

A document has one engine for each server found, and notes for whatever can't be read. Nothing in a source is executed.
May import arguments and core, nothing above.
"""

from __future__ import annotations

from .document import Document, Engine, Noted
from .read import FORMATS, read, read_all, read_command

__all__ = ["FORMATS", "Document", "Engine", "Noted", "read", "read_all", "read_command"]
