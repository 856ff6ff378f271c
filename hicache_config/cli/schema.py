"""`hicache-config schema NAME`"""

from __future__ import annotations

import click


@click.command("schema", short_help="Print a JSON Schema.")
@click.argument("name", type=click.Choice(["args", "pools", "plan", "report"]))
@click.option(
    "--sglang", metavar="VERSION", help="Of which SGLang release the arguments are. [default: the newest known]"
)
def command(name: str, sglang: str | None) -> None:
    """Print the JSON Schema (2020-12) of a file shape."""
    from ..core.releases import NEWEST, Release, ReleaseError
    from ..reference.schemas import schema_text

    try:
        release = Release.of(sglang or NEWEST)
    except ReleaseError as error:
        raise click.UsageError(f"--sglang: {error}") from None
    click.echo(schema_text(name, release.name), nl=False)
