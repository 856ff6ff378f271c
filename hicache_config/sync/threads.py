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


class _Round:
    """One gather: what has come so far, and who was missing when the first thread gave it up."""

    def __init__(self) -> None:
        self.messages: dict[int, bytes] = {}
        self.missing: tuple[int, ...] = ()


class _Meeting:
    """Where the threads of a group meet, round by round. A round succeeds on all ranks or fails on all."""

    def __init__(self, size: int, timeout_s: float) -> None:
        self.size = size
        self.timeout_s = timeout_s
        self.changed = threading.Condition()
        self.rounds: list[_Round] = []
        self.gone: set[int] = set()

    def exchange(self, number: int, rank: int, message: bytes) -> list[bytes]:
        with self.changed:
            if number == len(self.rounds):
                self.rounds.append(_Round())
            this = self.rounds[number]
            if not this.missing:
                this.messages[rank] = message
                self.changed.notify_all()
                self.changed.wait_for(lambda: self._is_over(this), self.timeout_s)
            if len(this.messages) == self.size:
                return [this.messages[index] for index in range(self.size)]
            absent = [index for index in range(self.size) if index not in this.messages]
            this.missing = this.missing or tuple(index for index in absent if index in self.gone) or tuple(absent)
            self.changed.notify_all()
        raise GroupError(
            f"of {self.size} threads not all came within {self.timeout_s:g} s, or one has ended",
            missing=this.missing,
            help_=_HELP,
        )

    def leave(self, rank: int) -> None:
        with self.changed:
            self.gone.add(rank)
            self.changed.notify_all()

    def _is_over(self, this: _Round) -> bool:
        return len(this.messages) == self.size or bool(this.missing) or bool(self.gone - this.messages.keys())


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
