"""`hicache-config schema NAME`"""

from __future__ import annotations

from typing import IO

import click


@click.command("schema", short_help="Print a JSON Schema, or check a file against it.")
@click.argument("name", type=click.Choice(["args", "pools", "plan", "report"]))
@click.argument("file", required=False, type=click.File("rb"))
@click.option(
    "--sglang", metavar="VERSION", help="Of which SGLang release the arguments are. [default: the newest known]"
)
def command(name: str, file: IO[bytes] | None, sglang: str | None) -> None:
    """Print the JSON Schema (2020-12) of a file shape, or check that FILE has that shape (- is standard input).

    A schema knows shapes only: `validate` also knows what SGLang makes of them.
    """
    from ..core.releases import NEWEST, Release, ReleaseError
    from ..reference.schemas import breaches, schema_text

    try:
        release = Release.of(sglang or NEWEST)
    except ReleaseError as error:
        raise click.UsageError(f"--sglang: {error}") from None
    if file is None:
        click.echo(schema_text(name, release.name), nl=False)
        return
    source = getattr(file, "name", "-")
    try:
        found = breaches(file.read(), name, release.name)
    except ValueError as error:
        raise click.UsageError(f"{source} is not JSON: {error}") from None
    for breach in found:
        click.echo(f"{source}: {breach}")
    raise click.exceptions.Exit(1 if found else 0)
