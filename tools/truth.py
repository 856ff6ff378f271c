"""The whole models of tests/geometry/*-0.5.23.json anew, through the real SGLang: cases and differences.

    python tools/truth.py [TEXT]      those whose model's name holds TEXT

These figures were noted once from SGLang, in three shapes (truth-0.5.23.json, settings-0.5.23.json and
special/truth-v4-0.5.23.json), and stay as they are: what a case says is compared with what tests/oracle/models.py
comes to, and nothing is written. Needs the oracle's environment, as tools/oracle.py does. Exit status 1 where a case
differs.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import oracle
import recordings  # oracle.py puts its folder on the path

NOTED = oracle.ROOT / "tests" / "geometry"
MODELS = oracle.ROOT / "tests" / "models"
#: A refusal was noted by its first words.
WORDS = 150
Case = dict[str, Any]


def noted(folder: Path) -> Iterator[Case]:
    """Every noted case, as models.py takes it, with its configuration written to the folder."""
    for path in MODELS.glob("*.json"):
        (folder / path.name).write_text(path.read_text("utf-8"), "utf-8")
    truth = json.loads((NOTED / "truth-0.5.23.json").read_text("utf-8"))["cases"]
    special = json.loads((NOTED / "special" / "truth-v4-0.5.23.json").read_text("utf-8"))
    settings = json.loads((NOTED / "settings-0.5.23.json").read_text("utf-8"))
    cases = [("truth", case["model"].replace("/", "--"), case) for case in truth]
    cases += [("v4", case["model"], case) for case in special]
    for name, config in settings["configs"].items():
        (folder / f"settings-{name}.json").write_text(json.dumps(config), "utf-8")
    cases += [("settings", f"settings-{case['model']}", case) for case in settings["cases"]]
    for number, (source, plain, case) in enumerate(cases):
        model = plain
        if case.get("beside"):  # a quantisation of its own beside config.json
            config = settings["configs"][case["model"]]
            model = f"settings-{number}"
            (folder / f"{model}.json").write_text(json.dumps(config), "utf-8")
            (folder / f"{model}.hf_quant_config.json").write_text(json.dumps(case["beside"]), "utf-8")
        asked = {"model": model, "args": case["args"], "gpu": case["gpu"], "env": case.get("env") or {}}
        yield {"id": f"{source} {number:03} {case['model']}", "case": asked, "noted": case}


def differences(case: Case, result: Case) -> list[str]:
    """Where SGLang now comes to something else than was noted; what was not noted is not compared."""
    refused = case.get("refused") or (case.get("error") or {}).get("message")
    if refused or "error" in result:
        error = result.get("error") or {"type": "it is", "message": "accepted"}
        told = f"{error['type']}: {error['message']}"
        return [] if refused and told.startswith(refused[:WORDS]) else [f"refused: noted {refused}, now {told[:200]}"]
    found = []
    page = case.get("settled", {}).get("page_size", result["resolved"]["page_size"])
    if page != result["resolved"]["page_size"]:
        found.append(f"page size: noted {page}, now {result['resolved']['page_size']}")
    stages = [{**stage, "pools": [known(pool) for pool in stage["pools"]]} for stage in case["stages"]]
    return found + recordings.differences(stages, alike(stages, result["stages"]))


def known(pool: Case) -> Case:
    """A pool without the width of its rows where that was left out (of an indexer)."""
    return {key: value for key, value in pool.items() if key != "bytes_per_slot" or value is not None}


def alike(noted_value: Any, value: Any) -> Any:
    """A result with what was noted of it alone."""
    if isinstance(noted_value, dict) and isinstance(value, dict):
        return {key: alike(inner, value[key]) for key, inner in noted_value.items() if key in value}
    if isinstance(noted_value, list) and isinstance(value, list) and len(noted_value) == len(value):
        return [alike(*pair) for pair in zip(noted_value, value, strict=True)]
    return value


def main(text: str = "") -> int:
    wrong = 0
    with tempfile.TemporaryDirectory() as name:
        entries = {entry["id"]: entry for entry in noted(Path(name)) if text in entry["id"]}
        count = len(entries)
        for answer in oracle.ask("models.py", list(entries.values()), arguments=["--whole", name]):
            lines = differences(entries.pop(answer["id"])["noted"], answer["result"])
            wrong += bool(lines)
            if lines:
                print(answer["id"], *lines[:6], sep="\n  ", flush=True)
    for entry in entries:
        print(f"{entry}\n  no answer")
    print(f"{count} cases, {wrong + len(entries)} differences")
    return 1 if wrong or entries else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:2]))
