"""The pipelines with known figures, the terms that go with them, and a group that changes what it sends."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from hicache_config.core.capacity import Capacity, TotalSize
from hicache_config.core.findings import ConfigurationError
from hicache_config.core.plan import Plan
from hicache_config.core.pools import DevicePool, Stage
from hicache_config.core.releases import Release
from hicache_config.core.terms import Accounting, Terms
from hicache_config.sync import as_group, resolve_with
from hicache_config.sync.message import WORDS

RELEASE = Release.of("0.5.23")


def terms(capacity: Capacity | int = 100, accounting: Accounting = "total", release: str = "0.5.23") -> Terms:
    """Terms with a size in GB, or any capacity."""
    return Terms(TotalSize(capacity) if isinstance(capacity, int) else capacity, accounting, Release.of(release))


#: 78 layers as 19, 19, 20, 20, each 656 bytes per token.
SEED = [Stage((DevicePool("kv", bytes_per_slot=layers * 656, page_size=64),), layers) for layers in (19, 19, 20, 20)]

_MAMBA = DevicePool("mamba", 600, 38_633_472, 1)


def linear_hybrid(*, zero_bytes: bool) -> list[Stage]:
    """Two stages of a linear-attention hybrid, the first without a full-attention layer."""
    empty = (DevicePool("kv", 2_000_000, 0, 64),) if zero_bytes else ()
    return [Stage((*empty, _MAMBA)), Stage((DevicePool("kv", 2_000_000, 12_288, 64), _MAMBA))]


@dataclass
class Tampering:
    """A group whose rank sends something else than it was told to, or does something before each exchange.

    `change` gets the number of the exchange (from 0) and the message, and gives what is sent.
    """

    group: Any
    change: Callable[[int, bytes], bytes]
    exchanges: int = 0

    def __post_init__(self) -> None:
        self.inner = as_group(self.group)
        self.rank, self.size = self.inner.rank, self.inner.size

    def gather(self, message: bytes) -> Sequence[bytes]:
        number, self.exchanges = self.exchanges, self.exchanges + 1
        return self.inner.gather(self.change(number, message))


def with_words(**changes: int) -> Callable[[int, bytes], bytes]:
    """A change of some words of the first message: `w9=5` sets word 9."""

    def change(number: int, message: bytes) -> bytes:
        if number:
            return message
        words = list(struct.unpack(f"<{WORDS}q", message))
        for name, value in changes.items():
            words[int(name[1:])] = value
        return struct.pack(f"<{WORDS}q", *words)

    return change


def codes(result: Any) -> list[str]:
    """The codes of the findings that a rank raised."""
    assert isinstance(result, ConfigurationError), repr(result)
    return [finding.code for finding in result.findings]


def the_error(results: Sequence[Any]) -> ConfigurationError:
    """The one error that all ranks raised, with the same findings."""
    assert all(isinstance(result, ConfigurationError) for result in results), results
    assert all(result.findings == results[0].findings for result in results), [str(result) for result in results]
    return results[0]  # type: ignore[no-any-return]


def planned(group: Any, **changes: Any) -> Plan:
    """The seed case's plan for this rank, with some of what it asks changed."""
    ranks = as_group(group)
    return resolve_with(ranks, SEED[ranks.rank], changes.pop("asked", terms()), **changes)
