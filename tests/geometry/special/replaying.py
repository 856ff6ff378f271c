"""Replay of whole models that the real SGLang recorded: from config.json and arguments to the same pools.

Shared by the tests of this folder; standard library and the project alone.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

from hicache_config.arguments import ServerArgs
from hicache_config.core.capacity import Capacity
from hicache_config.core.plan import Plan, plan
from hicache_config.core.releases import Release
from hicache_config.core.terms import Accounting, Terms
from hicache_config.geometry import Model, Pipeline, Question, pipeline_of

TESTS = Path(__file__).resolve().parents[2]
COMPARED = ("name", "follows", "page_size", "slots", "pages", "bytes", "own_slots", "extra_pages")
RELEASE = "0.5.23"
Case = dict[str, Any]


@cache
def config(name: str) -> Case:
    """A config.json of tests/models/, or one of the many in made/classes.json ("classes/NAME")."""
    kind, _, inner = name.partition("/")
    path = TESTS / "models" / ("made/classes.json" if kind == "classes" else f"{name}.json")
    content: Case = json.loads(path.read_text(encoding="utf-8"))
    return content[inner] if kind == "classes" else content


def typed(case: Case) -> ServerArgs:
    """The arguments of a recorded case."""
    return ServerArgs.model_validate({"enable_hierarchical_cache": True, "model_path": "model", **case["args"]})


def answer(case: Case, release: str = RELEASE, **slots: int) -> Pipeline:
    """What geometry answers to a recorded case."""
    draft = case["args"].get("speculative_draft_model_path")
    question = Question(
        release,
        case.get("gpu", "sm90"),
        case.get("env") or {},
        device_slots=slots,
        draft_config=None if draft is None else config(draft),
    )
    whole = {**config(case["model"]), **(case.get("patch") or {})}
    return pipeline_of(Model(case["model"], whole), typed(case), question)


def capacity_of(case: Case, found: Pipeline) -> Capacity:
    """The capacity in force, an explicit one: a share of host memory is left at the ratio that it grows to."""
    return found.capacity or typed(case).capacity(RELEASE).capacity


def planned(case: Case, found: Pipeline, accounting: Accounting = "sglang", capacity: Capacity | None = None) -> Plan:
    """The plan of an answer."""
    asked = capacity or capacity_of(case, found)
    return plan(found.stages, Terms(asked, accounting, Release.of(RELEASE)))


def differences(made: Plan, stages: list[Case]) -> list[str]:
    """How a plan differs from recorded stages."""
    if not made.stages:
        return [f"refused: {[finding.message for finding in made.findings]}"]
    found = []
    for sizes, recorded in zip(made.stages, stages, strict=True):
        names = [pool.name for pool in sizes.pools]
        if names != [pool["name"] for pool in recorded["pools"]]:
            return [f"stage {sizes.stage}: pools {names}, SGLang {[pool['name'] for pool in recorded['pools']]}"]
        for pool, expected in zip(sizes.pools, recorded["pools"], strict=True):
            got = pool.as_dict()
            keys = [key for key in COMPARED if key in expected]
            keys += [key for key in ("bytes_per_slot", "share_gb") if expected.get(key) is not None]
            found += [
                f"stage {sizes.stage} {pool.name} {key}: {got[key]!r}, SGLang {expected[key]!r}"
                for key in keys
                if got[key] != expected[key]
            ]
    return found


def recorded(what: str) -> list[Case]:
    """The cases of a recording."""
    lines = (TESTS / "recorded" / f"{what}.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines[1:]]
