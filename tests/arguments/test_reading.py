"""From arguments as written to typed ones: what is wrong, in words, and what to write instead."""

from __future__ import annotations

import re
from typing import Any

import pytest

from hicache_config.arguments import Given
from hicache_config.arguments.reading import Reading, read_arguments
from hicache_config.core.releases import NEWEST


def read(*given: Given, release: str = NEWEST, **fields: Any) -> Reading:
    return read_arguments([*(Given(name, value) for name, value in fields.items()), *given], release)


def text(key: str, value: Any = "") -> Given:
    return Given(key, value, as_text=True)


@pytest.mark.parametrize(
    ("fields", "code", "says", "helps"),
    [
        ({"hicache_size": "100GB"}, "HC101", "--hicache-size '100GB' is text; a whole number is expected (GB", "100"),
        ({"hicache_size": "64GiB"}, "HC101", "is text", "Write 68 (64GiB is 68.719 GB): a bare number"),
        ({"hicache_size": "much"}, "HC101", "is text", "Write 100, for example."),
        ({"hicache_size": "100"}, "HC101", "is text", "Write 100 without quotes."),
        ({"hicache_size": 1.5}, "HC105", "per rank", "Write 1 or 2."),
        ({"hicache_size": -5}, "HC103", "out of range (GB (10**9 bytes), per rank)", "at least 0. 0 means not set."),
        ({"hicache_ratio": 0}, "HC103", "--hicache-ratio 0 is out of range", "above 0"),
        ({"hicache_ratio": float("nan")}, "HC103", "is not a finite number", "Write a number."),
        ({"hicache_ratio": True}, "HC101", "true or false", "2.0"),
        ({"hicache_ratio": [1]}, "HC101", "a list", "2.0"),
        ({"tp_size": None}, "HC101", "null", ""),
        ({"tp_size": {"a": 1}}, "HC101", "a mapping", ""),
        ({"model_path": 1.5}, "HC101", "a number; text is expected", "GLM"),
        ({"hicache_host_memory_fraction": 2}, "HC103", "fraction", "at most 1"),
        ({"max_total_tokens": 2**70}, "HC104", "does not fit into 64 bits", "token slots"),
        ({"hicache_mem_layout": "page_frist"}, "HC102", "not one of its choices", "Did you mean page_first?"),
        ({"hicache_mem_layout": "zzz"}, "HC102", "not one of its choices", "The choices: layer_first"),
        ({"hicache_mem_layout": 4}, "HC101", "one of layer_first", ""),
        ({"hicache_ratoi": 2.0}, "HC010", "hicache_ratoi is no argument", "Did you mean hicache_ratio?"),
        ({"no_such_thing_at_all": 1}, "HC010", "no argument", "explain"),
    ],
)
def test_what_is_wrong_and_what_to_write(fields: dict[str, Any], code: str, says: str, helps: str) -> None:
    reading = read(**fields)
    (finding,) = reading.findings
    assert finding.code == code
    assert says in finding.message
    assert helps in finding.help
    assert finding.severity == "error"


def test_everything_is_found_at_once_and_the_rest_is_typed() -> None:
    reading = read(hicache_size="100GB", hicache_ratoi=2, pp_size=0, tp_size=8)
    assert sorted(finding.code for finding in reading.findings) == ["HC010", "HC101", "HC103"]
    assert reading.invalid == {"hicache_size", "pp_size"}
    assert (reading.args.tp_size, reading.args.pp_size) == (8, 1)
    assert set(reading.given) == {"hicache_size", "pp_size", "tp_size"}


def test_the_last_of_two_spellings_wins_with_a_warning() -> None:
    reading = read(text("--tp", "4"), tp_size=8)
    assert reading.args.tp_size == 4
    (finding,) = reading.findings
    assert (finding.code, finding.asked, finding.gets) == ("HC108", 8, "4")


def test_an_abbreviation_is_read_as_argparse_does() -> None:
    reading = read(text("--hicache-siz", "100"))
    assert reading.args.hicache_size == 100
    (finding,) = reading.findings
    assert (finding.code, finding.severity) == ("HC106", "note")
    assert read(text("--tp", "2")).findings == ()


@pytest.mark.parametrize("beginning", ["--pp", "--hicache-s", "--hicache"])
def test_a_beginning_of_several_flags_names_them(beginning: str) -> None:
    (finding,) = read(text(beginning, "2")).findings
    assert (finding.code, finding.argument) == ("HC010", beginning)
    assert "the beginning of several arguments" in finding.message
    named = re.findall(r"--[a-z0-9-]+", finding.help)
    assert 2 <= len(named) <= 5
    assert all(flag.startswith(beginning) for flag in named)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (text("--hicache-size", "1.5"), "a whole number is expected"),
        (text("--hicache-size", "9" * 500), "a whole number is expected"),
        (text("--hicache-ratio", "two"), "a number is expected"),
        (text("--enable-hicache", "yes"), "a switch takes no value"),
        (text("--max-total-tokens", "1.5Mi"), "no decimals before Mi"),
        (text("--max-total-tokens", "lots"), "1M or 1Mi"),
        (text("--radix-eviction-policy-config", "{x"), "JSON text is expected"),
    ],
)
def test_command_line_text_that_does_not_convert(given: Given, says: str) -> None:
    (finding,) = read(given).findings
    assert finding.code == "HC101"
    assert says in finding.message


def test_command_line_text_that_converts() -> None:
    reading = read(
        text("--max-total-tokens", "1.5M"), text("--context-length", "128Ki"), text("--hicache-ratio", "1e0"),
        text("--radix-eviction-policy-config", '{"protected_threshold": 4}'), Given("--disable-radix-cache", False),
    )  # fmt: skip
    assert reading.findings == ()
    assert reading.args.max_total_tokens == 1_500_000
    assert reading.args.context_length == 131_072
    assert reading.args.hicache_ratio == 1.0
    assert reading.args.radix_eviction_policy_config == {"protected_threshold": 4}
    assert reading.args.disable_radix_cache is False


def test_an_argument_of_another_release_is_said_to_be_one() -> None:
    for given in (Given("attn_dp_size", 2), text("--attn-dp-size", "2")):
        (finding,) = read(given, release="0.5.20").findings
        assert finding.code == "HC107"
        assert "0.5.22 to 0.5.23" in finding.message


def test_keys_that_are_no_arguments_can_be_left_alone() -> None:
    given = [Given("max_total_num_tokens", 1), Given("tp_size", 2)]
    assert read_arguments(given, NEWEST, printed=True).findings == ()


def test_keys_whose_value_is_not_known_are_no_missing_ones() -> None:
    reading = read_arguments([], "0.5.23", not_known=["hicache_size", "--hicache-ratio", "hicache_raito"])
    assert reading.invalid == {"hicache_size", "hicache_ratio"}
    assert [(finding.code, finding.argument) for finding in reading.findings] == [("HC010", "hicache_raito")]
    assert "hicache_ratio" in reading.findings[0].help
    assert read_arguments([], "0.5.23", not_known=["max_total_num_tokens"], printed=True).findings == ()


def test_null_where_a_value_is_needed_is_said_once() -> None:
    (finding,) = read(Given("hicache_size", None)).findings
    assert finding.message == "--hicache-size is null; a whole number is expected (GB (10**9 bytes), per rank)"
