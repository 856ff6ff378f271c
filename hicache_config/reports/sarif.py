"""A report as SARIF 2.1.0, for code scanning. Plain mappings; must not import anything above this floor."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from ..rules.registry import Rule, all_rules
from .report import Placed, Report, SourceReport

_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_LEVELS = {"error": "error", "warning": "warning", "note": "note"}


def sarif(report: Report) -> dict[str, Any]:
    """The report as a SARIF log with one run. Columns count characters; sources that are no files have no region."""
    used = sorted({placed.finding.code for source in report.sources for placed in source.findings})
    index = {code: number for number, code in enumerate(used)}
    rules = {rule.code: rule for rule in all_rules()}
    return {
        "$schema": _SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {
                    "driver": {
                        "name": "hicache-config",
                        "semanticVersion": _version(),
                        "rules": [_descriptor(code, rules.get(code)) for code in used],
                    }
                },
                "columnKind": "unicodeCodePoints",
                "properties": {"sglang": report.sglang},
                "results": [_result(placed, source, index) for source in report.sources for placed in source.findings],
            }
        ],
    }


def _version() -> str:
    from importlib.metadata import version

    return version("hicache-config")


def _descriptor(code: str, rule: Rule | None) -> dict[str, Any]:
    described: dict[str, Any] = {"id": code}
    if rule is not None:
        described |= {
            "name": "".join(part.capitalize() for part in rule.name.split("-")),
            "shortDescription": {"text": rule.name.replace("-", " ")},
            "fullDescription": {"text": rule.why},
            "defaultConfiguration": {"level": _LEVELS[rule.severity]},
        }
    return described


def _result(placed: Placed, source: SourceReport, index: Mapping[str, int]) -> dict[str, Any]:
    finding, place = placed.finding, placed.place
    text = f"{finding.message}. {finding.help}" if finding.help else finding.message
    location: dict[str, Any] = {"artifactLocation": {"uri": uri_of(placed.file(source.source))}}
    if place is not None:
        location["region"] = {
            "startLine": place.line,
            "startColumn": place.column,
            "endLine": place.end_line,
            "endColumn": place.end_column,
        }
    return {
        "ruleId": finding.code,
        "ruleIndex": index[finding.code],
        "level": _LEVELS[finding.severity],
        "message": {"text": text},
        "locations": [{"physicalLocation": location}],
    }


def uri_of(source: str) -> str:
    """A source's name as a relative or absolute URI reference."""
    name = source.replace("\\", "/").removeprefix("./")
    return quote(name.encode(errors="surrogateescape"), safe="/:@!$&'()*+,;=~-._")
