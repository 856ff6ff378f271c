"""The public `resolve` over a group: typed arguments in, this rank's final plan out, on every rank or on none."""

from __future__ import annotations

from typing import Any

import pytest

from hicache_config import DevicePool, Plan, ServerArgs, resolve
from hicache_config.sync import as_group
from tests.sync.cases import SEED, codes, linear_hybrid, the_error
from tests.sync.conftest import Run


def arguments(**fields: Any) -> ServerArgs:
    return ServerArgs.model_validate({"enable_hierarchical_cache": True, "hicache_size": 100, **fields})


def test_the_seed_case(run: Run) -> None:
    args = arguments(pp_size=4, tp_size=8)
    plans = run(4, lambda group: resolve(args, SEED[as_group(group).rank].pools, group))
    assert [found["kv"].slots for found in plans] == [7_621_888] * 4


def test_it_says_what_a_plan_of_all_stages_says(run: Run) -> None:
    stages = [stage.pools for stage in linear_hybrid(zero_bytes=False)]
    args = arguments(pp_size=2)
    whole = resolve(args, stages=stages)
    for rank, found in enumerate(run(2, lambda group: resolve(args, stages[as_group(group).rank], group))):
        assert found.stages == (whole.stages[rank],)
        assert (found.ratio, found.decided_by) == (whole.ratio, whole.decided_by)


@pytest.mark.parametrize(
    ("changes", "code", "words"),
    [
        ({"args": arguments(pp_size=2, hicache_size=90)}, "HC405", "hicache_size is 100 on rank 0; 90 on rank 1"),
        ({"args": arguments(pp_size=2, tp_size=2)}, "HC405", "tp_size is 1 on rank 0; 2 on rank 1"),
        ({"sglang": "0.4.9"}, "HC406", "rank 1: the host pools could not be planned: ReleaseError: SGLang 0.4.9"),
        ({"pools": None}, None, "give either pools"),
    ],
)
def test_what_is_wrong_on_one_rank(run: Run, changes: dict[str, Any], code: str | None, words: str) -> None:
    usual = {"args": arguments(pp_size=2), "pools": SEED[0].pools}

    def work(group: Any) -> Plan:
        return resolve(group=group, **(usual | changes if as_group(group).rank == 1 else usual))

    results = run(2, work)
    if code is None:
        assert codes(results[0]) == ["HC411"]
        assert isinstance(results[1], TypeError)
        assert words in str(results[1])
    else:
        assert codes(the_error(results)) == [code]
        assert words in str(results[0])


def test_the_group_must_hold_the_whole_pipeline(run: Run) -> None:
    args = arguments(pp_size=3)
    results = run(2, lambda group: resolve(args, [DevicePool("kv", 1_000, 100, 16)], group))
    assert codes(the_error(results)) == ["HC411"]


def test_stages_are_for_planning_without_a_group() -> None:
    with pytest.raises(TypeError, match="with a group give this rank's pools"):
        resolve(arguments(), stages=[SEED[0].pools], group=object())
