"""What a reader is given and what it gives. Must not import anything above this floor."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from ..document import Engine, Noted
from ..text import Lines

Result: TypeAlias = "tuple[str, Sequence[Engine], Sequence[Noted]]"


@dataclass(frozen=True)
class Content:
    """A text to read, with the release that it is read for, and the format that was asked for, if one was."""

    text: str
    lines: Lines
    release: str
    form: str | None
