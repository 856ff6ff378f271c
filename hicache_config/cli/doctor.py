"""`hicache-config doctor`"""

from __future__ import annotations

import json
import os
import textwrap

import click

_MARKS = {"ok": "ok     ", "warning": "warning", "failed": "FAILED ", "unknown": "unknown"}


@click.command("doctor", short_help="What this machine and its SGLang would do.")
@click.option("--format", "output", type=click.Choice(["text", "json"]), default="text", show_default=True)
@click.option("--ranks", type=click.IntRange(1), default=1, show_default=True, help="Ranks that share this machine.")
def command(output: str, ranks: int) -> None:
    """Look at this machine: its SGLang, the plugin and its hooks, host and cgroup memory, huge pages, pinning limits.

    Ends with 1 when something would fail. It reads the environment of this process, as an engine started here would.
    """
    from ..doctor import examine

    report = examine(ranks=ranks, environment=os.environ)
    if output == "json":
        click.echo(json.dumps(report.as_dict(), indent=1, ensure_ascii=False))
    else:
        for check in report.checks:
            click.echo(_wrapped(f"{_MARKS[check.state]}  {check.name}: {check.text}", "         "))
            if check.help and check.state != "ok":
                click.echo(_wrapped(f"         = {check.help}", "           "))
    raise click.exceptions.Exit(1 if report.failed else 0)


def _wrapped(line: str, hang: str) -> str:
    """A line broken for a terminal of 80 columns, what follows below its text."""
    return textwrap.fill(line, 80, subsequent_indent=hang, break_long_words=False, break_on_hyphens=False)
