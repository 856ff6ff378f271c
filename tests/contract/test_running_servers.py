"""What a running server says of itself: its log and its `/server_info` name every argument, as resolved."""

from __future__ import annotations

import json
from typing import Any

import pytest

from hicache_config.arguments.releases import known, table
from tests.contract.support import call


def said(release: str, **others: Any) -> dict[str, Any]:
    """Every field of a release at its default, and what its resolution fills in (run: 0.5.23, a resolved record)."""
    fields = {name: each.default for name, each in table(release).items() if each.field == name}
    return {**fields, "model_path": "some/model", "page_size": 64, "hicache_ratio": 2.0, **others}


def as_log(values: dict[str, Any]) -> str:
    return f"[2026-01-05 10:00:00] server_args={values!r}\n"


def as_server_info(values: dict[str, Any]) -> str:
    return json.dumps({**values, "max_total_num_tokens": 100_000, "internal_states": [{}], "version": "0.0.0"})


def codes(text: str, *words: str) -> set[str]:
    result = call("validate", "-", "--format", "json", *words, input=text)
    return {finding["code"] for source in json.loads(result.stdout)["sources"] for finding in source["findings"]}


@pytest.mark.parametrize("form", [as_log, as_server_info])
@pytest.mark.parametrize("release", known())
def test_nothing_is_said_of_arguments_that_nobody_gave(release: str, form: Any) -> None:
    assert codes(form(said(release)), "--sglang", release) == set()
    on = form(said(release, enable_hierarchical_cache=True, hicache_size=40, hicache_host_memory_fraction=None))
    assert not {"HC107", "HC108", "HC120", "HC121", "HC122"} & codes(on, "--sglang", release)
    assert codes(form(said(release, hicache_size=40)), "--sglang", release) == {"HC122"}


@pytest.mark.parametrize("form", [as_log, as_server_info])
def test_what_decides_the_size_of_a_running_server(form: Any) -> None:
    def capacity(**values: Any) -> dict[str, Any]:
        text = form(said("0.5.23", enable_hierarchical_cache=True, **values))
        result = call("plan", "-", "--sglang", "0.5.23", "--model", "Qwen/Qwen3-8B", "--format", "json", input=text)
        made: dict[str, Any] = json.loads(result.stdout)["capacity"]
        return made

    assert capacity() == {"kind": "fraction", "fraction": 0.8, "ratio": 2.0}
    assert capacity(hicache_host_memory_fraction=None) == {"kind": "ratio", "ratio": 2.0}
    assert capacity(hicache_host_memory_fraction=None, hicache_ratio=3.0) == {"kind": "ratio", "ratio": 3.0}
    assert capacity(hicache_host_memory_fraction=None, hicache_size=40) == {"kind": "size", "size_gb": 40}


def test_an_argument_that_is_null_was_not_given() -> None:
    text = json.dumps({"enable_hierarchical_cache": True, "hicache_size": 40, "hicache_ratio": None})
    assert "HC120" not in codes(text, "--sglang", "0.5.23")
