"""The group of commands, and the exit status: 0 nothing, 1 findings, 2 wrong usage or nothing parsed, 3 our fault."""

from __future__ import annotations

import errno
import os
import sys
from importlib import import_module
from typing import NoReturn

import click

#: Commands in the order of the help; each lives in the module of its name and is imported when it is asked for.
COMMANDS = ("validate", "plan", "explain", "rules", "schema", "docs", "doctor")

#: What a full disk says.
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class Commands(click.Group):
    """A group whose commands are imported one by one, when they run or when their help is listed."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = import_module(f".{cmd_name}", __package__).command
        return command


def _version(ctx: click.Context, _param: click.Parameter, value: bool) -> None:
    if value:
        from importlib.metadata import version

        click.echo(f"hicache-config {version('hicache-config')}")
        ctx.exit()


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.option(
    "--version", is_flag=True, is_eager=True, expose_value=False, callback=_version, help="Print the version."
)
@click.option("--debug", is_flag=True, help="Show a traceback when the program itself fails.")
def group(debug: bool) -> None:
    """Exact host sizes for SGLang's HiCache, before any weight is loaded.

    \b
    Check what you are about to launch:
      hicache-config validate args.json
      hicache-config validate -- sglang serve --model-path openai/gpt-oss-120b --hicache-size 100
    See what it takes, per pool, rank and node:
      hicache-config plan args.json --model zai-org/GLM-5.2-FP8
    """


def _drop_output() -> None:
    """Let what is left of standard output go nowhere."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def run() -> NoReturn:
    """Run the command line; never shows a traceback unless `--debug` asks for it."""
    try:
        status = group.main(standalone_mode=False)
        sys.stdout.flush()
    except click.exceptions.Exit as end:
        status = end.exit_code
    except click.Abort:
        status = 130
    except click.ClickException as error:
        error.show()
        status = 2
    except BrokenPipeError:
        # The reader went away; nothing more can be said, and Python must not try at exit.
        _drop_output()
        status = 141
    except Exception as fault:
        if "--debug" in sys.argv:
            raise
        if isinstance(fault, OSError) and fault.errno in _NO_ROOM:
            click.echo(f"hicache-config: the output can't be written: {os.strerror(fault.errno)}", err=True)
            _drop_output()
            status = 2
        else:
            click.echo(
                f"hicache-config: a fault of this program ({type(fault).__name__}: {fault}). "
                "Please report it with the input; --debug before the command shows where.",
                err=True,
            )
            status = 3
    sys.exit(status if isinstance(status, int) else 0)
