"""Stages and their tensor ranks, with the world as the group: what must be equal, and what happens where it is not."""

from __future__ import annotations

from typing import Any

import pytest

from hicache_config.core.capacity import DeviceRatio, TotalSize
from hicache_config.core.plan import Plan
from hicache_config.core.pools import DevicePool, Stage
from hicache_config.sync import (
    as_group,
    resolve_with,
    run_on_threads,
)
from tests.sync.cases import SEED, codes, linear_hybrid, terms, the_error
from tests.sync.conftest import Run


class TestStagesAndTensorRanks:
    def test_tensor_ranks_with_other_slots(self, run: Run) -> None:
        def work(group: Any) -> Plan:
            rank = as_group(group).rank
            slots = 1_000 if rank == 3 else 1_024
            return resolve_with(
                group, Stage((DevicePool("kv", slots, 100, 16),)), terms(1), stage_index=rank // 2, stage_count=2
            )

        error = the_error(run(4, work))
        assert codes(error) == ["HC409"]
        assert "device slots of kv: 1,024 on rank 2; 1,000 on rank 3" in str(error)
        assert error.findings[0].stage == 1

    @pytest.mark.parametrize("capacity", [TotalSize(1), DeviceRatio(2.0)], ids=["size", "ratio"])
    @pytest.mark.parametrize(
        ("other", "words"),
        [
            (Stage(()), "pools: kv on rank 0; none on rank 1"),
            (Stage((DevicePool("kv", 1_024, 100, 32),)), "page size of kv: 16 on rank 0; 32 on rank 1"),
            (
                Stage((DevicePool("kv", 1_024, 100, 16), DevicePool("mamba", 5, 100, 1))),
                "pools: kv on rank 0; kv, mamba on rank 1",
            ),
            (
                Stage((DevicePool("kv", 1_024, 100, 16, page_rule="whole"),)),
                "page rule of kv: added on rank 0; whole on rank 1",
            ),
        ],
    )
    def test_tensor_ranks_with_other_pools(self, capacity: Any, other: Stage, words: str) -> None:
        stages = [Stage((DevicePool("kv", 1_024, 100, 16),)), other]
        results = run_on_threads(
            2, lambda group: resolve_with(group, stages[group.rank], terms(capacity), stage_index=0)
        )
        error = the_error(results)
        assert codes(error) == ["HC409"]
        assert words in str(error)

    @pytest.mark.parametrize(
        ("accounting", "words"),
        [
            ("total", "host pages of kv: 625,000 on rank 0; 312,500 on rank 1"),
            ("sglang", "host slots of kv: 10,000,000 on rank 0; 5,000,000 on rank 1"),
        ],
    )
    def test_tensor_ranks_with_other_bytes(self, accounting: Any, words: str) -> None:
        """Heads that do not divide evenly, say: the same device pools to look at, but rows of another width."""
        stages = [Stage((DevicePool("kv", None, size, 16),)) for size in (100, 200)]
        asked = terms(1, accounting)
        results = run_on_threads(2, lambda group: resolve_with(group, stages[group.rank], asked, stage_index=0))
        error = the_error(results)
        assert codes(error) == ["HC409"]
        assert words in str(error)

    def test_a_tensor_rank_without_bytes(self) -> None:
        """With a ratio; a size already is an error on that rank alone."""
        stages = [Stage((DevicePool("kv", 1_024, size, 16),)) for size in (100, 0)]
        asked = terms(DeviceRatio(2.0))
        error = the_error(
            run_on_threads(2, lambda group: resolve_with(group, stages[group.rank], asked, stage_index=0))
        )
        assert codes(error) == ["HC409"]
        assert "bytes of kv: some on rank 0; none on rank 1" in str(error)

    @pytest.mark.parametrize(
        ("numbers", "count", "code", "words"),
        [
            ([0, 1], 3, "HC411", "no rank of stage 2 is in the group, which must hold 3 pipeline stages"),
            ([1, 1], None, "HC411", "no rank of stage 0 is in the group"),
            ([0, 0], 2, "HC411", "no rank of stage 1"),
            ([0, 1], 1, "HC408", "its stage is 1 of 1"),
        ],
    )
    def test_the_group_must_hold_the_whole_pipeline(
        self, run: Run, numbers: list[int], count: int | None, code: str, words: str
    ) -> None:
        def work(group: Any) -> Plan:
            number = numbers[as_group(group).rank]
            return resolve_with(group, SEED[number], terms(), stage_index=number, stage_count=count)

        error = the_error(run(2, work))
        assert codes(error) == [code]
        assert words in str(error)

    def test_stages_with_other_device_slots(self, run: Run) -> None:
        stages = linear_hybrid(zero_bytes=False)
        stages[1] = Stage((stages[1].pools[0], DevicePool("mamba", 601, 38_633_472, 1)))
        error = the_error(run(2, lambda group: resolve_with(group, stages[as_group(group).rank], terms())))
        assert codes(error) == ["HC402"]
        assert "600 on stage 0; 601 on stage 1" in str(error)
