"""Waiting for the other ranks ends by the plugin's own limit, over real gloo whose timeout is far longer."""

from __future__ import annotations

import threading
import warnings
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from hicache_config.core.capacity import TotalSize
from hicache_config.core.findings import ConfigurationError
from hicache_config.core.pools import DevicePool, Stage
from hicache_config.core.releases import Release
from hicache_config.core.terms import Terms
from hicache_config.engines.sglang.world import WorldGroup, world_group
from hicache_config.sync import resolve_with

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # torch warns where there is no numpy
    from torch.distributed import HashStore, ProcessGroupGloo

TERMS = Terms(TotalSize(1), "total", Release.of("0.5.23"))
STAGE = Stage((DevicePool("kv", 1000, 64, page_size=16),))


def on_gloo(come: tuple[bool, ...], limit: timedelta) -> list[Any]:
    """What each rank that comes to the agreement gets or raises."""
    store, results = HashStore(), [None] * len(come)
    done = threading.Barrier(len(come))

    def run(rank: int) -> None:
        group = ProcessGroupGloo(store, rank, len(come), timedelta(hours=2))
        try:
            if come[rank]:
                results[rank] = resolve_with(WorldGroup(group, limit), STAGE, TERMS)
        except ConfigurationError as error:
            results[rank] = error
        done.wait(60)

    threads = [threading.Thread(target=run, args=(rank,)) for rank in range(len(come))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


def test_ranks_that_all_come_agree() -> None:
    first, second = on_gloo((True, True), timedelta(seconds=60))
    assert first["kv"].pages == second["kv"].pages == 1_000_000_000 // (64 * 16)


def test_a_rank_without_the_plugin_is_not_waited_for_two_hours() -> None:
    alone, _ = on_gloo((True, False), timedelta(seconds=1))
    assert [finding.code for finding in alone.findings] == ["HC411"]


def test_one_process_without_distributed_torch_has_no_group() -> None:
    assert world_group(SimpleNamespace()) is None


def test_a_world_of_one_has_no_group(monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    monkeypatch.setattr(torch.distributed, "is_initialized", lambda: True)
    assert world_group(SimpleNamespace(world_group=SimpleNamespace(world_size=1))) is None
    assert world_group(SimpleNamespace(world_group=SimpleNamespace(world_size=2, cpu_group=None))) is not None
