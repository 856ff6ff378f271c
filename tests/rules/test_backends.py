"""Settings of the storage backends: what is read, what is refused, and the host memory they take."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hicache_config.arguments import ServerArgs
from hicache_config.arguments.releases import table
from hicache_config.rules.backends.fields import mooncake_bytes
from hicache_config.rules.backends.kinds import MODELS
from hicache_config.rules.backends.memory import MOONCAKE_BUFFER, host_bytes_per_rank
from hicache_config.rules.backends.reading import read_settings
from tests.rules.judging import findings

ADDRESS = {"master_server_address": "master:50051"}
GIB = 2**30


def args(**values: Any) -> ServerArgs:
    return ServerArgs.model_validate(values)


def test_every_backend_of_the_newest_release_has_a_model() -> None:
    assert set(table("0.5.23")["hicache_storage_backend"].choices or ()) == set(MODELS)


@pytest.mark.parametrize("backend", sorted(MODELS))
def test_settings_are_read_alike_from_text_and_mapping(backend: str) -> None:
    given_ = {"prefetch_threshold": 512, "nonsense_key": 1}
    from_text, from_mapping = read_settings(backend, json.dumps(given_)), read_settings(backend, given_)
    assert from_text == from_mapping
    kinds = {problem.kind for problem in from_text.problems}
    assert ("unknown" in kinds) != MODELS[backend].open_ended


@pytest.mark.parametrize("backend", sorted(MODELS))
def test_every_key_says_what_it_is(backend: str) -> None:
    for name, info in MODELS[backend].model_fields.items():
        assert info.description, name
        if "bytes" in name or name in ("global_segment_size", "max_size"):
            extra = info.json_schema_extra
            assert isinstance(extra, dict)
            assert extra["unit"]
            assert extra["scope"]


@pytest.mark.parametrize(
    ("text", "amount"),
    [
        ("4gb", 4 * GIB),
        ("4GB", 4 * GIB),
        (" 16 gb", 16 * GIB),
        ("4294967296", 4 * GIB),
        (4294967296, 4 * GIB),
        ("0", 0),
    ],
)
def test_a_segment(text: Any, amount: int) -> None:
    assert read_settings("mooncake", {**ADDRESS, "global_segment_size": text}).problems == ()
    assert mooncake_bytes(text) == amount


@pytest.mark.parametrize("text", ["0.5gb", "4gib", "4 GiB", "gb", "lots", "1e9", True, 0.5, -1])
def test_what_is_no_segment(text: Any) -> None:
    (problem,) = read_settings("mooncake", {**ADDRESS, "global_segment_size": text}).problems
    assert problem.key == "/global_segment_size"
    assert problem.kind == "wrong"
    assert "GiB" in problem.help


@given(st.integers(0, 2**50), st.integers(1, 64), st.integers(1, 8))
def test_a_segment_is_divided_by_the_ranks_of_the_engine(segment: int, tensor: int, stages: int) -> None:
    config = {**ADDRESS, "global_segment_size": segment}
    taken = host_bytes_per_rank("mooncake", config, args(tp_size=tensor, pp_size=stages), {})
    assert taken is not None
    each = taken - MOONCAKE_BUFFER
    assert each * tensor * stages <= segment < (each + 1) * tensor * stages


def test_without_an_address_the_environment_counts() -> None:
    config = {"global_segment_size": "64gb"}
    assert host_bytes_per_rank("mooncake", config, args(), {}) == 4 * GIB + MOONCAKE_BUFFER
    told = {"MOONCAKE_GLOBAL_SEGMENT_SIZE": "8gb"}
    assert host_bytes_per_rank("mooncake", config, args(tp_size=2), told) == 4 * GIB + MOONCAKE_BUFFER
    assert host_bytes_per_rank("mooncake", config, args(), {"SGLANG_HICACHE_MOONCAKE_CONFIG_PATH": "/a.json"}) is None
    assert host_bytes_per_rank("mooncake", config, args(), {"MOONCAKE_GLOBAL_SEGMENT_SIZE": "much"}) is None


def test_attention_groups_share_a_segment_among_their_tensor_ranks() -> None:
    config = {**ADDRESS, "global_segment_size": "8gb"}
    taken = host_bytes_per_rank("mooncake", config, args(tp_size=8, attn_dp_size=4), {})
    assert taken == 4 * GIB + MOONCAKE_BUFFER


def test_other_backends() -> None:
    assert host_bytes_per_rank(None, None, args(), {}) == 0
    assert host_bytes_per_rank("file", {"max_size": "100G"}, args(), {}) == 0
    assert host_bytes_per_rank("mori", {"dram_capacity_bytes": "1000"}, args(), {}) == 1000
    assert host_bytes_per_rank("mori", None, args(), {}) is None
    scratch = {"tensorcast": {"daemon_address": "a", "transfer_mode": "scratch", "scratch": {"capacity_bytes": 100}}}
    assert host_bytes_per_rank("tensorcast", scratch, args(), {}) == 200
    assert host_bytes_per_rank("mooncake", "@settings.json", args(), {}) is None
    assert host_bytes_per_rank("mooncake", {**ADDRESS, "standalone_storage": True}, args(), {}) == MOONCAKE_BUFFER


@pytest.mark.parametrize(
    ("backend", "config", "key", "kind"),
    [
        ("file", {"prefetch_threshold": True}, "/prefetch_threshold", "wrong"),
        ("file", {"prefetch_threshold": 1.5}, "/prefetch_threshold", "wrong"),
        ("file", {"hicache_storage_pass_prefix_keys": 1}, "/hicache_storage_pass_prefix_keys", "wrong"),
        ("file", {"eviction_ratio": 1.5}, "/eviction_ratio", "wrong"),
        ("nixl", {"l3_cleaner_enabled": "true"}, "/l3_cleaner_enabled", "wrong"),
        ("seaweedfs", {"bucket": "b"}, "/endpoint", "missing"),
        ("dynamic", {"backend_name": "b", "module_path": "m"}, "/class_name", "missing"),
        ("tensorcast", {}, "/tensorcast", "missing"),
        ("tensorcast", {"tensorcast": {}}, "/tensorcast/daemon_address", "missing"),
        ("tensorcast", {"tensorcast": {"daemon_address": "a", "x": 1}}, "/tensorcast/x", "unknown"),
        ("mori", {"ssd_io_backend": "aio"}, "/ssd_io_backend", "wrong"),
        ("mooncake", {**ADDRESS, "protocl": "rdma"}, "/protocl", "unknown"),
    ],
)
def test_problems_name_their_key(backend: str, config: dict[str, Any], key: str, kind: str) -> None:
    (problem,) = read_settings(backend, config).problems
    assert (problem.key, problem.kind) == (key, kind)
    assert problem.message


def test_a_file_is_named_but_not_opened() -> None:
    assert read_settings("file", "@/does/not/exist.yaml").path == "/does/not/exist.yaml"
    (problem,) = read_settings("file", "@settings.ini").problems
    assert problem.kind == "file"
    assert ".json" in problem.help


def test_a_finding_points_at_the_inner_key() -> None:
    config = '{"prefetch_treshold": 10}'
    found = findings(
        {
            "enable_hierarchical_cache": True,
            "hicache_storage_backend": "file",
            "hicache_storage_backend_extra_config": config,
        }
    )
    (finding,) = [each for each in found if each.code == "HC703"]
    assert finding.pointer == "/hicache_storage_backend_extra_config/prefetch_treshold"
    assert "prefetch_threshold" in finding.help


@given(st.text(max_size=40))
def test_any_text_is_read_or_refused(text: str) -> None:
    settings = read_settings("file", text)
    assert settings.given is not None or settings.problems or settings.path is not None


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)


@given(st.sampled_from(sorted(MODELS)), st.data())
def test_any_mapping_is_read_or_refused(backend: str, data: st.DataObject) -> None:
    names = st.sampled_from(sorted(MODELS[backend].model_fields)) | st.text(max_size=8)
    settings = read_settings(backend, data.draw(st.dictionaries(names, _JSON, max_size=4)))
    assert settings.typed is not None or settings.problems
