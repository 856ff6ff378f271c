"""What a running server prints: every argument of its release. Only what it would not have by itself was asked for."""

from __future__ import annotations

from typing import Any

import pytest

from hicache_config.arguments import Given
from hicache_config.arguments.reading import read_arguments
from hicache_config.arguments.releases import known, table
from hicache_config.core.capacity import DeviceRatio, HostFraction, TotalSize

#: As servers of 0.5.23 print them, by what was on their command line.
PRINTED = {
    "nothing": ({"hicache_size": 0, "hicache_ratio": 2.0, "hicache_host_memory_fraction": 0.8}, HostFraction(0.8, 2.0)),
    "size": ({"hicache_size": 40, "hicache_ratio": 2.0, "hicache_host_memory_fraction": None}, TotalSize(40)),
    "ratio 2": ({"hicache_size": 0, "hicache_ratio": 2.0, "hicache_host_memory_fraction": None}, DeviceRatio(2.0)),
    "ratio 3": ({"hicache_size": 0, "hicache_ratio": 3.0, "hicache_host_memory_fraction": None}, DeviceRatio(3.0)),
    "fraction": ({"hicache_size": 0, "hicache_ratio": 2.0, "hicache_host_memory_fraction": 0.5}, HostFraction(0.5, 2.0)),
    "before 0.5.21": ({"hicache_size": 0, "hicache_ratio": 2.0}, DeviceRatio(2.0)),
    "buffer": (
        {"hicache_host_memory_mode": "buffer_only", "hicache_ratio": 1.2, "hicache_host_memory_fraction": 0.8},
        HostFraction(0.8, 1.2),
    ),
}  # fmt: skip


def printed(values: dict[str, Any]) -> list[Given]:
    return [Given(name, value) for name, value in values.items()]


def defaults(release: str) -> dict[str, Any]:
    """A print of a server that was started with nothing; a tuple comes back from a text as a list."""
    return {
        name: list(each.default) if isinstance(each.default, tuple) else each.default
        for name, each in table(release).items()
        if each.field == name and "default" not in each.unknown
    }


@pytest.mark.parametrize("release", known())
def test_defaults_that_a_server_prints_were_not_asked_for(release: str) -> None:
    reading = read_arguments(printed(defaults(release)), release, printed=True)
    assert (dict(reading.given), reading.findings) == ({}, ())


@pytest.mark.parametrize("release", known())
def test_what_a_server_prints_reads_as_any_release(release: str) -> None:
    for printing in known():
        assert read_arguments(printed(defaults(printing)), release, printed=True).findings == ()


def test_what_no_release_has_by_itself_is_still_of_another_release() -> None:
    given = printed({"hicache_host_memory_mode": "buffer_only", "max_total_num_tokens": 5})
    assert [each.code for each in read_arguments(given, "0.5.16", printed=True).findings] == ["HC107"]
    assert [each.argument for each in read_arguments(given, "0.5.23").findings] == ["max_total_num_tokens"]


@pytest.mark.parametrize("started_with", PRINTED)
def test_what_decides_the_size_is_read_from_what_a_server_prints(started_with: str) -> None:
    values, capacity = PRINTED[started_with]
    reading = read_arguments(printed({"enable_hierarchical_cache": True, **values}), "0.5.23", printed=True)
    choice = reading.args.capacity("0.5.23")
    assert (choice.capacity, choice.ignored) == (capacity, {})


@pytest.mark.parametrize(
    ("values", "given"),
    [
        ({"hicache_ratio": 2.0, "hicache_size": 0}, set()),
        ({"hicache_ratio": 2.0, "disaggregation_mode": "decode"}, {"hicache_ratio", "disaggregation_mode"}),
        ({"hicache_ratio": None, "disaggregation_mode": "decode"}, {"disaggregation_mode"}),
        ({"hicache_ratio": 1.5}, {"hicache_ratio"}),
        ({"enable_hierarchical_cache": 0}, {"enable_hierarchical_cache"}),
        ({"swa_full_tokens_ratio": 0.8}, set()),
    ],
)
def test_a_ratio_that_is_filled_in_is_not_given(values: dict[str, Any], given: set[str]) -> None:
    assert set(read_arguments(printed(values), "0.5.23", printed=True).given) == given
