"""Ranks that never come, die or are late: each time a clear error on every living rank.

Over threads and over gloo. Nothing asserts a time: a hang would be seen as a test that never ends.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from datetime import timedelta
from typing import Any

import pytest

from hicache_config.core.findings import ConfigurationError
from hicache_config.core.plan import Plan
from hicache_config.sync import (
    ThreadGroup,
    as_group,
    report_failure,
)
from tests.sync.cases import Tampering, codes, planned, terms, the_error
from tests.sync.conftest import KILLED, Run, run_on_processes

#: Its barriers hold threads as well as forked processes.
FORKED = multiprocessing.get_context("fork")

#: For ranks that wait for what never comes. Where something has to come, the limit is the runner's own, a minute: a
#: rank that dies at an exchange is noticed at once.
SHORT_S = 1.5


def impatient(group: Any) -> Any:
    """The same group, whose ranks wait for SHORT_S from now on. Threads that wait for one that has ended never do."""
    if not isinstance(group, ThreadGroup):
        group._set_default_timeout(timedelta(seconds=SHORT_S))
    return group


class DiedError(RuntimeError):
    """The end of a rank, in these tests."""


class TestRanksThatAreNotThere:
    def test_a_rank_never_comes(self, run: Run) -> None:
        """It is alive and connected, but busy elsewhere: the others wait for the timeout of the group, no longer."""
        others_are_done = FORKED.Barrier(4)

        def work(group: Any) -> Any:
            try:
                return planned(group) if as_group(group).rank != 2 else "elsewhere"
            finally:
                others_are_done.wait()

        results = run(4, work, timeout_s=SHORT_S)
        assert results.pop(2) == "elsewhere"
        for result in results:
            assert codes(result) == ["HC411"]
            assert "did not take part in the agreement" in str(result)
            assert "imeout" in str(result)

    def test_a_rank_dies_before_it_comes(self, run: Run) -> None:
        def work(group: Any) -> Plan:
            if as_group(group).rank == 1:
                raise DiedError
            return planned(group)

        results = run(4, work, timeout_s=SHORT_S)
        assert isinstance(results.pop(1), DiedError)
        assert [codes(result) for result in results] == [["HC411"]] * 3

    @pytest.mark.parametrize("exchange", [0, 1], ids=["sizes", "words"])
    def test_a_process_is_killed_at_an_exchange(self, exchange: int) -> None:
        """By the kernel, say, for lack of memory: no exception, no farewell."""

        def killed(number: int, message: bytes) -> bytes:
            if number == exchange:
                os.kill(os.getpid(), signal.SIGKILL)
            return message

        def work(group: Any) -> Plan:
            rank = as_group(group).rank
            return planned(Tampering(group, killed) if rank == 1 else group, asked=terms(90 if rank == 2 else 100))

        results = run_on_processes(3, work)
        assert results[1] == KILLED
        for result in (results[0], results[2]):
            assert codes(result) == [["HC411"], ["HC405", "HC411"]][exchange]

    def test_a_rank_is_late_within_the_timeout(self, run: Run) -> None:
        def work(group: Any) -> Plan:
            if as_group(group).rank == 0:
                threading.Event().wait(0.3)
            return planned(group)

        assert {found["kv"].slots for found in run(4, work)} == {7_621_888}

    def test_a_rank_is_too_late(self, run: Run) -> None:
        """Those who waited have given up, so the late one must fail too, not go on alone or wait for them."""
        gave_up = FORKED.Barrier(3)

        def work(group: Any) -> Plan:
            if as_group(group).rank == 0:
                gave_up.wait()
                return planned(group)
            try:
                return planned(group)
            finally:
                gave_up.wait()

        results = run(3, work, timeout_s=SHORT_S)
        assert [codes(result) for result in results] == [["HC411"]] * 3

    def test_a_rank_dies_before_the_words_are_exchanged(self, run: Run) -> None:
        """What is known from the first exchange is said all the same."""

        def dies(number: int, message: bytes) -> bytes:
            if number == 1:
                raise DiedError
            return message

        def work(group: Any) -> Plan:
            rank = as_group(group).rank
            group = Tampering(group, dies) if rank == 3 else group
            size = 90 if rank == 0 else 100
            asked = terms(size)
            if rank == 1:
                report_failure(group, OSError("no memory"))
            return planned(group, asked=asked)

        results = run(4, work)
        for result in results[:3]:
            assert codes(result) == ["HC406", "HC405", "HC411"]
            assert "rank 1 failed with HC406; its words could not be fetched" in str(result)
            assert "on ranks 2 and 3" in str(result)
        assert isinstance(results[1].__cause__, OSError)

    def test_a_failed_rank_dies_before_its_words_are_exchanged(self, run: Run) -> None:
        def dies(number: int, message: bytes) -> bytes:
            if number == 1:
                raise DiedError
            return message

        def work(group: Any) -> Plan:
            if as_group(group).rank == 1:
                report_failure(Tampering(group, dies), OSError("no memory"))
            return planned(group)

        first, second, third = run(3, work)
        assert codes(first) == codes(third) == ["HC406", "HC411"]
        assert isinstance(second.__cause__, OSError)

    def test_a_rank_calls_once_more_than_the_others(self, run: Run) -> None:
        all_have_planned = FORKED.Barrier(4)

        def work(group: Any) -> Plan:
            found = planned(group)
            all_have_planned.wait()
            return planned(impatient(group)) if as_group(group).rank == 0 else found

        results = run(4, work)
        assert codes(results[0]) == ["HC411"]
        assert {found["kv"].slots for found in results[1:]} == {7_621_888}

    def test_after_an_error_a_fresh_group_works(self, run: Run) -> None:
        for size, expected in ((0, ["HC301"]), (100, None), (0, ["HC301"]), (100, None)):
            results = run(4, lambda group, size=size: planned(group, asked=terms(size)))
            if expected is None:
                assert {found["kv"].slots for found in results} == {7_621_888}
            else:
                assert [finding.code for finding in the_error(results).findings] == expected

    def test_after_an_agreed_error_the_same_group_works_too(self, run: Run) -> None:
        def work(group: Any) -> Plan:
            with pytest.raises(ConfigurationError):
                planned(group, asked=terms(as_group(group).rank + 1))
            return planned(group)

        assert {found["kv"].slots for found in run(4, work)} == {7_621_888}
