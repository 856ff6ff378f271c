"""Known troubles of single releases, as far as their wheels show them.

Each names what the wheel has or lacks. Must not import anything above this floor.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..core.units import GB
from .case import Case
from .common import flag, hicache
from .registry import Seen, rule

ON = {"enable_hierarchical_cache": True}


@rule(
    "HC680",
    "size-taken-by-every-pool",
    "warning",
    until="0.5.16",
    covers=("7 split",),
    why="Up to 0.5.16 each independent pool (full attention, sliding windows, Mamba states) gets the whole "
    "--hicache-size: two pools take twice the size. Since 0.5.17 it is one total, shared by device bytes. "
    "Source: the wheels of 0.5.16 and 0.5.17, hybrid_pool_assembler.py (_split_hicache_size).",
    bad={**ON, "hicache_size": 20},
    good={**ON, "hicache_ratio": 2.0},
    needs=("model",),
    settings={"architecture": "Qwen3NextForCausalLM", "sglang": "0.5.16"},
)
def size_taken_by_every_pool(case: Case) -> Iterator[Seen]:
    """A size on a model with several pools."""
    traits, size = case.traits, case.args.hicache_size
    if traits is None or not hicache(case) or size <= 0 or traits.v4 or not (traits.sliding or traits.linear):
        return
    pools = 1 + traits.sliding + traits.linear
    yield Seen(
        "hicache_size",
        f"SGLang {case.release.name} gives {flag(case, 'hicache_size', size)} to each of the {pools} pools of "
        f"{traits.architecture}: {size * pools} GB per rank",
        f"Write {flag(case, 'hicache_size', max(size // pools, 1))}, size by ratio, or run 0.5.17 or later.",
        asked=size,
    )


@rule(
    "HC681",
    "stages-of-different-capacity",
    "error",
    until="0.5.14",
    covers=("7 minimum",),
    why="Up to 0.5.14 every pipeline stage keeps the tokens that its own bytes buy; stages with different numbers of "
    "layers then schedule differently and break apart under pressure. Since 0.5.15 they take the minimum. "
    "Source: the wheels of 0.5.14 and 0.5.15 (sync_fixed_hicache_size).",
    bad={**ON, "pp_size": 3, "hicache_size": 100},
    good={**ON, "pp_size": 3, "hicache_ratio": 2.0},
    needs=("plan",),
    settings={"architecture": "LlamaForCausalLM", "sglang": "0.5.14"},
    late="managers/scheduler_pp_mixin.py:event_loop_pp",
)
def stages_of_different_capacity(case: Case) -> Iterator[Seen]:
    """A size on stages whose rows differ."""
    if case.plan is None or case.args.hicache_size <= 0 or not hicache(case):
        return
    slots = {pool.own_slots for stage in case.plan.stages for pool in stage.pools if pool.name == "kv"}
    known = sorted(each for each in slots if each is not None)
    if len(known) > 1:
        yield Seen(
            "hicache_size",
            f"the stages get between {known[0]:,} and {known[-1]:,} slots for {flag(case, 'hicache_size')} "
            f"{case.args.hicache_size}, and SGLang {case.release.name} does not level them",
            f"Size with {flag(case, 'hicache_ratio')}, choose stages of equal layers, or run 0.5.15 or later.",
            asked=case.args.hicache_size,
        )


@rule(
    "HC682",
    "storage-in-stages",
    "warning",
    until="0.5.16",
    covers=("7 storage in stages",),
    why="Up to 0.5.16 pipeline stages do not agree on which pages a storage backend has delivered, and reports tell "
    "of hangs; 0.5.17 adds the agreement (_sync_hicache_ready_counts). Source: the wheels of 0.5.16 and 0.5.17.",
    bad={**ON, "tp_size": 4, "pp_size": 2, "hicache_storage_backend": "file"},
    good={**ON, "tp_size": 8, "hicache_storage_backend": "file"},
    settings={"sglang": "0.5.16"},
)
def storage_in_stages(case: Case) -> Iterator[Seen]:
    """A storage backend under pipeline parallelism."""
    backend, stages = case.raw("hicache_storage_backend"), case.resolved("pp_size")
    if hicache(case) and backend is not None and stages > 1:
        yield Seen(
            "hicache_storage_backend",
            f"{flag(case, 'hicache_storage_backend', backend)} with {flag(case, 'pp_size', stages)}: the stages of "
            "SGLang "
            f"{case.release.name} do not agree on what was fetched",
            "Run 0.5.17 or later, or without a storage backend.",
            asked=backend,
        )


@rule(
    "HC683",
    "tree-without-sliding-windows",
    "error",
    until="0.5.12",
    covers=("7 unified tree",),
    why="Up to 0.5.12 HiCache's own prefix tree takes plain, latent and sparse pools alone; models with "
    "sliding-window pools need SGLANG_ENABLE_UNIFIED_RADIX_TREE=1 (since 0.5.12) or a later release, which takes "
    "the unified tree by itself. Source: the wheels of 0.5.11 to 0.5.14, managers/scheduler.py, "
    "mem_cache/hiradix_cache.py and registry.py.",
    bad=ON,
    good=ON,
    needs=("model",),
    settings={"architecture": "GptOssForCausalLM", "sglang": "0.5.12"},
    good_settings={"architecture": "GptOssForCausalLM", "sglang": "0.5.13"},
    late="mem_cache/hiradix_cache.py:__init__",
)
def tree_without_sliding_windows(case: Case) -> Iterator[Seen]:
    """Sliding-window pools on the older tree."""
    chosen = case.environment.get("SGLANG_ENABLE_UNIFIED_RADIX_TREE", "").lower() in ("1", "true", "yes")
    # 0.5.11 knows the variable, but looks at HiCache first.
    chosen = chosen and case.release.at_least("0.5.12")
    if case.traits is None or not hicache(case) or chosen or not (case.traits.sliding or case.traits.v4):
        return
    since = "Set SGLANG_ENABLE_UNIFIED_RADIX_TREE=1, or run" if case.release.at_least("0.5.12") else "Run"
    yield Seen(
        "enable_hierarchical_cache",
        f"the prefix tree that SGLang {case.release.name} takes for HiCache does not support "
        f"{case.traits.architecture}",
        f"{since} 0.5.13 or later.",
    )


@rule(
    "HC684",
    "host-memory-not-divided",
    "warning",
    until="0.5.18",
    covers=("7 division",),
    why="Up to 0.5.18 each rank compares its own pools with all of the host's free memory, so every rank passes and "
    "the machine is killed later; since 0.5.19 the memory is divided by the ranks of the host. Source: the "
    "wheels of 0.5.18 and 0.5.19, mem_cache/pool_host/base.py.",
    bad={**ON, "tp_size": 8, "hicache_size": 100},
    good={**ON, "hicache_size": 100},
    settings={"sglang": "0.5.18"},
)
def host_memory_not_divided(case: Case) -> Iterator[Seen]:
    """Several ranks on a host with an undivided check."""
    ranks = max(case.args.tp_size * case.args.pp_size // max(case.args.nnodes, 1), 1)
    size = case.args.hicache_size
    if hicache(case) and case.gave("hicache_size") and size > 0 and ranks > 1:
        # Several pools that each get the size, and pools on top of it, make more of it.
        known = [stage.bytes or 0 for stage in case.plan.stages] if case.plan is not None else []
        takes = max(size, round(max(known, default=0) / GB))
        whole = f"{flag(case, 'hicache_size', size)} is per rank" + (
            f", which takes {takes} GB" if takes > size else ""
        )
        yield Seen(
            "hicache_size",
            f"{whole}: {takes} GB x {ranks} = {takes * ranks:,} GB on a node, and SGLang {case.release.name} checks "
            "each rank against the whole machine",
            "Check the sum yourself (--host-memory), or run 0.5.19 or later.",
            asked=size,
        )


@rule(
    "HC685",
    "tiny-pages-cost-device-memory",
    "note",
    covers=("3.4 staging",),
    why="Writing back in layout page_first stages up to 64 pages on the device, and a page of one token makes every "
    "copy small. Source: SGLang 0.5.23, mem_cache/pool_host/mha.py (staging buffers).",
    bad={**ON, "page_size": 1, "hicache_storage_backend": "file"},
    good={**ON, "page_size": 64, "hicache_storage_backend": "file"},
)
def tiny_pages_cost_device_memory(case: Case) -> Iterator[Seen]:
    """Pages of one token."""
    if hicache(case) and case.gave("page_size") and case.resolved("page_size") == 1:
        yield Seen(
            "page_size",
            f"{flag(case, 'page_size', 1)} makes every transfer as small as one token",
            f"Write {flag(case, 'page_size', 64)} where the model allows it.",
            asked=1,
        )


@rule(
    "HC686",
    "latent-rows-kept-by-every-rank",
    "note",
    covers=("1.5 replicated",),
    why="With latent rows (MLA, DSA) every tensor rank keeps the same rows, and so does each rank's host pool: a "
    "size of 40 on 8 ranks pins 320 GB for 40 GB of content. Attention data parallelism has different content on "
    "each rank. Source: SGLang 0.5.23, mem_cache/pool_host/mla.py.",
    bad={**ON, "tp_size": 8, "hicache_size": 40},
    good={**ON, "tp_size": 8, "attn_dp_size": 8, "hicache_size": 40},
    needs=("model",),
    settings={"architecture": "DeepseekV3ForCausalLM"},
)
def latent_rows_kept_by_every_rank(case: Case) -> Iterator[Seen]:
    """The same rows in the host pools of several ranks."""
    if case.traits is None or not case.traits.latent or not hicache(case) or case.raw("dcp_size") > 1:
        return
    groups = max(int(case.resolved("attn_dp_size") or 1), 1)
    if case.raw("enable_dp_attention") and groups == 1:
        groups = max(case.raw("dp_size"), 1)
    same = case.raw("tp_size") // groups
    size = case.args.hicache_size
    if same > 1 and size > 0:
        yield Seen(
            "hicache_size" if case.gave("hicache_size") else "enable_hierarchical_cache",
            f"{same} tensor ranks keep the same rows: {size * same} GB are pinned for {size} GB of content",
            "Use attention data parallelism for different content, or count with it.",
        )
