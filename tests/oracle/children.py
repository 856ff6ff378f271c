"""Cases of whole models, each in a child process of its own: arguments live on in the environment that they set.

A part of models.py and special.py, which say what a case does; the imports are paid once.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import shutil
import signal
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import harness

MODELS = Path(__file__).resolve().parent.parent / "models"
TIME_LIMIT = 120
#: A case from the folder of its model and its arguments: models.Case or one made from it.
Start = Callable[[str, dict[str, Any]], Any]


def run_case(start: Start, case: dict[str, Any], models: Path) -> dict[str, Any]:
    """The figures of one case or SGLang's refusal. Changes the environment: for a child process alone."""
    os.environ.update(case.get("env", {}))
    with tempfile.TemporaryDirectory() as folder:
        _lay_model(models, case["model"], case.get("patch"), Path(folder))
        args = dict(case["args"])
        if "speculative_draft_model_path" in args:
            draft = Path(folder) / "draft"
            draft.mkdir()
            _lay_model(models, args["speculative_draft_model_path"], None, draft)
            args["speculative_draft_model_path"] = str(draft)
        running = start(folder, args)
        try:
            with harness.gpu(case["gpu"]):
                figures = harness.over_stages(running.stage, running.pp)
        except (Exception, SystemExit) as error:
            refused = harness.refusal(error)
            if not refused["where"]:
                raise  # a fault of this driver, which has no place in the wheel
            refused["message"] = refused["message"].replace(folder, "MODEL")
            return {**running.told, "error": {**refused, "phase": running.phase, "late": running.phase != "arguments"}}
    if "max_total_tokens" not in args:
        _forget_device(figures["stages"])
    return {**running.told, **figures}


def _lay_model(models: Path, name: str, patch: dict[str, Any] | None, folder: Path) -> None:
    """A model's config.json in its folder: a file of `models`, or `classes/NAME`, one of those in its classes.json.

    What a checkpoint has beside it comes along: NAME.hf_quant_config.json.
    """
    kind, _, inner = name.partition("/")
    if kind == "classes":
        config = json.loads((models / "made" / "classes.json").read_text("utf-8"))[inner]
    else:
        config = json.loads((models / f"{name}.json").read_text("utf-8"))
    (folder / "config.json").write_text(json.dumps({**config, **(patch or {})}), "utf-8")
    beside = models / f"{name}.hf_quant_config.json"
    if beside.is_file():
        shutil.copy(beside, folder / "hf_quant_config.json")


def _forget_device(stages: list[dict[str, Any]]) -> None:
    """No device size was given: keep no figure that comes from the number that stood for it."""
    for stage in stages:
        stage["device_slots"] = None
        for pool in stage["pools"]:
            pool["device_slots"] = pool["device_bytes"] = None


def in_child(start: Start, entry: dict[str, Any], models: Path) -> dict[str, Any]:
    """Run one case in a child process. A child that dies or takes too long is a fault, told as one."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        status = 1
        try:
            signal.alarm(TIME_LIMIT)
            with os.fdopen(writing, "w") as out:
                json.dump(run_case(start, entry["case"], models), out)
            status = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(status)
    os.close(writing)
    with os.fdopen(reading) as answer:
        text = answer.read()
    _, status = os.waitpid(child, 0)
    if status:
        raise ChildProcessError(f"case {entry['id']}: its process ended with status {status}")
    return json.loads(text)


def import_ahead(start: Start, entry: dict[str, Any], models: Path) -> None:
    """Import here what a case imports on its way, so that the children need not; the case itself leaves no trace."""
    before = set(sys.modules)
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        try:
            run_case(start, entry["case"], models)
        finally:
            with os.fdopen(writing, "w") as out:
                json.dump(sorted(set(sys.modules) - before), out)
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as answer:
        names = json.load(answer)
    os.waitpid(child, 0)
    for name in names:
        if not name.startswith(("__", "transformers_modules")):
            with contextlib.suppress(ImportError, AttributeError):
                importlib.import_module(name)


def run_cases(start: Start, lines: Iterable[str], models: Path) -> int:
    """Answer every case; the number of those whose process failed, which are told on standard error."""
    import_ahead(start, {"case": {"model": "Qwen--Qwen3-0.6B", "args": {"hicache_size": 1}, "gpu": "sm90"}}, models)
    failed = 0
    for line in filter(str.strip, lines):
        entry = json.loads(line)
        try:
            print(json.dumps({"id": entry["id"], "result": in_child(start, entry, models)}), flush=True)
        except ChildProcessError as error:
            failed += 1
            print(error, file=sys.stderr, flush=True)
    return failed


def main(start: Start) -> int:
    """Answer the cases of a file or of standard input; `--whole FOLDER` reads models from another folder."""
    arguments = sys.argv[1:]
    models = MODELS
    if arguments[:1] == ["--whole"]:
        models, arguments = Path(arguments[1]), arguments[2:]
    if arguments:
        with Path(arguments[0]).open(encoding="utf-8") as lines:
            return int(run_cases(start, lines, models) > 0)
    return int(run_cases(start, sys.stdin, models) > 0)
