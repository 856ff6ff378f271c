"""The argument tables of SGLang's releases: what every table keeps to, and what is known of single releases.

What a release has was read from its wheel and compared with its real parser and record (see tools/).
"""

from __future__ import annotations

import ast
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hicache_config.arguments import releases
from hicache_config.arguments.releases import (
    Argument,
    UnknownReleaseError,
    by_flag,
    differences,
    known,
    match_flag,
    table,
)

RELEASES = tuple(f"0.5.{patch}" for patch in range(10, 24))
KINDS = {"flag", "int", "float", "str", "json", "other"}


def test_every_release_from_the_first_supported_one_is_there() -> None:
    assert known() == RELEASES


# What every table keeps to ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("release", RELEASES)
def test_an_argument_is_whole(release: str) -> None:
    entries = table(release)
    assert list(entries) == sorted(entries)
    for name, argument in entries.items():
        assert argument.name == name
        assert argument.kind in KINDS
        assert argument.field is None or argument.field in entries
        assert all(flag.startswith("--") for flag in argument.flags if flag != "-h")
        assert argument.replaced_by == () or argument.deprecated
        assert argument.flags or argument.field == name
        hash(argument)


@pytest.mark.parametrize("release", RELEASES)
def test_a_spelling_belongs_to_one_argument(release: str) -> None:
    spellings = [flag for argument in table(release).values() for flag in argument.spellings]
    assert len(spellings) == len(set(spellings)) == len(by_flag(release))


@pytest.mark.parametrize("release", RELEASES)
def test_the_fields_of_an_engine_are_set_by_flags(release: str) -> None:
    """Only what is set from Python, or by SGLang itself, has no flag: a lost flag would show here."""
    names = {argument.name for argument in table(release).values() if not argument.flags}
    by_python = {"custom_sigquit_handler", "stat_loggers", "grpc_worker_threads", "enable_cp_tp_group_sharing"}
    by_sglang = {"uses_mamba_radix_cache", "speculative_boundary_reduction", "aux_hidden_state_capture"}
    rest = {name for name in names - by_python - by_sglang if not name.endswith("_explicitly_set")}
    assert all(name.startswith("watermark_") for name in rest)


@pytest.mark.parametrize("release", RELEASES)
def test_a_default_is_one_of_the_choices_and_of_the_kind(release: str) -> None:
    types: dict[str, tuple[type, ...]] = {"flag": (bool,), "int": (int,), "float": (float, int), "str": (str,)}
    for argument in table(release).values():
        value = argument.default
        if value is None or argument.nargs is not None or argument.type is not None:
            continue
        assert isinstance(value, types.get(argument.kind, (object,))), argument
        assert argument.choices is None or value in argument.choices, argument


@pytest.mark.parametrize("release", RELEASES)
def test_a_flag_named_as_replacement_exists(release: str) -> None:
    for argument in table(release).values():
        for text in argument.replaced_by:
            flag, _, value = text.partition("=")
            if not flag.startswith("--") or "{" in flag:
                continue
            replacement = by_flag(release)[flag.split()[0]]
            assert not replacement.deprecated
            assert not value or replacement.choices is None or value in replacement.choices


# What is known of single releases --------------------------------------------------------------------------------


def _since(*changes: tuple[str, Any]) -> dict[str, Any]:
    """The value for every release, from the releases in which it changed."""
    steps = dict(changes)
    values, value = {}, None
    for release in RELEASES:
        value = steps.get(release, value)
        values[release] = value
    return values


STORAGE = ("file", "mooncake", "hf3fs", "nixl", "aibrix", "dynamic", "eic")
DEFAULTS = {
    "enable_hierarchical_cache": _since(("0.5.10", False)),
    "hicache_size": _since(("0.5.10", 0)),
    "hicache_ratio": _since(("0.5.10", 2.0), ("0.5.18", None)),
    "hicache_write_policy": _since(("0.5.10", "write_through")),
    "hicache_io_backend": _since(("0.5.10", "kernel")),
    "hicache_mem_layout": _since(("0.5.10", "layer_first"), ("0.5.14", "page_first")),
    "hicache_storage_prefetch_policy": _since(("0.5.10", "best_effort"), ("0.5.12", "timeout")),
    "hicache_storage_backend": _since(("0.5.10", None)),
    "swa_full_tokens_ratio": _since(("0.5.10", 0.8), ("0.5.20", None)),
    "mamba_full_memory_ratio": _since(("0.5.10", 0.9), ("0.5.20", None)),
    "tp_size": _since(("0.5.10", 1)),
    "num_reserved_decode_tokens": _since(("0.5.10", 512)),
}
CHOICES = {
    "hicache_storage_backend": _since(
        ("0.5.10", {*STORAGE}),
        ("0.5.11", {*STORAGE, "simm"}),
        ("0.5.15", {*STORAGE, "simm", "mori"}),
        ("0.5.17", {*STORAGE, "simm", "mori", "shm"}),
        ("0.5.19", {*STORAGE, "simm", "mori", "shm", "sim"}),
        ("0.5.20", {*STORAGE, "simm", "mori", "shm", "sim", "npu_memcache"}),
        ("0.5.21", {*STORAGE, "simm", "mori", "shm", "sim", "npu_memcache", "tensorcast"}),
        ("0.5.22", {*STORAGE, "simm", "mori", "shm", "sim", "npu_memcache", "tensorcast", "seaweedfs"}),
    ),
    "hicache_mem_layout": _since(
        ("0.5.10", {"layer_first", "page_first", "page_first_direct", "page_first_kv_split", "page_head"})
    ),
    "hicache_io_backend": _since(("0.5.10", {"direct", "kernel", "kernel_ascend"})),
    "hicache_write_policy": _since(("0.5.10", {"write_back", "write_through", "write_through_selective"})),
    "hicache_storage_prefetch_policy": _since(("0.5.10", {"best_effort", "wait_complete", "timeout"})),
    "kv_cache_dtype": _since(
        ("0.5.10", {"auto", "fp8_e5m2", "fp8_e4m3", "bf16", "bfloat16", "fp4_e2m1"}),
        (
            "0.5.16",
            {"auto", "fp8_e5m2", "fp8_e4m3", "mxfp8", "bf16", "bfloat16", "nvfp4", "fp4_mx_block16", "fp4_e2m1"},
        ),
        ("0.5.21", {"auto", "fp8_e5m2", "fp8_e4m3", "mxfp8", "bf16", "bfloat16", "nvfp4", "fp4_mx_block16"}),
    ),
    "radix_eviction_policy": _since(
        ("0.5.10", {"lru", "lfu", "slru"}),
        ("0.5.11", {"lru", "lfu", "slru", "priority"}),
        ("0.5.21", {"lru", "lfu", "slru", "priority", "tlru"}),
    ),
}
FIRST_SEEN = {
    "disaggregation_decode_enable_radix_cache": "0.5.11",
    "radix_cache_backend": "0.5.13",
    "lmcache_config_file": "0.5.13",
    "disaggregation_decode_extra_slots": "0.5.14",
    "dcp_size": "0.5.15",
    "enable_unified_memory": "0.5.15",
    "enable_flexkv": "0.5.16",
    "disaggregation_decode_retraction_backup": "0.5.18",
    "hicache_host_memory_mode": "0.5.19",
    "hicache_storage_prefetch_retry_poll_interval": "0.5.19",
    "hicache_storage_prefetch_retry_max_attempts": "0.5.19",
    "enable_unified_cache_external_linker": "0.5.20",
    "hicache_host_memory_fraction": "0.5.21",
    "enable_linker_mla_dedup": "0.5.21",
    "disaggregation_decode_host_receive_threshold": "0.5.21",
    "attn_dp_size": "0.5.22",
    "enable_kv_cache_sharding": "0.5.22",
    "unified_cache_external_linker_config": "0.5.23",
}


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("name", DEFAULTS)
def test_default(name: str, release: str) -> None:
    argument = table(release)[name]
    assert repr(argument.default) == repr(DEFAULTS[name][release])
    assert argument.optional == (argument.default is None)


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("name", CHOICES)
def test_choices(name: str, release: str) -> None:
    assert set(table(release)[name].choices or ()) == CHOICES[name][release]


@pytest.mark.parametrize(("name", "first"), FIRST_SEEN.items())
def test_first_release(name: str, first: str) -> None:
    assert [release for release in RELEASES if name in table(release)] == list(RELEASES[RELEASES.index(first) :])


def test_retry_defaults_changed_after_their_first_release() -> None:
    interval, attempts = "hicache_storage_prefetch_retry_poll_interval", "hicache_storage_prefetch_retry_max_attempts"
    assert [table("0.5.19")[name].default for name in (interval, attempts)] == [0, 4]
    assert {table(release)[name].default for release in RELEASES[10:] for name in (interval, attempts)} == {8}


def test_the_receive_threshold_was_turned_round() -> None:
    name = "disaggregation_decode_host_receive_threshold"
    assert [table(release)[name].default for release in RELEASES[11:]] == [0.0, 1.0, 1.0]


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize(
    ("flag", "field", "first", "last"),
    [
        ("--enable-hicache", "enable_hierarchical_cache", "0.5.23", "0.5.23"),
        ("--tensor-parallel-size", "tp_size", "0.5.10", "0.5.23"),
        ("--tp-size", "tp_size", "0.5.10", "0.5.23"),
        ("--pp-size", "pp_size", "0.5.10", "0.5.23"),
        ("--data-parallel-size", "dp_size", "0.5.10", "0.5.23"),
        ("--model", "model_path", "0.5.10", "0.5.23"),
        ("--hierarchical-sparse-attention-extra-config", "hisparse_config", "0.5.12", "0.5.23"),
        ("--nsa-prefill-backend", "dsa_prefill_backend", "0.5.13", "0.5.19"),
        ("--mamba-scheduler-strategy", "mamba_radix_cache_strategy", "0.5.14", "0.5.19"),
        ("--monokernel-backend", "enable_amd_monokernel", "0.5.23", "0.5.23"),
        ("--no-lora-strict-loading", "lora_strict_loading", "0.5.11", "0.5.23"),
    ],
)
def test_a_spelling_sets_its_field(flag: str, field: str, first: str, last: str, release: str) -> None:
    argument = by_flag(release).get(flag)
    if RELEASES.index(first) <= RELEASES.index(release) <= RELEASES.index(last):
        assert argument is not None
        assert argument.field == field
    elif argument is not None:  # a field of its own, as --nsa-prefill-backend was before it was renamed
        assert argument.field == flag.lstrip("-").replace("-", "_")


def test_deprecated_arguments_name_their_replacement() -> None:
    now = table("0.5.23")
    assert (now["enable_dp_attention"].deprecated, now["enable_dp_attention"].replaced_by) == (
        True,
        ("--attn-dp-size <dp-size>",),
    )
    assert not table("0.5.21")["enable_dp_attention"].deprecated
    assert now["grpc_mode"].replaced_by == ("--smg-grpc-mode",)
    assert not now["smg_grpc_mode"].deprecated
    assert table("0.5.12")["enable_nan_detection"].replaced_by == (
        "SGLANG_SPEC_NAN_DETECTION=1",
        "SGLANG_SPEC_OOB_DETECTION=1",
    )
    assert [r for r in RELEASES for a in table(r).values() if a.refused] == ["0.5.18", "0.5.19"]


def test_the_machine_decides_one_default() -> None:
    unknown = {(release, a.name, a.unknown) for release in RELEASES for a in table(release).values() if a.unknown}
    assert unknown == {(release, "pre_warm_nccl", ("default",)) for release in RELEASES[:4]}
    assert table("0.5.10")["pre_warm_nccl"].cli_default is False


def test_a_parser_default_of_its_own() -> None:
    other = {a.name for release in RELEASES for a in table(release).values() if a.cli_default != a.default}
    assert other == {"kt_method", "kt_threadpool_count", "pre_warm_nccl"}
    assert (table("0.5.10")["kt_method"].default, table("0.5.10")["kt_method"].cli_default) == (None, "AMXINT4")


# Reading ---------------------------------------------------------------------------------------------------------


def test_a_post_release_is_its_release() -> None:
    assert table("0.5.15.post1") is table("0.5.15")
    assert match_flag("0.5.15.post1", "--hicache-size").kind == "exact"


@pytest.mark.parametrize("release", ["0.5.9", "0.5.24", "", "../releases/0.5.23", "0.5.23/", "latest", "0.5.23\n"])
def test_an_unknown_release_says_which_there_are(release: str) -> None:
    with pytest.raises(UnknownReleaseError, match=r"0\.5\.10 to 0\.5\.23"):
        table(release)


def test_nothing_can_be_changed() -> None:
    entries: Any = table("0.5.23")
    with pytest.raises(TypeError):
        entries["x"] = None
    argument: Any = entries["hicache_size"]
    with pytest.raises(AttributeError):
        argument.default = 5


def test_the_loader_imports_the_standard_library_alone() -> None:
    tree = ast.parse(Path(releases.__file__).read_text("utf-8"))
    imports = [node for node in ast.walk(tree) if isinstance(node, (ast.Import, ast.ImportFrom))]
    names = {
        alias.name if isinstance(node, ast.Import) else "." * node.level + (node.module or "")
        for node in imports
        for alias in node.names
    }
    assert {name.split(".")[0] for name in names} <= sys.stdlib_module_names


# Differences -----------------------------------------------------------------------------------------------------

PAIRS = [(old, new) for old in RELEASES for new in RELEASES]


@pytest.mark.parametrize("release", RELEASES)
def test_a_release_does_not_differ_from_itself(release: str) -> None:
    assert differences(release, release) == []


@given(st.sampled_from(PAIRS))
def test_differences_turn_round(pair: tuple[str, str]) -> None:
    old, new = pair
    back = {"added": "removed", "removed": "added"}
    there = [(d.name, back.get(d.what, d.what), d.new, d.old) for d in differences(old, new)]
    assert there == [(d.name, d.what, d.old, d.new) for d in differences(new, old)]


@given(st.sampled_from(PAIRS))
def test_differences_lead_from_one_table_to_the_other(pair: tuple[str, str]) -> None:
    old, new = pair
    found = differences(old, new)
    added = {d.name: d.new for d in found if d.what == "added"}
    removed = {d.name for d in found if d.what == "removed"}
    kept: dict[str, Argument] = {name: entry for name, entry in table(old).items() if name not in removed}
    assert (kept | added).keys() == table(new).keys()
    changed = {(d.name, d.what) for d in found}
    for name, before in kept.items():
        for what in ("flags", "default", "choices", "kind", "deprecated", "nargs", "fallback"):
            same = repr(getattr(before, what)) == repr(getattr(table(new)[name], what))
            assert same == ((name, what) not in changed)


def test_the_differences_that_people_met() -> None:
    layout = [d for d in differences("0.5.13", "0.5.14") if d.name == "hicache_mem_layout"]
    assert [(d.what, d.old, d.new) for d in layout] == [("default", "layer_first", "page_first")]
    alias = [d for d in differences("0.5.22", "0.5.23") if d.name == "enable_hierarchical_cache"]
    assert [(d.what, d.new[1:]) for d in alias] == [("flags", ("--enable-hicache",))]
