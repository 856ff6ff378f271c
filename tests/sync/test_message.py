"""The message: what is encoded comes back, and what no rank can mean is refused in words."""

from __future__ import annotations

import struct
from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hicache_config.core.capacity import DeviceRatio, TotalSize
from hicache_config.core.offers import Offer, PoolOffer
from hicache_config.core.pools import Stage
from hicache_config.core.resolve import resolve
from hicache_config.core.terms import Terms
from hicache_config.sync import message as wire
from hicache_config.sync.message import (
    AbsurdError,
    Message,
    UnsendableError,
    contradiction,
    decode,
    encode,
    origin,
    own_origin,
)
from tests.core.strategies import pipelines, sizes
from tests.sync.cases import RELEASE, terms

LARGEST = 2**63 - 1
numbers = st.one_of(st.integers(0, LARGEST), st.sampled_from([0, 1, 2**31, 2**53, LARGEST]))

SGLANG_NAMES = (
    "kv", "swa", "mamba", "indexer", "draft", "draft_indexer", "draft_swa", "deepseek_v4_c4_indexer_scale",
)  # fmt: skip
names = st.one_of(
    st.sampled_from(SGLANG_NAMES),
    st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=12),
)

pool_offers = st.builds(
    PoolOffer,
    name=names,
    device_slots=st.none() | numbers.filter(bool),
    page_size=numbers.filter(bool),
    is_empty=st.booleans(),
    raw_slots=st.none() | numbers,
    own_pages=st.none() | numbers,
    page_rule=st.sampled_from(["added", "whole"]),
)


@st.composite
def offers(draw: st.DrawFn) -> Offer:
    pools = draw(st.lists(pool_offers, max_size=wire.MOST_POOLS, unique_by=lambda pool: pool.name))
    return Offer(
        tuple(pools),
        scale=draw(st.none() | st.builds(Fraction, st.integers(1, 2**192 - 1), st.integers(1, 2**192 - 1))),
        ratio=draw(st.none() | st.floats(min_value=0, exclude_min=True, allow_infinity=False)),
        unknown=tuple(pool.name for pool in pools if draw(st.booleans())),
    )


@st.composite
def messages(draw: st.DrawFn) -> Message:
    size = draw(st.integers(1, 100_000))
    failure = draw(st.none() | st.integers(0, 999))
    return Message(
        draw(st.integers(0, size - 1)),
        size,
        draw(st.integers(0, size - 1)),
        digest=draw(st.just(b"") | st.binary(min_size=16, max_size=16).filter(any)),
        words=draw(st.integers(0, 2**40)),
        failure=failure,
        offer=draw(offers()) if failure is None else None,
    )


@given(messages(), st.text(st.characters(codec="ascii", exclude_characters="\0"), max_size=32))
def test_round_trip(message: Message, package: str) -> None:
    raw = encode(message, package)
    assert len(raw) == wire.LENGTH == 4096
    assert origin(raw) == own_origin(package)
    assert decode(raw) == message


@given(st.lists(st.tuples(st.integers(8, wire.WORDS - 1), st.integers(-(2**63), LARGEST)), min_size=1, max_size=4))
def test_any_words_are_read_or_refused(changes: list[tuple[int, int]]) -> None:
    """Whatever arrives, decoding gives a message that says exactly that, or AbsurdError; nothing else."""
    pool = PoolOffer("kv", 2_000_000, 64, own_pages=3)
    raw = encode(Message(1, 4, 1, digest=b"d" * 16, offer=Offer((pool,), scale=Fraction(3, 2))), "1.0")
    words = list(struct.unpack(f"<{wire.WORDS}q", raw))
    for index, value in changes:
        words[index] = value
    changed = struct.pack(f"<{wire.WORDS}q", *words)
    try:
        found = decode(changed)
    except AbsurdError:
        return
    # What a flag declares absent is not read, so it need not come back; all that is read must.
    assert decode(encode(found, "1.0")) == found


BASE = Message(1, 4, 1, digest=b"d" * 16, offer=Offer((PoolOffer("kv", 2_000_000, 64, own_pages=3),)))
RECORD = 64


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({8: 4}, "rank 4 of 4"),
        ({8: -1}, "rank -1 of 4"),
        ({9: 0}, "rank 1 of 0"),
        ({10: 4}, "stage is 4"),
        ({10: -1}, "stage is -1"),
        ({11: 2}, "error flag is 2"),
        ({11: 1, 12: 1000}, "code 1000"),
        ({12: 5}, "error flag is 0 with code 5"),
        ({13: -1}, "-1 bytes to say"),
        ({23: 1}, "must be 0"),
        ({14: 4}, "flags are 0x4"),
        ({14: -1}, "flags are"),
        ({14: 1}, "scale is 0 / 0"),
        ({14: 1, 15: 4, 18: 2}, "scale is 4 / 2"),
        ({14: 2, 21: 0}, "ratio is 0.0"),
        ({14: 2, 21: struct.unpack("<q", struct.pack("<d", -2.0))[0]}, "ratio is -2.0"),
        ({14: 2, 21: struct.unpack("<q", struct.pack("<d", float("nan")))[0]}, "ratio is nan"),
        ({14: 2, 21: struct.unpack("<q", struct.pack("<d", float("inf")))[0]}, "ratio is inf"),
        ({22: -1}, "it has -1 pools"),
        ({22: 33}, "it has 33 pools"),
        ({22: 0}, "must be 0"),
        ({22: 2}, "record of pool ''"),
        ({RECORD + word: -1 for word in range(6)}, "name of a pool is no text"),
        ({RECORD + 1: 1}, "name of a pool is no text"),
        ({RECORD + 6: 64}, "record of pool 'kv'"),
        ({RECORD + 6: -1}, "record of pool 'kv'"),
        ({RECORD + 11: 1}, "record of pool 'kv'"),
        ({RECORD + 7: 0}, "device slots of pool 'kv' are 0"),
        ({RECORD + 7: -5}, "device slots of pool 'kv' are -5"),
        ({RECORD + 8: 0}, "page size of pool 'kv' are 0"),
        ({RECORD + 8: -64}, "page size of pool 'kv' are -64"),
        ({RECORD + 9: -1}, "host slots of pool 'kv' are -1"),
        ({RECORD + 10: -1}, "host pages of pool 'kv' are -1"),
    ],
)
def test_what_no_rank_can_mean(changes: dict[int, int], words: str) -> None:
    sent = list(struct.unpack(f"<{wire.WORDS}q", encode(BASE, "1.0")))
    for index, value in changes.items():
        sent[index] = value
    with pytest.raises(AbsurdError, match=words.replace("(", r"\(")):
        decode(struct.pack(f"<{wire.WORDS}q", *sent))


def test_a_pool_that_is_there_twice() -> None:
    pool = PoolOffer("kv", 1, 1)
    raw = encode(replace(BASE, offer=Offer((pool, replace(pool, page_size=2)))), "1.0")
    with pytest.raises(AbsurdError, match="'kv' is there twice"):
        decode(raw)


@pytest.mark.parametrize(
    ("offer", "words"),
    [
        (Offer(tuple(PoolOffer(f"p{number}", 1, 1) for number in range(33))), "33 independent pools"),
        (Offer((PoolOffer("x" * 49, 1, 1),)), "1 to 48 bytes"),
        (Offer((PoolOffer("", 1, 1),)), "1 to 48 bytes"),
        (Offer((PoolOffer("a\0b", 1, 1),)), "1 to 48 bytes"),
        (Offer((PoolOffer("kv", 2**63, 1),)), "device slots of pool 'kv'"),
        (Offer((PoolOffer("kv", 1, 1, own_pages=2**63),)), "host pages of pool 'kv'"),
        (Offer((PoolOffer("kv", 1, 1, raw_slots=-1),)), "-1 host slots of pool 'kv'"),
        (Offer((), scale=Fraction(2**192)), "numerator has 193 bits"),
        (Offer((), scale=Fraction(1, 2**192)), "denominator has 193 bits"),
    ],
)
def test_what_does_not_fit(offer: Offer, words: str) -> None:
    with pytest.raises(UnsendableError, match=words):
        encode(replace(BASE, offer=offer), "1.0")


def test_the_largest_real_scale_fits() -> None:
    """Numerators are host slots at most, so three words hold any that SGLang's 64-bit slots allow."""
    encode(replace(BASE, offer=Offer((), scale=Fraction(LARGEST, LARGEST - 1))), "1.0")


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        (b"\0" * 8, "8 bytes that are no hicache-config message"),
        (b"\0" * 4096, "a message of another collective, not of hicache-config,"),
        (b"\xff" * 4096, "a message of another collective, not of hicache-config,"),
        (encode(BASE, "2.0"), "hicache-config 2.0 (protocol 1)"),
        (encode(BASE, "1.0.dev3+g" + "0" * 40), "hicache-config 1.0.dev3+g0000000000000000000000 (protocol 1)"),
    ],
)
def test_messages_tell_where_they_come_from(raw: bytes, words: str) -> None:
    assert origin(raw) == words
    assert origin(raw) != own_origin("1.0")


def test_another_protocol_is_read_before_anything_else() -> None:
    words = list(struct.unpack(f"<{wire.WORDS}q", encode(BASE, "1.0")))
    words[1] = 2
    assert origin(struct.pack(f"<{wire.WORDS}q", *words)) == "hicache-config 1.0 (protocol 2)"
    assert own_origin("1.0") == "hicache-config 1.0 (protocol 1)"


@given(pipelines(max_stages=3), st.one_of(sizes, st.sampled_from([0.5, 2.0]).map(DeviceRatio)))
def test_real_offers_contradict_nothing(stages: list[Stage], capacity: TotalSize | DeviceRatio) -> None:
    for accounting in ("total", "sglang"):
        asked = Terms(capacity, accounting, RELEASE)  # type: ignore[arg-type]
        for stage in stages:
            offer = resolve(stage, asked)
            if not offer.findings:
                assert contradiction(offer, asked) is None


KV = PoolOffer("kv", 1_000, 64, own_pages=16, raw_slots=1_000)


@pytest.mark.parametrize(
    ("offer", "capacity", "accounting", "words"),
    [
        (Offer((KV,)), DeviceRatio(2.0), "total", "it has no ratio"),
        (Offer((KV,), ratio=2.0), 100, "total", "though a size is in force"),
        (Offer((KV,)), 100, "total", "it has no scale"),
        (Offer((replace(KV, device_slots=None, own_pages=None),)), 100, "total", "no pages of pool 'kv'"),
        (Offer((replace(KV, device_slots=None, own_pages=0),)), 100, "total", "no pages of pool 'kv'"),
        (Offer((KV,), scale=Fraction(5)), 100, "total", "does not make 16 pages"),
        (Offer((replace(KV, own_pages=10**12),)), 100, "total", "wants 1,000,000,000,000 pages"),
        (Offer((replace(KV, raw_slots=10**12),)), 100, "sglang", "wants 1,000,000,000,000 slots"),
        (Offer((replace(KV, own_pages=17),)), 100, "sglang", "1000 host slots of pool 'kv' are not 17 pages"),
        (Offer((replace(KV, raw_slots=None),)), 100, "sglang", "None host slots"),
    ],
)
def test_offers_that_the_agreement_could_not_use(offer: Offer, capacity: object, accounting: str, words: str) -> None:
    found = contradiction(offer, terms(capacity, accounting))  # type: ignore[arg-type]
    assert found is not None
    assert words in found
