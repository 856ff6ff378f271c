"""Ranks that run something else or send what can not be: the same error on every rank.

Over threads and over gloo. Nothing asserts a time: a hang would be seen as a test that never ends.
"""

from __future__ import annotations

import struct
import threading
from collections.abc import Callable
from importlib import metadata
from typing import Any

import pytest

from hicache_config.core.capacity import DeviceRatio
from hicache_config.core.findings import ConfigurationError
from hicache_config.core.plan import Plan
from hicache_config.sync import (
    as_group,
    local,
    report_failure,
    run_on_threads,
    step,
)
from hicache_config.sync.message import LENGTH
from tests.sync.cases import Tampering, codes, planned, terms, the_error, with_words
from tests.sync.conftest import Run


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
