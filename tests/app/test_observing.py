"""A log's own lines about host pools against the plan of its arguments."""

from __future__ import annotations

import pytest

from hicache_config.app.checking import validate
from hicache_config.app.options import Options
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
