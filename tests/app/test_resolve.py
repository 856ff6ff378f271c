"""The public `resolve`: what an engine calls."""

from __future__ import annotations

import pytest

from hicache_config import ConfigurationError, DevicePool, ServerArgs, resolve
from hicache_config.core.sizes import HostPoolSize
from hicache_config.sync import ThreadGroup, run_on_threads

KV = DevicePool(name="kv", slots=2_000_000, bytes_per_slot=12464, page_size=64)
INDEXER = DevicePool(name="indexer", follows="kv", bytes_per_slot=792, page_size=64, extra_pages=1)


def test_the_contract_in_python() -> None:
    args = ServerArgs.model_validate_json('{"hicache_size": 100, "enable_hierarchical_cache": true}')
    plan = resolve(args, [KV, INDEXER], group=None, accounting="total", sglang="0.5.23")
    assert [pool.name for pool in plan.pools] == ["kv", "indexer"]
    assert plan["kv"].slots == plan["kv"].pages * 64  # type: ignore[operator]
    assert sum(pool.bytes or 0 for pool in plan.pools) <= 100 * 10**9
    assert plan["indexer"].host_size_gb is None
    built = plan.build({"kv": lambda size: size, "indexer": lambda size: size.pages})
    assert isinstance(built["kv"], HostPoolSize)
    assert built["indexer"] == plan["kv"].pages


def test_all_stages_may_be_given_without_a_group() -> None:
    args = ServerArgs(hicache_size=100, pp_size=4)
    stages = [[DevicePool("kv", None, 656 * layers, 64)] for layers in (19, 19, 20, 20)]
    plan = resolve(args, stages=stages)
    assert [stage["kv"].slots for stage in plan.stages] == [7_621_888] * 4
    assert resolve(args, stages=stages[:1]).stage(3)["kv"].slots is not None


def codes(error: pytest.ExceptionInfo[ConfigurationError]) -> list[str]:
    return [finding.code for finding in error.value.findings]


def test_one_stage_of_a_pipeline_needs_a_group() -> None:
    with pytest.raises(ConfigurationError) as error:
        resolve(ServerArgs(hicache_size=100, pp_size=2), [KV])
    assert codes(error) == ["HC438"]
    with pytest.raises(ConfigurationError) as error:
        resolve(ServerArgs(hicache_size=100, pp_size=3), stages=[[KV], [KV]])
    assert codes(error) == ["HC439"]


def test_everything_that_is_wrong_comes_in_one_exception() -> None:
    with pytest.raises(ConfigurationError) as error:
        resolve(ServerArgs(hicache_size=100), [KV, KV, DevicePool("x", follows="y", bytes_per_slot=1)])
    assert codes(error) == ["HC311", "HC311"]
    with pytest.raises(ConfigurationError) as error:
        resolve(ServerArgs(hicache_size=1), [DevicePool("kv", 10, 10**10)])
    assert codes(error) == ["HC301"]


def test_pools_or_stages_not_both() -> None:
    for arguments in ({}, {"pools": [KV], "stages": [[KV]]}):
        with pytest.raises(TypeError, match="either pools"):
            resolve(ServerArgs(hicache_size=1), **arguments)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="without a group"):
        resolve(ServerArgs(hicache_size=1), stages=[[KV]], group=object())


@pytest.mark.parametrize(
    ("written", "ranks", "stages"),
    [
        ({"pp_size": 2}, 2, [0, 1]),
        ({"pp_size": 2, "tp_size": 2}, 4, [0, 0, 1, 1]),
        ({"pp_size": 1, "tp_size": 3}, 3, [0, 0, 0]),
        ({}, 3, [0, 1, 2]),
    ],
)
def test_the_world_knows_which_rank_is_of_which_stage(written: dict[str, int], ranks: int, stages: list[int]) -> None:
    args = ServerArgs.model_validate({"hicache_size": 1, **written})
    plans = run_on_threads(ranks, lambda group: resolve(args, [KV], group))
    assert [plan.own_stage for plan in plans] == stages
    assert len({plan["kv"].slots for plan in plans}) == 1


def test_ranks_that_can_not_be_shared_among_the_stages_are_an_error_on_all() -> None:
    args = ServerArgs.model_validate({"hicache_size": 1, "pp_size": 2})

    def attempt(group: ThreadGroup) -> list[str]:
        with pytest.raises(ConfigurationError) as error:
            resolve(args, [KV], group)
        return codes(error)

    assert len({tuple(found) for found in run_on_threads(3, attempt)}) == 1
