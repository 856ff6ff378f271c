"""What all ranks come to when nothing is broken: the same tests over threads and over gloo."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hicache_config.core.capacity import DeviceRatio, HostFraction, TotalSize
from hicache_config.core.findings import ConfigurationError
from hicache_config.core.plan import Plan, plan
from hicache_config.core.pools import DevicePool, Stage
from hicache_config.core.resolve import resolve
from hicache_config.core.terms import Terms
from hicache_config.sync import agree_over, exchange, resolve_with, run_on_threads
from tests.core.strategies import pipelines, sizes
from tests.sync.cases import RELEASE, SEED, Tampering, linear_hybrid, terms
from tests.sync.conftest import Run


class TestAgreement:
    @pytest.mark.parametrize(("accounting", "slots"), [("sglang", 7_621_952), ("total", 7_621_888)])
    def test_seed_case(self, run: Run, accounting: Any, slots: int) -> None:
        plans = run(4, lambda group: resolve_with(group, SEED[group_rank(group)], terms(100, accounting)))
        assert [found["kv"].slots for found in plans] == [slots] * 4
        assert all(found.decided_by == (2, 3) for found in plans)
        assert [found.own_stage for found in plans] == [0, 1, 2, 3]
        whole = plan(SEED, terms(100, accounting))
        assert [found.stage(rank) for rank, found in enumerate(plans)] == list(whole.stages)

    @pytest.mark.parametrize("zero_bytes", [True, False], ids=["zero bytes", "absent"])
    def test_pools_that_only_some_stages_have(self, run: Run, zero_bytes: bool) -> None:
        stages = linear_hybrid(zero_bytes=zero_bytes)
        first, second = run(2, lambda group: resolve_with(group, stages[group_rank(group)], terms()))
        assert (second["kv"].slots, second["mamba"].slots, first["mamba"].slots) == (4_186_688, 1_256, 1_256)
        if zero_bytes:
            assert (first["kv"].slots, first["kv"].bytes) == (4_186_688, 0)
        assert first.ratio == second.ratio is not None
        assert first.decided_by == second.decided_by == (1,)
        # What each leaves of its 100 GB.
        assert first.stages[0].unused_bytes == 51_476_359_168
        assert second.stages[0].unused_bytes == 30_337_024

    def test_sglang_accounting_refuses_different_pools_on_every_rank(self, run: Run) -> None:
        stages = linear_hybrid(zero_bytes=False)
        results = run(2, lambda group: resolve_with(group, stages[group_rank(group)], terms(100, "sglang")))
        assert [[finding.code for finding in result.findings] for result in results] == [["HC401"], ["HC401"]]
        assert results[0].findings == results[1].findings

    def test_a_stage_without_any_pool_takes_part(self, run: Run) -> None:
        stages = [Stage(()), Stage((DevicePool("kv", 1_000, 100, 16),))]
        first, second = run(2, lambda group: resolve_with(group, stages[group_rank(group)], terms(1)))
        assert first.pools == ()
        assert first.ratio == second.ratio
        assert second["kv"].bytes <= 10**9

    def test_tensor_ranks_over_the_world(self, run: Run) -> None:
        """Four ranks, two stages of two: world rank 2 is tensor rank 0 of stage 1."""
        stages = linear_hybrid(zero_bytes=True)

        def work(group: Any) -> Plan:
            number = group_rank(group) // 2
            return resolve_with(group, stages[number], terms(), stage_index=number, stage_count=2)

        plans = run(4, work)
        assert [found.own_stage for found in plans] == [0, 0, 1, 1]
        assert [found["mamba"].slots for found in plans] == [1_256] * 4
        assert {found.decided_by for found in plans} == {(1,)}

    def test_a_ratio(self, run: Run) -> None:
        stages = linear_hybrid(zero_bytes=False)
        first, second = run(2, lambda group: resolve_with(group, stages[group_rank(group)], terms(DeviceRatio(2.5))))
        assert (first["mamba"].slots, second["mamba"].slots) == (1_501, 1_501)
        assert second["kv"].slots == (int(2_000_000 * 2.5) // 64 + 1) * 64

    def test_a_fraction_takes_the_smallest_ratio_of_all_hosts(self, run: Run) -> None:
        """Tensor ranks of one stage may lie on hosts with different memory: the world takes the minimum."""
        stage = Stage((DevicePool("kv", 1_000, 1_000, 1),))
        allowances = [1_000_000, 2_000_000, 1_500_000, 4_000_000]

        def work(group: Any) -> Plan:
            rank = group_rank(group)
            return resolve_with(
                group,
                stage,
                terms(HostFraction(0.5, 2.0), "sglang"),
                stage_index=rank // 2,
                allowance_bytes=allowances[rank],
            )

        plans = run(4, work)
        assert {found.ratio for found in plans} == {500_000 * 0.95 / 1_000_000}
        assert {found["kv"].slots for found in plans} == {476}
        assert {found.decided_by for found in plans} == {(0,)}

    def test_calling_twice_gives_the_same(self, run: Run) -> None:
        def work(group: Any) -> tuple[Plan, Plan]:
            stage = SEED[group_rank(group)]
            return resolve_with(group, stage, terms()), resolve_with(group, stage, terms())

        for first, second in run(4, work):
            assert first == second

    def test_one_exchange_and_none_after_it(self, run: Run) -> None:
        def work(group: Any) -> int:
            counting = Tampering(group, lambda _, message: message)
            found = resolve_with(counting, SEED[counting.rank], terms())
            found.build({"kv": lambda size: size.slots})
            return counting.exchanges

        assert run(4, work) == [1, 1, 1, 1]

    def test_the_agreement_alone(self, run: Run) -> None:
        asked = terms()
        offers = [resolve(stage, asked) for stage in SEED]
        agreements = run(4, lambda group: agree_over(group, offers[group_rank(group)], asked))
        assert all(agreement == agreements[0] for agreement in agreements)
        assert agreements[0].pages == {"kv": 119_092}

    def test_unknown_slots_are_a_stated_unknown(self, run: Run) -> None:
        stage = Stage((DevicePool("kv", None, 100, 64), DevicePool("mamba", None, 1_000, 1)))
        for found in run(2, lambda group: resolve_with(group, stage, terms(1))):
            assert [pool.pages for pool in found.pools] == [None, None]
            assert "kv, mamba" in found.assumptions[0]


def group_rank(group: Any) -> int:
    return group.rank() if callable(group.rank) else group.rank


capacities = st.one_of(
    sizes,
    st.sampled_from([0.5, 1.0, 1.1, 2.0, 7.3]).map(DeviceRatio),
    st.sampled_from([0.3, 0.8]).map(lambda fraction: HostFraction(fraction, 2.0)),
)


@settings(max_examples=150)
@given(pipelines(max_stages=4), capacities, st.sampled_from(["total", "sglang"]), st.integers(10**6, 10**12))
def test_a_rank_finds_what_the_whole_pipeline_would_plan(
    stages: list[Stage], capacity: Any, accounting: Any, allowance: int
) -> None:
    """The law of the step: over a group every rank comes to its part of the plan made from all stages at once."""
    asked = Terms(capacity, accounting, RELEASE)
    whole = plan(stages, asked, allowance_bytes=allowance)
    results = run_on_threads(
        len(stages), lambda group: resolve_with(group, stages[group.rank], asked, allowance_bytes=allowance)
    )
    for rank, found in enumerate(results):
        if whole.stages:
            assert isinstance(found, Plan), found
            assert found.stages == (whole.stages[rank],)
            assert (found.ratio, found.decided_by) == (whole.ratio, whole.decided_by)
        else:
            assert isinstance(found, ConfigurationError), found
            assert found.findings == results[0].findings  # type: ignore[union-attr]
            assert {finding.code for finding in found.findings} <= {finding.code for finding in whole.findings}


def test_the_exchange_gives_all_stages_offers() -> None:
    asked = Terms(TotalSize(100), "total", RELEASE)
    offers = [resolve(stage, asked) for stage in linear_hybrid(zero_bytes=False)]
    for found in run_on_threads(2, lambda group: exchange(group, offers[group.rank], asked)):
        assert not isinstance(found, Exception)
        assert [[pool.name for pool in offer.pools] for offer in found.offers] == [["mamba"], ["kv", "mamba"]]
        assert [offer.scale for offer in found.offers] == [offer.scale for offer in offers]
