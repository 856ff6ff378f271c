"""How a release's command line reads a flag, held against argparse itself."""

from __future__ import annotations

import argparse
from functools import cache
from typing import Any, NoReturn

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hicache_config.arguments.releases import (
    by_flag,
    match_flag,
    table,
)

RELEASES = tuple(f"0.5.{patch}" for patch in range(10, 24))


class _Record(argparse.Action):
    """Remembers the whole spelling that argparse took a word for, and the value within the word."""

    def __call__(self, parser: Any, namespace: Any, values: Any, option_string: str | None = None) -> None:
        namespace.seen = (option_string, self.dest, values)


class _RefusalError(Exception):
    """argparse's own message."""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise _RefusalError(message)


@cache
def _parser(release: str) -> argparse.ArgumentParser:
    parser = _Parser(add_help=False)
    for argument in table(release).values():
        parser.add_argument(
            *argument.spellings, dest=argument.name, action=_Record, nargs="?", default=argparse.SUPPRESS
        )
    return parser


def _as_argparse_reads(release: str, text: str) -> tuple[str, Any]:
    try:
        namespace, rest = _parser(release).parse_known_args([text])
    except _RefusalError as error:
        matches = str(error).partition("could match ")[2]
        return "ambiguous", set(matches.split(", "))
    return ("none", None) if rest else ("one", namespace.seen)


@st.composite
def _words(draw: st.DrawFn) -> tuple[str, str]:
    release = draw(st.sampled_from(RELEASES))
    flag = draw(st.sampled_from(sorted(by_flag(release))))
    text = flag[: draw(st.integers(min_value=1, max_value=len(flag)))] + draw(st.sampled_from(["", "", "-", "x", "_"]))
    return release, text + draw(st.sampled_from(["", "", "=", "=5", "=a=b"]))


@given(_words())
def test_a_word_is_read_as_argparse_reads_it(words: tuple[str, str]) -> None:
    release, text = words
    if text in ("--", "-"):
        return  # the end of the options, and a word: neither is a flag
    kind, seen = _as_argparse_reads(release, text)
    found = match_flag(release, text)
    if kind == "one":
        assert found.argument is not None
        assert (found.flag, found.argument.name, found.value) == seen
        assert found.kind == ("exact" if text.partition("=")[0] in by_flag(release) or text[:2] == "-h" else "prefix")
    else:
        assert found.kind == kind
        assert found.argument is None
        assert kind == "none" or set(found.candidates) == seen


@pytest.mark.parametrize("text", ["", "-", "--", "hicache-size", "5", "-x", "—hicache-size", "--hicache_size"])
def test_what_is_no_flag(text: str) -> None:
    assert match_flag("0.5.23", text).kind == "none"


def test_an_abbreviation_may_become_ambiguous() -> None:
    assert match_flag("0.5.23", "--hicache-siz").flag == "--hicache-size"
    old, new = match_flag("0.5.18", "--hicache-m"), match_flag("0.5.19", "--hicache-ho")
    assert (old.flag, new.flag) == ("--hicache-mem-layout", "--hicache-host-memory-mode")
    assert match_flag("0.5.21", "--hicache-ho").candidates == (
        "--hicache-host-memory-fraction",
        "--hicache-host-memory-mode",
    )
