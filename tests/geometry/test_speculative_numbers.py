"""Numbers of speculative decoding that SGLang fills in (0.5.23, arg_groups/speculative_hook.py)."""

from __future__ import annotations

from typing import Any

import pytest

from hicache_config.geometry import Model
from hicache_config.geometry.speculative_numbers import fill_in

from .making import DENSE, answer, args

NUMBERS = ("speculative_num_steps", "speculative_eagle_topk", "speculative_num_draft_tokens")


def numbers(architecture: str, **given: Any) -> tuple[int | None, ...]:
    filled, _ = fill_in(Model("a-model", {**DENSE, "architectures": [architecture]}), args(**given))
    return tuple(getattr(filled, name) for name in NUMBERS)


@pytest.mark.parametrize(
    ("architecture", "given", "expected"),
    [
        ("LlamaForCausalLM", {"speculative_algorithm": "EAGLE"}, (5, 4, 8)),
        ("Qwen3MoeForCausalLM", {"speculative_algorithm": "EAGLE3"}, (3, 1, 4)),
        ("LlamaForCausalLM", {"speculative_algorithm": "STANDALONE"}, (3, 1, 4)),
        (
            "Qwen3MoeForCausalLM",
            {"speculative_algorithm": "EAGLE", "speculative_num_steps": 5, "speculative_eagle_topk": 1},
            (5, 1, 6),
        ),
        ("LlamaForCausalLM", {"speculative_algorithm": "NGRAM"}, (None, None, 12)),
        ("LlamaForCausalLM", {}, (None, None, None)),
    ],
)
def test_numbers(architecture: str, given: dict[str, Any], expected: tuple[int | None, ...]) -> None:
    assert numbers(architecture, **given) == expected


def test_what_is_filled_in_is_told() -> None:
    settled = answer("Qwen/Qwen3.5-397B-A17B", tp_size=8, speculative_algorithm="NEXTN").settled
    assert (settled["speculative_num_draft_tokens"].asked, settled["speculative_num_draft_tokens"].gets) == (None, 4)
    assert settled["max_running_requests"].gets == 48


def test_what_is_filled_in_sizes_the_pools() -> None:
    """The same pools as with the numbers written out."""
    size: dict[str, Any] = {"tp_size": 8, "max_total_tokens": 500_000, "max_mamba_cache_size": 500}
    written: dict[str, Any] = dict(zip(NUMBERS, (3, 1, 4), strict=True))
    short = answer("Qwen/Qwen3.5-397B-A17B", speculative_algorithm="NEXTN", **size)
    long = answer("Qwen/Qwen3.5-397B-A17B", speculative_algorithm="EAGLE", max_running_requests=48, **written, **size)
    assert short.stages
    assert short.stages == long.stages
