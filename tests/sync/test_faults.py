"""What can go wrong between ranks: each time a clear error on every living rank, the same where they can still talk.

The table of faults, over threads and over gloo. Nothing asserts a time: a hang would be seen as a test that never ends.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import struct
import threading
from collections.abc import Callable
from datetime import timedelta
from fractions import Fraction
from importlib import metadata
from typing import Any

import pytest

from hicache_config.core.capacity import DeviceRatio, TotalSize
from hicache_config.core.findings import ConfigurationError, Finding, has_errors
from hicache_config.core.offers import Offer, PoolOffer
from hicache_config.core.plan import Plan
from hicache_config.core.pools import DevicePool, Stage
from hicache_config.core.resolve import resolve
from hicache_config.sync import (
    ThreadGroup,
    agree_over,
    as_group,
    local,
    report_failure,
    resolve_with,
    run_on_threads,
    step,
)
from hicache_config.sync.message import LENGTH
from tests.sync.cases import SEED, Tampering, codes, linear_hybrid, terms, the_error, with_words
from tests.sync.conftest import KILLED, Run, run_on_processes

#: Its barriers hold threads as well as forked processes.
FORKED = multiprocessing.get_context("fork")

#: For ranks that wait for what never comes. Where something has to come, the limit is the runner's own, a minute: a
#: rank that dies at an exchange is noticed at once.
SHORT_S = 1.5


def planned(group: Any, **changes: Any) -> Plan:
    """The seed case's plan for this rank, with some of what it asks changed."""
    ranks = as_group(group)
    return resolve_with(ranks, SEED[ranks.rank], changes.pop("asked", terms()), **changes)


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


class TestRanksThatRunSomethingElse:
    def test_another_version_of_this_package(self, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
        here = threading.local()
        for module in (local, step):
            monkeypatch.setattr(module, "package_version", lambda: here.version)

        def work(group: Any) -> Plan:
            here.version = "0.2.0" if as_group(group).rank == 2 else "0.1.0"
            return planned(group)

        error = the_error(run(4, work))
        assert codes(error) == ["HC407"]
        assert "0.1.0 (protocol 1) on ranks 0, 1 and 3; hicache-config 0.2.0 (protocol 1) on rank 2" in str(error)

    def test_another_collective(self, run: Run) -> None:
        """Rank 1 is in a collective of the engine itself, which happens to have the same length."""

        def work(group: Any) -> Any:
            ranks = as_group(group)
            return list(ranks.gather(b"\1" * LENGTH)) if ranks.rank == 1 else planned(ranks)

        results = run(3, work)
        results.pop(1)
        assert [codes(result) for result in results] == [["HC407"]] * 2
        assert "a message of another collective, not of hicache-config, on rank 1" in str(results[0])

    @pytest.mark.parametrize(
        ("changes", "words"),
        [
            ({"asked": terms(90)}, "hicache_size is 100 on ranks 0, 2 and 3; 90 on rank 1"),
            ({"asked": terms(DeviceRatio(2.0))}, "hicache_ratio is not given on ranks 0, 2 and 3; 2.0 on rank 1"),
            ({"asked": terms(100, "sglang")}, 'the accounting is total on ranks 0, 2 and 3; sglang on rank 1'),
            ({"asked": terms(release="0.5.22")}, "the SGLang release is 0.5.23 on ranks 0, 2 and 3; 0.5.22 on rank 1"),
            ({"must_equal": {"tp_size": 4}}, "tp_size is 8 on ranks 0, 2 and 3; 4 on rank 1"),
            ({"must_equal": {}}, "tp_size is 8 on ranks 0, 2 and 3; not given on rank 1"),
            ({"stage_count": 8}, "pp_size is 4 on ranks 0, 2 and 3; 8 on rank 1"),
        ],
    )  # fmt: skip
    def test_other_arguments(self, run: Run, changes: dict[str, Any], words: str) -> None:
        usual = {"must_equal": {"tp_size": 8}, "stage_count": 4}

        def work(group: Any) -> Plan:
            return planned(group, **(usual | changes if as_group(group).rank == 1 else usual))

        error = the_error(run(4, work))
        assert set(codes(error)) == {"HC405"}
        assert words in str(error)

    def test_all_that_differs_is_named_at_once(self, run: Run) -> None:
        def work(group: Any) -> Plan:
            rank = as_group(group).rank
            return planned(group, asked=terms(100 + rank, "sglang" if rank else "total"))

        error = the_error(run(3, work))
        assert codes(error) == ["HC405", "HC405"]
        assert [finding.argument for finding in error.findings] == ["hicache_size", None]


DEVICE_SLOTS, PAGE_SIZE, OWN_PAGES = 64 + 7, 64 + 8, 64 + 10


class TestNumbersThatCanNotBe:
    @pytest.mark.parametrize(
        ("changes", "words"),
        [
            ({f"w{PAGE_SIZE}": -64}, "the page size of pool 'kv' are -64"),
            ({f"w{OWN_PAGES}": -1}, "the host pages of pool 'kv' are -1"),
            ({f"w{OWN_PAGES}": 0}, "it has no pages of pool 'kv'"),
            ({f"w{OWN_PAGES}": 2**62}, "it wants 4,611,686,018,427,387,904 pages of pool 'kv'"),
            ({"w8": 3}, "it says that it is rank 3 of 4; the group has 4"),
            ({"w9": 5}, "it says that it is rank 2 of 5"),
            ({"w10": 17}, "its stage is 17 in a group of 4 ranks"),
            ({"w13": 2**40}, "bytes to say; 8,192 are the most"),
            ({"w6": 0, "w7": 0}, "it has no terms"),
        ],
    )
    def test_absurd_offers(self, run: Run, changes: dict[str, int], words: str) -> None:
        def work(group: Any) -> Plan:
            return planned(Tampering(group, with_words(**changes)) if as_group(group).rank == 2 else group)

        error = the_error(run(4, work))
        assert codes(error) == ["HC408"]
        assert words in str(error)
        assert "rank 2" in str(error)

    def test_words_that_can_not_be_read(self, run: Run) -> None:
        def garbled(number: int, message: bytes) -> bytes:
            return message if number == 0 else b"\xff" * len(message)

        def work(group: Any) -> Plan:
            rank = as_group(group).rank
            return planned(Tampering(group, garbled) if rank == 2 else group, asked=terms(100 + rank))

        error = the_error(run(3, work))
        assert codes(error) == ["HC405", "HC408"]
        assert "hicache_size is 100 on rank 0; 101 on rank 1" in str(error)
        assert "rank 2 sent an offer that can't be: its words can't be read" in str(error)

    def test_a_failed_rank_whose_words_can_not_be_read(self, run: Run) -> None:
        def garbled(number: int, message: bytes) -> bytes:
            return message if number == 0 else b"\xff" * len(message)

        def work(group: Any) -> Plan:
            if as_group(group).rank == 1:
                report_failure(Tampering(group, garbled), OSError("no memory"))
            return planned(group)

        assert codes(the_error(run(2, work))) == ["HC408"]

    def test_a_group_that_gives_too_few_messages(self) -> None:
        class Short:
            rank, size = 0, 3

            def gather(self, message: bytes) -> list[bytes]:
                return [message]

        with pytest.raises(ConfigurationError, match="the group gave 1 messages for 3 ranks") as caught:
            planned(Short())
        assert codes(caught.value) == ["HC411"]


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


@pytest.mark.parametrize("change", [lambda words: words[:8], lambda words: words + b"\0" * 8])
def test_messages_of_another_length_over_threads(change: Callable[[bytes], bytes]) -> None:
    """Gloo must never see lengths differ (it may abort), so this is for groups that people write themselves."""

    def work(group: Any) -> Plan:
        return planned(Tampering(group, lambda _, message: change(message)) if group.rank == 1 else group)

    error = the_error(run_on_threads(2, work))
    assert codes(error) == ["HC407"]
    assert "bytes that are no hicache-config message on rank 1" in str(error)


def test_the_message_is_as_long_as_ever() -> None:
    """Changing the length breaks a pipeline whose nodes run two versions: they could not even read the version."""
    assert LENGTH == 4096
    assert struct.calcsize("<512q") == LENGTH


def test_the_version_is_that_of_the_installed_package(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> str:
        raise metadata.PackageNotFoundError(name)

    for version, expected in ((lambda name: f"{name} 1.2", "hicache-config 1.2"), (missing, "not installed")):
        monkeypatch.setattr(metadata, "version", version)
        local.package_version.cache_clear()
        assert local.package_version() == expected
    local.package_version.cache_clear()
