"""The memory limit of a container counts as the memory of its node."""

from __future__ import annotations

import pytest

from hicache_config.app.options import Options
from hicache_config.app.planning import plan
from hicache_config.sources import read

COMPOSE = """\
services:
  engine:
    command: [sglang, serve, --model-path, meta-llama/Meta-Llama-3.1-8B, --enable-hierarchical-cache, --hicache-size, "64", --tp, "2"]
    mem_limit: {limit}
"""


@pytest.mark.parametrize(
    ("limit", "given", "fits", "available"),
    [
        ("256g", None, True, 256 * 2**30),
        ("100g", None, False, 100 * 2**30),
        ("256g", 100 * 10**9, False, 100 * 10**9),
        ("100g", 900 * 10**9, False, 100 * 2**30),
    ],
)
def test_a_container_limit_decides_whether_it_fits(limit: str, given: int | None, fits: bool, available: int) -> None:
    document = read("compose.yaml", text=COMPOSE.format(limit=limit))
    report = plan(document, Options(sglang="0.5.23", host_memory_bytes=given))
    assert (report.fits, report.available_bytes) == (fits, available)
    assert any("container" in text for text in report.assumptions) is (available != given)
    assert ("HC501" in [placed.finding.code for placed in report.findings]) is not fits
