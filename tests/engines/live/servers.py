"""Real SGLang servers on a CPU for tests: dummy weights, our plugin beside it, its log as the result.

Each takes about 40 seconds of two cores. The oracle's environment is only read: the plugins' entry points are written
to a folder that is put on the path.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import random
import re
import signal
import socket
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[3]
HERE = Path(__file__).resolve().parent

BASE = (
    "--load-format", "dummy", "--device", "cpu", "--skip-tokenizer-init", "--max-total-tokens", "4096",
    "--disable-cuda-graph", "--skip-server-warmup",
)  # fmt: skip
LAUNCH = ("-m", "sglang.launch_server")
_HEAD = re.compile(r"^\[[^\]]*\] ")


def python_of(release: str) -> Path:
    """The interpreter of a release's server environment, whether it is built or not (tools/oracle.py says where)."""
    spec = importlib.util.spec_from_file_location("hicache_oracle_tool", ROOT / "tools" / "oracle.py")
    assert spec is not None
    assert spec.loader is not None
    oracle = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(oracle)
    return Path(oracle.environment_folder(release, True)) / "bin" / "python"


@dataclass(frozen=True)
class Run:
    """What came of a start: `ready` if it served, the return code if it ended by itself, and all that it printed."""

    ready: bool
    code: int | None
    log: str
    seconds: float

    def lines(self, *words: str) -> list[str]:
        """Lines with all these words."""
        return [line for line in self.log.splitlines() if all(word in line for word in words)]

    def words(self, *words: str) -> list[str]:
        """The same without time and rank in front of them, each once, in order; SGLang's dump of arguments left out."""
        found = [_HEAD.sub("", line) for line in self.lines(*words) if "server_args=" not in line]
        return list(dict.fromkeys(found))

    def told(self) -> list[dict[str, Any]]:
        """What each rank told of itself through the test plugin, in the order of the stages."""
        told = [json.loads(line.split("TEST-POOLS ", 1)[1]) for line in self.lines("TEST-POOLS ")]
        return sorted(told, key=lambda entry: (entry["stage"], json.dumps(entry["pools"])))

    def pools(self) -> list[dict[str, list[int]]]:
        """The real host pools of each stage, in order: name to [pages, bytes]. Ranks of a stage that differ stand each."""
        stages = [(entry["stage"], entry["pools"]) for entry in self.told()]
        return [pools for number, (stage, pools) in enumerate(stages) if (stage, pools) not in stages[:number]]


def entry_points(folder: Path, plugins: Mapping[str, str]) -> Path:
    """A folder for the path whose distributions announce these plugins (`name: "module:function"`)."""
    for name, target in plugins.items():
        info = folder / f"{name}-1.0.dist-info"
        info.mkdir(parents=True, exist_ok=True)
        version = "0.1.0" if name == "hicache_config" else "1.0"
        metadata = f"Metadata-Version: 2.1\nName: {name.replace('_', '-')}\nVersion: {version}\n"
        (info / "METADATA").write_text(metadata, encoding="utf-8")
        (info / "entry_points.txt").write_text(f"[sglang.srt.plugins]\n{name} = {target}\n", encoding="utf-8")
    return folder


def environment(folder: Path, variables: Mapping[str, str], *, ours: bool = True, pretends: str = "") -> dict[str, str]:
    """The environment of a server: both plugins, or the CPU one alone. `pretends`: a version that SGLang says it is."""
    if pretends:
        info = folder / f"sglang-{pretends}.dist-info"
        info.mkdir(parents=True, exist_ok=True)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: sglang\nVersion: {pretends}\n", encoding="utf-8")
    plugins = {"cpu_host": "cpu_host:activate"}
    if ours:
        plugins["hicache_config"] = "hicache_config.engines.sglang:activate"
    path = [str(entry_points(folder, plugins)), str(HERE), str(ROOT)]
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("SGLANG_", "HICACHE_"))}
    return {**kept, "PYTHONPATH": os.pathsep.join(path), "PYTHONWARNINGS": "ignore", **variables}


def free_port() -> int:
    """A port for a server that binds it only later: below those that the system gives to connections (from 32768)."""
    for port in random.sample(range(10_000, 20_000), 100):
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
    raise OSError("no free port from 10000 to 19999")


def start(
    python: Path,
    folder: Path,
    arguments: Sequence[str],
    variables: Mapping[str, str] | None = None,
    *,
    command: Sequence[str] = LAUNCH,
    ours: bool = True,
    pretends: str = "",
    timeout_s: float = 1200,
) -> Run:
    """Start a server, wait until it is ready or ends, stop it, and return what it printed."""
    log = folder / f"server-{time.monotonic_ns()}.log"
    began = time.monotonic()
    full = [str(python), *command, *BASE, "--port", str(free_port()), *arguments]
    with log.open("w", encoding="utf-8") as out:
        process = subprocess.Popen(
            full, stdout=out, stderr=subprocess.STDOUT, cwd=folder,
            env=environment(folder / "path", variables or {}, ours=ours, pretends=pretends), start_new_session=True,
        )  # fmt: skip
    ready = False
    try:
        while time.monotonic() - began < timeout_s and process.poll() is None:
            time.sleep(0.5)
            if "ready to roll" in log.read_text(encoding="utf-8", errors="replace"):
                ready = True
                break
    finally:
        code = process.poll()
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)  # the group that was started above
        process.wait()
    return Run(ready, code, log.read_text(encoding="utf-8", errors="replace"), time.monotonic() - began)


def write_model(folder: Path, config: Mapping[str, object]) -> str:
    """A model folder with a config.json alone."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    return str(folder)
