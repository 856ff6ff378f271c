"""What collective.py shows: ranks that build pools at the same time, where their agreement holds and where it breaks.

Each rank is a list of steps. `{"layers": 4, "size": 0.01}` builds one attention pool of that size in GB by SGLang's
own builder (`ratio` and `slots` instead of a size by ratio); `{"split": [kv layers, mamba layers], "size": …}` builds
a linear hybrid's two pools with SGLang's split; `{"later": 5}` is some other minimum that the scheduler takes on the
same group afterwards. Uses the standard library alone.
"""

from __future__ import annotations

from typing import Any

SIZE = 0.01


def kv(layers: int, size: float = SIZE) -> dict[str, Any]:
    return {"layers": layers, "size": size}


def by_ratio(layers: int, slots: int = 1024, ratio: float = 2.0) -> dict[str, Any]:
    return {"layers": layers, "ratio": ratio, "slots": slots}


def cases() -> list[dict[str, Any]]:
    """All cases as `{"id": …, "case": …}`."""
    no_attention = [{"split": [0, 3], "size": SIZE}]
    with_attention = [{"split": [2, 2], "size": SIZE}]
    listed: dict[str, tuple[str, list[list[dict[str, Any]]], dict[str, Any]]] = {
        "uneven-two": ("two stages of 3 and 1 layers", [[kv(3)], [kv(1)]], {}),
        "uneven-four": ("four stages of 4, 3, 5 and 2 layers", [[kv(4)], [kv(3)], [kv(5)], [kv(2)]], {}),
        "two-pools-four": (
            "two pools on each of four stages",
            [[kv(3), kv(1)], [kv(2), kv(2)], [kv(4), kv(1)], [kv(3), kv(2)]],
            {},
        ),
        "by-ratio": ("by ratio nothing is agreed", [[by_ratio(4, 1024)], [by_ratio(4, 2048)]], {}),
        "sizes-differ": ("the ranks were given different sizes", [[kv(4, 0.01)], [kv(4, 0.02)]], {}),
        "tiny-budget": ("one rank's size is below a slot", [[kv(4)], [kv(2, 1e-7)]], {}),
        "order-differs": ("the same two pools in another order", [[kv(2), kv(8)], [kv(8), kv(2)]], {}),
        "pool-missing": ("one stage has a pool less", [[kv(4), kv(8)], [kv(4)]], {}),
        "pool-missing-four": (
            "one stage of four has a pool less",
            [[kv(4), kv(8)]] * 2 + [[kv(4)], [kv(4), kv(8)]],
            {},
        ),
        "pool-missing-later": (
            "one stage has a pool less, and a later minimum takes its place",
            [[kv(4), kv(8)], [kv(4), {"later": 5}]],
            {},
        ),
        "mode-differs": ("one rank by size, the other by ratio", [[kv(4)], [by_ratio(4)]], {}),
        "no-attention": (
            "a stage of a linear hybrid without attention, its empty buffer let through",
            [no_attention, with_attention],
            {"empty_buffers": True},
        ),
        "no-attention-mapped": (
            "a stage of a linear hybrid without attention, its empty buffer mapped as on a server",
            [no_attention, with_attention],
            {},
        ),
    }
    return [
        {"id": name, "case": {"what": what, "ranks": ranks, **options}}
        for name, (what, ranks, options) in listed.items()
    ]
