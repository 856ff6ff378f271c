"""An argument as somebody wrote it, and where: what the readers of files hand to the typed arguments.

Must not import anything above this floor.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, order=True)
class Place:
    """A stretch of a source. Lines and columns count from 1, columns in characters; the end is exclusive.

    `file` names another file that the source took in (`--config FILE`, `env_file`); it is empty for the source itself.
    """

    line: int
    column: int
    end_line: int
    end_column: int
    file: str = ""

    def to(self, other: Place) -> Place:
        """The stretch from the start of this one to the end of the other; this one where the other is elsewhere."""
        if other.file != self.file or (other.line, other.column) < (self.line, self.column):
            return self
        return Place(self.line, self.column, other.end_line, other.end_column, self.file)


@dataclass(frozen=True)
class Given:
    """One argument as written.

    `key` is the spelling (`hicache_size`, `hicache-size`, `--tp`). `as_text` says that `value` is what a command line
    carries, to be converted as argparse does; an empty text sets a switch, a list holds the words of an argument that
    takes several. `place` is the whole argument (key to the end of the value), `value_place` the value alone; both are
    None where nothing was read from a text. `inner` has the places of parts of the value by JSON pointer
    ("/prefetch_threshold").
    """

    key: str
    value: Any
    as_text: bool = False
    place: Place | None = None
    key_place: Place | None = None
    value_place: Place | None = None
    inner: Mapping[str, Place] = field(default_factory=dict)
