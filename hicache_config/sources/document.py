"""What every reader returns: a document with the engines found in it, each value with its place.

Must not import anything above this floor.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from ..arguments.given import Given, Place
from ..core.findings import Finding


@dataclass(frozen=True)
class Noted:
    """A finding of a reader with its own place (a syntax error, a duplicate key, an unset variable)."""

    finding: Finding
    place: Place | None = None


@dataclass(frozen=True)
class Engine:
    """One engine's configuration in a source.

    `name` tells several engines of one source apart (a Compose service, a container); None for the only one.
    `given` are its arguments in the order written, `environment` SGLang's variables set beside them,
    `memory_limit_bytes` the memory limit of its container, `reported` what a log says was allocated or a
    `/server_info` reports (`max_total_num_tokens`), `notes` what the reader found.
    `not_known` are keys of arguments that are written, but whose value can't be known (an unset variable, NaN; a note
    names each): nobody should take them for not given.
    """

    name: str | None = None
    given: tuple[Given, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    memory_limit_bytes: int | None = None
    memory_limit_place: Place | None = None
    reported: Mapping[str, object] = field(default_factory=dict)
    notes: tuple[Noted, ...] = ()
    not_known: tuple[str, ...] = ()


@dataclass(frozen=True)
class Document:
    """A source that was read. `engines` is empty when nothing could be parsed; `notes` then say why.

    `source` is the name for people and reports (a path, `-`, or `command line`), `text` what places count in, and
    `included` the texts of other files that were taken in, by the name that places have for them.
    """

    source: str
    format: str
    text: str
    engines: tuple[Engine, ...] = ()
    notes: tuple[Noted, ...] = ()
    included: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_broken(self) -> bool:
        """Whether nothing in the source could be parsed."""
        return not self.engines


def named(engines: Sequence[tuple[str | None, Engine]]) -> tuple[Engine, ...]:
    """Engines with names that tell them apart; the only one needs none."""
    if len(engines) == 1:
        return (engines[0][1],)
    counts: dict[str, int] = {}
    out = []
    for name, engine in engines:
        base = name or "engine"
        counts[base] = counts.get(base, 0) + 1
        out.append((base, counts[base], engine))
    return tuple(replace(engine, name=f"{base}-{number}" if counts[base] > 1 else base) for base, number, engine in out)


def in_order(engines: Sequence[Engine]) -> tuple[Engine, ...]:
    """Engines without names of their own, numbered where there are several."""
    return named([(None, engine) for engine in engines])
