"""A report as GitHub annotations: workflow commands on standard output. Must not import anything above this floor."""

from __future__ import annotations

from .report import Placed, Report, SourceReport

_COMMANDS = {"error": "error", "warning": "warning", "note": "notice"}


def github(report: Report) -> str:
    """One line a finding. GitHub shows an end column only where start and end are on one line."""
    lines = [_line(placed, source) for source in report.sources for placed in source.findings]
    return "".join(f"{line}\n" for line in lines)


def _line(placed: Placed, source: SourceReport) -> str:
    finding, place = placed.finding, placed.place
    properties = {"file": placed.file(source.source), "title": f"{finding.code} {finding.name}"}
    if place is not None:
        properties |= {"line": str(place.line), "endLine": str(place.end_line), "col": str(place.column)}
        if place.line == place.end_line:
            properties["endColumn"] = str(place.end_column)
    written = ",".join(f"{name}={_property(value)}" for name, value in properties.items())
    text = f"{finding.message}. {finding.help}" if finding.help else finding.message
    return f"::{_COMMANDS[finding.severity]} {written}::{_data(text)}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
