"""Reports to standard output, in the format that was asked for. Must not import anything above this floor."""

from __future__ import annotations

import codecs
import json
import sys
from typing import Any

from .planned import PlanReport
from .report import Report


def to_json(value: Any) -> str:
    """A report as JSON text; the same for the same report, byte for byte.

    JSON is UTF-8: where standard output is not, or a file's name is not, the text is ASCII with escapes.
    """
    text = json.dumps(value, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
    return text if _is_utf8(text) else json.dumps(value, indent=1, allow_nan=False) + "\n"


def _is_utf8(text: str) -> bool:
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return codecs.lookup(encoding).name == "utf-8"


def print_report(report: Report, form: str, *, quiet: bool = False, color: bool = True, strict: bool = False) -> None:
    """Print what `validate` found, as text, json, sarif, github or junit; `quiet` leaves out what does not fail."""
    if quiet:
        report = report.only_failing(strict=strict)
    sys.stdout.write(_written(report, form, quiet=quiet, color=color, strict=strict))


def _written(report: Report, form: str, *, quiet: bool, color: bool, strict: bool) -> str:
    if form == "json":
        return to_json(report.as_dict())
    if form == "sarif":
        from .sarif import sarif

        return to_json(sarif(report))
    if form == "github":
        from .github import github

        return github(report)
    if form == "junit":
        from .junit import junit

        text = junit(report, strict=strict)
        return text if _is_utf8(text) else text.encode("ascii", "xmlcharrefreplace").decode()
    from .text import report_text

    return report_text(report, quiet=quiet, color=color)


def print_plan(
    report: PlanReport,
    form: str,
    *,
    explain: bool = False,
    quiet: bool = False,
    color: bool = True,
    strict: bool = False,
) -> None:
    """Print a plan, as text or json; `quiet` leaves out findings that do not fail."""
    if quiet:
        report = report.only_failing(strict=strict)
    if form == "json":
        sys.stdout.write(to_json(report.as_dict()))
        return
    from .plan_text import plan_text

    sys.stdout.write(plan_text(report, explain=explain, color=color))
