"""Findings that a person has answered in place: a comment in the source with the code and the reason.

    hicache-ratio: 2.0  # hicache: ignore HC120 the ratio is for the staging cluster
    # hicache: ignore HC203 kernel copies come with the next image      (alone on a line: for the line below)
    # hicache: ignore-file HC5 this manifest is a template              (anywhere: for the whole source)

A prefix such as HC5 stands for all of its hundred. JSON has no comments; there `--ignore` serves.
Must not import anything above this floor.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from ..arguments import Place
from ..core.findings import Finding
from ..reports.report import Placed
from ..sources.document import Document

_WITH_COMMENTS = frozenset({"yaml", "toml", "shell", "dockerfile", "kubernetes", "compose", "systemd", "python"})
_COMMENT = re.compile(
    r"#[ \t]*hicache:[ \t]*(?P<verb>ignore-file|ignore)\b[ \t]*"
    r"(?P<codes>HC[0-9]{1,3}(?:[ \t]*,[ \t]*HC[0-9]{1,3})*)?[ \t]*(?P<reason>.*)"
)


@dataclass
class Suppression:
    """One comment: the codes it answers, the lines it holds for (None: all), and whether it has answered anything."""

    codes: tuple[str, ...]
    line: int | None
    reason: str
    place: Place
    used: bool = False

    def answers(self, placed: Placed) -> bool:
        """Whether the comment speaks of this finding. Errors of reading can't be answered away."""
        if not any(placed.finding.code.startswith(code) for code in self.codes):
            return False
        if self.place.file != (placed.place.file if placed.place is not None else ""):
            return False
        return self.line is None or (
            placed.place is not None and placed.place.line <= self.line <= max(placed.place.line, placed.place.end_line)
        )


@dataclass
class Suppressions:
    """All such comments of a document."""

    all: list[Suppression] = field(default_factory=list)

    @classmethod
    def of(cls, document: Document) -> Suppressions:
        """The comments of a document whose format has comments."""
        own = {"": document.text} if document.format in _WITH_COMMENTS else {}
        texts = {**own, **document.included}
        return cls([found for file, text in texts.items() for found in _comments(text, file)])

    def apply(self, findings: Iterable[Placed]) -> list[Placed]:
        """The findings that no comment answers."""
        kept = []
        for placed in findings:
            answering = [each for each in self.all if each.answers(placed)]
            for each in answering:
                each.used = True
            if not answering:
                kept.append(placed)
        return kept

    def complaints(self) -> list[Placed]:
        """Comments that answer nothing, that name no code, and that give no reason; call it when all is applied.

        Of another file that the source took in nobody complains: it may serve several.
        """
        found = []
        for each in self.all:
            if each.place.file:
                continue
            named = ", ".join(each.codes)
            if not each.codes:
                text, help_ = "the comment names no code", "Write hicache: ignore HC120 and the reason."
                found.append(Placed(Finding("HC021", "unused-suppression", "warning", text, help_), each.place))
            elif not each.used:
                text = f"nothing is suppressed here: {named} is not found"
                found.append(
                    Placed(Finding("HC021", "unused-suppression", "warning", text, "Take the comment out."), each.place)
                )
            if each.codes and not each.reason:
                text = f"{named} is suppressed without a reason"
                help_ = f"Write the reason behind the code: hicache: ignore {named} because …"
                found.append(Placed(Finding("HC022", "suppression-without-reason", "warning", text, help_), each.place))
        return found


def _comments(text: str, file: str) -> Iterator[Suppression]:
    if "hicache:" not in text:
        return
    lines = text.split("\n")
    for number, line in enumerate(lines, 1):
        match = _COMMENT.search(line)
        if match is None:
            continue
        place = Place(number, match.start() + 1, number, len(line) + 1, file)
        codes = tuple(code.strip() for code in (match["codes"] or "").split(",") if code.strip())
        target = None if match["verb"] == "ignore-file" else _target(lines, number, match.start())
        yield Suppression(codes, target, match["reason"].strip(), place)


def _target(lines: list[str], number: int, column: int) -> int:
    """The line that a comment speaks of: its own, or where it stands alone the next one that is no comment."""
    if lines[number - 1][:column].strip():
        return number
    for below in range(number + 1, len(lines) + 1):
        text = lines[below - 1].strip()
        if text and not text.startswith("#"):
            return below
    return number
