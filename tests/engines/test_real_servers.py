"""Real servers on the CPU under enforce, check and off: what they built, and what they logged.

As recorded, and again where the tests marked `live` are chosen (40 seconds of two cores a server, if nothing else runs).
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from .live.matrix import BY_ID, MODELS, RECORDS, SIZE_GB, run

Record = dict[str, Any]
SERVED = [*MODELS, "0.5.20-llama", "0.5.20-llama-pp2", "0.5.21-llama-pp2", "0.5.22-llama-pp2"]


@pytest.fixture(scope="session", params=["recorded", pytest.param("live", marks=pytest.mark.live)])
def record(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Record]:
    """What came of the server of a case: as recorded, or started now, once a session."""
    kept: dict[str, Record] = {entry["id"]: entry for entry in json.loads(RECORDS.read_text("utf-8"))}
    if request.param == "recorded":

        def recorded(name: str) -> Record:
            if name not in kept:
                pytest.skip(f"{name} was not recorded: python -m tests.engines.live.matrix")
            return kept[name]

        return recorded
    kept.clear()
    find = request.getfixturevalue("sglang_python")

    def started(name: str) -> Record:
        if name not in kept:
            case = BY_ID[name]
            kept[name] = run(case, find(case.release), tmp_path_factory.mktemp("server"))
        return kept[name]

    return started


def total(pools: dict[str, list[int]]) -> int:
    return sum(size for _, size in pools.values())


@pytest.mark.parametrize("name", SERVED)
def test_enforce_serves_within_the_size_as_planned(record: Callable[[str], Record], name: str) -> None:
    enforced = record(f"{name}-enforce")
    assert enforced["ready"], enforced["said"]
    assert all(0 < total(pools) <= SIZE_GB * 10**9 for pools in enforced["stages"])
    assert enforced["syncs"] == 0  # SGLang's own minimum, pool by pool, never runs
    for stage, pools in enumerate(enforced["stages"]):
        text = f"stage {stage}: " + ", ".join(f"{pool} {pages:,} pages" for pool, (pages, _) in pools.items())
        assert any(text in line for line in enforced["said"])
        assert any(": built " in line and f"together {total(pools):,} bytes" in line for line in enforced["said"])


@pytest.mark.parametrize("name", SERVED)
def test_check_serves_sglangs_own_sizes(record: Callable[[str], Record], name: str) -> None:
    checked, stock = record(f"{name}-check"), record(f"{name}-off")
    assert checked["ready"]
    assert checked["stages"] == stock["stages"]
    assert not [line for line in checked["said"] if "HC455" in line]
    over = any(total(pools) > SIZE_GB * 10**9 for pools in stock["stages"])
    assert over == any("HICACHE_CONFIG=enforce" in line for line in checked["said"])


def test_off_is_as_without_the_plugin(record: Callable[[str], Record]) -> None:
    off, absent = record("llama-pp2-off"), record("llama-pp2-absent")
    assert off["stages"] == absent["stages"]
    assert sorted(off["lines"]) == sorted(absent["lines"])
    assert not off["said"]


def test_a_rank_that_fails_ends_the_server_with_its_message(record: Callable[[str], Record]) -> None:
    failed = record("llama-pp2-failing")
    assert not failed["ready"]
    assert any("device pools of stage 1" in line for line in failed["said"])


@pytest.mark.parametrize("mode", ["enforce", "check"])
def test_a_stage_without_attention_ends_the_server_by_name(record: Callable[[str], Record], mode: str) -> None:
    failed = record(f"kimi-linear-pp2-{mode}")
    assert not failed["ready"]
    assert any("HC303" in line and "stage 0" in line for line in failed["said"])


def test_hooks_that_were_not_applied_are_told_and_nothing_is_enforced(record: Callable[[str], Record]) -> None:
    unhooked = record("llama-unhooked")
    assert unhooked["ready"]
    assert unhooked["stages"] == record("llama-off")["stages"]
    assert any("is not hooked" in line and "nothing is enforced" in line for line in unhooked["said"])
