"""HICACHE_CONFIG, versions, and what activation does in a process without SGLang."""

from __future__ import annotations

import subprocess
import sys

import pytest

from hicache_config.engines.sglang.modes import Mode, ModeError, read_mode
from hicache_config.engines.sglang.versions import ENFORCED, is_enforced


@pytest.mark.parametrize(
    ("value", "mode"),
    [(None, Mode.CHECK), ("", Mode.CHECK), ("check", Mode.CHECK), ("ENFORCE", Mode.ENFORCE), (" off ", Mode.OFF)],
)
def test_mode_is_read_from_the_environment(value: str | None, mode: Mode) -> None:
    assert read_mode({} if value is None else {"HICACHE_CONFIG": value}) is mode


@pytest.mark.parametrize("value", ["on", "1", "enforced", "check,enforce"])
def test_a_wrong_mode_names_the_choices(value: str) -> None:
    with pytest.raises(ModeError, match="check, enforce, off"):
        read_mode({"HICACHE_CONFIG": value})


@pytest.mark.parametrize("version", [*ENFORCED, "0.5.23.post1", "0.5.22+cu129"])
def test_supported_releases_are_enforced(version: str) -> None:
    assert is_enforced(version)


@pytest.mark.parametrize("version", [None, "", "0.5.19", "0.5.24", "0.6.0", "1.0", "main"])
def test_other_versions_are_not(version: str | None) -> None:
    assert not is_enforced(version)


def test_importing_the_plugin_loads_nothing_heavy() -> None:
    """Every SGLang process imports it, the detokenizer too."""
    code = (
        "import sys; before = set(sys.modules); import hicache_config.engines.sglang; "
        "print(' '.join(sorted({name.partition('.')[0] for name in set(sys.modules) - before})))"
    )
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    heavy = {"torch", "sglang", "pydantic", "click", "rich", "jsonschema", "ruamel", "psutil", "numpy", "packaging"}
    assert not heavy & set(loaded)


def test_activation_without_sglang_says_so_and_does_not_fail() -> None:
    code = "from hicache_config.engines.sglang import activate, is_active; activate(); activate(); print(is_active())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
    assert "no resolution hooks" in done.stderr
