"""The source line of a finding in the text report: the right line, the caret under the right columns, 80 columns."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hicache_config.arguments import Place
from hicache_config.core.findings import Finding
from hicache_config.reports.report import Placed, Report, SourceReport
from hicache_config.reports.text import report_text


def excerpt(text: str, place: Place) -> tuple[str, str]:
    """The shown line and the line of its caret, without what stands before both."""
    source = SourceReport("a", "json", findings=(Placed(Finding("HC120", "a-rule", "note", "m"), place),), text=text)
    _, shown, caret, *_ = report_text(Report("0.5.23", (source,)), color=False).split("\n")
    assert (shown[5:8], caret[:8]) == (" | ", "      | ")
    return shown[8:], caret[8:]


@pytest.mark.parametrize("separator", "\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029")
def test_only_a_line_end_ends_a_line(separator: str) -> None:
    assert excerpt(f"a{separator}b\nc d", Place(2, 3, 2, 4)) == ("c d", "  ^")


@pytest.mark.parametrize(
    ("line", "place", "caret"),
    [
        ("ab cd", Place(1, 4, 1, 6), "   ^^"),
        ("模型 cd", Place(1, 4, 1, 6), "     ^^"),
        ("模型 cd", Place(1, 1, 1, 3), "^^^^"),
        ("e\u0301 cd", Place(1, 4, 1, 6), "  ^^"),
        ("\tcd", Place(1, 2, 1, 4), " ^^"),
        ("ab", Place(1, 3, 1, 3), "  ^"),
        ("ab", Place(1, 1, 2, 1), "^^"),
    ],
)
def test_the_caret_stands_under_what_is_meant(line: str, place: Place, caret: str) -> None:
    assert excerpt(line, place)[1] == caret


@given(st.text("abc xyz", min_size=1, max_size=400), st.data())
def test_a_long_line_is_cut_around_its_place(line: str, data: st.DataObject) -> None:
    column = data.draw(st.integers(1, len(line)))
    end = data.draw(st.integers(column + 1, len(line) + 1))
    shown, caret = excerpt(line, Place(1, column, 1, end))
    assert len(shown) <= 72
    assert len(caret) <= 72
    under = shown[len(caret) - len(caret.lstrip()) : len(caret)]
    meant = line[column - 1 : end - 1]
    assert meant.startswith(under.strip("…").rstrip()) or under.endswith("…")
    assert (len(line) > 72) == (shown[:1] == "…" or shown[-1:] == "…")


@pytest.mark.parametrize(
    ("message", "asked", "gets", "line"),
    [
        ("page_first becomes page_first_direct", "page_first", "page_first_direct", None),
        ("--pp-size 4 turns the overlap schedule off", False, True, "      asked False, gets True"),
        ("the ratio is taken", None, 2.0, "      gets 2.0"),
        ("ratio 2.0 is taken", None, 2.0, None),
        ("kernel copies can't move it", "kernel", "direct", "      asked kernel, gets direct"),
    ],
)
def test_what_a_message_says_is_not_said_again(message: str, asked: object, gets: object, line: str | None) -> None:
    finding = Finding("HC120", "a-rule", "note", message, asked=asked, gets=gets)
    source = SourceReport("a", "json", findings=(Placed(finding),))
    lines = report_text(Report("0.5.23", (source,)), color=False).split("\n")
    assert [each for each in lines if "gets" in each] == ([] if line is None else [line])
