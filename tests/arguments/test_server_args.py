"""The typed arguments: strictness, spellings, defaults by release, which capacity is in force."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from hicache_config.arguments import ServerArgs
from hicache_config.arguments.releases import known, table
from hicache_config.core.capacity import DeviceRatio, HostFraction, TotalSize
from hicache_config.core.releases import NEWEST


def test_every_field_is_an_argument_of_the_newest_release() -> None:
    assert set(ServerArgs.model_fields) <= set(table(NEWEST))


def test_defaults_are_those_of_the_newest_release() -> None:
    args = ServerArgs()
    for name in ServerArgs.model_fields:
        argument = table(NEWEST)[name]
        if "default" not in argument.unknown and not argument.required:
            assert getattr(args, name) == argument.default, name


@pytest.mark.parametrize("release", known())
def test_defaults_are_those_of_each_release(release: str) -> None:
    args = ServerArgs.model_validate({}, context={"release": release})
    for name in ServerArgs.model_fields:
        argument = table(release).get(name)
        if argument is not None and "default" not in argument.unknown and not argument.required:
            assert getattr(args, name) == argument.default, name


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("hicache_size", -1), ("hicache_size", True), ("hicache_size", 1.5), ("hicache_size", "100"), ("hicache_size", 2**63),
        ("hicache_size", None), ("hicache_ratio", 0), ("hicache_ratio", -1.0), ("hicache_ratio", float("nan")),
        ("hicache_ratio", float("inf")), ("hicache_ratio", True), ("hicache_ratio", "2"), ("hicache_host_memory_fraction", 0),
        ("hicache_host_memory_fraction", 1.01), ("tp_size", 0), ("tp_size", "8"), ("pp_size", -2), ("page_size", 0),
        ("enable_hierarchical_cache", 1), ("enable_hierarchical_cache", "true"), ("hicache_mem_layout", "page_frist"),
        ("hicache_io_backend", 3), ("max_total_tokens", -(2**63) - 1), ("model_path", 7),
    ],
)  # fmt: skip
def test_values_are_typed_strictly(name: str, value: Any) -> None:
    with pytest.raises(ValidationError) as error:
        ServerArgs.model_validate({name: value})
    assert error.value.errors()[0]["loc"][0] == name


def test_all_problems_come_at_once() -> None:
    with pytest.raises(ValidationError) as error:
        ServerArgs.model_validate({"hicache_size": -1, "tp_size": 0, "hicache_mem_layout": "x"})
    assert len(error.value.errors()) == 3


def test_a_float_without_a_fraction_is_a_whole_size() -> None:
    assert ServerArgs.model_validate_json('{"hicache_size": 20.0}').hicache_size == 20


def test_flag_spellings_carry_command_line_text() -> None:
    args = ServerArgs.model_validate(
        {
            "--tp": "8",
            "hicache-size": "100",
            "--enable-hicache": "",
            "max-total-tokens": "1M",
            "pipeline-parallel-size": 2,
        }
    )
    assert (args.tp_size, args.hicache_size, args.enable_hierarchical_cache) == (8, 100, True)
    assert (args.max_total_tokens, args.pp_size) == (1_000_000, 2)
    assert {"tp_size", "hicache_size"} <= args.written


def test_text_that_does_not_convert_is_refused_by_the_fields_name() -> None:
    with pytest.raises(ValidationError) as error:
        ServerArgs.model_validate({"--hicache-size": "1.5"})
    assert error.value.errors()[0]["loc"][0] == "hicache_size"


def test_what_is_unknown_is_kept_aside() -> None:
    args = ServerArgs.model_validate({"hicache_ratoi": 2, "host": "::1"})
    assert args.unknown == {"hicache_ratoi": 2}
    assert args.others == {"host": "::1"}
    assert args.written == frozenset()


def test_other_types_than_a_mapping_are_refused() -> None:
    with pytest.raises(ValidationError):
        ServerArgs.model_validate([1])


def test_choices_are_those_of_the_release_in_the_context() -> None:
    assert ServerArgs.model_validate({"hicache_storage_backend": "seaweedfs"}).hicache_storage_backend == "seaweedfs"
    with pytest.raises(ValidationError):
        ServerArgs.model_validate({"hicache_storage_backend": "seaweedfs"}, context={"release": "0.5.21"})


@pytest.mark.parametrize(
    ("written", "release", "capacity", "ignored"),
    [
        ({"hicache_size": 100}, NEWEST, TotalSize(100), set()),
        ({"hicache_size": 100, "hicache_ratio": 2.0}, NEWEST, TotalSize(100), {"hicache_ratio"}),
        (
            {"hicache_size": 1, "hicache_host_memory_fraction": 0.5}, NEWEST, TotalSize(1), {"hicache_host_memory_fraction"},
        ),
        (
            {"hicache_ratio": 3.0, "hicache_host_memory_fraction": 0.5}, NEWEST, DeviceRatio(3.0),
            {"hicache_host_memory_fraction"},
        ),
        ({"hicache_ratio": 1.5}, "0.5.14", DeviceRatio(1.5), set()),
        ({}, "0.5.14", DeviceRatio(2.0), set()),
        ({}, "0.5.20", DeviceRatio(2.0), set()),
        ({}, NEWEST, HostFraction(0.8, 2.0), set()),
        ({"hicache_size": 0, "hicache_host_memory_mode": "buffer_only"}, NEWEST, HostFraction(0.8, 1.2), set()),
        ({"hicache_host_memory_fraction": None}, NEWEST, DeviceRatio(2.0), set()),
    ],
)  # fmt: skip
def test_which_of_size_ratio_and_fraction_is_in_force(
    written: dict[str, Any], release: str, capacity: object, ignored: set[str]
) -> None:
    chosen = ServerArgs.model_validate(written, context={"release": release}).capacity(release)
    assert chosen.capacity == capacity
    assert set(chosen.ignored) == ignored


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)
KEYS = st.sampled_from([*ServerArgs.model_fields, "--tp", "hicache-size", "--enable-hicache", "--no-such"]) | st.text(
    max_size=6
)


@given(st.dictionaries(KEYS, JSON_VALUES, max_size=6))
def test_any_mapping_is_typed_or_refused_and_nothing_is_lost(data: dict[str, Any]) -> None:
    try:
        args = ServerArgs.model_validate(data)
    except ValidationError:
        return
    assert len(args.written) + len(args.others) + len(args.unknown) <= len(data)
    for key, value in args.unknown.items():
        assert repr(data[key]) == repr(value)
    assert json.loads(args.model_dump_json())["tp_size"] >= 1
