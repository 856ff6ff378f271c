"""A test plugin for SGLang on a machine without a GPU: host pools without pinning, their real sizes, faults on order.
SGLang leaves 1 GiB of the machine free instead of 10; servers with a draft leave out what a CPU has no kernel for (a
warm-up, waiting for the GPU, the draft's attention).

Loaded beside ours, or alone, through an entry point that the tests write; it changes no size. Runs in the oracle's
environment. Variables: TEST_CUDA_CAPABILITY (what DSA asks of the GPU), TEST_FAILING_RANK (a stage whose pools can't
be read), TEST_UNHOOKED (drop our hooks, as a registry that fails to apply them does).
"""

import json
import logging
import os
import sys

BUILD = "sglang.srt.mem_cache.kv_cache_builder.build_kv_cache"


def activate() -> None:
    logging.getLogger("sglang.hicache_config").setLevel(logging.INFO)
    if os.environ.get("TEST_CUDA_CAPABILITY"):
        import torch

        torch.cuda.get_device_capability = lambda *args, **kwargs: (9, 0)
    if os.environ.get("TEST_UNHOOKED"):
        from hicache_config.engines.sglang import hooks

        hooks.register_build_hooks = lambda: None
    if "sglang.srt.managers.scheduler" not in sys.modules:
        return
    import torch
    from sglang.srt.mem_cache import memory_pool
    from sglang.srt.mem_cache.pool_host import base, common
    from sglang.srt.plugins.hook_registry import HookRegistry, HookType
    from sglang.srt.speculative import draft_utils

    def allocate(dims, *, dtype, device, allocator, **about_pinning):
        return allocator.allocate(dims, dtype=dtype, device=device)

    common.ALLOC_MEMORY_FUNCS["cpu"] = allocate
    base.HICACHE_HOST_MEMORY_RESERVE_BYTES = 1 << 30
    torch.cuda.synchronize = lambda *args, **kwargs: None
    for kind in list(vars(memory_pool).values()):
        if isinstance(kind, type) and "_init_kv_copy_and_warmup" in vars(kind):
            kind._init_kv_copy_and_warmup = lambda self, *args, **kwargs: None
    draft_utils.DraftBackendFactory._create_backend = lambda self, *args, **kwargs: None
    HookRegistry.register(BUILD, tell_pools, HookType.AFTER)
    if os.environ.get("TEST_FAILING_RANK"):
        fail_on(int(os.environ["TEST_FAILING_RANK"]))


def tell_pools(result, *args, **kwargs):
    """Print this rank's real host pools, whatever plugin is at work."""
    from sglang.srt.runtime_context import get_parallel

    from hicache_config.engines.sglang.host_pools import built_pools

    pools = {pool.name: [pool.pages, pool.bytes] for pool in built_pools(result.tree_cache) or ()}
    told = json.dumps({"stage": get_parallel().pp_rank, "pools": pools})
    sys.stdout.write(f"TEST-POOLS {told}\n")  # at once: ranks share the stream
    sys.stdout.flush()


def fail_on(rank: int) -> None:
    """Let reading the device pools fail on one pipeline rank."""
    from hicache_config.engines.sglang import building

    read = building.read

    def failing(situation):
        if situation.stage == rank:
            raise RuntimeError(f"device pools of stage {rank} can't be read (a fault that a test ordered)")
        return read(situation)

    building.read = failing
