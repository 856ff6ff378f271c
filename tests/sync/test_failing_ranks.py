"""Ranks that fail on their own: every rank raises what one of them found.

Over threads and over gloo. Nothing asserts a time: a hang would be seen as a test that never ends.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

from hicache_config.core.capacity import DeviceRatio
from hicache_config.core.findings import ConfigurationError, Finding, has_errors
from hicache_config.core.offers import Offer, PoolOffer
from hicache_config.core.plan import Plan
from hicache_config.core.pools import DevicePool, Stage
from hicache_config.core.resolve import resolve
from hicache_config.sync import (
    agree_over,
    as_group,
    report_failure,
    resolve_with,
)
from tests.sync.cases import SEED, codes, planned, terms, the_error
from tests.sync.conftest import Run


def too_many_pools() -> Stage:
    return Stage(tuple(DevicePool(f"pool_{number}", 100, 10, 1) for number in range(33)))


def can_not_read() -> Stage:
    raise AttributeError("'KVCache' object has no attribute 'size'")


class TestRanksThatFail:
    """A rank that can't make its offer takes part, and every rank raises its words."""

    @pytest.mark.parametrize(
        ("stage", "code", "words"),
        [
            (can_not_read, "HC406", "AttributeError: 'KVCache' object has no attribute 'size'"),
            (too_many_pools, "HC408", "33 independent pools; a stage may have 32"),
            (Stage((DevicePool("x" * 60, 1, 1),)), "HC408", "is not 1 to 48 bytes of UTF-8"),
            (Stage((DevicePool("kv", -5, 1),)), "HC310", "slots is -5"),
            (Stage((DevicePool("draft", 1, 1, follows="kv"),)), "HC311", "follows 'kv', which this stage does not"),
            (Stage((DevicePool("kv", None, 2**40, 64),)), "HC301", "can't hold one page of each host pool on stage 1"),
            (None, "HC406", "AttributeError"),
        ],
    )
    def test_every_rank_raises_what_one_rank_found(self, run: Run, stage: Any, code: str, words: str) -> None:
        def work(group: Any) -> Plan:
            ranks = as_group(group)
            return resolve_with(ranks, stage if ranks.rank == 1 else SEED[ranks.rank], terms(100))

        error = the_error(run(3, work))
        assert codes(error) == [code]
        assert words in str(error)
        assert "rank 1: " in str(error)
        assert error.findings[0].detail["ranks"] == [1]

    def test_the_failing_rank_keeps_its_exception(self, run: Run) -> None:
        def work(group: Any) -> Plan:
            return resolve_with(group, can_not_read if as_group(group).rank == 1 else SEED[0], terms())

        first, second = run(2, work)
        assert first.__cause__ is None
        assert isinstance(second.__cause__, AttributeError)

    def test_a_rank_without_terms(self, run: Run) -> None:
        """It can't even say what to agree on, such as one whose arguments can't be read."""

        def work(group: Any) -> Plan:
            if as_group(group).rank == 0:
                report_failure(group, ConfigurationError([Finding("HC101", "not-a-number", "error", "bad", "help")]))
            return planned(group)

        error = the_error(run(2, work))
        assert str(error) == "HC101 not-a-number: rank 0: bad. help"

    def test_a_size_too_small_names_the_stage_that_needs_most(self, run: Run) -> None:
        """As a plan of the whole pipeline does: one finding, not one a stage."""
        stages = [Stage((DevicePool("kv", None, size, 64),)) for size in (2**25, 2**27, 2**26)]
        error = the_error(run(3, lambda group: resolve_with(group, stages[as_group(group).rank], terms(1))))
        (finding,) = error.findings
        assert (finding.code, finding.stage, finding.detail["least_gb"]) == ("HC301", 1, 9)

    def test_what_all_ranks_found_is_said_once(self, run: Run) -> None:
        error = the_error(run(3, lambda group: resolve_with(group, can_not_read, terms())))
        (finding,) = error.findings
        assert finding.detail["ranks"] == [0, 1, 2]
        assert not finding.message.startswith("rank")

    def test_failures_and_differences_together(self, run: Run) -> None:
        def work(group: Any) -> Plan:
            rank = as_group(group).rank
            return resolve_with(group, can_not_read if rank == 0 else SEED[0], terms(90 if rank == 2 else 100))

        assert codes(the_error(run(3, work))) == ["HC406", "HC405"]

    @pytest.mark.parametrize(
        ("offer", "asked", "extra", "words"),
        [
            ([], terms(), {}, "ValueError: no reason is given"),
            (Offer(()), None, {}, "ValueError: an offer was made without terms"),
            (Offer(()), terms(), {"stage": 2}, "ValueError: stage 2 is not a stage of a group of 2 ranks"),
            (Offer(()), terms(), {"stage": "0"}, "ValueError: stage '0' is not a stage"),
            (Offer(()), terms(), {"must_equal": ["tp_size"]}, "TypeError"),
            (Offer(()), terms(), {"must_equal": {str(number): "x" * 99 for number in range(99)}}, "take more than"),
            (Offer((), scale=Fraction(-1)), terms(), {}, "OverflowError"),
            ([Finding("W1", "unusual", "error", "text")], terms(), {}, "ValueError: invalid literal"),
        ],
    )
    def test_misuse_on_one_rank_does_not_let_the_others_wait(
        self, run: Run, offer: Any, asked: Any, extra: Any, words: str
    ) -> None:
        def work(group: Any) -> Any:
            if as_group(group).rank == 0:
                return agree_over(group, offer, asked, **extra)
            return agree_over(group, resolve(SEED[0], terms()), terms())

        error = the_error(run(2, work))
        assert codes(error) == ["HC406"]
        assert words in str(error)

    def test_findings_of_an_offer_are_a_failure_only_when_they_are_errors(self, run: Run) -> None:
        warning = Finding("HC999", "some-warning", "warning", "text")
        offer = Offer((PoolOffer("kv", 1_000, 1),), ratio=2.0, findings=(warning,))
        for found in run(2, lambda group: agree_over(group, offer, terms(DeviceRatio(2.0)))):
            assert not has_errors(found.findings)
            assert found.ratio == 2.0

    def test_a_single_rank_fails_alone(self) -> None:
        with pytest.raises(ConfigurationError, match=r"^HC406 rank-failed: the host pools could not be planned"):
            resolve_with(None, can_not_read, terms())
        with pytest.raises(ConfigurationError) as caught:
            resolve_with(None, SEED[0], terms(0))
        assert codes(caught.value) == ["HC301"]
        assert "stage" not in str(caught.value)
