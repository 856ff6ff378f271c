"""A report as JUnit XML: a suite an engine, a test case a finding. Must not import anything above this floor."""

from __future__ import annotations

from xml.etree import ElementTree

from ..core.findings import RANK
from .report import Placed, Report, SourceReport


def junit(report: Report, *, strict: bool = False) -> str:
    """The report as JUnit XML; findings at or above the failing level are failures, others are output of passed cases.

    A source without findings is one passed case, so that it is seen to have been checked.
    """
    level = RANK["warning" if strict else "error"]
    root = ElementTree.Element("testsuites", name="hicache-config")
    for source in report.sources:
        root.append(_suite(source, level))
    for name in ("tests", "failures", "errors"):
        root.set(name, str(sum(int(suite.get(name, "0")) for suite in root)))
    ElementTree.indent(root, " ")
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(root, encoding="unicode") + "\n"


def _suite(source: SourceReport, level: int) -> ElementTree.Element:
    name = source.source if source.engine is None else f"{source.source} [{source.engine}]"
    suite = ElementTree.Element("testsuite", name=_clean(name))
    failures = 0
    for placed in source.findings:
        case = ElementTree.SubElement(suite, "testcase", classname=_clean(name), name=_title(placed))
        if placed.place is not None:
            case.set("line", str(placed.place.line))
        text = _clean(f"{placed.finding.message}\n{placed.finding.help}".strip())
        if RANK[placed.finding.severity] >= level:
            failures += 1
            failure = ElementTree.SubElement(case, "failure", type=placed.finding.code)
            failure.set("message", _clean(placed.finding.message))
            failure.text = text
        else:
            ElementTree.SubElement(case, "system-out").text = text
    if not source.findings:
        ElementTree.SubElement(suite, "testcase", classname=_clean(name), name="nothing found")
    suite.set("tests", str(max(1, len(source.findings))))
    suite.set("failures", str(failures))
    suite.set("errors", "0")
    return suite


def _title(placed: Placed) -> str:
    place = placed.place
    where = f" line {place.line} column {place.column}" if place else ""
    where += f" of {place.file}" if place and place.file else ""
    return _clean(f"{placed.finding.code} {placed.finding.name}{where}")


def _clean(text: str) -> str:
    """The text without characters that XML 1.0 can't hold."""
    return "".join(
        char
        if char in "\t\n\r" or " " <= char <= "\ud7ff" or "\ue000" <= char <= "\ufffd" or char >= "\U00010000"
        else "\ufffd"
        for char in text
    )
