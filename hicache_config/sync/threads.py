"""A rank group whose ranks are threads of one process: for tests and for simulating a pipeline.

Must not import torch, nor anything of the project but what stands beside it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeVar

from .group import GroupError

Result = TypeVar("Result")

_HELP = "Every rank must reach the agreement within the timeout of the group: ThreadGroup.create(size, timeout_s)."


class _Meeting:
    """Where the threads of a group meet, round by round. A round succeeds on all ranks or fails on all."""

    def __init__(self, size: int, timeout_s: float) -> None:
        self.size = size
        self.timeout_s = timeout_s
        self.changed = threading.Condition()
        self.rounds: list[dict[int, bytes]] = []
        self.gone: set[int] = set()

    def exchange(self, number: int, rank: int, message: bytes) -> list[bytes]:
        with self.changed:
            if number == len(self.rounds):
                self.rounds.append({})
            messages = self.rounds[number]
            messages[rank] = message
            self.changed.notify_all()
            complete = self.changed.wait_for(lambda: self._is_over(messages), self.timeout_s)
            if len(messages) == self.size:
                return [messages[index] for index in range(self.size)]
            missing = [index for index in range(self.size) if index not in messages]
            self._leave(rank)
        raise GroupError(
            f"of {self.size} threads some {'have ended' if complete else 'did not come'}"
            + ("" if complete else f" within {self.timeout_s:g} s"),
            missing=missing,
            help_=_HELP,
        )

    def leave(self, rank: int) -> None:
        with self.changed:
            self._leave(rank)

    def _leave(self, rank: int) -> None:
        self.gone.add(rank)
        # An incomplete round can't be completed any more: whoever is late must fail as well.
        for messages in self.rounds:
            if len(messages) < self.size:
                messages.pop(rank, None)
        self.changed.notify_all()

    def _is_over(self, messages: dict[int, bytes]) -> bool:
        return len(messages) == self.size or bool(self.gone - messages.keys())


class ThreadGroup:
    """One thread's view of a group of threads; make all of them with `create`."""

    def __init__(self, meeting: _Meeting, rank: int) -> None:
        self._meeting = meeting
        self._round = 0
        self.rank = rank
        self.size = meeting.size

    @classmethod
    def create(cls, size: int, timeout_s: float = 60.0) -> list[ThreadGroup]:
        """A group of `size` ranks; a rank that waits longer than `timeout_s` seconds gives up, and all with it."""
        meeting = _Meeting(size, timeout_s)
        return [cls(meeting, rank) for rank in range(size)]

    def gather(self, message: bytes) -> list[bytes]:
        """All ranks' messages in rank order. Raises GroupError, which names the missing ranks."""
        number, self._round = self._round, self._round + 1
        return self._meeting.exchange(number, self.rank, message)

    def leave(self) -> None:
        """This rank will not come any more: the others fail at once instead of after the timeout."""
        self._meeting.leave(self.rank)


def run_on_threads(
    size: int, work: Callable[[ThreadGroup], Result], *, timeout_s: float = 60.0
) -> list[Result | Exception]:
    """Run `work` once for each of `size` ranks and return what each gave or raised, in rank order.

    A rank that has ended leaves the group, so whoever still waits for it fails at once.
    """
    results: dict[int, Result | Exception] = {}

    def run(group: ThreadGroup) -> None:
        try:
            results[group.rank] = work(group)
        except Exception as error:
            results[group.rank] = error
        finally:
            group.leave()

    threads = [threading.Thread(target=run, args=(group,)) for group in ThreadGroup.create(size, timeout_s)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return [results[rank] for rank in range(size)]
