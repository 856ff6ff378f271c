"""What `validate` found, as plain values: sources, engines, findings with their places.

Must not import anything above this floor.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ..arguments.given import Place
from ..core.findings import RANK, Finding, Severity
from ..rules.registry import Skipped


@dataclass(frozen=True)
class Placed:
    """A finding and where it is in its source; `place` is None where it belongs to no stretch of text.

    `text` is that of another file where the place lies in one that the source took in.
    """

    finding: Finding
    place: Place | None = None
    text: str | None = None

    def file(self, source: str) -> str:
        """The file that the place lies in: the source, or another one that it took in."""
        return self.place.file or source if self.place else source

    def as_dict(self) -> dict[str, Any]:
        """The finding as report files write it."""
        finding, place = self.finding, self.place
        pointer = finding.pointer
        if pointer is None and finding.argument is not None:
            pointer = "/" + finding.argument.replace("~", "~0").replace("/", "~1")
        fix = None if finding.fix is None else {"safe": finding.fix.safe, "set": dict(finding.fix.set)}
        elsewhere = {"file": place.file} if place is not None and place.file else {}
        return {
            "code": finding.code,
            "name": finding.name,
            "severity": finding.severity,
            "argument": finding.argument,
            "pointer": pointer,
            **elsewhere,
            "line": place.line if place else None,
            "column": place.column if place else None,
            "end_line": place.end_line if place else None,
            "end_column": place.end_column if place else None,
            "message": finding.message,
            "help": finding.help,
            "asked": finding.asked,
            "gets": finding.gets,
            "fix": fix,
        }


def in_order(findings: Sequence[Placed]) -> tuple[Placed, ...]:
    """Findings by line, column and code; those without a place come first, those in other files last."""

    def key(placed: Placed) -> tuple[str, int, int, str, str]:
        place = placed.place or Place(0, 0, 0, 0)
        return (place.file, place.line, place.column, placed.finding.code, placed.finding.message)

    return tuple(sorted(findings, key=key))


def failing(findings: Iterable[Placed], *, strict: bool = False) -> tuple[Placed, ...]:
    """The findings at or above the failing level: errors, with `strict` warnings too."""
    level = RANK["warning" if strict else "error"]
    return tuple(placed for placed in findings if RANK[placed.finding.severity] >= level)


@dataclass(frozen=True)
class SourceReport:
    """One engine found in a source (or a source in which none was found): what is wrong and what SGLang would use.

    `text` is the source's text, for reports that show its lines. `resolved` holds what was given and the final value
    of every HiCache argument.
    """

    source: str
    format: str
    engine: str | None = None
    resolved: Mapping[str, Any] = field(default_factory=dict)
    skipped: tuple[Skipped, ...] = ()
    findings: tuple[Placed, ...] = ()
    text: str = ""
    is_broken: bool = False

    def as_dict(self) -> dict[str, Any]:
        """The entry as report files write it."""
        return {
            "source": self.source,
            "format": self.format,
            "engine": self.engine,
            "resolved": dict(self.resolved),
            "skipped": [{"code": skipped.code, "why": skipped.why} for skipped in self.skipped],
            "findings": [placed.as_dict() for placed in self.findings],
        }


@dataclass(frozen=True)
class Report:
    """Everything that one run of `validate` found."""

    sglang: str
    sources: tuple[SourceReport, ...]

    def count(self, severity: Severity) -> int:
        """How many findings are of this severity."""
        return sum(placed.finding.severity == severity for source in self.sources for placed in source.findings)

    @property
    def is_broken(self) -> bool:
        """Whether there is a source of which nothing could be parsed."""
        return any(source.is_broken for source in self.sources)

    def only_failing(self, *, strict: bool = False) -> Report:
        """The same report without the findings below the failing level."""
        sources = (replace(source, findings=failing(source.findings, strict=strict)) for source in self.sources)
        return replace(self, sources=tuple(sources))

    def fails(self, *, strict: bool = False) -> bool:
        """Whether a finding is at or above the failing level."""
        return any(failing(source.findings, strict=strict) for source in self.sources)

    def as_dict(self) -> dict[str, Any]:
        """The report as JSON files hold it."""
        return {
            "kind": "hicache-report",
            "version": 1,
            "sglang": self.sglang,
            "errors": self.count("error"),
            "warnings": self.count("warning"),
            "sources": [source.as_dict() for source in self.sources],
        }
