"""`hicache-config docs OUT`"""

from __future__ import annotations

from pathlib import Path

import click


def _named(_ctx: click.Context, _param: click.Parameter, value: str) -> Path:
    if not value.strip():
        raise click.BadParameter("it is empty; write . for this folder")
    return Path(value)


@click.command("docs", short_help="Write the reference from the schemas and the rules.")
@click.argument("out", type=click.Path(file_okay=False), callback=_named)
@click.option("--check", is_flag=True, help="Write nothing; fail when a page there is stale.")
def command(out: Path, check: bool) -> None:
    """Write the reference of arguments, rules and families as Markdown into the folder OUT.

    A page of a rule that there is no more (rules/HC999.md) is taken out; all other files of the folder are left alone.
    """
    from ..reference.site import pages, stale, write

    try:
        written = [] if check else write(pages(), out)
        found = stale(pages(), out) if check else []
    except OSError as error:
        what = "read" if check else "written"
        raise click.UsageError(f"{error.filename or out} can't be {what}: {error.strerror}") from None
    for path in written:
        click.echo(path, err=True)
    for path in found:
        click.echo(f"{path} is stale: run `hicache-config docs {out}`", err=True)
    if found:
        raise click.exceptions.Exit(1)
