"""A real SGLang server on the CPU: started with dummy weights, read, stopped. For tests; runs in any Python.

    from server import run_server
    run = run_server("llama", ["--hicache-size", "1"], plugins=[folder_with_an_entry_point])
    assert run.ready; run.stages[0]["kv"]["slots"]

    python tests/oracle/server.py llama --hicache-size 1       the same by hand

The environment is the one of tools/oracle.py (`build --server`). The server gets a process group of its own, a free
port on the loopback address, and a bounded time; whatever happens, the group is ended before this returns. No request
is sent to it: the stand-ins in the environment cannot compute.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent.parent / "tools"))

import oracle  # noqa: E402 - the project's tool, by its path

TINY = HERE / "tiny"
CPU_HOST = HERE / "cpu_host"
MARK = "ORACLE_POOLS "
READY = "ready to roll"
ENDED = ("Received sigquit", "exception: Traceback")
GRACE = 10  # seconds between asking the group to end and ending it


@dataclass
class ServerRun:
    """What one server came to: whether it was ready, each stage's host pools by name, its status and its log."""

    ready: bool
    timed_out: bool
    returncode: int | None
    stages: dict[int, dict[str, dict[str, Any]]] = field(default_factory=dict)
    log: str = ""

    @property
    def errors(self) -> list[str]:
        """Lines of the log that end a traceback or name an error, in order."""
        return [line for line in self.log.splitlines() if "error: " in line.lower()]


def entry_point(folder: Path, name: str, target: str) -> Path:
    """Make a folder that announces one startup plugin to SGLang (`target` as module:function); returns it."""
    info = folder / f"{name}-0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 0\n", "utf-8")
    (info / "entry_points.txt").write_text(f"[sglang.srt.plugins]\n{name} = {target}\n", "utf-8")
    return folder


def run_server(
    model: str | Path,
    arguments: Sequence[str] = (),
    *,
    plugins: Sequence[Path] = (),
    env: dict[str, str] | None = None,
    release: str = oracle.DEFAULT_RELEASE,
    seconds: float = 300,
) -> ServerRun:
    """Start a server, wait until it is ready or has ended, and stop it.

    `model` is a name in tiny/ or a folder with a config.json; `plugins` are folders put on PYTHONPATH (a plugin's
    code, and what entry_point made); `env` is laid over the environment. Raises OracleError when the environment
    cannot be built.
    """
    python = oracle.build(release, server=True) / "bin" / "python"
    folder = TINY / model if isinstance(model, str) and (TINY / model).is_dir() else Path(model)
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as log:
        process = subprocess.Popen(
            [str(python), "-W", "ignore", "-m", "sglang.launch_server", *_arguments(folder), *arguments],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            env=_environment(plugins, env or {}),
            start_new_session=True,
        )
        try:
            ready, timed_out = _wait(process, log, seconds)
            returncode = process.poll()
        finally:
            _end(process)
        text = _read(log)
    return ServerRun(ready, timed_out, returncode, _stages(text), text)


def _arguments(folder: Path) -> list[str]:
    fixed = "--load-format dummy --device cpu --enable-hierarchical-cache --skip-tokenizer-init"
    fixed += " --max-total-tokens 4096 --disable-cuda-graph --skip-server-warmup"
    return ["--model-path", str(folder), *fixed.split(), "--host", "127.0.0.1", "--port", str(_free_port())]


def _environment(plugins: Sequence[Path], env: dict[str, str]) -> dict[str, str]:
    path = os.pathsep.join(map(str, [CPU_HOST, *plugins]))
    ours = {**os.environ, "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": "", **env}
    ours.pop("SGLANG_PLUGINS", None)
    return {**ours, "PYTHONPATH": path, **{key: env[key] for key in ("SGLANG_PLUGINS",) if key in env}}


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _read(log: Any) -> str:
    log.seek(0)
    return str(log.read())


def _wait(process: subprocess.Popen[bytes], log: Any, seconds: float) -> tuple[bool, bool]:
    """Whether the server became ready, and whether the time ran out."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        text = _read(log)
        if READY in text:
            return True, False
        if process.poll() is not None:
            return False, False
        if any(word in text for word in ENDED):
            time.sleep(2)  # the other processes write their last words
            return False, False
        time.sleep(0.5)
    return False, True


def _end(process: subprocess.Popen[bytes]) -> None:
    """End the server's own process group, kindly first."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, number)
        except ProcessLookupError:
            break
        try:
            process.wait(GRACE)
        except subprocess.TimeoutExpired:
            continue
    process.wait()


def _stages(text: str) -> dict[int, dict[str, dict[str, Any]]]:
    """The host pools that the plugin in cpu_host/ printed, by stage and name."""
    stages: dict[int, dict[str, dict[str, Any]]] = {}
    for line in text.splitlines():
        if MARK in line:
            told = json.loads(line.split(MARK, 1)[1])
            stages[told["pp_rank"]] = {pool["name"]: pool for pool in told["pools"]}
    return stages


def main() -> int:
    run = run_server(sys.argv[1], sys.argv[2:])
    print(json.dumps({"ready": run.ready, "stages": run.stages, "errors": run.errors[-3:]}, indent=1))
    if not run.ready:
        print(run.log[-4000:], file=sys.stderr)
    return 0 if run.ready else 1


if __name__ == "__main__":
    sys.exit(main())
