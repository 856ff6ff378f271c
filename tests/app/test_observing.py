"""A log's own lines about host pools against the plan of its arguments."""

from __future__ import annotations

import json

import pytest

from hicache_config.app.checking import validate
from hicache_config.app.options import Options
from hicache_config.core.releases import NEWEST
from hicache_config.reports.report import Placed
from hicache_config.sources import read

ARGUMENTS = (
    "[2026-09-10 10:00:00] server_args=ServerArgs(model_path='zai-org/GLM-5.2-FP8', tp_size=8, pp_size=4, "
    "kv_cache_dtype='fp8_e4m3', enable_hierarchical_cache=True, hicache_size=100)\n"
)
KV = "[2026-09-10 10:01:00 {rank}] Allocating kv hierarchical KV host pool: {slots} tokens, {gb} GB host memory.\n"
INDEX = "[2026-09-10 10:01:00 {rank}] Allocating {gb} GB host memory for DSA indexer\n"


def found(*lines: str) -> dict[str, Placed]:
    report = validate([read("server.log", text=ARGUMENTS + "".join(lines))], Options(sglang="0.5.23"))
    return {placed.finding.code: placed for entry in report.sources for placed in entry.findings}


def test_pools_as_planned_are_said_to_be() -> None:
    codes = found(KV.format(rank="PP0 TP0", slots=7_621_952, gb="95.00"), INDEX.format(rank="PP0 TP0", gb="7.04"))
    assert "HC313" not in codes
    assert "2 host pools" in codes["HC314"].finding.message


@pytest.mark.parametrize(
    ("line", "says"),
    [
        (KV.format(rank="PP2 TP1", slots=7_621_888, gb="99.99"), "7,621,888 slots of host pool 'kv' on PP2 TP1"),
        (INDEX.format(rank="PP0 TP0", gb="6.50"), "6.50 GB of host pool 'indexer'"),
    ],
)
def test_a_pool_that_came_out_otherwise_is_found_at_its_line(line: str, says: str) -> None:
    placed = found(KV.format(rank="PP0 TP0", slots=7_621_952, gb="95.00"), line)["HC313"]
    assert says in placed.finding.message
    assert placed.place is not None
    assert placed.place.line == 3


@pytest.mark.parametrize(
    "line",
    [
        KV.format(rank="TP0", slots=1, gb="0.00"),
        KV.format(rank="PP9 TP0", slots=1, gb="0.00"),
        "[PP0 TP0] Allocating 2.00 GB host memory for V4 paged pool 'other' (layers=1, pages=5\n",
        "",
    ],
)
def test_what_can_not_be_compared_is_passed_over(line: str) -> None:
    assert not {"HC313", "HC314"} & set(found(line))


@pytest.mark.parametrize(
    ("said", "chosen", "told"),
    [
        ("0.5.16", None, True),
        ("0.5.15.post1", None, True),
        (NEWEST, None, False),
        (f"{NEWEST}.post2", None, False),
        ("0.5.16", NEWEST, False),
        ("0.0.0.dev1+gabc", None, False),
        ("0.4.7", None, False),
        (5, None, False),
        (None, None, False),
    ],
)
def test_a_server_of_another_release_than_it_is_checked_as(
    monkeypatch: pytest.MonkeyPatch, said: object, chosen: str | None, told: bool
) -> None:
    monkeypatch.setattr("hicache_config.app.options.installed_sglang", lambda: None)
    answer = {"enable_hierarchical_cache": True, "hicache_size": 40, "max_total_num_tokens": 1_000, "version": said}
    document = read("info.json", text=json.dumps(answer))
    (source,) = validate([document], Options(sglang=chosen)).sources
    found = [each.finding for each in source.findings if each.finding.code == "HC111"]
    assert [finding.help for finding in found] == ([f"Name it: --sglang {said}."] if told else [])
