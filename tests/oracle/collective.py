"""SGLang's own agreement of the stages on real gloo ranks; runs inside the oracle's environment.

    python tools/oracle.py run collective.py [CASES.jsonl] > RESULTS.jsonl

Every rank is a process of its own in a real pipeline group, builds its pools with SGLang's constructors (real, small
host memory; only the pinning is left out) and reports what it got. SGLang's group would wait two hours for a peer
that never comes: here TIMEOUT seconds, and a rank that has finished stays until all have.
"""

from __future__ import annotations

import datetime
import json
import logging
import multiprocessing
import os
import queue
import sys
import tempfile
import time
import warnings
from pathlib import Path
from types import SimpleNamespace
from typing import Any

warnings.filterwarnings("ignore")
logging.disable(logging.WARNING)

import torch  # noqa: E402 - quiet first
from sglang.srt.configs.mamba_utils import Mamba2CacheParams, Mamba2StateShape  # noqa: E402
from sglang.srt.distributed import parallel_state  # noqa: E402
from sglang.srt.mem_cache.hybrid_cache import hybrid_pool_assembler as assembler  # noqa: E402
from sglang.srt.mem_cache.memory_pool import MambaPool, MHATokenToKVPool  # noqa: E402
from sglang.srt.mem_cache.pool_host import common  # noqa: E402
from sglang.srt.runtime_context import SpawnRanks, get_context, get_parallel, publish  # noqa: E402
from sglang.srt.server_args import ServerArgs  # noqa: E402

TIMEOUT = 8  # seconds that a rank waits for a peer inside a collective
PATIENCE = 120  # seconds for all ranks of a case, their start included
PAGE = 64


def use_unpinned_memory(empty_buffers: bool) -> None:
    """SGLang's allocator without the registration that a GPU driver would do; empty buffers only where asked for."""

    def allocate(dims, dtype, device, pin_memory, allocator, registration_granularity_bytes=None):  # noqa: PLR0917
        if empty_buffers and 0 in dims:
            return torch.empty(dims, dtype=dtype)
        return allocator.allocate(dims, dtype=dtype, device=device)

    common.ALLOC_MEMORY_FUNCS["cpu"] = allocate


def join_group(rank: int, ranks: int, meeting: Path) -> None:
    """Become one stage of a pipeline of that many, with a short timeout."""
    defaults = parallel_state.GroupCoordinator.__init__.__defaults__
    short = datetime.timedelta(seconds=TIMEOUT)
    parallel_state.GroupCoordinator.__init__.__defaults__ = tuple(
        short if isinstance(value, datetime.timedelta) else value for value in defaults
    )
    server_args = ServerArgs(model_path="dummy", device="cpu", enable_hierarchical_cache=True, pp_size=ranks)
    publish(server_args, role="scheduler", ranks=SpawnRanks(world_rank=rank))
    parallel_state.init_distributed_environment(
        world_size=ranks,
        rank=rank,
        local_rank=rank,
        backend="gloo",
        distributed_init_method=f"file://{meeting}",
        timeout=PATIENCE,
    )
    parallel_state.initialize_model_parallel(backend="gloo")


def attention_pool(layers: int, slots: int = 1024) -> MHATokenToKVPool:
    return MHATokenToKVPool(
        size=slots,
        page_size=PAGE,
        dtype=torch.bfloat16,
        head_num=2,
        head_dim=16,
        layer_num=layers,
        device="cpu",
        enable_memory_saver=False,
    )


def state_pool(layers: int) -> MambaPool:
    shape = Mamba2StateShape.create(
        tp_world_size=1, intermediate_size=64, n_groups=2, num_heads=4, head_dim=16, state_size=16, conv_kernel=4
    )
    ids = list(range(layers))
    params = Mamba2CacheParams(shape=shape, layers=ids)
    return MambaPool(size=16, spec_state_size=0, cache_params=params, mamba_layer_ids=ids, device="cpu")


def take(step: dict[str, Any], made: list[list[int]]) -> None:
    """One step of a rank; what it built is added to `made` as bytes per slot and slots."""
    if "later" in step:
        value = torch.tensor([step["later"]], dtype=torch.int64)
        group = get_parallel().pp_group.cpu_group
        torch.distributed.all_reduce(value, op=torch.distributed.ReduceOp.MIN, group=group)
        made.append([0, int(value)])
        return
    get_context().override("oracle", hicache_size=step.get("size", 0), hicache_ratio=step.get("ratio", 2.0))
    if "layers" in step:
        pool = attention_pool(step["layers"], step.get("slots", 1024))
        host = assembler.build_kv_host_pool(kv_pool=pool, page_size=PAGE)
        made.append([host.size_per_token, host.size])
        return
    kv, states = attention_pool(step["split"][0]), state_pool(step["split"][1])
    kv_size, state_size = assembler._split_hicache_size(step["size"], (kv, states))
    host = assembler.build_kv_host_pool(kv_pool=kv, page_size=PAGE, host_size=kv_size)
    made.append([host.size_per_token, host.size])
    (info,) = states.get_device_pool_infos()
    host = assembler.build_mamba_host_pool(states, info, host_size=state_size, layout="page_first")
    made.append([host.size_per_token, host.size])


def told(error: BaseException) -> str:
    """An error in words that do not change from run to run. A rank may time out, or lose a peer that just has."""
    text = str(error)
    if any(word in text.lower() for word in ("timed out", "connection")):
        return "timeout"
    return f"{type(error).__name__}: {text.splitlines()[0][:200]}"


def rank_process(rank: int, case: dict[str, Any], meeting: Path, shared: SimpleNamespace) -> None:
    made: list[list[int]] = []
    outcome: dict[str, Any] = {"pools": made}
    try:
        use_unpinned_memory(case.get("empty_buffers", False))
        join_group(rank, len(case["ranks"]), meeting)
        for step in case["ranks"][rank]:
            take(step, made)
    except BaseException as error:  # whatever SGLang or gloo raises is the outcome
        outcome["error"] = told(error)
    shared.outcomes.put((rank, outcome))
    shared.outcomes.close()
    shared.outcomes.join_thread()
    shared.all_done.wait(PATIENCE)
    os._exit(0)


def run_case(case: dict[str, Any], meeting: Path) -> dict[str, Any]:
    """What each rank came to, in the order of the ranks. They meet in a file that is not there yet."""
    context = multiprocessing.get_context("fork")
    shared = SimpleNamespace(outcomes=context.Queue(), all_done=context.Event())
    count = len(case["ranks"])
    ranks = [context.Process(target=rank_process, args=(rank, case, meeting, shared)) for rank in range(count)]
    for process in ranks:
        process.start()
    outcomes: dict[int, dict[str, Any]] = {}
    deadline = time.monotonic() + PATIENCE
    try:
        while len(outcomes) < count:
            rank, outcome = shared.outcomes.get(timeout=max(deadline - time.monotonic(), 0.1))
            outcomes[rank] = outcome
    except queue.Empty:
        pass
    finally:
        shared.all_done.set()
        for process in ranks:
            process.join(10)
            if process.is_alive():
                process.kill()
    return {"ranks": [outcomes.get(rank, {"error": "no answer"}) for rank in range(count)]}


def main() -> None:
    text = Path(sys.argv[1]).read_text("utf-8") if len(sys.argv) > 1 else sys.stdin.read()
    with tempfile.TemporaryDirectory() as folder:
        for number, line in enumerate(filter(str.strip, text.splitlines())):
            entry = json.loads(line)
            result = run_case(entry["case"], Path(folder) / str(number))
            print(json.dumps({"id": entry["id"], "result": result}), flush=True)


if __name__ == "__main__":
    main()
