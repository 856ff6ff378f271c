"""`hicache-config rules`"""

from __future__ import annotations

import json

import click


@click.command("rules", short_help="Every rule, one a line.")
@click.option("--format", "output", type=click.Choice(["text", "json"]), default="text", show_default=True)
def command(output: str) -> None:
    """List every rule with its severity, the releases it holds for and its name."""
    from ..reference.pages import rule_line, rule_record
    from ..rules.registry import all_rules

    if output == "json":
        click.echo(json.dumps([rule_record(rule) for rule in all_rules()], indent=1, ensure_ascii=False))
        return
    for rule in all_rules():
        click.echo(rule_line(rule))
