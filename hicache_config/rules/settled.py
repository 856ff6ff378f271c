"""Values that SGLang writes over because of the model or the GPU: page size, KV type, sliding-window memory.

They change what the host pools come to. Source: SGLang 0.5.23, arg_groups/overrides.py and model_overrides/.
Must not import anything above this floor.
"""

from __future__ import annotations

from collections.abc import Iterator

from .case import Case
from .common import flag, hicache
from .registry import Seen, rule
from .resolution import Rewrite

ON = {"enable_hierarchical_cache": True}


def _changed(case: Case, argument: str) -> Iterator[Rewrite]:
    """Rewrites of an argument that the person gave."""
    for rewrite in case.resolution.of(argument):
        if case.gave(argument) and rewrite.asked is not None:
            yield rewrite


def _seen(case: Case, rewrite: Rewrite, effect: str) -> Seen:
    return Seen(
        rewrite.argument,
        f"{flag(case, rewrite.argument, rewrite.asked)} becomes {rewrite.gets}: {rewrite.why}; {effect}",
        f"Write {flag(case, rewrite.argument, rewrite.gets)}.",
        asked=rewrite.asked,
        gets=rewrite.gets,
    )


@rule(
    "HC630",
    "page-size-rewritten",
    "warning",
    covers=("page size",),
    why="Host pools hold whole pages, so the page size rounds them. Attention kernels and some models take only "
    "certain page sizes, and SGLang writes another one over what was asked. Source: SGLang 0.5.23, "
    "arg_groups/overrides.py:_mla_backend_page_constraints and its neighbours, model_overrides/.",
    bad={"page_size": 32},
    good={"page_size": 64},
    needs=("model",),
    settings={"architecture": "DeepseekV32ForCausalLM"},
)
def page_size_rewritten(case: Case) -> Iterator[Seen]:
    """Another page size than asked."""
    for rewrite in _changed(case, "page_size"):
        yield _seen(case, rewrite, "host pools are rounded to it")


@rule(
    "HC631",
    "kv-type-settled",
    "note",
    covers=("kv type",),
    why="With --kv-cache-dtype auto the KV type is not always that of the weights: a checkpoint's quantisation may "
    "ask for fp8_e4m3, and sparse attention takes it on Blackwell. It decides the bytes of a row, and so what a "
    "size buys. Source: SGLang 0.5.23, arg_groups/overrides.py:_dsa_kv_cache_dtype_default and "
    "mem_cache/kv_cache_dtype.py.",
    bad=ON,
    good={**ON, "kv_cache_dtype": "fp8_e4m3"},
    needs=("model",),
    settings={"architecture": "DeepseekV32ForCausalLM", "gpu": "sm100"},
)
def kv_type_settled(case: Case) -> Iterator[Seen]:
    """auto that becomes fp8."""
    for rewrite in case.resolution.of("kv_cache_dtype"):
        if rewrite.gets == "fp8_e4m3" and hicache(case):
            yield Seen(
                "kv_cache_dtype" if case.gave("kv_cache_dtype") else "enable_hierarchical_cache",
                f"{flag(case, 'kv_cache_dtype', rewrite.asked)} becomes {rewrite.gets}: {rewrite.why}",
                f"Write {flag(case, 'kv_cache_dtype', rewrite.gets)} to say so.",
                asked=rewrite.asked,
                gets=rewrite.gets,
            )


@rule(
    "HC632",
    "sliding-window-memory-given-up",
    "warning",
    covers=(27, 28),
    why="For Step 3.5/3.7 with HiCache, and for Gemma 2/3/3n, EXAONE 4 with a window pattern and OLMo 2 always, "
    "SGLang gives the sliding-window pool up: all layers lie in one plain pool, and host memory grows with it. "
    "Source: SGLang 0.5.23, arg_groups/overrides.py:_step3p_overrides and model_overrides/.",
    bad=ON,
    good={**ON, "disable_hybrid_swa_memory": True, "swa_full_tokens_ratio": 1.0},
    needs=("model",),
    settings={"architecture": "Step3p5ForCausalLM"},
)
def sliding_window_memory_given_up(case: Case) -> Iterator[Seen]:
    """One plain pool instead of two."""
    if not hicache(case):
        return
    for name in ("disable_hybrid_swa_memory", "swa_full_tokens_ratio"):
        for rewrite in case.resolution.of(name):
            given_up = rewrite.gets is True or (case.gave(name) and rewrite.gets == 1.0)
            if given_up:
                yield Seen(
                    name if case.gave(name) else "enable_hierarchical_cache",
                    f"{flag(case, name)} becomes {rewrite.gets}: {rewrite.why}",
                    "Count with one pool over all layers.",
                    asked=rewrite.asked,
                    gets=rewrite.gets,
                )
