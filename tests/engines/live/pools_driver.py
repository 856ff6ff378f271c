"""Real host pools under the plugin's hooks, on one or several gloo ranks; runs in the oracle's environment.

    python pools_driver.py CASES.json > RESULTS.jsonl

Device pools, host pools, the parallel groups and the memory check are SGLang's own; replaced are pinning (there is no
GPU) and the cache controller (no threads). Each case is a process a rank, forked after SGLang is imported. A case:
`{"id", "mode", "size", "page", "stages": [stage, ...], "fail": rank or absent}`; a stage names its layers by kind
(`kv`, `swa`, `mamba`, `owners`, `draft`). One line a case out: `{"id", "ranks": [...]}`, with the buffers' real bytes.
"""

from __future__ import annotations

import datetime
import json
import logging
import os
import sys
import tempfile
import traceback
import warnings
from pathlib import Path
from types import SimpleNamespace
from typing import Any

# ruff: noqa: E402 - SGLang looks at these while it is imported
warnings.filterwarnings("ignore")
logging.disable(logging.INFO)

import torch

torch.cuda.get_device_capability = lambda *args, **kwargs: (9, 0)

from sglang.srt.configs.mamba_utils import Mamba2CacheParams, Mamba2StateShape
from sglang.srt.distributed import parallel_state
from sglang.srt.mem_cache.hybrid_cache import hybrid_pool_assembler as assembler
from sglang.srt.mem_cache.memory_pool import (
    DSATokenToKVPool,
    HybridLinearKVPool,
    MambaPool,
    MHATokenToKVPool,
    MLATokenToKVPool,
)
from sglang.srt.mem_cache.pool_host import base, common
from sglang.srt.mem_cache.swa_memory_pool import SWAKVPool
from sglang.srt.mem_cache.unified_cache.component_type import ComponentType
from sglang.srt.runtime_context import SpawnRanks, get_context, publish
from sglang.srt.server_args import ServerArgs
from sglang.srt.speculative.base_spec_worker import HiCacheDraftMode, HiCacheDraftPlan

from hicache_config.engines.sglang import building
from hicache_config.engines.sglang.host_pools import built_pools

COMMON = {"device": "cpu", "enable_memory_saver": False}
TIMEOUT_S = 60
SLOTS = 1024


def without_pinning(dims, *, dtype, device, allocator, **about_pinning):
    return allocator.allocate(dims, dtype=dtype, device=device)


common.ALLOC_MEMORY_FUNCS["cpu"] = without_pinning
base.HICACHE_HOST_MEMORY_RESERVE_BYTES = 1 << 30  # of a machine that has less to spare than a server


class Controller:
    """What the sidecar builders and the plugin read of a cache controller."""

    def __init__(self, allocator, host_pool_group, page_size, *args, **kwargs):
        self.mem_pool_host = host_pool_group
        self.page_size = page_size
        self.transfer_layer_id_max = kwargs.get("transfer_layer_id_max")
        self.layer_done_counter = None


assembler.HybridCacheController = Controller


# --- device pools -------------------------------------------------------------------------------------------------


def mha(page: int, layers: int, slots: int = SLOTS, heads: int = 2) -> MHATokenToKVPool:
    return MHATokenToKVPool(
        size=slots, page_size=page, dtype=torch.bfloat16, head_num=heads, head_dim=16, layer_num=layers, **COMMON
    )


def mla(page: int, layers: int, slots: int = SLOTS) -> MLATokenToKVPool:
    return MLATokenToKVPool(
        size=slots, page_size=page, dtype=torch.bfloat16, kv_lora_rank=512, qk_rope_head_dim=64, layer_num=layers,
        **COMMON,
    )  # fmt: skip


def dsa(page: int, layers: int, owners: list[int] | None, slots: int = SLOTS) -> DSATokenToKVPool:
    shared = None if owners is None else [layer not in owners for layer in range(layers)]
    return DSATokenToKVPool(
        size=slots, page_size=page, kv_lora_rank=512, dtype=torch.bfloat16, qk_rope_head_dim=64, layer_num=layers,
        index_head_dim=128, kv_cache_dim=576, skip_topk_layers=shared, **COMMON,
    )  # fmt: skip


def swa(page: int, full: int, sliding: int) -> SWAKVPool:
    return SWAKVPool(
        size=SLOTS, size_swa=SLOTS // 2, page_size=page, dtype=torch.bfloat16, head_num=2, head_dim=16,
        full_attention_layer_ids=list(range(full)), swa_attention_layer_ids=list(range(full, full + sliding)),
        device="cpu",
    )  # fmt: skip


def states(layers: int, first: int) -> MambaPool:
    shape = Mamba2StateShape.create(
        tp_world_size=1, intermediate_size=64, n_groups=2, num_heads=4, head_dim=16, state_size=16, conv_kernel=4
    )
    ids = list(range(first, first + layers))
    return MambaPool(
        size=16, spec_state_size=0, cache_params=Mamba2CacheParams(shape=shape, layers=ids), mamba_layer_ids=ids,
        device="cpu",
    )  # fmt: skip


def target_pools(case: dict[str, Any], stage: dict[str, Any]) -> tuple[Any, Any]:
    """The KV cache of a stage and its states, or None."""
    page, family = case["page"], case["family"]
    if family == "mha":
        return mha(page, stage["kv"]), None
    if family == "mla":
        return mla(page, stage["kv"]), None
    if family == "dsa":
        return dsa(page, stage["kv"], stage.get("owners")), None
    if family == "swa":
        return swa(page, stage["kv"], stage["swa"]), None
    if family == "mamba_swa":
        return swa(page, stage["kv"], stage["swa"]), states(stage["mamba"], stage["kv"] + stage["swa"])
    beside = states(stage["mamba"], 0)
    hybrid = HybridLinearKVPool(
        size=SLOTS, dtype=torch.bfloat16, page_size=page, head_num=2, head_dim=16, mamba_pool=beside,
        full_attention_layer_ids=list(range(stage["mamba"], stage["mamba"] + stage["kv"])), device="cpu",
    )  # fmt: skip
    return hybrid, beside


def draft_pools(case: dict[str, Any], stage: dict[str, Any]) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """Packed drafts and sidecar drafts."""
    draft, page = stage.get("draft"), case["page"]
    if draft is None:
        return (), ()
    if draft["mode"] == "packed":
        make = {"mha": lambda: mha(page, 1), "mla": lambda: mla(page, 1), "dsa": lambda: dsa(page, 1, None)}
        make["swa"] = lambda: swa(page, 0, 1)
        return tuple(make[case["family"]]() for _ in range(draft["layers"])), ()
    if draft["kind"] == "swa":
        return (), (swa(page, 0, draft["layers"]),)
    if draft["kind"] == "dsa":
        return (), (dsa(page, draft["layers"], None, slots=draft.get("slots", SLOTS)),)
    return (), (mha(page, draft["layers"], slots=draft.get("slots", SLOTS), heads=1),)


# --- one rank -----------------------------------------------------------------------------------------------------


def build_stage(case: dict[str, Any], stage: dict[str, Any]) -> tuple[Any, ...]:
    """Build the stage's host pools through the plugin's two hooks, as SGLang's scheduler would."""
    kvcache, beside = target_pools(case, stage)
    packed, sidecar = draft_pools(case, stage)
    nothing = SimpleNamespace(alloc=None, free=None)
    params = SimpleNamespace(
        req_to_token_pool=SimpleNamespace(mamba_pool=beside, mamba_allocator=nothing),
        token_to_kv_pool_allocator=SimpleNamespace(get_kvcache=lambda: kvcache, swa_attn_allocator=nothing),
        page_size=case["page"], tp_cache_group=None, attn_cp_cache_group=None, attn_tp_cache_group=None,
        pp_cache_group=None, mtp_draft_device_pools=packed, mtp_draft_mamba_pools=(),
        sidecar_draft_device_pools=sidecar, pp_size=len(case["stages"]),
    )  # fmt: skip
    components = {ComponentType.FULL}
    components |= {ComponentType.SWA} if "swa" in stage else set()
    components |= {ComponentType.MAMBA} if "mamba" in stage else set()
    tree_context = SimpleNamespace(
        params=params, enable_hierarchical_cache=True, is_hybrid_swa="swa" in stage, is_hybrid_ssm="mamba" in stage,
        full_tokens_per_layer=SLOTS, disable_radix_cache=False,
    )  # fmt: skip
    plan = None
    if packed or sidecar:
        mode = HiCacheDraftMode.PACKED if packed else HiCacheDraftMode.SIDECAR
        plan = HiCacheDraftPlan(mode=mode, device_pools=packed or sidecar)

    def create(ctx: Any) -> Any:
        cache = SimpleNamespace(page_size=case["page"])
        strategy = assembler._select_strategy(kvcache, components)
        built = strategy.build(cache=cache, kvcache=kvcache, params=ctx.params, server_args=None, load_cache_event=None)
        return SimpleNamespace(cache_controller=built.cache_controller)

    def build(*, hicache_draft_plan: Any) -> Any:
        tree = building.create(create, tree_context, (), {}) if case["mode"] != "off" else create(tree_context)
        if sidecar:
            _, entries = assembler.build_hicache_draft_sidecars(draft_device_pools=sidecar, tree_cache=tree)
            for entry in entries:
                tree.cache_controller.mem_pool_host.add_entry(entry)
        return SimpleNamespace(tree_cache=tree)

    if case["mode"] == "off":
        return built_pools(build(hicache_draft_plan=plan).tree_cache)
    return built_pools(building.build(build, (), {"hicache_draft_plan": plan}).tree_cache)


def on_rank(case: dict[str, Any], rank: int, meeting: Path) -> dict[str, Any]:
    """What one rank came to. The ranks meet in a file that is not there yet."""
    world = len(case["stages"])
    os.environ["HICACHE_CONFIG"] = case["mode"]
    short = datetime.timedelta(seconds=TIMEOUT_S)
    init = parallel_state.GroupCoordinator.__init__
    init.__defaults__ = tuple(short if isinstance(one, datetime.timedelta) else one for one in init.__defaults__)
    args = ServerArgs(model_path="dummy", device="cpu", enable_hierarchical_cache=True, pp_size=world)
    publish(args, role="scheduler", ranks=SpawnRanks(world_rank=rank))
    parallel_state.init_distributed_environment(
        world_size=world, rank=rank, local_rank=rank, backend="gloo",
        distributed_init_method=f"file://{meeting}", timeout=TIMEOUT_S,
    )  # fmt: skip
    parallel_state.initialize_model_parallel(backend="gloo")
    get_context().override(
        "test", hicache_size=case["size"], hicache_ratio=case.get("ratio", 2.0), hicache_mem_layout=case["layout"]
    )
    if case.get("fail") == rank:

        def failing(situation: Any) -> Any:
            raise RuntimeError(f"a fault on stage {situation.stage}")

        building.read = failing
    warned: list[str] = []
    building.logger.warning = lambda text, *args: warned.append(text % args)  # type: ignore[method-assign]
    building.logger.error = lambda *args: None  # type: ignore[method-assign]
    try:
        pools = build_stage(case, case["stages"][rank])
        return {"pools": {pool.name: [pool.pages, pool.bytes] for pool in pools}, "warned": warned}
    except Exception as error:
        codes = [finding.code for finding in getattr(error, "findings", ())]
        return {"error": f"{type(error).__name__}: {error}", "codes": codes, "warned": warned,
                "where": traceback.format_exc().splitlines()[-4:]}  # fmt: skip


def run_case(case: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Fork the ranks, wait for them, collect what each wrote."""
    children = []
    for rank in range(len(case["stages"])):
        answer = folder / f"{case['id']}-{rank}.json"
        child = os.fork()
        if child == 0:
            try:
                answer.write_text(json.dumps(on_rank(case, rank, folder / f"{case['id']}-meeting")), encoding="utf-8")
            except BaseException as error:
                answer.write_text(json.dumps({"error": f"driver: {error!r}", "codes": []}), encoding="utf-8")
            os._exit(0)
        children.append((child, answer))
    ranks = []
    for child, answer in children:
        os.waitpid(child, 0)
        ranks.append(json.loads(answer.read_text("utf-8")) if answer.exists() else {"error": "no answer", "codes": []})
    return {"id": case["id"], "ranks": ranks}


def main() -> None:
    torch.set_num_threads(1)
    cases = json.loads(Path(sys.argv[1]).read_text("utf-8"))
    with tempfile.TemporaryDirectory() as folder:
        for case in cases:
            print(json.dumps(run_case(case, Path(folder))), flush=True)


if __name__ == "__main__":
    main()
