"""`hicache-config plan SOURCE`"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from .options import SourceCommand, documents_of, shared_options, to_options

if TYPE_CHECKING:
    from ..sources.document import Document


@click.command("plan", cls=SourceCommand, short_help="Concrete host sizes per pool, stage, rank and node.")
@click.argument("source", required=False)
@click.option("--format", "output", type=click.Choice(["text", "json"]), default="text", show_default=True)
@click.option(
    "--accounting", type=click.Choice(["sglang", "total"]), default="sglang", show_default=True,
    help="sglang: what that release allocates; total: never more than the size on any rank.",
)  # fmt: skip
@click.option("--explain", "explain", is_flag=True, help="Show the arithmetic of every number.")
@click.option("--engine", metavar="NAME", help="Which engine, where the source holds several.")
@shared_options
@click.pass_context
def command(
    ctx: click.Context, /, source: str | None, output: str, explain: bool, engine: str | None, **values: Any
) -> None:
    """Say what host memory an engine takes: per pool, pipeline stage, rank and node, and whether it fits.

    SOURCE is a file or - for standard input; a launch command may follow after `--`. The stages come from the model
    (--model, or the arguments' model_path) or from --pools.
    """
    from ..app.planning import plan
    from ..reports.printing import print_plan

    options = to_options(values)
    documents = documents_of(ctx, [source] if source else [], options)
    if len(documents) > 1:
        raise click.UsageError(f"{source} is a folder with {len(documents)} sources; a plan is made of one")
    (document,) = documents
    report = plan(document, options, engine=_engine(document, engine))
    strict = values["strict"]
    print_plan(report, output, explain=explain, quiet=values["quiet"], color=not values["no_color"], strict=strict)
    ctx.exit(2 if document.is_broken else 1 if report.fails(strict=strict) else 0)


def _engine(document: Document, name: str | None) -> int:
    """The number of the engine that is meant; several without a name are wrong usage."""
    names = [engine.name for engine in document.engines]
    if name is None and len(names) < 2:
        return 0
    listed = ", ".join(str(each) for each in names) or "none"
    if name is None:
        raise click.UsageError(f"{document.source} holds {len(names)} engines; choose one with --engine: {listed}")
    if name not in names:
        raise click.UsageError(f"{document.source} has no engine {name!r}; it holds: {listed}")
    return names.index(name)
