"""The servers that are started by the tests marked `live`, and what came of them, as data.

    python -m tests.engines.live.matrix [--resume] [ID…]

starts them one after the other (about 40 seconds of two cores each) and writes what the README's table stands on, after
each of them. `--resume` starts those alone that are not recorded. The environments are those of tools/oracle.py.
"""

from __future__ import annotations

import json
import re
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from . import models, servers

RECORDS = Path(__file__).parents[1] / "recorded" / "servers.json"
SIZE_GB = 1
TWO_STAGES = {"SGLANG_CPU_OMP_THREADS_BIND": "0|1"}


@dataclass(frozen=True)
class Case:
    """One server: a model, where its layers lie, and the plugin's mode (`absent`: without the plugin)."""

    id: str
    model: models.Config
    mode: str
    stages: tuple[int, ...] = ()
    arguments: tuple[str, ...] = ()
    variables: dict[str, str] = field(default_factory=dict)
    release: str = "0.5.23"

    @property
    def full_arguments(self) -> tuple[str, ...]:
        pipeline = ("--pp-size", str(len(self.stages))) if self.stages else ()
        size = ("--enable-hierarchical-cache", "--hicache-size", str(SIZE_GB))
        return (*size, *pipeline, *models.NEEDS.get(str(self.model["model_type"]), ()), *self.arguments)

    @property
    def environment(self) -> dict[str, str]:
        partition = {"SGLANG_PP_LAYER_PARTITION": ",".join(map(str, self.stages)), **TWO_STAGES} if self.stages else {}
        mode = {} if self.mode == "absent" else {"HICACHE_CONFIG": self.mode}
        return {**partition, **mode, **self.variables}


MODELS: dict[str, tuple[models.Config, tuple[int, ...], tuple[str, ...], dict[str, str]]] = {
    "llama": (models.LLAMA, (), (), {}),
    "llama-pp2": (models.LLAMA, (3, 1), (), {}),
    "gpt-oss-pp2": (models.GPT_OSS, (4, 2), ("--page-size", "16"), {}),
    "deepseek-v3-pp2": (models.DEEPSEEK_V3, (3, 1), ("--page-size", "16"), {}),
    "deepseek-v3.2": (models.DEEPSEEK_V32, (), (), {"TEST_CUDA_CAPABILITY": "9.0"}),
    "qwen3-next": (models.QWEN3_NEXT, (), (), {}),
}

CASES = [
    Case(f"{name}-{mode}", model, mode, stages, arguments, variables)
    for name, (model, stages, arguments, variables) in MODELS.items()
    for mode in ("enforce", "check", "off")
]
CASES += [
    Case("llama-pp2-absent", models.LLAMA, "absent", (3, 1)),
    Case("llama-pp2-failing", models.LLAMA, "enforce", (3, 1), variables={"TEST_FAILING_RANK": "1"}),
    Case("llama-unhooked", models.LLAMA, "enforce", variables={"TEST_UNHOOKED": "1"}),
    Case("kimi-linear-pp2-enforce", models.KIMI_LINEAR, "enforce", (3, 5)),
    Case("kimi-linear-pp2-check", models.KIMI_LINEAR, "check", (3, 5)),
    *[
        Case(f"{release}-llama{suffix}-{mode}", models.LLAMA, mode, stages, release=release)
        for release, suffix, stages in (
            ("0.5.20", "", ()),
            ("0.5.20", "-pp2", (3, 1)),
            ("0.5.21", "-pp2", (3, 1)),
            ("0.5.22", "-pp2", (3, 1)),
        )
        for mode in ("enforce", "check", "off")
    ],
]
BY_ID = {case.id: case for case in CASES}

#: Our lines in a log, and those of a refusal on standard error.
_OURS = re.compile(r"hicache-config|(error|warning) HC\d{3} ")
#: SGLang's own lines about what it builds.
_HOST_POOLS = re.compile(r"^(Allocating|Sync fixed|HiCache \w+ host pool|Attached hybrid|Tree cache|KV Cache is)")
_NOISE = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d|pid=\d+|[\d.]+ ?(?:s|GB|ms)\b|port=\d+")


def run(case: Case, python: Path, folder: Path) -> dict[str, Any]:
    """Start the server and keep what counts."""
    model = servers.write_model(folder / "model", case.model)
    ours = case.mode != "absent"
    arguments = ("--model-path", model, *case.full_arguments)
    return kept_of(case, servers.start(python, folder, arguments, case.environment, ours=ours))


def kept_of(case: Case, result: servers.Run) -> dict[str, Any]:
    """What counts of a run, in the order of the text: ranks write side by side."""
    return {
        "id": case.id,
        "sglang": case.release,
        "ready": result.ready,
        "code": result.code,
        "stages": result.pools(),
        "said": sorted(line for line in result.words("") if _OURS.match(line)),
        "syncs": len(result.lines("Sync fixed-size HiCache")),
        "lines": sorted(_NOISE.sub("~", line) for line in result.words("") if _HOST_POOLS.search(line)),
    }


def main() -> None:
    words = sys.argv[1:]
    done = {entry["id"]: entry for entry in json.loads(RECORDS.read_text("utf-8"))} if RECORDS.exists() else {}
    chosen = [word for word in words if word != "--resume"] or list(BY_ID)
    for name in [one for one in chosen if one not in done or "--resume" not in words]:
        began = time.monotonic()
        with tempfile.TemporaryDirectory() as folder:
            done[name] = run(BY_ID[name], servers.python_of(BY_ID[name].release), Path(folder))
        ordered = [done[one] for one in BY_ID if one in done]
        RECORDS.write_text(json.dumps(ordered, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        what = ("ready" if done[name]["ready"] else f"ended with {done[name]['code']}", done[name]["stages"])
        print(f"{name}: {round(time.monotonic() - began)} s,", *what, flush=True)


if __name__ == "__main__":
    main()
