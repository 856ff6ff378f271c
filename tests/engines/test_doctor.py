"""What doctor makes of an environment; SGLang itself is a stand-in, the host is this machine or facts of our own."""

from __future__ import annotations

import json
import subprocess
from importlib.metadata import EntryPoint
from typing import Any

import pytest

from hicache_config import doctor
from hicache_config.doctor import examine, run_probe
from hicache_config.memory import Headroom, HostFacts, HugePages

GIB = 2**30
OURS = EntryPoint("hicache_config", "hicache_config.engines.sglang:activate", doctor.GROUP)


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """SGLang 0.5.23 with the plugin, on a machine with 1,000 GiB; the answers may be changed."""
    facts: dict[str, Any] = {
        "version": "0.5.23",
        "points": [OURS],
        "probe": {"error": None, "loaded": True, "problems": [], "file": "sglang/__init__.py"},
        "host": HostFacts(total_bytes=1000 * GIB, available_bytes=900 * GIB, memlock_bytes=-1),
    }
    monkeypatch.setattr(doctor, "installed_sglang", lambda: facts["version"])
    monkeypatch.setattr(doctor, "_entry_points", lambda: facts["points"])
    monkeypatch.setattr(doctor, "run_probe", lambda environment, timeout_s: facts["probe"])
    monkeypatch.setattr(doctor, "examine_host", lambda: facts["host"])
    return facts


def states(**more: Any) -> dict[str, str]:
    return {check.name: check.state for check in examine(**more).checks}


def test_a_sound_machine_has_nothing_that_fails(installed: dict[str, Any]) -> None:
    report = examine(environment={"HICACHE_CONFIG": "enforce"}, ranks=8)
    assert not report.failed
    assert {check.state for check in report.checks} == {"ok"}
    assert report.claim_bytes == 890 * GIB // 8
    assert report.mode == "enforce"


def test_the_report_is_json(installed: dict[str, Any]) -> None:
    data = json.loads(json.dumps(examine(environment={}).as_dict()))
    assert data["kind"] == "hicache-doctor"
    assert data["failed"] is False
    assert {"name", "state", "text", "help"} == set(data["checks"][0])


def test_without_sglang_configurations_can_still_be_checked(installed: dict[str, Any]) -> None:
    installed["version"] = None
    report = examine(environment={})
    assert not report.failed
    assert "plugin" not in {check.name for check in report.checks}


@pytest.mark.parametrize(
    ("change", "environment", "check", "state"),
    [
        ({}, {"HICACHE_CONFIG": "on"}, "mode", "failed"),
        ({"version": "0.5.24"}, {}, "SGLang", "warning"),
        ({"version": "0.5.24"}, {"HICACHE_CONFIG": "enforce"}, "SGLang", "failed"),
        ({"points": []}, {}, "plugin", "failed"),
        ({}, {"SGLANG_PLUGINS": "other"}, "plugin", "warning"),
        ({}, {"SGLANG_PLUGINS": "other", "HICACHE_CONFIG": "enforce"}, "plugin", "failed"),
        ({}, {"SGLANG_PLUGINS": "other, hicache_config"}, "plugin", "ok"),
        ({"probe": {"error": "no torch", "loaded": False, "problems": []}}, {}, "hooks", "failed"),
        ({"probe": {"error": None, "loaded": False, "problems": []}}, {}, "hooks", "failed"),
        ({"probe": {"error": None, "loaded": True, "problems": ["x is not hooked"]}}, {}, "hooks", "warning"),
        (
            {"probe": {"error": None, "loaded": True, "problems": ["x is not hooked"]}},
            {"HICACHE_CONFIG": "enforce"}, "hooks", "failed",
        ),
        ({"host": HostFacts(total_bytes=9 * GIB, available_bytes=9 * GIB)}, {}, "host memory", "failed"),
        (
            {"host": HostFacts(total_bytes=999 * GIB, available_bytes=900 * GIB, cgroup_problem="unreadable")},
            {}, "cgroup", "warning",
        ),
        ({}, {"SGLANG_HUGEPAGE_SIZE": "2MB"}, "huge pages", "warning"),
        ({}, {"SGLANG_HUGEPAGE_SIZE": "2GB"}, "huge pages", "warning"),
        ({}, {}, "locked memory", "ok"),
    ],
)  # fmt: skip
def test_what_would_fail_is_told(
    installed: dict[str, Any], change: dict[str, Any], environment: dict[str, str], check: str, state: str
) -> None:
    installed.update(change)
    report = examine(environment=environment)
    assert {one.name: one.state for one in report.checks}[check] == state
    assert report.failed == (state == "failed")
    assert all(one.help for one in report.checks if one.state in ("failed", "warning"))


def test_a_tight_cgroup_bounds_what_a_rank_may_claim(installed: dict[str, Any]) -> None:
    room = Headroom(100 * GIB, 120 * GIB, 20 * GIB, "/sys/fs/cgroup/memory.max")
    installed["host"] = HostFacts(total_bytes=1000 * GIB, available_bytes=900 * GIB, cgroup=room)
    report = examine(environment={}, ranks=2)
    assert report.claim_bytes == 45 * GIB
    assert any("memory.max" in check.text for check in report.checks)


def test_free_huge_pages_of_the_size_asked_for_are_counted(installed: dict[str, Any]) -> None:
    installed["host"] = HostFacts(
        total_bytes=1000 * GIB, available_bytes=900 * GIB, huge_pages=(HugePages(GIB, 8, 4), HugePages(2 * 2**20, 0, 0))
    )
    assert states(environment={"SGLANG_HUGEPAGE_SIZE": "1gb"})["huge pages"] == "ok"


def test_a_limit_that_can_not_be_read_is_unknown(installed: dict[str, Any]) -> None:
    installed["host"] = HostFacts(total_bytes=1000 * GIB, available_bytes=900 * GIB)
    assert states(environment={})["locked memory"] == "unknown"


def test_the_probe_answers_in_a_process_of_its_own() -> None:
    answer = run_probe({}, 60)
    assert "sglang" in answer["error"]
    assert not answer["loaded"]


@pytest.mark.parametrize(
    ("done", "words"),
    [
        (subprocess.CompletedProcess([], 1, "", "Boom: it broke\n"), "Boom: it broke"),
        (subprocess.CompletedProcess([], -9, "no answer\n", ""), "ended with -9"),
        (subprocess.CompletedProcess([], 0, "[1]\n", ""), "no answer"),
    ],
)
def test_a_probe_that_breaks_is_an_error_in_words(
    monkeypatch: pytest.MonkeyPatch, done: subprocess.CompletedProcess[str], words: str
) -> None:
    monkeypatch.setattr(subprocess, "run", lambda *args, **more: done)
    assert words in run_probe({}, 1)["error"]


def test_a_probe_that_hangs_is_an_error_in_words(monkeypatch: pytest.MonkeyPatch) -> None:
    def late(*args: Any, **more: Any) -> None:
        raise subprocess.TimeoutExpired("probe", 7)

    monkeypatch.setattr(subprocess, "run", late)
    assert "7 s" in run_probe({}, 7)["error"]
