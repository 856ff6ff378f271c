"""Engines of a Compose file on one machine: each fits, and together they do or don't."""

from __future__ import annotations

import json

import pytest

from hicache_config.app.checking import validate
from hicache_config.app.options import Options
from hicache_config.sources import read

SIZED = "--model-path Qwen/Qwen3-8B --enable-hierarchical-cache --hicache-size {size} --tp {ranks}"


def found(text: str, memory: int | None, name: str = "compose.yaml", **more: object) -> list[str]:
    options = Options(sglang="0.5.23", host_memory_bytes=memory, **more)  # type: ignore[arg-type]
    report = validate([read(name, text=text)], options)
    return [
        placed.finding.message
        for source in report.sources
        for placed in source.findings
        if placed.finding.code == "HC506"
    ]


def compose(*commands: str) -> str:
    services = {f"engine-{number}": {"command": f"sglang serve {words}"} for number, words in enumerate(commands)}
    return json.dumps({"services": services})


TWO = compose(SIZED.format(size=100, ranks=4), SIZED.format(size=50, ranks=2))


@pytest.mark.parametrize(("memory", "told"), [(511, False), (510, True), (412, True), (410, False), (None, False)])
def test_the_sum_counts_where_each_fits(memory: int | None, told: bool) -> None:
    messages = found(TWO, None if memory is None else memory * 10**9)
    assert bool(messages) is told
    if told:
        assert "500.000 GB together (400.000 GB of engine-0 + 100.000 GB of engine-1)" in messages[0]


@pytest.mark.parametrize(
    "text",
    [
        compose(SIZED.format(size=100, ranks=4)),
        compose(SIZED.format(size=100, ranks=4), "--model-path nobody/knows --enable-hierarchical-cache"),
        compose(SIZED.format(size=100, ranks=4), "--model-path Qwen/Qwen3-8B --tp 4 --hicache-size 100"),
        compose(SIZED.format(size=100, ranks=4), SIZED.format(size=100, ranks=4) + " --nnodes 2"),
        compose(SIZED.format(size=100, ranks=4), "--model-path Qwen/Qwen3-8B --enable-hicache --hicache-ratio 2"),
    ],
)
def test_what_is_not_known_or_elsewhere_is_not_added(text: str) -> None:
    assert found(text, 410 * 10**9) == []


def test_only_a_file_for_one_machine_is_added_up() -> None:
    words = [{"server_args": {"model_path": "Qwen/Qwen3-8B", "enable_hierarchical_cache": True, "hicache_size": 100}}]
    assert found(json.dumps(words * 2), 150 * 10**9, "engines.json") == []
    assert found(TWO, 450 * 10**9, ignore=("HC506",)) == []
