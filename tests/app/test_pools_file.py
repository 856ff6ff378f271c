"""Pools files: every problem at its place, with what to write instead."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hicache_config.app.options import Options
from hicache_config.app.planning import plan
from hicache_config.app.pools_file import read_pools
from hicache_config.sources import read

KV = {"name": "kv", "slots": 100, "bytes_per_slot": 10, "page_size": 4}


def write(folder: Path, value: Any) -> str:
    path = folder / "pools.json"
    path.write_text(value if isinstance(value, str) else json.dumps(value), encoding="utf-8")
    return str(path)


def test_one_stage_stands_for_each(tmp_path: Path) -> None:
    found = read_pools(write(tmp_path, {"stages": [{"pools": [KV], "layers": 7}]}), 3, {})
    assert [stage.layers for stage in found.stages] == [7, 7, 7]
    assert found.notes == ()


def test_slots_that_the_caller_names_win(tmp_path: Path) -> None:
    found = read_pools(write(tmp_path, {"stages": [{"pools": [{**KV, "device_bytes": 1040}]}]}), 1, {"kv": 500})
    assert found.stages[0].by_name["kv"].slots == 500
    assert found.stages[0].by_name["kv"].weight == 5000


@pytest.mark.parametrize(
    ("value", "code", "says", "helps"),
    [
        ({"stages": [{"pools": [{**KV, "slot": 1}]}]}, "HC312", "/stages/0/pools/0/slot is no field", "slots"),
        ({"stages": [{"pool": [KV]}]}, "HC312", "/stages/0/pool", "pools"),
        ({"stage": []}, "HC312", "/stage", "stages"),
        ({"stages": []}, "HC312", "/stages", "schema pools"),
        (
            {"stages": [{"pools": [{**KV, "slots": True}]}]},
            "HC312",
            "/stages/0/pools/0/slots is true; a whole number",
            "",
        ),
        ({"stages": [{"pools": [{**KV, "slots": 1.5}]}]}, "HC312", "1.5", ""),
        ({"stages": [{"pools": [{**KV, "bytes_per_slot": -1}]}]}, "HC312", "-1; at least 0 is expected", ""),
        ({"stages": [{"pools": [{"slots": 1}]}]}, "HC312", "name is missing", ""),
        ({"stages": [{"pools": [KV, KV]}]}, "HC311", "twice", ""),
        ({"stages": [{"pools": [{**KV, "follows": "no"}]}]}, "HC311", "does not have", ""),
        ({"stages": [{"pools": [{"name": "kv"}]}]}, "HC310", "neither bytes_per_slot nor page_bytes", ""),
        ({"stages": [{"pools": [KV]}] * 3}, "HC439", "pools of 3 stages are given, and --pp-size is 2", "single one"),
        ([], "HC312", "", ""),
        ("{", "HC002", "", ""),
        ('{"stages": [{"pools": [{"name": "kv", "slots": NaN, "bytes_per_slot": 1}]}]}', "HC004", "NaN", ""),
    ],
)
def test_what_is_wrong(tmp_path: Path, value: Any, code: str, says: str, helps: str) -> None:
    found = read_pools(write(tmp_path, value), 2, {})
    assert found.stages == ()
    findings = [noted.finding for noted in found.notes]
    assert code in [finding.code for finding in findings]
    assert any(says in finding.message and helps in finding.help for finding in findings)


def test_a_place_is_given(tmp_path: Path) -> None:
    text = '{"stages": [\n  {"pools": [\n    {"name": "kv", "slots": "many", "bytes_per_slot": 1}]}]}'
    (noted,) = read_pools(write(tmp_path, text), 1, {}).notes
    assert noted.place is not None
    assert (noted.place.line, noted.place.column) == (3, 20)


def test_files_that_can_not_be_read(tmp_path: Path) -> None:
    assert read_pools(str(tmp_path / "none.json"), 1, {}).notes[0].finding.code == "HC001"
    binary = tmp_path / "binary.json"
    binary.write_bytes(b"\0\1\2")
    assert read_pools(str(binary), 1, {}).notes[0].finding.code == "HC006"


def test_a_place_in_the_pools_file_is_told_in_words(tmp_path: Path) -> None:
    path = write(tmp_path, '{"stages": [\n  {"pools": [\n    {"name": "kv", "slots": "many", "bytes_per_slot": 1}]}]}')
    document = read("args.json", text='{"enable_hierarchical_cache": true, "hicache_size": 1}')
    (placed,) = plan(document, Options(sglang="0.5.23", pools=path)).findings
    assert placed.place is None
    assert placed.finding.message.startswith(f'{path}:3:20: /stages/0/pools/0/slots is "many"')
