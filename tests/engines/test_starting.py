"""What happens while arguments are resolved, on a stand-in for SGLang's record of arguments."""

from __future__ import annotations

import logging
import os
from dataclasses import dataclass, field
from typing import Any

import pytest

from hicache_config.core.findings import ConfigurationError, Finding, has_errors
from hicache_config.core.units import GIB
from hicache_config.engines.sglang import starting
from hicache_config.engines.sglang.modes import Mode
from hicache_config.engines.sglang.starting import (
    concerns_hicache,
    given_arguments,
    on_arguments,
    on_command_line,
    rule_findings,
    stop,
    unenforceable,
)
from hicache_config.memory import Headroom, HostFacts


@dataclass
class ServerArgs:
    """As SGLang's record: defaults, and what a user wrote."""

    model_path: str = "none"
    enable_hierarchical_cache: bool = False
    hicache_size: Any = 0
    hicache_ratio: Any = None
    hicache_mem_layout: str = "page_first"
    hicache_io_backend: str = "kernel"
    enable_unified_memory: bool = False
    use_ray: bool = False
    disaggregation_decode_enable_offload_kvcache: bool = False
    stop_words: list[str] = field(default_factory=list)


@pytest.fixture(autouse=True)
def release(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(starting, "installed_sglang", lambda: "0.5.23")
    monkeypatch.setattr(starting, "_prove_hooks", lambda version, mode: None)
    monkeypatch.setenv("HICACHE_CONFIG", "check")


def previous(server_args: Any) -> None:
    server_args.model_path = "resolved"


def test_only_what_differs_from_the_defaults_was_given() -> None:
    assert given_arguments(ServerArgs(hicache_size=1, stop_words=["a"])) == {"hicache_size": 1, "stop_words": ["a"]}


def test_true_is_not_one_and_a_float_is_not_an_integer() -> None:
    assert given_arguments(ServerArgs(hicache_size=False)) == {"hicache_size": False}
    assert given_arguments(ServerArgs(hicache_size=0.0)) == {"hicache_size": 0.0}


@pytest.mark.parametrize("given", [{}, {"model_path": "x"}, {"tp_size": 8}])
def test_a_server_without_hicache_is_left_alone(given: dict[str, Any]) -> None:
    assert not concerns_hicache(given)


def test_sglangs_own_step_runs_after_a_good_check() -> None:
    args = ServerArgs(enable_hierarchical_cache=True, hicache_size=1)
    on_arguments(args, previous)
    assert args.model_path == "resolved"


@pytest.mark.parametrize(
    "wrong",
    [
        {"hicache_size": -5},
        {"hicache_size": 1.5},
        {"hicache_size": "100"},
        {"hicache_ratio": 0.0},
        {"hicache_ratio": float("nan")},
        {"hicache_ratio": float("inf")},
        {"hicache_mem_layout": "page_frist"},
    ],
)
def test_what_sglang_accepts_and_fails_on_later_is_refused(wrong: dict[str, Any]) -> None:
    args = ServerArgs(enable_hierarchical_cache=True, **wrong)
    with pytest.raises(ConfigurationError) as caught:
        on_arguments(args, previous)
    assert next(iter(wrong)) in {finding.argument for finding in caught.value.findings}
    assert args.model_path == "none"


def test_all_findings_come_at_once() -> None:
    args = ServerArgs(enable_hierarchical_cache=True, hicache_size=-5, hicache_ratio=-1.0, hicache_mem_layout="no")
    with pytest.raises(ConfigurationError) as caught:
        on_arguments(args, previous)
    assert {"hicache_size", "hicache_ratio", "hicache_mem_layout"} <= {
        finding.argument for finding in caught.value.findings
    }


def test_off_checks_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HICACHE_CONFIG", "off")
    on_arguments(ServerArgs(enable_hierarchical_cache=True, hicache_size=-5), previous)


def test_a_wrong_mode_stops_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HICACHE_CONFIG", "on")
    with pytest.raises(ConfigurationError, match="check, enforce, off"):
        on_arguments(ServerArgs(), previous)


def test_warnings_go_to_the_log_and_do_not_stop(caplog: pytest.LogCaptureFixture) -> None:
    args = ServerArgs(enable_hierarchical_cache=True, hicache_size=1, hicache_ratio=2.0)
    with caplog.at_level(logging.INFO, "sglang.hicache_config"):
        on_arguments(args, previous)
    assert any("hicache-config: HC" in record.message for record in caplog.records)


@pytest.mark.parametrize(("size", "told"), [(0, True), (1, False)])
def test_enforcing_without_a_size_is_told(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, size: int, told: bool
) -> None:
    monkeypatch.setenv("HICACHE_CONFIG", "enforce")
    with caplog.at_level(logging.WARNING, "sglang.hicache_config"):
        on_arguments(ServerArgs(enable_hierarchical_cache=True, hicache_size=size), previous)
    assert ("no --hicache-size to enforce" in caplog.text) == told


@pytest.mark.parametrize(
    ("total", "limit", "refused"), [(64, None, True), (640, None, False), (640, 64, True), (640, 2**30, False)]
)
def test_a_size_that_this_machine_can_never_hold_is_refused(
    monkeypatch: pytest.MonkeyPatch, total: int, limit: int | None, refused: bool
) -> None:
    """However little is free while the arguments are read: a server that ends just now may give back the rest."""
    room = None if limit is None else Headroom(0, limit * GIB, limit * GIB, "memory.max")
    facts = HostFacts(total_bytes=total * GIB, available_bytes=0, cgroup=room)
    monkeypatch.setattr("hicache_config.memory.examine_host", lambda: facts)
    given = {"enable_hierarchical_cache": True, "hicache_size": 100, "model_path": "meta-llama/Meta-Llama-3.1-8B"}
    findings = rule_findings(given, "0.5.23", Mode.ENFORCE)
    assert [finding.argument for finding in findings if finding.code == "HC501"] == ["hicache_size"] * refused


@pytest.mark.parametrize("given", [{}, {"hicache_ratio": 2.0}])
def test_that_a_fit_is_not_known_yet_is_not_told(given: dict[str, Any]) -> None:
    """SGLang knows its device slots when it looks at the memory."""
    given |= {"enable_hierarchical_cache": True, "model_path": "meta-llama/Meta-Llama-3.1-8B"}
    assert "HC505" not in {finding.code for finding in rule_findings(given, "0.5.23", Mode.CHECK)}


def test_arguments_that_no_table_knows_are_no_error() -> None:
    """They come from SGLang's own record, so this SGLang has them."""
    findings = rule_findings({"enable_hierarchical_cache": True, "a_new_argument": 1}, "0.5.23", Mode.CHECK)
    assert not has_errors(findings)


def test_a_fault_of_ours_does_not_keep_a_server_from_starting(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(given: Any, version: str, mode: Mode) -> list[Finding]:
        raise KeyError("something")

    monkeypatch.setattr(starting, "rule_findings", broken)
    args = ServerArgs(enable_hierarchical_cache=True)
    with caplog.at_level(logging.ERROR, "sglang.hicache_config"):
        on_arguments(args, previous)
    assert args.model_path == "resolved"
    assert "could not be checked" in caplog.text


@pytest.mark.parametrize(
    "name",
    ["use_ray", "enable_unified_memory", "disaggregation_decode_enable_offload_kvcache", "enable_kv_cache_sharding"],
)
def test_what_can_not_be_enforced_is_refused_with_a_size(name: str) -> None:
    (finding,) = unenforceable({name: True, "hicache_size": 10}, Mode.ENFORCE)
    assert (finding.code, finding.argument, finding.severity) == ("HC451", name, "error")
    assert not unenforceable({name: True, "hicache_ratio": 2.0}, Mode.ENFORCE)
    assert not unenforceable({name: True, "hicache_size": 10}, Mode.CHECK)


@pytest.mark.parametrize("size", ["10", None, float("nan")])
def test_a_size_of_another_kind_is_left_to_the_rules(size: Any) -> None:
    assert not unenforceable({"use_ray": True, "hicache_size": size}, Mode.ENFORCE)


@pytest.mark.parametrize(("pages", "told"), [("1GB", True), ("2mb", True), ("4KB", False)])
def test_huge_pages_are_told_since_they_round_buffers_up(
    monkeypatch: pytest.MonkeyPatch, pages: str, told: bool
) -> None:
    monkeypatch.setenv("SGLANG_HUGEPAGE_SIZE", pages)
    found = unenforceable({"hicache_size": 10}, Mode.ENFORCE)
    assert [(finding.code, finding.severity) for finding in found] == [("HC452", "warning")] * told


ERROR = Finding("HC103", "out-of-range", "error", "too small", "Write 1.", argument="hicache_size")
WARNING = Finding("HC203", "rewritten", "warning", "is rewritten", argument="hicache_io_backend")


def test_an_embedded_engine_gets_an_exception_with_the_errors() -> None:
    assert not on_command_line()
    with pytest.raises(ValueError, match="HC103") as caught:
        stop([WARNING, ERROR])
    assert isinstance(caught.value, ConfigurationError)
    assert caught.value.findings == (ERROR,)


@pytest.mark.parametrize("module", ["sglang.cli.serve", "sglang.launch_server"])
def test_a_launch_command_ends_with_the_text_alone(module: str) -> None:
    frame: dict[str, Any] = {"__name__": module, "stop": stop, "findings": [WARNING, ERROR]}
    exec("def run(): stop(findings)", frame)
    with pytest.raises(SystemExit) as caught:
        frame["run"]()
    text = str(caught.value)
    assert text.index("HC103") < text.index("HC203")
    assert "--hicache-size" in text
    assert "Write 1." in text
    assert "HICACHE_CONFIG=off" in text


def test_an_engine_inside_a_command_is_an_engine() -> None:
    engine: dict[str, Any] = {"__name__": "sglang.srt.entrypoints.engine", "ask": on_command_line}
    exec("def __init__(): return ask()", engine)
    command: dict[str, Any] = {"__name__": "sglang.cli.serve", "make": engine["__init__"]}
    exec("def run(): return make()", command)
    assert command["run"]() is False


def test_an_unsupported_release_checks_and_says_that_it_does_not_enforce(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.undo()
    monkeypatch.setenv("HICACHE_CONFIG", "enforce")
    with caplog.at_level(logging.WARNING, "sglang.hicache_config"):
        starting._prove_hooks("0.5.24", Mode.ENFORCE)
    assert "no size is enforced" in caplog.text
    assert os.environ["HICACHE_CONFIG"] == "check"


def test_hooks_that_are_not_in_place_turn_enforce_into_check(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    from hicache_config.engines.sglang import hooks

    monkeypatch.undo()
    monkeypatch.setenv("HICACHE_CONFIG", "enforce")
    monkeypatch.setattr(hooks, "apply_build_hooks", lambda: None)
    monkeypatch.setattr(hooks, "hook_problems", lambda: ["build_kv_cache is not hooked"])
    with caplog.at_level(logging.WARNING, "sglang.hicache_config"):
        starting._prove_hooks("0.5.23", Mode.ENFORCE)
    assert "build_kv_cache is not hooked; nothing is enforced" in caplog.text
    assert os.environ["HICACHE_CONFIG"] == "check"
