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

ENGINES = Path(__file__).with_name("engines.py")
RECORDS = Path(__file__).parents[1] / "recorded" / "servers.json"
SIZE_GB = 1
TWO_RANKS = {"SGLANG_CPU_OMP_THREADS_BIND": "0|1"}


@dataclass(frozen=True)
class Case:
    """One server: a model, where its layers lie, and the plugin's mode (`absent`: without the plugin).

    `size` None: by a ratio. `copies`: ranks of a stage, or engines, whose pools must be the same. `engines` (`after` or
    `beside`): two engines in one process instead of a server. `pretends`: the version that SGLang says it is.
    """

    id: str
    model: models.Config
    mode: str
    stages: tuple[int, ...] = ()
    arguments: tuple[str, ...] = ()
    variables: dict[str, str] = field(default_factory=dict)
    release: str = "0.5.23"
    size: int | None = SIZE_GB
    draft: models.Config | None = None
    copies: int = 1
    engines: str = ""
    pretends: str = ""

    @property
    def ranks(self) -> int:
        """How many ranks build host pools."""
        return max(len(self.stages), 1) * self.copies

    @property
    def full_arguments(self) -> tuple[str, ...]:
        pipeline = ("--pp-size", str(len(self.stages))) if self.stages else ()
        size = () if self.size is None else ("--hicache-size", str(self.size))
        needs = models.NEEDS.get(str(self.model["model_type"]), ())
        return ("--enable-hierarchical-cache", *size, *pipeline, *needs, *self.arguments)

    @property
    def environment(self) -> dict[str, str]:
        partition = {"SGLANG_PP_LAYER_PARTITION": ",".join(map(str, self.stages)), **TWO_RANKS} if self.stages else {}
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

_TP2 = ("--tp-size", "2")
_DRAFTING = ("--speculative-num-steps", "2", "--speculative-eagle-topk", "1", "--speculative-num-draft-tokens", "3")
_PAGE_16 = ("--page-size", "16")

_GPU = {"TEST_CUDA_CAPABILITY": "9.0"}

#: What a size has to be a total beside: ranks of a stage, replicas, storage, drafts, engines that share a process; and
#: models whose pools follow each other in ways of their own.
FEATURES: dict[str, Case] = {
    case.id.removesuffix("-enforce"): case
    for case in (
        Case("llama-tp2-enforce", models.LLAMA, "enforce", (), _TP2, TWO_RANKS, copies=2),
        Case(
            "deepseek-v3-dp2-enforce", models.DEEPSEEK_V3, "enforce", (),
            (*_TP2, "--dp-size", "2", "--enable-dp-attention", *_PAGE_16), TWO_RANKS, copies=2,
        ),
        Case("llama-file-enforce", models.LLAMA, "enforce", (), (*_PAGE_16, "--hicache-storage-backend", "file")),
        Case(
            "llama-eagle-enforce", models.LLAMA, "enforce", (), ("--speculative-algorithm", "EAGLE", *_DRAFTING),
            draft=models.LLAMA_EAGLE,
        ),
        Case(
            "llama-standalone-enforce", models.LLAMA, "enforce", (),
            ("--speculative-algorithm", "STANDALONE", *_DRAFTING), draft=models.LLAMA_SMALL,
        ),
        Case(
            "deepseek-v3-eagle-enforce", models.DEEPSEEK_V3, "enforce", (),
            ("--speculative-algorithm", "EAGLE", *_DRAFTING, *_PAGE_16),
        ),
        Case("minimax-m3-enforce", models.MINIMAX_M3, "enforce", (), ("--page-size", "128"), _GPU),
        Case(
            "deepseek-v4-enforce", models.DEEPSEEK_V4, "enforce", (),
            ("--page-size", "256", "--max-total-tokens", "16384", "--swa-full-tokens-ratio", "0.5"), _GPU,
        ),
        Case("llama-restarted-enforce", models.LLAMA, "enforce", copies=2, engines="after"),
        Case("llama-beside-enforce", models.LLAMA, "enforce", copies=2, engines="beside"),
    )
}  # fmt: skip

#: Servers without a size, whose own sizes the plugin leaves alone in every mode.
UNSIZED: dict[str, tuple[str, ...]] = {
    "llama-ratio": ("--hicache-ratio", "3"),
    "llama-fraction": ("--hicache-host-memory-fraction", "0.01"),
}

CASES = [
    Case(f"{name}-{mode}", model, mode, stages, arguments, variables)
    for name, (model, stages, arguments, variables) in MODELS.items()
    for mode in ("enforce", "check", "off")
]
CASES += FEATURES.values()
CASES += [
    Case(f"{name}-{mode}", models.LLAMA, mode, (), arguments, size=None)
    for name, arguments in UNSIZED.items()
    for mode in ("enforce", "off")
]
CASES += [
    Case("llama-pp2-absent", models.LLAMA, "absent", (3, 1)),
    Case("llama-pp2-failing", models.LLAMA, "enforce", (3, 1), variables={"TEST_FAILING_RANK": "1"}),
    Case("llama-pp2-failing-check", models.LLAMA, "check", (3, 1), variables={"TEST_FAILING_RANK": "1"}),
    Case("llama-unhooked", models.LLAMA, "enforce", variables={"TEST_UNHOOKED": "1"}),
    Case("llama-newer", models.LLAMA, "enforce", pretends="0.5.99"),
    Case("llama-too-large", models.LLAMA, "enforce", size=100_000),
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
_OURS = re.compile(r"(hicache-config(: | \()|(error|warning) HC\d{3} ).*")
#: SGLang's own lines about sizes, wherever they begin: a bar of progress may stand before them, of another rank too.
_HOST_POOLS = re.compile(r"(Allocating|Sync fixed|HiCache \w+ host pool).*")
_NOISE = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d|pid=\d+|[\d.]+ ?(?:s|GB|ms)\b|port=\d+")


def run(case: Case, python: Path, folder: Path) -> dict[str, Any]:
    """Start the server and keep what counts."""
    arguments = ["--model-path", servers.write_model(folder / "model", case.model), *case.full_arguments]
    if case.draft is not None:
        arguments += ["--speculative-draft-model-path", servers.write_model(folder / "draft", case.draft)]
    command = (str(ENGINES), case.engines) if case.engines else servers.LAUNCH
    ours = case.mode != "absent"
    result = servers.start(
        python, folder, arguments, case.environment, command=command, ours=ours, pretends=case.pretends
    )
    if not result.ready:
        print(*result.log.splitlines()[-40:], sep="\n")  # for whoever has to find out why
    return kept_of(case, result)


def kept_of(case: Case, result: servers.Run) -> dict[str, Any]:
    """What counts of a run, in the order of the text: ranks write side by side."""
    return {
        "id": case.id,
        "sglang": case.release,
        "ready": result.ready,
        "code": result.code,
        "ranks": len(result.told()),
        "stages": result.pools(),
        "said": sorted({found[0] for line in result.words("") if (found := _OURS.search(line))}),
        "syncs": len(result.lines("Sync fixed-size HiCache")),
        "lines": sorted(
            {_NOISE.sub("~", found[0]) for line in result.words("") if (found := _HOST_POOLS.search(line))}
        ),
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
