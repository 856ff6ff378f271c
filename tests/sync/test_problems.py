"""How ranks and their values are named."""

from __future__ import annotations

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hicache_config.core.findings import ConfigurationError
from hicache_config.sync.problems import absurd_offer, by_value, differences, ranks_text


@pytest.mark.parametrize(
    ("ranks", "text"),
    [
        ([2], "rank 2"),
        ([1, 0], "ranks 0 and 1"),
        ([0, 1, 3], "ranks 0, 1 and 3"),
        (range(8), "ranks 0-7"),
        ([0, 1, 2, 5, 7, 8, 9, 12], "ranks 0-2, 5, 7-9 and 12"),
    ],
)
def test_ranks_are_named(ranks: list[int], text: str) -> None:
    assert ranks_text(ranks) == text


@given(st.sets(st.integers(0, 60), min_size=1))
def test_every_rank_is_named_once(ranks: set[int]) -> None:
    listed = ranks_text(ranks).split(maxsplit=1)[1].replace(" and ", ", ")
    named = []
    for part in listed.split(", "):
        first, _, last = part.partition("-")
        named += range(int(first), int(last or first) + 1)
    assert named == sorted(ranks)


def test_values_go_with_their_ranks() -> None:
    assert by_value({0: "100", 1: "100", 2: "90"}) == "100 on ranks 0 and 1; 90 on rank 2"
    assert by_value({0: "90", 1: "100", 2: "100"}) == "100 on ranks 1 and 2; 90 on rank 0"


def test_many_values_are_counted() -> None:
    assert by_value({rank: str(rank) for rank in range(20)}).endswith("7 on rank 7; 12 other values on the rest")


def test_what_a_rank_lacks_differs() -> None:
    views = {0: {"tp_size": "2", "size": "1"}, 1: {"size": "1"}}
    assert differences(views, "not given") == {"tp_size": "2 on rank 0; not given on rank 1"}


def test_an_error_goes_from_process_to_process() -> None:
    error = ConfigurationError([absurd_offer(2, "its ratio is nan")])
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), again.findings, str(again)) == (ConfigurationError, error.findings, str(error))
