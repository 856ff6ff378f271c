"""Reports to standard output, in the format that was asked for. Must not import anything above this floor."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

from .planned import PlanReport
from .report import Report

Writer = Callable[[Report], str]


def to_json(value: Any) -> str:
    """A report as JSON text; the same for the same report, byte for byte."""
    return json.dumps(value, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def print_report(report: Report, form: str, *, quiet: bool = False, color: bool = True) -> None:
    """Print what `validate` found."""
    if form == "json":
        sys.stdout.write(to_json(report.as_dict()))
        return
    from .text import report_text

    sys.stdout.write(report_text(report, quiet=quiet, color=color))


def print_plan(
    report: PlanReport, form: str, *, explain: bool = False, quiet: bool = False, color: bool = True
) -> None:
    """Print a plan."""
    if form == "json":
        sys.stdout.write(to_json(report.as_dict()))
        return
    from .plan_text import plan_text

    sys.stdout.write(plan_text(report, explain=explain, quiet=quiet, color=color))
