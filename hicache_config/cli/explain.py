"""`hicache-config explain CODE | ARGUMENT`"""

from __future__ import annotations

import textwrap

import click

_WIDTH = 80


# What looks like an option is the argument to explain: --hicache-size.
@click.command(
    "explain", short_help="What a rule or an argument means.", context_settings={"ignore_unknown_options": True}
)
@click.argument("subject", metavar="CODE|ARGUMENT")
@click.option("--sglang", metavar="VERSION", help="SGLang release. [default: the installed one, else the newest known]")
def command(subject: str, sglang: str | None) -> None:
    """Explain a rule (HC203, size-too-small) or an argument (hicache_size, --hicache-size), with examples."""
    from ..app.options import Options, OptionsError
    from ..reference.pages import explain

    try:
        release = Options(sglang=sglang).release()
    except OptionsError as error:
        raise click.UsageError(str(error)) from None
    page, close = explain(subject, release.name)
    if page is None:
        meant = f" Did you mean {close}?" if close else ""
        raise click.UsageError(f"{subject!r} is neither a rule nor an argument of SGLang {release.name}.{meant}")
    click.echo(_wrapped(page))


def _wrapped(page: str) -> str:
    """A page of Markdown with its paragraphs and list entries broken for a terminal of 80 columns; code stays."""
    lines: list[str] = []
    in_code = False
    for line in page.splitlines():
        in_code ^= line.startswith("```")
        if in_code or len(line) <= _WIDTH or line.startswith(("#", "|")):
            lines.append(line)
            continue
        hang = "  " if line.startswith("- ") else ""
        lines += textwrap.wrap(line, _WIDTH, subsequent_indent=hang, break_long_words=False, break_on_hyphens=False)
    return "\n".join(lines)
