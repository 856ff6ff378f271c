"""Numbers of speculative decoding that SGLang fills in: steps, branches, draft tokens, requests at once.

Source: SGLang 0.5.23, arg_groups/speculative_hook.py. Must not import anything above this floor.
"""

from __future__ import annotations

from typing import Any

from ..arguments import ServerArgs
from .model import Model
from .pipeline import Settled

_EAGLE = frozenset({"EAGLE", "EAGLE3", "NEXTN", "STANDALONE", "FROZEN_KV_MTP"})
#: Classes for which SGLang takes 5 steps of 4 branches; others get 3 steps of one.
_BRANCHING = frozenset({"Grok1ForCausalLM", "LlamaForCausalLM"})
#: --max-running-requests with speculative decoding where none is given.
REQUESTS = 48


def fill_in(model: Model, args: ServerArgs) -> tuple[ServerArgs, dict[str, Settled]]:
    """The arguments with these numbers as SGLang settles them, and what it settled."""
    algorithm = (args.speculative_algorithm or "").upper()
    if not algorithm:
        return args, {}
    gets: dict[str, Any] = {}
    if args.max_running_requests is None:
        gets["max_running_requests"] = REQUESTS
    steps, branches, tokens = (
        args.speculative_num_steps, args.speculative_eagle_topk, args.speculative_num_draft_tokens,
    )  # fmt: skip
    if algorithm in _EAGLE and steps is None and branches is None and tokens is None:
        branching = model.architecture in _BRANCHING and algorithm != "STANDALONE"
        steps, branches, tokens = (5, 4, 8) if branching else (3, 1, 4)
    if algorithm in _EAGLE and branches == 1 and steps is not None:
        tokens = steps + 1
    if algorithm == "NGRAM" and tokens is None:
        tokens = 12
    gets |= {
        "speculative_num_steps": steps,
        "speculative_eagle_topk": branches,
        "speculative_num_draft_tokens": tokens,
    }
    changed = {
        name: Settled(name, getattr(args, name), value, f"SGLang settles it for {algorithm}")
        for name, value in gets.items()
        if value != getattr(args, name)
    }
    return args.model_copy(update={name: each.gets for name, each in changed.items()}), changed
