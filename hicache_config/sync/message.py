"""The fixed-length message of a rank: what it offers, or that it failed, in 512 words of 64 bits.

The length never changes, in any version: collectives of unequal length abort or give wrong answers, so a rank must be
able to read at least the first words of whatever another version sends. Encoding and decoding are pure. Must not import
torch, nor anything of the project but core.

Words 0 to 63 are the header; then come 32 records of 14 words, one for each independent pool, in the stage's order.
Unused words are 0. Little-endian.

    0 magic            6-7  digest of what must be equal     13    length of this rank's words in bytes
    1 protocol         8    rank                             14    flags (scale, ratio)
    2-5 package        9    ranks in the group               15-17 numerator, 18-20 denominator of the scale
      version          10   stage                            21    bits of the ratio
                       11   0 or 1: failed                   22    records in use
                       12   number of the first finding

    record: 0-5 name, 6 flags, 7 device slots, 8 page size, 9 raw slots, 10 own pages
"""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from ..core.capacity import TotalSize
from ..core.offers import Offer, PoolOffer
from ..core.pools import DevicePool, Group
from ..core.terms import Terms

MAGIC = int.from_bytes(b"hicache\0", "little")
PROTOCOL = 1

WORDS = 512
LENGTH = WORDS * 8  # bytes
MOST_POOLS = 32
LONGEST_NAME = 48  # bytes of UTF-8; SGLang's longest is deepseek_v4_c4_indexer_scale
LONGEST_VERSION = 32

_HEADER = 64
_RECORD = 14
_LIMBS = 3  # words of 64 bits for each part of the scale
_LARGEST = 2**63 - 1

_SCALE, _RATIO = 1, 2
_EMPTY, _SLOTS, _RAW, _OWN, _NEEDED, _WHOLE = 1, 2, 4, 8, 16, 32


class UnsendableError(ValueError):
    """This rank's offer does not fit into a message; the text says what does not."""


class AbsurdError(ValueError):
    """Another rank's message holds a number that can't be; the text says which."""


@dataclass(frozen=True)
class Message:
    """What one rank tells the others. `offer` is None where it failed; `digest` is empty where it has no terms.

    `failure` is the number of its first finding (301 for HC301), `words` the bytes that it has to say in case of an
    error. The offer carries what `core.agree` needs, nothing else.
    """

    rank: int
    size: int
    stage: int
    digest: bytes = b""
    words: int = 0
    failure: int | None = None
    offer: Offer | None = None


def encode(message: Message, package: str) -> bytes:
    """The message as LENGTH bytes. Raises UnsendableError for an offer that does not fit."""
    words = [0] * WORDS
    words[0], words[1] = MAGIC, PROTOCOL
    words[2:6] = _text_words(package.encode()[:LONGEST_VERSION], 4)
    words[6:8] = _text_words(message.digest, 2)
    words[8:11] = message.rank, message.size, message.stage
    words[11:14] = int(message.failure is not None), message.failure or 0, message.words
    if message.offer is not None:
        _put_offer(words, message.offer)
    return struct.pack(f"<{WORDS}q", *words)


def origin(raw: bytes) -> str:
    """Which program sent these bytes, in words; they may be decoded only where it is `own_origin`."""
    if len(raw) != LENGTH:
        return f"{len(raw)} bytes that are no hicache-config message"
    words = struct.unpack(f"<{WORDS}q", raw)
    if words[0] != MAGIC:
        return "a message of another collective, not of hicache-config,"
    return f"hicache-config {_text_of(words[2:6])} (protocol {words[1]})"


@lru_cache(maxsize=4)
def own_origin(package: str) -> str:
    """The origin of a message that this version of the package encodes."""
    return origin(encode(Message(0, 1, 0), package))


def decode(raw: bytes) -> Message:
    """The message in bytes whose `origin` is this program. Raises AbsurdError for what no rank can mean."""
    words = struct.unpack(f"<{WORDS}q", raw)
    rank, size, stage, failed, failure, length = words[8:14]
    if not 0 <= rank < size:
        raise AbsurdError(f"it says that it is rank {rank} of {size}")
    if not 0 <= stage < size:
        raise AbsurdError(f"its stage is {stage:,} in a group of {size} ranks")
    if failed not in (0, 1) or not 0 <= failure <= 999 or (failure and not failed):
        raise AbsurdError(f"its error flag is {failed} with code {failure}")
    if not 0 <= length <= _LARGEST // 2:
        raise AbsurdError(f"it has {length:,} bytes to say")
    if any(words[23:_HEADER]):
        raise AbsurdError("words that must be 0 are not")
    digest = struct.pack("<2q", *words[6:8])
    return Message(
        rank,
        size,
        stage,
        digest=digest if any(digest) else b"",
        words=length,
        failure=failure if failed else None,
        offer=None if failed else _take_offer(words),
    )


# --- the offer ----------------------------------------------------------------------------------------------------


def _put_offer(words: list[int], offer: Offer) -> None:
    if len(offer.pools) > MOST_POOLS:
        raise UnsendableError(f"{len(offer.pools)} independent pools; a stage may have {MOST_POOLS}")
    if offer.scale is not None:
        words[14] |= _SCALE
        words[15:18] = _limbs(offer.scale.numerator, "the scale's numerator")
        words[18:21] = _limbs(offer.scale.denominator, "the scale's denominator")
    if offer.ratio is not None:
        words[14] |= _RATIO
        (words[21],) = struct.unpack("<q", struct.pack("<d", offer.ratio))
    words[22] = len(offer.pools)
    for index, pool in enumerate(offer.pools):
        start = _HEADER + index * _RECORD
        words[start : start + _RECORD] = _record(pool, needed=pool.name in offer.unknown)


def _record(pool: PoolOffer, *, needed: bool) -> list[int]:
    name = pool.name.encode()
    if len(name) > LONGEST_NAME or "\0" in pool.name or not name:
        raise UnsendableError(f"the pool name {pool.name!r} is not 1 to {LONGEST_NAME} bytes of UTF-8")
    flags = (_EMPTY if pool.is_empty else 0) | (_NEEDED if needed else 0)
    flags |= _WHOLE if pool.page_rule == "whole" else 0
    numbers = []
    for bit, what, value in (
        (_SLOTS, "device slots", pool.device_slots),
        (0, "page size", pool.page_size),
        (_RAW, "host slots", pool.raw_slots),
        (_OWN, "host pages", pool.own_pages),
    ):
        if value is not None and not 0 <= value <= _LARGEST:
            raise UnsendableError(f"{value:,} {what} of pool {pool.name!r} are not within 0 to 2**63 - 1")
        flags |= 0 if value is None else bit
        numbers.append(value or 0)
    return [*_text_words(name, 6), flags, *numbers, 0, 0, 0]


def _take_offer(words: tuple[int, ...]) -> Offer:
    flags, count = words[14], words[22]
    if not 0 <= count <= MOST_POOLS:
        raise AbsurdError(f"it has {count:,} pools; a stage may have {MOST_POOLS}")
    if not 0 <= flags <= _SCALE | _RATIO:
        raise AbsurdError(f"its flags are {flags:#x}")
    scale = _take_scale(words) if flags & _SCALE else None
    ratio: float | None = None
    if flags & _RATIO:
        (ratio,) = struct.unpack("<d", struct.pack("<q", words[21]))
        if not (math.isfinite(ratio) and ratio > 0):
            raise AbsurdError(f"its ratio is {ratio}")
    pools: list[PoolOffer] = []
    unknown: list[str] = []
    seen: set[str] = set()
    for index in range(count):
        start = _HEADER + index * _RECORD
        pool, needed = _take_record(words[start : start + _RECORD])
        if pool.name in seen:
            raise AbsurdError(f"pool {pool.name!r} is there twice")
        seen.add(pool.name)
        pools.append(pool)
        unknown += [pool.name] if needed else []
    if any(words[_HEADER + count * _RECORD :]):
        raise AbsurdError("words that must be 0 are not")
    return Offer(tuple(pools), scale=scale, ratio=ratio, unknown=tuple(unknown))


def _take_scale(words: tuple[int, ...]) -> Fraction:
    top, bottom = _number(words[15:18]), _number(words[18:21])
    if bottom == 0 or top == 0 or math.gcd(top, bottom) != 1:
        raise AbsurdError(f"its scale is {top:,} / {bottom:,}")
    return Fraction(top, bottom)


def _take_record(words: tuple[int, ...]) -> tuple[PoolOffer, bool]:
    name, flags = _name_of(words[:6]), words[6]
    if not name or not 0 <= flags < _WHOLE * 2 or any(words[11:]):
        raise AbsurdError(f"its record of pool {name!r} can't be read")
    slots, page, raw, own = words[7:11]
    for what, value, least in (
        ("device slots", slots, int(bool(flags & _SLOTS))),
        ("page size", page, 1),
        ("host slots", raw, 0),
        ("host pages", own, 0),
    ):
        if value < least:
            raise AbsurdError(f"the {what} of pool {name!r} are {value:,}")
    pool = PoolOffer(
        name,
        slots if flags & _SLOTS else None,
        page,
        is_empty=bool(flags & _EMPTY),
        raw_slots=raw if flags & _RAW else None,
        own_pages=own if flags & _OWN else None,
        page_rule="whole" if flags & _WHOLE else "added",
    )
    return pool, bool(flags & _NEEDED)


def contradiction(offer: Offer, terms: Terms) -> str | None:
    """What makes another rank's offer impossible under these terms, so that `core.agree` can't use it, or None."""
    if not isinstance(terms.capacity, TotalSize):
        return "it has no ratio" if offer.ratio is None else None
    if offer.ratio is not None:
        return "it has a ratio, though a size is in force"
    for pool in offer.owned:
        for what, value in (("slots", pool.raw_slots), ("pages", pool.own_pages)):
            if value is not None and value > terms.capacity.bytes:
                return f"it wants {value:,} {what} of pool {pool.name!r} for {terms.capacity.bytes:,} bytes"
    if terms.accounting == "sglang":
        return _sglang_contradiction(offer)
    return _total_contradiction(offer)


def _sglang_contradiction(offer: Offer) -> str | None:
    for pool in offer.pools:
        expected = None if pool.raw_slots is None else pool.raw_slots // pool.page_size + 1
        if pool.own_pages != expected:
            return f"its {pool.raw_slots} host slots of pool {pool.name!r} are not {pool.own_pages} pages"
    return None


def _total_contradiction(offer: Offer) -> str | None:
    owned = offer.owned
    if owned and offer.scale is None and all(pool.device_slots is not None for pool in owned):
        return "it has no scale"
    for pool in owned:
        if offer.scale is not None and pool.device_slots is not None:
            leader = DevicePool(pool.name, pool.device_slots, page_size=pool.page_size, page_rule=pool.page_rule)
            if pool.own_pages != Group(leader, (leader,)).pages_below(offer.scale):
                return f"its scale does not make {pool.own_pages} pages of pool {pool.name!r}"
        elif len(owned) == 1 and not pool.own_pages:
            return f"it has no pages of pool {pool.name!r}"
    return None


# --- words --------------------------------------------------------------------------------------------------------


def _text_words(text: bytes, count: int) -> tuple[int, ...]:
    return struct.unpack(f"<{count}q", text.ljust(count * 8, b"\0"))


def _text_of(words: tuple[int, ...]) -> str:
    return struct.pack(f"<{len(words)}q", *words).rstrip(b"\0").decode(errors="replace")


def _name_of(words: tuple[int, ...]) -> str:
    try:
        name = struct.pack("<6q", *words).rstrip(b"\0").decode()
    except UnicodeDecodeError:
        name = "\0"
    if "\0" in name:
        raise AbsurdError("the name of a pool is no text")
    return name


def _limbs(value: int, what: str) -> tuple[int, ...]:
    if value.bit_length() > _LIMBS * 64:
        raise UnsendableError(f"{what} has {value.bit_length()} bits; {_LIMBS * 64} are the most")
    return struct.unpack(f"<{_LIMBS}q", value.to_bytes(_LIMBS * 8, "little"))


def _number(limbs: tuple[int, ...]) -> int:
    return int.from_bytes(struct.pack(f"<{_LIMBS}q", *limbs), "little")
