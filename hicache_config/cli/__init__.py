"""The command line: click, one command a file; it parses, calls app, prints. Nothing else imports click.

Commands load what they need when they run, so that `--help` stays quick.
"""

from __future__ import annotations

import sys


def main() -> None:
    """The entry point of `hicache-config`; ends the process with the exit status of the contract."""
    from .streams import prepare

    prepare()
    if sys.stdout.isatty() and ({"-h", "--help"} & set(sys.argv) or len(sys.argv) == 1):
        # Help for a person looks better with rich; a program, and every other command, is spared its import. It has to
        # happen before the commands' modules take their classes from click.
        from rich_click.patch import patch

        patch()
    from .main import run

    run()
