"""Options that several commands share, and the sources: files, folders, `-`, or a command line after `--`."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from ..app.options import Options
    from ..sources.document import Document

Command = TypeVar("Command", bound=Callable[..., Any])
FORMATS = (
    "json", "yaml", "toml", "command", "shell", "dockerfile", "kubernetes", "compose", "systemd", "python", "markdown",
    "log", "server-info",
)  # fmt: skip
_LAUNCH = "hicache_config.launch"
_COUNT = re.compile(r"[0-9]{1,19}")
#: No machine has less; a number below was meant in a larger unit.
_LEAST_MEMORY = 10**6
_CODE = re.compile(r"HC[0-9]{0,3}")


class SourceCommand(click.Command):
    """A command whose words after `--` are a launch command and not sources."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if "--" in args:
            cut = args.index("--")
            ctx.meta[_LAUNCH] = args[cut + 1 :]
            args = args[:cut]
        return super().parse_args(ctx, args)

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        return [*super().collect_usage_pieces(ctx), "| -- LAUNCH COMMAND"]


def launch_words(ctx: click.Context) -> list[str] | None:
    """The words after `--`, or None where there was no `--`."""
    words: list[str] | None = ctx.meta.get(_LAUNCH)
    return words


def _named_numbers(_ctx: click.Context, _param: click.Parameter, values: Sequence[str]) -> dict[str, int]:
    numbers: dict[str, int] = {}
    for pair in (piece.strip() for value in values for piece in value.split(",") if piece.strip()):
        name, sign, text = pair.partition("=")
        if not sign or not name or not _COUNT.fullmatch(text) or not 0 < int(text) < 2**63:
            raise click.BadParameter(f"{pair!r} is not of the form kv=2000000 (a pool and its device slots per rank)")
        numbers[name] = int(text)
    return numbers


def _environment(_ctx: click.Context, _param: click.Parameter, values: Sequence[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for pair in values:
        name, sign, text = pair.partition("=")
        if not sign or not name:
            raise click.BadParameter(f"{pair!r} is not of the form NAME=VALUE")
        found[name] = text
    return found


def _amount(_ctx: click.Context, _param: click.Parameter, value: str | None) -> int | None:
    from ..core.units import AmountError, parse_bytes

    try:
        amount = None if value is None else parse_bytes(value)
    except AmountError as error:
        raise click.BadParameter(str(error)) from None
    if amount is not None and 0 < amount < _LEAST_MEMORY:
        raise click.BadParameter(f"{value!r} is {amount:,} bytes; write the unit, such as 1500GB or 1400GiB")
    return amount


def _gpu(_ctx: click.Context, _param: click.Parameter, value: str) -> str:
    from ..geometry.gpu import Gpu
    from ..geometry.model import RefusedError

    try:
        return Gpu.of(value).name
    except RefusedError as refusal:
        raise click.BadParameter(f"{value!r} is no GPU that is known. {refusal.finding.help}") from None


def _codes(_ctx: click.Context, _param: click.Parameter, values: Sequence[str]) -> tuple[str, ...]:
    codes = tuple(code.strip() for value in values for code in value.split(",") if code.strip())
    if not codes:
        return ()
    from ..rules.registry import all_rules

    known = [rule.code for rule in all_rules()]
    for code in codes:
        if not _CODE.fullmatch(code.upper()) or not any(each.startswith(code.upper()) for each in known):
            raise click.BadParameter(f"{code!r} is no code of a rule; write one such as HC120, or HC1 for all of 1xx")
    return tuple(code.upper() for code in codes)


_SHARED = (
    click.option(
        "--sglang",
        metavar="VERSION",
        help="SGLang release. [default: the installed one, else the newest known]",
    ),
    click.option("--compare", metavar="VERSION", help="Also say what changes with this other SGLang release."),
    click.option(
        "--model",
        metavar="PATH|NAME",
        help="A config.json, its folder, or a catalogue name. [default: the arguments' model_path]",
    ),
    click.option("--pools", metavar="FILE", help="Device pools of any engine, instead of a model."),
    click.option(
        "--device-slots",
        metavar="kv=N,swa=N",
        multiple=True,
        callback=_named_numbers,
        help="Device slots per rank, by pool.",
    ),
    click.option(
        "--gpu",
        metavar="sm90|sm100|…",
        default="sm90",
        show_default=True,
        callback=_gpu,
        help="GPU that decides SGLang's defaults.",
    ),
    click.option(
        "--host-memory",
        metavar="1500GB",
        callback=_amount,
        help="Memory of a node that is available when host pools are built.",
    ),
    click.option(
        "--ranks-per-node",
        metavar="N",
        type=click.IntRange(1),
        help="All ranks on a node. [default: what the arguments say]",
    ),
    click.option(
        "--env", metavar="NAME=VALUE", multiple=True, callback=_environment, help="A variable of SGLang's environment."
    ),
    click.option("--from", "form", type=click.Choice(FORMATS), help="Format of the source. [default: found out]"),
    click.option(
        "--select",
        metavar="CODES",
        multiple=True,
        callback=_codes,
        help="Only findings of these codes (HC1 stands for all of 1xx).",
    ),
    click.option("--ignore", metavar="CODES", multiple=True, callback=_codes, help="No findings of these codes."),
    click.option("--strict", is_flag=True, help="Warnings count as failures."),
    click.option(
        "--quiet", "-q", is_flag=True, help="Print only findings that fail: errors, with --strict warnings too."
    ),
    click.option("--no-color", is_flag=True, help="No colour (NO_COLOR does the same)."),
)


def shared_options(command: Command) -> Command:
    """The options of `validate` and `plan` that describe the engine, the model and the machine."""
    for option in reversed(_SHARED):
        command = option(command)
    return command


def to_options(values: Mapping[str, Any]) -> Options:
    """The shared options as app takes them; a release that can't be used is wrong usage."""
    from ..app.options import Options, OptionsError

    options = Options(
        sglang=values["sglang"],
        compare=values["compare"],
        model=values["model"],
        pools=values["pools"],
        device_slots=values["device_slots"],
        gpu=values["gpu"],
        accounting=values.get("accounting", "sglang"),
        host_memory_bytes=values["host_memory"],
        ranks_per_node=values["ranks_per_node"],
        environment=values["env"],
        form=values["form"],
        select=values["select"],
        ignore=values["ignore"],
    )
    try:
        options.release()
    except OptionsError as error:
        raise click.UsageError(str(error)) from None
    return options


def documents_of(
    ctx: click.Context, sources: Sequence[str], options: Options, *, skip_unrelated: bool = False
) -> list[Document]:
    """Read the sources, or the launch command after `--`."""
    from ..sources import read_all, read_command

    words = launch_words(ctx)
    if words is not None and sources:
        raise click.UsageError("give either sources or a launch command after --, not both")
    if words is not None:
        if not words:
            raise click.UsageError("nothing after --; write the launch command there, such as -- sglang serve --tp 8")
        return [read_command(words, release=options.release().name)]
    if not sources:
        raise click.UsageError("no source given: name a file, a folder or -, or write a launch command after --")
    release = options.release().name
    return list(read_all(sources, form=options.form, release=release, skip_unrelated=skip_unrelated))
