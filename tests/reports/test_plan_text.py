"""The table of a plan's text: columns stand apart whatever the numbers are, and fit 80 columns where a machine could."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from hicache_config.app.options import Options
from hicache_config.app.planning import plan
from hicache_config.reports.plan_text import plan_text
from hicache_config.sources import read

MODELS = ["Qwen/Qwen3-8B", "zai-org/GLM-5.2-FP8", "openai/gpt-oss-120b", "deepseek-ai/DeepSeek-V4-Flash"]
SLOTS = {"kv": 3_000_001, "swa": 400_000}
ROW = re.compile(r"  (?: {0,2}\w+)? +[\d,]+ +[\d,]+(?:\+\d+)? +(?:[\d,]+|by page) +[\d,]+(?:\.\d{3}| B)(?:  .*)?")


def text_of(model: str, **arguments: Any) -> str:
    document = read("a.json", text=json.dumps({"model_path": model, "enable_hierarchical_cache": True, **arguments}))
    return plan_text(plan(document, Options(accounting="total", device_slots=SLOTS)), explain=True, color=False)


@pytest.mark.parametrize("size", [1, 100, 2_000, 99_999, 5_000_000, 10**9])
@pytest.mark.parametrize("model", MODELS)
def test_columns_stand_apart(model: str, size: int) -> None:
    lines = text_of(model, hicache_size=size, tp_size=8, pp_size=2).splitlines()
    rows = [line for line in lines if re.match(r"  +\w* +[\d,]{3,} ?[\d,]*\+?.*(in the size|on top)$", line)]
    assert rows
    assert [line for line in rows if not ROW.fullmatch(line)] == []
    if size <= 2_000:
        table = lines[next(number for number, line in enumerate(lines) if line.startswith("plan ")) :]
        assert [line for line in table if len(line) > 80] == []
        ends = {
            re.match(r"(?:  [a-z_0-9 ]*?)? +[\d,]+ +[\d,]+(?:\+\d+)? +(?:[\d,]+|by page)", line)[0] for line in rows
        }  # type: ignore[index]
        assert {len(end) for end in ends} == {57}, "the columns end where the head's do"


@pytest.mark.parametrize(
    ("arguments", "asked"),
    [
        ({"hicache_size": 1_234_567}, "a size of 1,234,567 GB per rank"),
        ({"hicache_ratio": 2.0}, "a ratio of 2 host slots per device slot"),
        ({"hicache_ratio": 1.23456789}, "a ratio of 1.23456789 host slots per device slot"),
        ({"hicache_host_memory_fraction": 0.12345678}, "at most 0.12345678 of the host's memory, and a ratio of 2"),
    ],
)
def test_what_was_asked_is_not_rounded(arguments: dict[str, Any], asked: str) -> None:
    assert asked in text_of(MODELS[0], **arguments)
