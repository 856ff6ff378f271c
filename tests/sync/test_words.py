"""The words of an error: they come back as they were, and always fit."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hicache_config.core.capacity import DeviceRatio, HostFraction
from hicache_config.core.findings import Finding, Fix
from hicache_config.sync.words import LIMIT, decode_words, digest_of, encode_words, facts_of
from tests.sync.cases import terms

texts = st.text(max_size=60)
findings = st.builds(
    Finding,
    code=st.integers(0, 999).map(lambda number: f"HC{number:03}"),
    name=st.sampled_from(["size-too-small", "rank-failed"]),
    severity=st.sampled_from(["error", "warning", "note"]),
    message=st.text(st.characters(codec="utf-8"), max_size=3_000),
    help=st.text(st.characters(codec="utf-8"), max_size=200),
    argument=st.none() | st.just("hicache_size"),
    asked=st.none() | st.integers() | st.floats(allow_nan=False) | st.booleans(),
    fix=st.none() | st.just(Fix({"hicache_size": 2}, safe=True)),
    stage=st.none() | st.integers(0, 9),
    pool=st.none() | st.just("kv"),
    detail=st.dictionaries(st.sampled_from(["least_bytes", "least_gb"]), st.integers()),
)


@given(st.lists(findings, max_size=6))
def test_words_come_back_and_fit(given_findings: list[Finding]) -> None:
    raw = encode_words({"hicache_size": "100"}, given_findings)
    assert len(raw) <= LIMIT
    words = decode_words(raw + b"\0" * 5)
    assert words.facts == {"hicache_size": "100"}
    kept = len(words.findings)
    if kept == len(given_findings):
        assert list(words.findings) == given_findings
    else:
        assert list(words.findings[: kept - 1]) == given_findings[: kept - 1]
        assert f"({len(given_findings) - kept} more on this rank.)" in words.findings[-1].help


def test_findings_that_do_not_fit_are_counted() -> None:
    given_findings = [Finding("HC310", "pool-impossible", "error", f"{number} " + "m" * 1_000) for number in range(20)]
    words = decode_words(encode_words({"hicache_size": "100"}, given_findings))
    assert len(words.findings) == 7
    assert words.findings[:6] == tuple(given_findings[:6])
    assert words.findings[6].help == "(13 more on this rank.)"


def test_a_single_long_finding_is_cut() -> None:
    raw = encode_words({}, [Finding("HC406", "rank-failed", "error", "m" * 20_000, "h" * 20_000, argument="pp_size")])
    (finding,) = decode_words(raw).findings
    assert finding.message.startswith("m" * 400 + "…")
    assert (finding.code, finding.argument) == ("HC406", "pp_size")


def test_facts_beyond_any_measure_are_refused() -> None:
    with pytest.raises(ValueError, match="more than 8,192 bytes"):
        encode_words({f"argument_{number}": "x" * 100 for number in range(200)}, [])


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"\xff\xfe",
        b"[]",
        b"{}",
        b'{"facts":[],"findings":[],"left_out":0}',
        b'{"facts":{},"findings":[{}],"left_out":0}',
        b'{"facts":{},"findings":[{"code":1,"name":"n","severity":"error","message":"m"}],"left_out":0}',
        b'{"facts":{},"findings":[{"code":"HC1","name":"n","severity":"bad","message":"m"}],"left_out":0}',
        b'{"facts":{},"findings":[{"unknown":1}],"left_out":0}',
        b'{"facts":{},"findings":[],"left_out":"many"}',
        b"[" * 8_000,
    ],
)
def test_bytes_that_are_no_words(raw: bytes) -> None:
    with pytest.raises(ValueError, match="its words can't be read"):
        decode_words(raw)


@pytest.mark.parametrize(
    ("capacity", "facts"),
    [
        (100, {"hicache_size": "100"}),
        (DeviceRatio(2.0), {"hicache_ratio": "2.0"}),
        (HostFraction(0.8, 2.0), {"hicache_host_memory_fraction": "0.8", "hicache_ratio": "2.0"}),
    ],
)
def test_facts(capacity: object, facts: dict[str, str]) -> None:
    found = facts_of(terms(capacity), {"tp_size": 8, "model_path": "m"})  # type: ignore[arg-type]
    assert found == {**facts, "tp_size": "8", "model_path": '"m"', "accounting": "total", "sglang": "0.5.23"}


def test_a_build_suffix_is_the_same_release_and_a_newer_one_is_not() -> None:
    digests = {
        release: digest_of(facts_of(terms(100, release=release), {}))
        for release in ("0.5.23", "v0.5.23", "0.5.23.post1", "0.5.23+cu126", "0.5.24", "0.6.0")
    }
    assert len({digests[name] for name in ("0.5.23", "v0.5.23", "0.5.23.post1", "0.5.23+cu126")}) == 1
    assert len(set(digests.values())) == 3


def test_long_values_are_cut_and_still_told_apart() -> None:
    first, second = (facts_of(terms(), {"model_path": "x" * 500 + end}) for end in "ab")
    assert first["model_path"] != second["model_path"]
    assert len(first["model_path"]) < 200
    assert digest_of(first) != digest_of(second)


def test_anything_can_be_a_fact() -> None:
    found = facts_of(terms(), {"path": object})
    assert json.loads(found["path"]) == "<class 'object'>"
