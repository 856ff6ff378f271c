"""Real servers on the CPU under enforce, check and off: what they built, and what they logged.

As recorded, and again where the tests marked `live` are chosen (40 seconds of two cores a server, if nothing else runs).
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from .live.matrix import BY_ID, FEATURES, MODELS, RECORDS, SIZE_GB, UNSIZED, run

Record = dict[str, Any]
SERVED = [*MODELS, "0.5.20-llama", "0.5.20-llama-pp2", "0.5.21-llama-pp2", "0.5.22-llama-pp2"]


@pytest.fixture(scope="session", params=["recorded", pytest.param("live", marks=pytest.mark.live)])
def record(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Record]:
    """What came of the server of a case: as recorded, or started now, once a session."""
    kept: dict[str, Record] = {entry["id"]: entry for entry in json.loads(RECORDS.read_text("utf-8"))}
    if request.param == "recorded":

        def recorded(name: str) -> Record:
            assert name in kept, f"{name} was not recorded: python -m tests.engines.live.matrix {name}"
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


@pytest.mark.parametrize("name", [*SERVED, *FEATURES])
def test_enforce_serves_within_the_size_as_planned(record: Callable[[str], Record], name: str) -> None:
    enforced, case = record(f"{name}-enforce"), BY_ID[f"{name}-enforce"]
    assert enforced["ready"], enforced["said"]
    assert enforced["ranks"] == case.ranks
    assert len(enforced["stages"]) == max(len(case.stages), 1)  # the ranks of a stage have the same
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


@pytest.mark.parametrize("name", UNSIZED)
def test_without_a_size_sglangs_own_sizes_stand_and_that_is_told(record: Callable[[str], Record], name: str) -> None:
    enforced, stock = record(f"{name}-enforce"), record(f"{name}-off")
    assert enforced["ready"]
    assert stock["ready"]
    assert enforced["stages"] == stock["stages"]
    assert any("no --hicache-size to enforce" in line for line in enforced["said"])


def test_drafts_are_inside_the_size(record: Callable[[str], Record]) -> None:
    """A draft that has pools of its own takes the target's pages; heads of the model's own lie in its rows."""
    for name in ("llama-eagle-enforce", "llama-standalone-enforce"):
        (pools,) = record(name)["stages"]
        assert pools["draft"][0] == pools["kv"][0]
        assert pools["draft"][1] > 0
    (packed,) = record("deepseek-v3-eagle-enforce")["stages"]
    layers, heads = BY_ID["deepseek-v3-eagle-enforce"].model["num_hidden_layers"], 1
    assert packed["kv"][1] // packed["kv"][0] == 16 * (512 + 64) * 2 * (layers + heads)


def test_a_size_works_for_deepseek_v4_which_sglang_alone_refuses(record: Callable[[str], Record]) -> None:
    (pools,) = record("deepseek-v4-enforce")["stages"]
    kinds = ("c4", "c4_indexer", "c4_state", "c4_indexer_state", "c128")
    assert set(pools) == {"kv", "swa", *(f"deepseek_v4_{kind}" for kind in kinds)}
    assert all(
        pools[name][0] == pools["swa" if name.endswith("_state") else "kv"][0] for name in pools if name != "swa"
    )


def test_a_size_that_this_machine_can_never_hold_is_refused_at_once(record: Callable[[str], Record]) -> None:
    refused = record("llama-too-large")
    assert (refused["ready"], refused["code"], refused["lines"]) == (False, 1, [])
    assert any("HC501" in line and "--hicache-size" in line for line in refused["said"])


def test_a_release_that_was_never_tried_is_checked_and_nothing_is_changed(record: Callable[[str], Record]) -> None:
    newer = record("llama-newer")
    assert newer["ready"]
    assert newer["stages"] == record("llama-off")["stages"]
    assert any("SGLang 0.5.99 is not one of" in line and "no size is enforced" in line for line in newer["said"])


def test_off_is_as_without_the_plugin(record: Callable[[str], Record]) -> None:
    off, absent = record("llama-pp2-off"), record("llama-pp2-absent")
    assert off["stages"] == absent["stages"]
    assert sorted(off["lines"]) == sorted(absent["lines"])
    assert not off["said"]


def test_a_rank_that_fails_ends_the_server_with_its_message(record: Callable[[str], Record]) -> None:
    failed = record("llama-pp2-failing")
    assert not failed["ready"]
    assert any("device pools of stage 1" in line for line in failed["said"])


def test_under_check_a_rank_that_can_not_be_read_ends_no_server(record: Callable[[str], Record]) -> None:
    failed = record("llama-pp2-failing-check")
    assert failed["ready"]
    assert failed["stages"] == record("llama-pp2-off")["stages"]
    assert any("HC406" in line and "device pools of stage 1" in line for line in failed["said"])


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
