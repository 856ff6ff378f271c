"""SGLang's own start refusing a bad configuration with our text: both launch commands and an embedded Engine."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from .live import models, servers

pytestmark = pytest.mark.live

BAD = ["--enable-hierarchical-cache", "--hicache-size", "-5", "--hicache-ratio", "nan"]


def launch(python: Path, folder: Path, words: list[str], mode: str = "check") -> subprocess.CompletedProcess[str]:
    environment = servers.environment(folder / "path", {"HICACHE_CONFIG": mode})
    return subprocess.run([str(python), *words], capture_output=True, text=True, env=environment, check=False)


@pytest.mark.parametrize("release", ["0.5.23", "0.5.20"])
@pytest.mark.parametrize("command", ["module", "serve"])
def test_a_launch_command_ends_with_all_findings_and_no_traceback(
    sglang_python: Callable[[str], Path], tmp_path: Path, command: str, release: str
) -> None:
    python = sglang_python(release)
    model = servers.write_model(tmp_path / "model", models.LLAMA)
    words = ["-m", "sglang.launch_server"]
    if command == "serve":
        words = [str(python.parent / "sglang"), "serve", "--model-type", "llm"]
    done = launch(python, tmp_path, [*words, *servers.BASE, "--model-path", model, *BAD])
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert "--hicache-size -5" in done.stderr
    assert "--hicache-ratio nan" in done.stderr


ENGINE = """
import json, sglang
try:
    sglang.Engine(model_path={model!r}, load_format="dummy", device="cpu", enable_hierarchical_cache=True,
                  hicache_size=1.5, hicache_ratio=-1.0)
except ValueError as error:
    print(json.dumps([type(error).__name__, [[f.code, f.argument] for f in error.findings]]))
"""


def test_an_embedded_engine_raises_a_normal_exception(sglang_python: Callable[[str], Path], tmp_path: Path) -> None:
    model = servers.write_model(tmp_path / "model", models.LLAMA)
    done = launch(sglang_python("0.5.23"), tmp_path, ["-c", ENGINE.format(model=model)])
    name, findings = json.loads(done.stdout.splitlines()[-1])
    assert name == "ConfigurationError"
    assert {argument for _, argument in findings} == {"hicache_size", "hicache_ratio"}


def test_a_wrong_mode_is_refused(sglang_python: Callable[[str], Path], tmp_path: Path) -> None:
    model = servers.write_model(tmp_path / "model", models.LLAMA)
    words = ["-m", "sglang.launch_server", *servers.BASE, "--model-path", model]
    done = launch(sglang_python("0.5.23"), tmp_path, words, mode="on")
    assert done.returncode == 1
    assert "check, enforce, off" in done.stderr


def test_what_can_not_be_enforced_is_refused(sglang_python: Callable[[str], Path], tmp_path: Path) -> None:
    model = servers.write_model(tmp_path / "model", models.LLAMA)
    size = ["--enable-hierarchical-cache", "--hicache-size", "1", "--use-ray"]
    words = ["-m", "sglang.launch_server", *servers.BASE, "--model-path", model, *size]
    done = launch(sglang_python("0.5.23"), tmp_path, words, mode="enforce")
    assert done.returncode == 1
    assert "HC451" in done.stderr


LOADED = """
import json, sys, time
from importlib.metadata import entry_points
(point,) = [one for one in entry_points(group="sglang.srt.plugins") if one.name == "hicache_config"]
import sglang.srt.plugins
before = set(sys.modules)
function = point.load()
function(); function()
print(json.dumps(sorted(set(sys.modules) - before)))
"""


def test_activation_loads_only_what_registers_hooks(sglang_python: Callable[[str], Path], tmp_path: Path) -> None:
    """As in a detokenizer: no rules, no pydantic, no pools of SGLang's."""
    done = launch(sglang_python("0.5.23"), tmp_path, ["-W", "ignore", "-c", LOADED])
    loaded = json.loads(done.stdout.splitlines()[-1])
    ours = {name for name in loaded if name.startswith("hicache_config")}
    assert ours <= {
        "hicache_config", "hicache_config.core", "hicache_config.core.findings", "hicache_config.core.releases",
        "hicache_config.engines", "hicache_config.engines.sglang", "hicache_config.engines.sglang.hooks",
        "hicache_config.engines.sglang.modes", "hicache_config.engines.sglang.starting",
        "hicache_config.engines.sglang.versions",
    }  # fmt: skip
    assert not [name for name in loaded if name.startswith("sglang.srt.mem_cache")]


DOCTOR = """
import json
from hicache_config import doctor
print(json.dumps(doctor.examine().as_dict()))
"""


@pytest.mark.parametrize("release", ["0.5.23", "0.5.20"])
def test_doctor_finds_the_plugin_and_its_hooks(
    sglang_python: Callable[[str], Path], tmp_path: Path, release: str
) -> None:
    done = launch(sglang_python(release), tmp_path, ["-W", "ignore", "-c", DOCTOR], mode="enforce")
    report = json.loads(done.stdout.splitlines()[-1])
    states = {check["name"]: check["state"] for check in report["checks"]}
    assert report["sglang"] == release
    assert (states["SGLang"], states["plugin"], states["hooks"]) == ("ok", "ok", "ok")
