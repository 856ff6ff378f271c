"""`hicache-config validate SOURCE...`"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from .options import SourceCommand, documents_of, shared_options, to_options
from .progress import progress_bar

if TYPE_CHECKING:
    from ..app.options import Options
    from ..sources.document import Document


@click.command("validate", cls=SourceCommand, short_help="Check launch arguments before anything is loaded.")
@click.argument("sources", nargs=-1, metavar="[SOURCE]...")
@click.option(
    "--format",
    "output",
    type=click.Choice(["text", "json", "sarif", "github", "junit"]),
    default="text",
    show_default=True,
)
@click.option("--fix", is_flag=True, help="Write the safe fixes into the files; what is left is reported.")
@click.option("--diff", is_flag=True, help="Show the safe fixes as a diff and write nothing.")
@click.option(
    "--skip-unrelated", is_flag=True, help="Leave out named files that have nothing to do with SGLang, as in a folder."
)
@shared_options
@click.pass_context
def command(ctx: click.Context, /, sources: tuple[str, ...], output: str, fix: bool, diff: bool, **values: Any) -> None:
    """Check launch arguments: what SGLang would refuse, rewrite, ignore, or find out after minutes of loading.

    SOURCE is a file, a folder, or - for standard input. A launch command may follow after `--`.
    Ends with 0 when nothing is wrong, 1 with findings, 2 when a source can't be parsed.
    """
    from ..app.checking import validate
    from ..reports.printing import print_report

    options = to_options(values)
    documents = documents_of(ctx, sources, options, skip_unrelated=values["skip_unrelated"])
    if diff:
        ctx.exit(_show(documents, options))
    if fix:
        documents = _write(documents, options)
    with progress_bar(len(documents)) as progress:
        report = validate(documents, options, progress=progress)
    print_report(report, output, quiet=values["quiet"], color=not values["no_color"], strict=values["strict"])
    ctx.exit(2 if report.is_broken else 1 if report.fails(strict=values["strict"]) else 0)


def _show(documents: list[Document], options: Options) -> int:
    """Print the safe fixes as a diff; 1 when there are any."""
    from ..app.fixing import fix

    found = [fix(document, options) for document in documents if document.engines]
    for fixed in found:
        click.echo(fixed.diff(), nl=False)
    return 1 if any(fixed.is_changed for fixed in found) else 0


def _write(documents: list[Document], options: Options) -> list[Document]:
    """Write the safe fixes; the documents as they are then."""
    from ..app.fixing import fix, fixable, write
    from ..sources import read

    after = {document.source: document for document in documents}
    for document in fixable(documents):
        fixed = fix(document, options)
        if not fixed.is_changed:
            continue
        try:
            write(fixed)
        except (OSError, ValueError) as error:
            click.echo(f"{document.source}: not fixed: {error}", err=True)
            continue
        names = ", ".join(dict.fromkeys(finding.code for finding in fixed.fixed))
        click.echo(f"{document.source}: fixed {names}", err=True)
        after[document.source] = read(document.source, form=document.format, release=options.release().name)
    return list(after.values())
