"""`hicache-config docs OUT`"""

from __future__ import annotations

from pathlib import Path

import click


@click.command("docs", short_help="Write the reference from the schemas and the rules.")
@click.argument("out", type=click.Path(file_okay=False, path_type=Path))
@click.option("--check", is_flag=True, help="Write nothing; fail when a page there is stale.")
def command(out: Path, check: bool) -> None:
    """Write the reference of arguments, rules and families as Markdown into the folder OUT."""
    from ..reference.site import pages, stale, write

    if not check:
        for path in write(pages(), out):
            click.echo(path, err=True)
        return
    found = stale(pages(), out)
    for path in found:
        click.echo(f"{path} is stale: run `hicache-config docs {out}`", err=True)
    if found:
        raise click.exceptions.Exit(1)
