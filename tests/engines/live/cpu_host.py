"""A test plugin for SGLang on a machine without a GPU: host pools without pinning, and faults on order.

Loaded beside ours through an entry point that the tests write. It changes no size. Runs in the oracle's environment.
"""

import os
import sys


def activate() -> None:
    import logging

    logging.getLogger("sglang.hicache_config").setLevel(logging.INFO)
    if os.environ.get("TEST_CUDA_CAPABILITY"):
        import torch

        torch.cuda.get_device_capability = lambda *args, **kwargs: (9, 0)
    if os.environ.get("TEST_NO_RULES"):
        from hicache_config.engines.sglang import starting

        starting.rule_findings = lambda *args: []
    if "sglang.srt.managers.scheduler" not in sys.modules:
        return
    from sglang.srt.mem_cache.pool_host import common

    def allocate(dims, *, dtype, device, allocator, **about_pinning):
        return allocator.allocate(dims, dtype=dtype, device=device)

    common.ALLOC_MEMORY_FUNCS["cpu"] = allocate
    if os.environ.get("TEST_FAILING_RANK"):
        fail_on(int(os.environ["TEST_FAILING_RANK"]))


def fail_on(rank: int) -> None:
    """Let reading the device pools fail on one pipeline rank."""
    from hicache_config.engines.sglang import building

    read = building.read

    def failing(situation):
        if situation.stage == rank:
            raise RuntimeError(f"device pools of stage {rank} can't be read (a fault that a test ordered)")
        return read(situation)

    building.read = failing
