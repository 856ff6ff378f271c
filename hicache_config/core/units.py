"""Exact amounts of memory: reading and printing GB (10**9 bytes) and GiB (2**30 bytes).

Amounts are whole numbers of bytes throughout; text is read with exact fractions, so nothing is rounded.
Must not import anything of the project.
"""

from __future__ import annotations

import re
from fractions import Fraction

GB = 10**9
GIB = 2**30

#: SGLang leaves this much of a host's memory alone, once per check (0.5.23, mem_cache/pool_host/base.py).
RESERVE_BYTES = 10 * GIB

_DECIMAL = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12, "p": 10**15}
_BINARY = {"ki": 2**10, "mi": 2**20, "gi": 2**30, "ti": 2**40, "pi": 2**50}
_AMOUNT = re.compile(r"(?P<number>[0-9]+(?:\.[0-9]+)?)[ ]?(?P<prefix>[kmgtp]i?)?(?P<byte>b)?", re.ASCII | re.IGNORECASE)
_MOONCAKE = re.compile(r"(?P<number>[0-9]+(?:\.[0-9]+)?)[ ]?(?P<unit>gb)?", re.ASCII | re.IGNORECASE)
_LONGEST = 64


class AmountError(ValueError):
    """The text is not an amount of memory; the message says what would be one."""


def parse_bytes(text: str) -> int:
    """Bytes of an amount such as `100GB`, `64GiB`, `1.5TB`, `4096` (bare bytes).

    Decimal prefixes are powers of 1000 and binary ones (`GiB`) powers of 1024; case does not matter and one
    space before the unit is allowed. Raises AmountError for anything else, for a unit without `B`, a negative
    amount and a fraction of a byte.
    """
    stripped = text.strip()
    match = _AMOUNT.fullmatch(stripped) if len(stripped) <= _LONGEST else None
    if match is None or (match["prefix"] and not match["byte"]):
        raise AmountError(
            f"{_shown(text)} is not an amount of memory; write a number with its unit, such as 100GB (10**9 bytes), "
            "64GiB (2**30 bytes), 1.5TB, or a bare number of bytes"
        )
    prefix = (match["prefix"] or "").lower()
    return _whole(text, Fraction(match["number"]) * (_BINARY[prefix] if prefix in _BINARY else _DECIMAL[prefix]))


def parse_mooncake_bytes(text: str) -> int:
    """Bytes of a Mooncake setting such as `4gb`: there `gb` means GiB; a bare number is bytes.

    Source: SGLang 0.5.23, mem_cache/storage/mooncake_store (global_segment_size). Raises AmountError.
    """
    stripped = text.strip()
    match = _MOONCAKE.fullmatch(stripped) if len(stripped) <= _LONGEST else None
    if match is None:
        raise AmountError(f"{_shown(text)} is not a Mooncake size; write 4gb (4 GiB) or a bare number of bytes")
    return _whole(text, Fraction(match["number"]) * (GIB if match["unit"] else 1))


def size_bytes(size_gb: int | float) -> int:
    """Whole bytes of a size in GB; a float counts as it is written (0.29 is 290,000,000 bytes)."""
    exact = Fraction(size_gb) if isinstance(size_gb, int) else Fraction(repr(float(size_gb)))
    return int(exact * GB)


def format_gb(amount: int, digits: int = 3) -> str:
    """`100.000 GB`, rounded to nearest, for people; exact figures are printed as bytes."""
    return f"{_rounded(amount, GB, digits)} GB"


def format_gib(amount: int, digits: int = 3) -> str:
    """`93.132 GiB`, rounded to nearest, for people; exact figures are printed as bytes."""
    return f"{_rounded(amount, GIB, digits)} GiB"


def format_bytes(amount: int) -> str:
    """`100,000,000,000 bytes`."""
    return f"{amount:,} bytes" if amount != 1 else "1 byte"


def _rounded(amount: int, unit: int, digits: int) -> str:
    scale = 10**digits
    sign = "-" if amount < 0 else ""
    scaled = (abs(amount) * scale * 2 + unit) // (unit * 2)
    whole, part = divmod(scaled, scale)
    return f"{sign}{whole:,}.{part:0{digits}d}" if digits else f"{sign}{whole:,}"


def _whole(text: str, exact: Fraction) -> int:
    if exact.denominator != 1:
        raise AmountError(f"{_shown(text)} is not a whole number of bytes")
    return int(exact)


def _shown(text: str) -> str:
    return repr(text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…")
