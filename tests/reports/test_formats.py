"""SARIF, GitHub annotations and JUnit over hostile findings: what they must escape, and the order they keep."""

from __future__ import annotations

import json
import re
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sarif_pydantic import Sarif

from hicache_config.arguments import Place
from hicache_config.core.findings import Finding
from hicache_config.reports.github import github
from hicache_config.reports.junit import junit
from hicache_config.reports.printing import to_json
from hicache_config.reports.report import Placed, Report, SourceReport, in_order
from hicache_config.reports.sarif import sarif, uri_of
from hicache_config.reports.text import report_text

TEXT = st.text(max_size=30)
places = st.builds(
    lambda line, column, lines, columns: Place(line, column, line + lines, column + columns),
    st.integers(1, 5), st.integers(1, 200), st.integers(0, 2), st.integers(1, 80),
)  # fmt: skip
findings = st.builds(
    lambda code, severity, message, help_, asked, gets: Finding(code, "a-rule", severity, message, help_, asked=asked, gets=gets),
    st.sampled_from(["HC001", "HC120", "HC301"]), st.sampled_from(["error", "warning", "note"]), TEXT, TEXT,
    st.none() | st.integers() | TEXT, st.none() | st.booleans(),
)  # fmt: skip
reports = st.builds(
    lambda name, engine, found, text: Report("0.5.23", (SourceReport(name, "json", engine, findings=in_order(found), text=text),)),
    TEXT, st.none() | TEXT, st.lists(st.builds(Placed, findings, st.none() | places), max_size=5), st.text(max_size=120),
)  # fmt: skip


@given(reports)
def test_every_format_holds_every_finding(report: Report) -> None:
    count = len(report.sources[0].findings)
    (run,) = sarif(report)["runs"]
    assert len(run["results"]) == count
    # An independent model of the published 2.1.0 schema.
    Sarif.model_validate(json.loads(to_json(sarif(report))))
    assert to_json(sarif(report))
    lines = github(report).split("\n")[:-1]
    assert len(lines) == count
    assert all(re.match(r"::(error|warning|notice) file=", line) for line in lines)
    root = ElementTree.fromstring(junit(report))
    assert len(root.findall("./testsuite/testcase")) == max(1, count)
    assert to_json(report.as_dict())
    assert report_text(report, color=False).count("HC") >= count


def test_github_escapes_what_would_end_a_command() -> None:
    finding = Finding("HC120", "a-rule", "note", "50% off\nnext", "line,two: three")
    place = Place(1, 2, 1, 5)
    source = SourceReport("a,b:c.json", "json", findings=(Placed(finding, place),))
    assert github(Report("0.5.23", (source,))) == (
        "::notice file=a%2Cb%3Ac.json,title=HC120 a-rule,line=1,endLine=1,col=2,endColumn=5::50%25 off%0Anext. line,two: three\n"
    )


def test_github_gives_no_end_column_over_several_lines() -> None:
    source = SourceReport("a", "json", findings=(Placed(Finding("HC120", "a", "error", "m"), Place(1, 2, 3, 4)),))
    assert "endColumn" not in github(Report("0.5.23", (source,)))


@pytest.mark.parametrize(
    ("source", "uri"),
    [
        ("a b/ü.json", "a%20b/%C3%BC.json"),
        ("./x.json", "x.json"),
        ("x#y?.json", "x%23y%3F.json"),
        ("c:\\d\\e", "c:/d/e"),
    ],
)
def test_sarif_names_sources_as_uris(source: str, uri: str) -> None:
    assert uri_of(source) == uri


def test_sarif_has_what_its_schema_requires() -> None:
    finding = Finding("HC120", "both-size-and-ratio", "warning", "m", "h")
    log = sarif(Report("0.5.23", (SourceReport("a.json", "json", findings=(Placed(finding, Place(1, 2, 3, 4)),)),)))
    assert log["version"] == "2.1.0"
    (run,) = log["runs"]
    (rule,) = run["tool"]["driver"]["rules"]
    assert (rule["id"], rule["name"], rule["defaultConfiguration"]["level"]) == ("HC120", "BothSizeAndRatio", "warning")
    (result,) = run["results"]
    assert run["tool"]["driver"]["rules"][result["ruleIndex"]]["id"] == result["ruleId"]
    assert result["locations"][0]["physicalLocation"]["region"] == {
        "startLine": 1,
        "startColumn": 2,
        "endLine": 3,
        "endColumn": 4,
    }


def test_junit_counts_failures_by_the_failing_level() -> None:
    found = tuple(Placed(Finding("HC120", "a", severity, "m")) for severity in ("error", "warning"))  # type: ignore[arg-type]
    report = Report("0.5.23", (SourceReport("a", "json", findings=found), SourceReport("b", "json")))
    assert ElementTree.fromstring(junit(report)).attrib == {
        "name": "hicache-config",
        "tests": "3",
        "failures": "1",
        "errors": "0",
    }
    assert ElementTree.fromstring(junit(report, strict=True)).get("failures") == "2"


def test_findings_come_by_line_column_and_code() -> None:
    def at(code: str, line: int, column: int) -> Placed:
        return Placed(Finding(code, "a", "error", "m"), Place(line, column, line, column + 1))

    whole = Placed(Finding("HC999", "a", "error", "m"))
    shuffled = [at("HC2", 2, 1), at("HC9", 1, 5), at("HC1", 2, 1), at("HC3", 1, 2), whole]
    assert [placed.finding.code for placed in in_order(shuffled)] == ["HC999", "HC3", "HC9", "HC1", "HC2"]
