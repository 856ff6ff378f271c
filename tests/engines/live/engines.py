"""Two engines in one process in the place of a server, one after the other or side by side.

    python engines.py after|beside ARGUMENTS

ARGUMENTS are those of a server. Runs in the oracle's environment; "ready to roll" is written when the second is up.
"""

from __future__ import annotations

import argparse
import sys
from typing import Any

import sglang
from sglang.srt.server_args import ServerArgs


def asked_for(words: list[str]) -> dict[str, Any]:
    """The arguments that a command line gives, as an Engine takes them."""
    parser = argparse.ArgumentParser()
    ServerArgs.add_cli_args(parser)
    plainly = vars(parser.parse_args(["--model-path", "none"]))
    return {name: value for name, value in vars(parser.parse_args(words)).items() if value != plainly[name]}


def main() -> None:
    how, *words = sys.argv[1:]
    first = sglang.Engine(**asked_for(words))
    if how == "after":
        first.shutdown()
    second = sglang.Engine(**asked_for(words))
    sys.stdout.write("ready to roll\n")
    sys.stdout.flush()
    second.shutdown()


if __name__ == "__main__":
    main()
