"""Groups to run a rank's work on: threads, and gloo process groups whose ranks are threads of this process."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from hicache_config.sync import run_on_threads

with warnings.catch_warnings():
    # torch warns when numpy is missing; nothing here needs it.
    warnings.simplefilter("ignore")
    from torch.distributed import HashStore, ProcessGroupGloo

Run = Callable[..., list[Any]]


def run_on_gloo(size: int, work: Callable[[Any], Any], *, timeout_s: float = 60.0) -> list[Any]:
    """As run_on_threads, over real gloo: a rank whose work ends by an exception loses its connections at once."""
    store = HashStore()
    results: dict[int, Any] = {}
    done = threading.Barrier(size)

    def run(rank: int) -> None:
        group = ProcessGroupGloo(store, rank, size, timedelta(seconds=60))
        group._set_default_timeout(timedelta(seconds=timeout_s))
        try:
            results[rank] = work(group)
        except Exception as error:
            # Without the frames, which keep the group and its connections alive.
            results[rank] = error.with_traceback(None)
            del group
        done.wait()

    threads = [threading.Thread(target=run, args=(rank,)) for rank in range(size)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return [results[rank] for rank in range(size)]


@pytest.fixture(params=["threads", "gloo"])
def run(request: pytest.FixtureRequest) -> Run:
    """Runs work(group) once a rank and gives what each returned or raised, in rank order."""
    return {"threads": run_on_threads, "gloo": run_on_gloo}[request.param]
