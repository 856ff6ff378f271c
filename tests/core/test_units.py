"""Reading and printing amounts, exactly."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hicache_config.core.units import (
    GB,
    GIB,
    AmountError,
    format_bytes,
    format_gb,
    format_gib,
    parse_bytes,
    parse_mooncake_bytes,
    size_bytes,
)


@pytest.mark.parametrize(
    ("text", "amount"),
    [
        ("100GB", 100 * GB),
        ("100 GB", 100 * GB),
        ("100gb", 100 * GB),
        ("64GiB", 64 * GIB),
        ("1.5TB", 1_500 * GB),
        ("0.5GiB", GIB // 2),
        ("4096", 4096),
        ("4096B", 4096),
        ("0", 0),
        ("1KiB", 1024),
        ("2PB", 2 * 10**15),
        ("9007199254740993", 2**53 + 1),
        (" 7MB ", 7_000_000),
    ],
)
def test_amounts_that_are_read(text: str, amount: int) -> None:
    assert parse_bytes(text) == amount


@pytest.mark.parametrize(
    "text",
    [
        "", "GB", "100GB junk", "100G", "100Gi", "-1GB", "+1GB", "1e3GB", "1,000GB", "0x10", "nan", "inf", "1..5GB",
        ".5GB", "5.GB", "100  GB", "1.5", "0.1B", "1/2GB", "٣GB", "100GBB", "1EB", "9" * 65, "1_000GB",
    ],
)  # fmt: skip
def test_junk_is_refused_with_what_to_write(text: str) -> None:
    with pytest.raises(AmountError) as error:
        parse_bytes(text)
    assert "bytes" in str(error.value)


@pytest.mark.parametrize(
    ("text", "amount"), [("4gb", 4 * GIB), ("4 GB", 4 * GIB), ("4294967296", 4 * GIB), ("0.5gb", GIB // 2)]
)
def test_a_mooncake_gb_is_a_gib(text: str, amount: int) -> None:
    assert parse_mooncake_bytes(text) == amount


@pytest.mark.parametrize("text", ["4gib", "4g", "", "gb", "-4gb", "4gb x", "0.1", "1" * 80])
def test_other_mooncake_text_is_refused(text: str) -> None:
    with pytest.raises(AmountError):
        parse_mooncake_bytes(text)


@given(st.integers(0, 10**18), st.sampled_from(["B", "kB", "MB", "GB", "TB", "KiB", "MiB", "GiB", "TiB"]))
def test_whole_amounts_come_back_exactly(number: int, unit: str) -> None:
    factor = {
        "k": 10**3,
        "m": 10**6,
        "g": 10**9,
        "t": 10**12,
        "ki": 2**10,
        "mi": 2**20,
        "gi": 2**30,
        "ti": 2**40,
        "": 1,
    }
    assert parse_bytes(f"{number}{unit}") == number * factor[unit[:-1].lower()]


@given(st.integers(-(10**18), 10**18), st.integers(0, 6))
def test_printed_amounts_are_within_half_a_digit(amount: int, digits: int) -> None:
    for text, unit in ((format_gb(amount, digits), GB), (format_gib(amount, digits), GIB)):
        shown = Fraction(text.split(" ")[0].replace(",", ""))
        assert abs(shown - Fraction(amount, unit)) <= Fraction(1, 2 * 10**digits)


@given(st.integers(0, 10**6))
def test_a_float_size_counts_as_it_is_written(thousandths: int) -> None:
    assert size_bytes(thousandths / 1000) == thousandths * GB // 1000
    assert size_bytes(thousandths) == thousandths * GB


def test_bytes_are_printed_with_separators() -> None:
    assert format_bytes(100_000_000_000) == "100,000,000,000 bytes"
    assert format_bytes(1) == "1 byte"
