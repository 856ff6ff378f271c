"""`hicache-config validate SOURCE...`"""

from __future__ import annotations

from typing import Any

import click

from .options import SourceCommand, documents_of, shared_options, to_options


@click.command("validate", cls=SourceCommand, short_help="Check launch arguments before anything is loaded.")
@click.argument("sources", nargs=-1, metavar="[SOURCE]...")
@click.option(
    "--format",
    "output",
    type=click.Choice(["text", "json", "sarif", "github", "junit"]),
    default="text",
    show_default=True,
)
@shared_options
@click.pass_context
def command(ctx: click.Context, /, sources: tuple[str, ...], output: str, **values: Any) -> None:
    """Check launch arguments: what SGLang would refuse, rewrite, ignore, or find out after minutes of loading.

    SOURCE is a file, a folder, or - for standard input. A launch command may follow after `--`.
    Ends with 0 when nothing is wrong, 1 with findings, 2 when a source can't be parsed.
    """
    from ..app.checking import validate
    from ..reports.printing import print_report

    options = to_options(values)
    report = validate(documents_of(ctx, sources, options), options)
    print_report(report, output, quiet=values["quiet"], color=not values["no_color"], strict=values["strict"])
    ctx.exit(2 if report.is_broken else 1 if report.fails(strict=values["strict"]) else 0)
