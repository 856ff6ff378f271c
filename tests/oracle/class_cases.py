"""The list of cases over tests/models/made/classes.json: every model class in a few arrangements. special.py runs them.

    python tests/oracle/class_cases.py [TEXT]        the cases as JSON lines, those whose id holds TEXT

Uses the standard library alone; neither SGLang nor torch.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

Case = dict[str, Any]
CLASSES = Path(__file__).resolve().parent.parent / "models" / "made" / "classes.json"
#: Device sizes; what a class has no use for is let lie.
SIZES = {"max_total_tokens": 400_000, "max_mamba_cache_size": 300}
QUESTIONS: list[Case] = [
    {"args": {"tp_size": 2, "page_size": 16, "hicache_size": 10}},
    {"args": {"tp_size": 4, "pp_size": 2, "page_size": 64, "hicache_ratio": 2.0, "kv_cache_dtype": "fp8_e4m3"}},
    {"args": {"tp_size": 1, "hicache_size": 3}, "gpu": "sm100"},
    {"args": {"tp_size": 2, "page_size": 64, "hicache_size": 7, "speculative_algorithm": "EAGLE"}},
]
#: ZAYA1 has two KV heads, which ranks must divide, and keeps states in pages of one slot.
OWN = {"ZayaForCausalLM": {"tp_size": 2, "page_size": 1, "disable_overlap_schedule": True}}


def cases() -> list[Case]:
    """All cases as `{"id": …, "case": …}`, the same every time."""
    names = json.loads(CLASSES.read_text(encoding="utf-8"))
    return [
        {
            "id": f"{name}/{number}",
            "case": {
                "model": f"classes/{name}",
                "args": {**SIZES, **question["args"], **OWN.get(name, {})},
                "gpu": question.get("gpu", "sm90"),
            },
        }
        for name in sorted(names)
        for number, question in enumerate(QUESTIONS)
    ]


def main() -> None:
    text = sys.argv[1] if len(sys.argv) > 1 else ""
    for entry in cases():
        if text in entry["id"]:
            print(json.dumps(entry))


if __name__ == "__main__":
    main()
