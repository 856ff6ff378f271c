"""`plan` as the contract shows it: keys in their order, nulls with their reasons, machines, refusals, the text."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from tests.contract.support import RATIO, SIZED, call, findings, glm, plan, pool, slots

PLAN = [
    "kind", "version", "sglang", "accounting", "gpu", "model", "capacity", "stock_size_gb", "stages", "ratio",
    "ranks_per_node", "node_bytes", "cluster_bytes", "host", "fits", "assumptions", "findings",
]  # fmt: skip
STAGE = ["stage", "layers", "pools", "bytes", "size_bytes", "over_size_bytes", "unused_bytes"]
POOL = [
    "name", "follows", "page_size", "bytes_per_slot", "page_bytes", "device_slots", "share_gb", "own_slots", "slots",
    "pages", "extra_pages", "bytes", "inside_size", "host_size_gb", "trace",
]  # fmt: skip
KV = [[pool("kv", 1000, 2000)]]
PIPELINE = {**SIZED, "pp_size": 4, "tp_size": 8}


@pytest.fixture(scope="module")
def schema() -> Draft202012Validator:
    return Draft202012Validator(json.loads(call("schema", "plan").stdout))


def test_keys_come_as_shown(tmp_path: Path, schema: Draft202012Validator) -> None:
    _, written = plan(tmp_path, PIPELINE, glm(indexer=True))
    assert list(written) == PLAN
    assert (written["kind"], written["version"], written["accounting"], written["gpu"]) == (
        "hicache-plan",
        1,
        "sglang",
        "sm90",
    )
    assert written["capacity"] == {"kind": "size", "size_gb": 100}
    assert list(written["host"]) == ["available_bytes", "reserve_bytes", "allowance_bytes_per_rank"]
    assert written["host"] == {"available_bytes": None, "reserve_bytes": 10 * 2**30, "allowance_bytes_per_rank": None}
    assert (written["fits"], written["model"]) == (None, None)
    for number, stage in enumerate(written["stages"]):
        assert (list(stage), stage["stage"]) == (STAGE, number)
        assert {tuple(each) for each in stage["pools"]} == {tuple(POOL)}
        total = sum(each["bytes"] for each in stage["pools"])
        over = total - stage["size_bytes"]
        assert (stage["bytes"], stage["over_size_bytes"], stage["unused_bytes"]) == (total, max(0, over), max(0, -over))
        for each in stage["pools"]:
            assert each["bytes"] == (each["pages"] + each["extra_pages"]) * each["page_bytes"]
            assert each["slots"] == each["pages"] * each["page_size"]
            assert all(isinstance(step, str) for step in each["trace"])
    schema.validate(written)


def test_numbers_that_are_not_known_are_null_with_the_reason(tmp_path: Path, schema: Draft202012Validator) -> None:
    pair = [[pool("kv", 1000), pool("swa", 1000, 5)]]
    for arguments, words in ((SIZED, ()), (SIZED, ("--accounting", "total")), (RATIO, ())):
        status, written = plan(tmp_path, arguments, pair, *words)
        assert status == 0
        (stage,) = written["stages"]
        kv = stage["pools"][0]
        assert [kv[key] for key in ("slots", "pages", "bytes", "device_slots")] == [None] * 4
        assert kv["bytes_per_slot"] == 1000
        assert (stage["bytes"], written["node_bytes"], written["cluster_bytes"]) == (None, None, None)
        (reason,) = (text for text in written["assumptions"] if "device slots" in text)
        assert "of kv are" in reason
        schema.validate(written)
    # One independent pool needs no device slots for a size.
    assert slots(plan(tmp_path, SIZED, [[pool("kv", 1000)]])[1]) == [100_000_064]


def test_what_is_taken_for_granted_is_said(tmp_path: Path) -> None:
    _, off = plan(tmp_path, {"hicache_size": 1}, KV)
    assert any("HiCache is off" in text for text in off["assumptions"])
    _, shrinking = plan(tmp_path, {"enable_hierarchical_cache": True}, KV)
    assert shrinking["capacity"] == {"kind": "fraction", "fraction": 0.8, "ratio": 2.0}
    assert any("memory is not given" in text for text in shrinking["assumptions"])
    _, unused = plan(tmp_path, SIZED, KV, "--device-slots", "swa=5")
    assert any("swa is not used" in text for text in unused["assumptions"])
    assert plan(tmp_path, SIZED, KV)[1]["assumptions"] == []


def test_a_fraction_falls_below_its_ratio_where_memory_is_short(tmp_path: Path) -> None:
    on = {"enable_hierarchical_cache": True}
    stage = [[pool("kv", 10_000, 2_000_000)]]
    _, roomy = plan(tmp_path, on, stage, "--host-memory", "1TB")
    _, tight = plan(tmp_path, on, stage, "--host-memory", "50GB")
    assert slots(roomy) == [4_000_064]
    assert 0 < slots(tight)[0] < 4_000_000
    assert tight["capacity"]["ratio"] == 2.0
    assert tight["ratio"] < 2.0
    assert tight["fits"] is True
    _, older = plan(tmp_path, on, stage, "--host-memory", "1TB", "--sglang", "0.5.20")
    assert older["capacity"] == {"kind": "ratio", "ratio": 2.0}


@pytest.mark.parametrize(
    "arguments", [{**SIZED, "hicache_size": -1}, {**SIZED, "tp_size": "8"}, {**SIZED, "hicache_ratoi": 1}, "{", ""]
)
def test_what_is_refused_has_no_stages(tmp_path: Path, schema: Draft202012Validator, arguments: Any) -> None:
    status, written = plan(tmp_path, arguments, KV)
    assert (status, written["stages"], list(written)) == (2 if isinstance(arguments, str) else 1, [], PLAN)
    assert any(finding["severity"] == "error" for finding in written["findings"])
    schema.validate(written)


def test_a_plan_without_a_model_asks_for_one(tmp_path: Path) -> None:
    status, written = plan(tmp_path, {**SIZED, "model_path": "nobody/knows"})
    assert (status, written["stages"]) == (1, [])
    assert "--pools" in findings({"sources": [written]})["HC600"]["help"]


def test_device_slots_come_from_the_option_the_file_and_a_running_server(tmp_path: Path) -> None:
    model = {**RATIO, "model_path": "meta-llama/Meta-Llama-3.1-70B", "tp_size": 8, "page_size": 64}
    assert slots(plan(tmp_path, model)[1]) == [None]
    assert slots(plan(tmp_path, model, None, "--device-slots", "kv=640000")[1]) == [1_280_064]
    served = {**model, "max_total_num_tokens": 640_000, "internal_states": [{}], "version": "0.5.23"}
    status, written = plan(tmp_path, served)
    assert (status, slots(written), slots(written, key="device_slots")) == (0, [1_280_064], [640_000])
    assert slots(plan(tmp_path, served, None, "--device-slots", "kv=64")[1]) == [192]
    assert slots(plan(tmp_path, RATIO, KV)[1]) == [4032]
    assert slots(plan(tmp_path, RATIO, KV, "--device-slots", "kv=64")[1]) == [192]


def test_one_stage_stands_for_each_and_another_count_is_refused(tmp_path: Path) -> None:
    _, written = plan(tmp_path, PIPELINE, KV)
    assert slots(written) == [100_000_064] * 4
    status, refused = plan(tmp_path, PIPELINE, KV * 3)
    assert (status, refused["stages"]) == (1, [])
    assert any("3 stages" in finding["message"] for finding in refused["findings"])


def test_the_layers_go_where_the_environment_says(tmp_path: Path) -> None:
    model = {**SIZED, "model_path": "zai-org/GLM-5.2-FP8", "tp_size": 8, "pp_size": 4, "kv_cache_dtype": "fp8_e4m3"}
    _, written = plan(tmp_path, model, None, "--env", "SGLANG_PP_LAYER_PARTITION=20,20,19,19")
    assert [stage["layers"] for stage in written["stages"]] == [20, 20, 19, 19]
    beside = json.dumps({"server_args": model, "env": {"SGLANG_PP_LAYER_PARTITION": "20,20,19,19"}})
    assert [stage["layers"] for stage in plan(tmp_path, beside)[1]["stages"]] == [20, 20, 19, 19]
    status, refused = plan(tmp_path, model, None, "--env", "SGLANG_PP_LAYER_PARTITION=20,20,20,19")
    assert (status, refused["stages"]) == (1, [])


@pytest.mark.parametrize(
    ("arguments", "words", "ranks", "by_stage"),
    [
        ({"tp_size": 8, "pp_size": 4, "nnodes": 4}, [], 8, [[8, 0, 0, 0], [0, 8, 0, 0], [0, 0, 8, 0], [0, 0, 0, 8]]),
        ({"tp_size": 8, "pp_size": 4, "nnodes": 2}, [], 16, [[8, 8, 0, 0], [0, 0, 8, 8]]),
        ({"tp_size": 2, "pp_size": 4, "nnodes": 8}, [], 1, [[1, 0, 0, 0]] * 2 + [[0, 1, 0, 0]] * 2 + [[0, 0, 1, 0]] * 2 + [[0, 0, 0, 1]] * 2),
        ({"tp_size": 2, "pp_size": 4, "dp_size": 3}, [], 24, [[6, 6, 6, 6]]),
        ({"tp_size": 4, "pp_size": 4, "dp_size": 4, "enable_dp_attention": True}, [], 16, [[4, 4, 4, 4]]),
        ({"tp_size": 4, "pp_size": 4}, ["--ranks-per-node", "8"], 8, [[4, 4, 0, 0], [0, 0, 4, 4]]),
        ({"tp_size": 4, "pp_size": 4}, ["--ranks-per-node", "6"], 6, [[4, 2, 0, 0], [0, 2, 4, 0], [0, 0, 0, 4]]),
    ],
)  # fmt: skip
def test_nodes_hold_the_ranks_that_lie_on_them(
    tmp_path: Path, arguments: dict[str, Any], words: list[str], ranks: int, by_stage: list[list[int]]
) -> None:
    _, written = plan(tmp_path, {**SIZED, **arguments}, glm(indexer=True), *words)
    bytes_ = [stage["bytes"] for stage in written["stages"]]
    assert written["node_bytes"] == [sum(n * b for n, b in zip(node, bytes_, strict=True)) for node in by_stage]
    assert written["cluster_bytes"] == sum(written["node_bytes"])
    assert written["ranks_per_node"] == ranks


@pytest.mark.parametrize(("memory", "fits"), [("1500GB", True), ("1TiB", True), ("850GB", False), ("5GB", False)])
def test_whether_it_fits(tmp_path: Path, memory: str, fits: bool) -> None:
    status, written = plan(tmp_path, {**PIPELINE, "nnodes": 4}, glm(indexer=True), "--host-memory", memory)
    assert written["fits"] is fits
    assert status == (0 if fits else 1)
    assert len(written["stages"]) == 4
    host = written["host"]
    assert host["allowance_bytes_per_rank"] == (host["available_bytes"] - host["reserve_bytes"]) // 8


def test_the_text_names_units_and_scopes_and_both_accountings(tmp_path: Path) -> None:
    path = tmp_path / "pools.json"
    path.write_text(json.dumps({"stages": [{"pools": pools} for pools in glm(indexer=True)]}), encoding="utf-8")
    result = call(
        "plan", "-", "--pools", str(path), "--explain", "--ignore", "HC", input=json.dumps({**PIPELINE, "nnodes": 4})
    )
    assert (result.exit_code, result.stderr) == (0, "")
    text = result.stdout
    for words in ("GB per rank", "per rank", "per node", "cluster", "bytes/slot", "in the size", "on top"):
        assert words in text
    for figure in ("7,621,952", "8,023,168", "7,256,832", "--hicache-size 95"):
        assert figure in text
    assert all(len(line) <= 80 for line in text.splitlines())


def test_text_and_notes_say_when_sizes_are_not_known() -> None:
    arguments = {**SIZED, "model_path": "openai/gpt-oss-120b", "tp_size": 4}
    text = call("plan", "-", "--sglang", "0.5.23", "--compare", "0.5.16", input=json.dumps(arguments)).stdout
    assert "instead of slots that are not known" in text
    assert "side by side" not in text
    assert "the device slots of kv, swa are not known" in text
