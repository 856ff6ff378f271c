"""What the agreement costs: run by hand, `python -m pytest benchmarks/test_agreement.py --benchmark-only`.

Nothing is asserted about times. The ratios over gloo (one step of ours against one all_reduce per pool, as SGLang
does) are printed with `-s` and stand in the report of pytest-benchmark as `extra_info`. The ranks are threads of one
process, so the arithmetic of all of them shares one interpreter; `exchange` is the collective of the step alone.
"""

from __future__ import annotations

import statistics
import threading
import time
import warnings
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from hicache_config.core.agree import Agreement, agree
from hicache_config.core.capacity import DeviceRatio, TotalSize
from hicache_config.core.offers import Offer
from hicache_config.core.pools import DevicePool, Stage
from hicache_config.core.releases import Release
from hicache_config.core.resolve import resolve
from hicache_config.core.terms import Terms
from hicache_config.sync import agree_over
from hicache_config.sync.message import LENGTH, Message, decode, encode

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # torch warns when numpy is missing
    import torch
    from torch.distributed import HashStore, ProcessGroupGloo

    from hicache_config.sync.torch_group import TorchGroup

RELEASE = Release.of("0.5.23")
STAGES, POOLS = 1_024, 24
ROUNDS, WARM_UP = 40, 5


def stage(number: int, pools: int) -> Stage:
    """A stage with `pools` independent pools whose bytes differ from stage to stage."""
    return Stage(
        tuple(
            DevicePool(f"pool_{index}", 1_000_000 + 64 * index, 656 * (1 + (number + index) % 7), 64)
            for index in range(pools)
        )
    )


@pytest.fixture(scope="module")
def offers() -> dict[str, tuple[Terms, list[Offer]]]:
    asked = {
        "total": Terms(TotalSize(1_000), "total", RELEASE),
        "sglang": Terms(TotalSize(1_000), "sglang", RELEASE),
        "ratio": Terms(DeviceRatio(2.0), "total", RELEASE),
    }
    stages = [stage(number, POOLS) for number in range(STAGES)]
    return {name: (terms, [resolve(one, terms) for one in stages]) for name, terms in asked.items()}


@pytest.mark.parametrize("kind", ["total", "sglang", "ratio"])
def test_core_agree_over_1024_stages_of_24_pools(benchmark: Any, offers: Any, kind: str) -> None:
    terms, given = offers[kind]
    found = benchmark(agree, given, terms)
    assert isinstance(found, Agreement)
    assert not found.findings


def test_decoding_1024_messages_of_24_pools(benchmark: Any, offers: Any) -> None:
    _, given = offers["total"]
    raw = [encode(Message(rank, STAGES, rank, b"d" * 16, offer=offer), "1.0") for rank, offer in enumerate(given)]
    found = benchmark(lambda: [decode(message) for message in raw])
    assert len(found) == STAGES


@pytest.mark.parametrize("ranks", [2, 4, 8])
@pytest.mark.parametrize("pools", [1, 2, 3, 8, 24])
def test_a_step_against_one_all_reduce_per_pool(benchmark: Any, ranks: int, pools: int) -> None:
    """All in the same run, taking turns; the step's time counts all of it, the arithmetic of every rank included."""
    terms = Terms(TotalSize(100), "total", RELEASE)
    ours: list[float] = []
    exchanges: list[float] = []
    theirs: list[float] = []

    def work(group: Any, rank: int, meet: Callable[[], object]) -> None:
        offer = resolve(stage(rank, pools), terms)
        ranks_of_torch = TorchGroup(group)

        def all_reduces() -> None:
            for _ in range(pools):
                options = torch.distributed.AllreduceOptions()
                options.reduceOp = torch.distributed.ReduceOp.MIN
                group.allreduce([torch.tensor(1_000_000 + rank, dtype=torch.int64)], options).wait()

        for number in range(WARM_UP + ROUNDS):
            for times, run in (
                (ours, lambda: agree_over(group, offer, terms)),
                (exchanges, lambda: ranks_of_torch.gather(b"x" * LENGTH)),
                (theirs, all_reduces),
            ):
                meet()
                start = time.perf_counter()
                run()
                meet()
                if rank == 0 and number >= WARM_UP:
                    times.append(time.perf_counter() - start)

    benchmark.pedantic(lambda: _on_gloo(ranks, work), rounds=1)
    step, exchange, reduces = (statistics.median(times) for times in (ours, exchanges, theirs))
    benchmark.extra_info.update(
        ranks=ranks,
        pools=pools,
        step_over_all_reduces=round(step / reduces, 2),
        exchange_over_all_reduces=round(exchange / reduces, 2),
    )
    print(  # noqa: T201
        f"\n{ranks} ranks, {pools} pools, against {pools} all_reduce: "
        f"the step {step / reduces:.2f}, its exchange {exchange / reduces:.2f}"
    )


def _on_gloo(ranks: int, work: Callable[[Any, int, Callable[[], object]], None]) -> None:
    store = HashStore()
    barrier = threading.Barrier(ranks)

    def run(rank: int) -> None:
        work(ProcessGroupGloo(store, rank, ranks, timedelta(seconds=60)), rank, barrier.wait)

    threads = [threading.Thread(target=run, args=(rank,)) for rank in range(ranks)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
