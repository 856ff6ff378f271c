"""Groups to run a rank's work on: threads, gloo whose ranks are threads, and gloo whose ranks are processes."""

from __future__ import annotations

import gc
import multiprocessing
import os
import pickle
import tempfile
import threading
import warnings
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import Any, NoReturn

import pytest

from hicache_config.sync import run_on_threads

with warnings.catch_warnings():
    # torch warns when numpy is missing; nothing here needs it.
    warnings.simplefilter("ignore")
    from torch.distributed import FileStore, HashStore, ProcessGroupGloo

Run = Callable[..., list[Any]]

#: What a process has to say that was killed before it could.
KILLED = "killed"


def run_on_gloo(size: int, work: Callable[[Any], Any], *, timeout_s: float = 60.0) -> list[Any]:
    """As run_on_threads, over real gloo: a rank whose work ends by an exception loses its connections at once."""
    store = HashStore()
    results: dict[int, Any] = {}
    joined, done = threading.Barrier(size), threading.Barrier(size)

    def run(rank: int) -> None:
        group = _gloo(store, rank, size, timeout_s, joined)
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


def run_on_processes(size: int, work: Callable[[Any], Any], *, timeout_s: float = 60.0) -> list[Any]:
    """As run_on_gloo, each rank a forked process of its own; KILLED stands for one that was killed."""
    # Groups of earlier tests must not end in the children, which do not have the threads of those groups.
    gc.collect()
    joined = multiprocessing.get_context("fork").Barrier(size)
    end_reader, end_writer = os.pipe()  # closed by this process when all results are there
    children: list[tuple[int, int]] = []
    with tempfile.TemporaryDirectory() as folder:
        for rank in range(size):
            reader, writer = os.pipe()
            with warnings.catch_warnings():
                # Python 3.12 warns of forks beside threads. The children use no lock that a thread here could hold.
                warnings.simplefilter("ignore", DeprecationWarning)
                pid = os.fork()
            if pid == 0:
                gc.freeze()
                os.close(end_writer)
                _child(
                    partial(_gloo, FileStore(f"{folder}/store", size), rank, size, timeout_s, joined),
                    work,
                    writer,
                    end_reader,
                )
            os.close(writer)
            children.append((pid, reader))
        results = []
        for _, reader in children:
            with os.fdopen(reader, "rb") as pipe:
                data = pipe.read()
            result, cause = pickle.loads(data) if data else (KILLED, None)
            if isinstance(result, Exception):
                result.__cause__ = cause
            results.append(result)
        os.close(end_writer)
        os.close(end_reader)
        for pid, _ in children:
            os.waitpid(pid, 0)
    return results


def _child(join: Callable[[], Any], work: Callable[[Any], Any], writer: int, end_reader: int) -> NoReturn:
    """Work in a forked process, send what came of it, and stay until the parent has heard from all."""
    result: Any
    group = None
    try:
        group = join()
        result = work(group)
    except BaseException as error:
        # Without the frames, which keep the group and its connections alive.
        result = error.with_traceback(None)
        del group
    with os.fdopen(writer, "wb") as pipe:
        pipe.write(pickle.dumps((result, result.__cause__ if isinstance(result, BaseException) else None)))
    os.read(end_reader, 1)
    os._exit(0)


def _gloo(store: Any, rank: int, size: int, timeout_s: float, joined: Any) -> Any:
    """This rank's view of a new group, when all ranks have joined it (one may want to die at once)."""
    group = ProcessGroupGloo(store, rank, size, timedelta(seconds=60))
    group._set_default_timeout(timedelta(seconds=timeout_s))
    joined.wait(60)
    return group


@pytest.fixture(params=["threads", "gloo", "processes"])
def run(request: pytest.FixtureRequest) -> Run:
    """Runs work(group) once a rank and gives what each returned or raised, in rank order."""
    runs: dict[str, Run] = {"threads": run_on_threads, "gloo": run_on_gloo, "processes": run_on_processes}
    return runs[request.param]
