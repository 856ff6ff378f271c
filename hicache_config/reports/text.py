"""What `validate` found, for people: the source line with a caret, what was asked and what it gets, what to write.

Must not import anything above this floor.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator

from .report import Placed, Report
from .screen import Line, plain, render, wants_color

STYLES = {"error": "bold red", "warning": "bold yellow", "note": "bold cyan"}
#: The widest piece of a source line that is shown: with the line's number, a terminal of 80 columns holds it.
_WIDTH = 72


def report_text(report: Report, *, quiet: bool = False, color: bool = True) -> str:
    """The report as text. `quiet` leaves out the summary of a clean run."""
    return render(_lines(report, quiet), color=wants_color(color))


def _lines(report: Report, quiet: bool) -> Iterator[Line]:
    for source in report.sources:
        for placed in source.findings:
            yield from finding_lines(placed, source.source, source.text, engine=source.engine)
            yield plain()
    if not quiet or any(source.findings for source in report.sources):
        yield plain(_summary(report))


def _summary(report: Report) -> str:
    engines = sum(not source.is_broken for source in report.sources)
    broken = len(report.sources) - engines
    parts = [_count(report.count("error"), "error"), _count(report.count("warning"), "warning")]
    if report.count("note"):
        parts.append(_count(report.count("note"), "note"))
    checked = f"{_count(engines, 'engine')} checked against SGLang {report.sglang}"
    unread = f"; {_count(broken, 'source')} could not be read" if broken else ""
    return f"{', '.join(parts)}; {checked}{unread}"


def _count(number: int, word: str) -> str:
    return f"{number} {word}" if number == 1 else f"{number} {word}s"


def finding_lines(placed: Placed, source: str, text: str, *, engine: str | None = None) -> Iterator[Line]:
    """One finding: its place, what is wrong, the source line with a caret, what it gets, what to write instead."""
    finding, place = placed.finding, placed.place
    where = f"{placed.file(source)}:{place.line}:{place.column}" if place else source
    named = f" [{engine}]" if engine else ""
    stage = (
        f" (stage {finding.stage})"
        if finding.stage is not None and f"stage {finding.stage}" not in finding.message
        else ""
    )
    yield (
        (f"{where}{named}: ", "bold"),
        (f"{finding.severity} ", STYLES[finding.severity]),
        (f"{finding.code} {finding.name}: ", "bold"),
        (f"{finding.message}{stage}", ""),
    )
    if place is not None:
        yield from _excerpt(placed, text if placed.text is None else placed.text)
    asked, gets = (None if value is None else _value(value) for value in (finding.asked, finding.gets))
    if gets is not None and not (gets in finding.message and (asked or "") in finding.message):
        yield ((f"      {'' if asked is None else f'asked {asked}, '}gets {gets}", "dim"),)
    if finding.help:
        yield (("      = ", "cyan"), (finding.help, ""))


def _value(value: object) -> str:
    return value if isinstance(value, str) else repr(value)


def _excerpt(placed: Placed, text: str) -> Iterator[Line]:
    place = placed.place
    lines = text.split("\n")  # as places count them: no other character ends a line
    if place is None or not 1 <= place.line <= len(lines):
        return
    line = lines[place.line - 1]
    column = place.column - 1
    end = place.end_column - 1 if place.end_line == place.line else len(line)
    start = max(0, min(column - _WIDTH // 2, len(line) - _WIDTH))
    shown = "".join(char if char.isprintable() else " " for char in line[start : start + _WIDTH])
    before, under = _columns(shown[: column - start]), _columns(shown[column - start : end - start])
    if start > 0:
        shown = "…" + shown[1:]
    if start + _WIDTH < len(line):
        shown = shown[:-1] + "…"
    yield ((f"{place.line:>5} | ", "dim"), (shown, ""))
    yield (("      | ", "dim"), (" " * before + "^" * max(1, under), STYLES[placed.finding.severity]))


def _columns(text: str) -> int:
    """Columns of a terminal that a text takes: two for a wide character, none for one that joins the one before."""
    if text.isascii():
        return len(text)
    wide = sum(unicodedata.east_asian_width(char) in ("W", "F") for char in text)
    return len(text) + wide - sum(unicodedata.combining(char) > 0 for char in text)
