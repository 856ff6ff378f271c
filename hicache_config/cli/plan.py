"""`hicache-config plan SOURCE`"""

from __future__ import annotations

from typing import Any

import click

from .options import SourceCommand, documents_of, shared_options, to_options


@click.command("plan", cls=SourceCommand, short_help="Concrete host sizes per pool, stage, rank and node.")
@click.argument("source", required=False)
@click.option("--format", "output", type=click.Choice(["text", "json"]), default="text", show_default=True)
@click.option(
    "--accounting", type=click.Choice(["sglang", "total"]), default="sglang", show_default=True,
    help="sglang: what that release allocates; total: never more than the size on any rank.",
)  # fmt: skip
@click.option("--explain", "explain", is_flag=True, help="Show the arithmetic of every number.")
@shared_options
@click.pass_context
def command(ctx: click.Context, /, source: str | None, output: str, explain: bool, **values: Any) -> None:
    """Say what host memory an engine takes: per pool, pipeline stage, rank and node, and whether it fits.

    SOURCE is a file or - for standard input; a launch command may follow after `--`. The stages come from the model
    (--model, or the arguments' model_path) or from --pools.
    """
    from ..app.planning import plan
    from ..reports.printing import print_plan

    options = to_options(values)
    (document,) = documents_of(ctx, [source] if source else [], options)
    report = plan(document, options)
    print_plan(report, output, explain=explain, quiet=values["quiet"], color=not values["no_color"])
    ctx.exit(2 if document.is_broken else 1 if report.fails(strict=values["strict"]) else 0)
