"""Standard output and error as they are handed to us: closed, or in an encoding that lacks some of our characters.

Must not import anything of the project.
"""

from __future__ import annotations

import codecs
import io
import os
import sys
from pathlib import Path
from typing import TextIO

#: What stands for the characters of our own texts where the encoding has none of them.
_PLAIN = {"█": "#", "▓": "+", "▒": "=", "░": ":", "·": ".", "…": "..."}
_HANDLER = "hicache_config.plain"


def prepare() -> None:
    """Make both streams take every text: what an encoding lacks is written plainly, and a closed stream takes all."""
    codecs.register_error(_HANDLER, _plainly)
    sys.stdout = _prepared(sys.stdout)
    sys.stderr = _prepared(sys.stderr)


def _prepared(stream: TextIO | None) -> TextIO:
    if stream is None:
        return Path(os.devnull).open("w", encoding="utf-8")
    if isinstance(stream, io.TextIOWrapper):
        stream.reconfigure(errors=_HANDLER)
    return stream


def _plainly(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    wrong = error.object[error.start : error.end]
    return "".join(_PLAIN.get(char) or char.encode("ascii", "backslashreplace").decode() for char in wrong), error.end
