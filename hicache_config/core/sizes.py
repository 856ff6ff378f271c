"""What a plan consists of: the concrete size of each host pool of a stage, per rank.

Must not import anything of the project but its floor.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class HostPoolSize:
    """The size of one host pool on one rank; all that a constructor needs.

    `pages` of `page_size` slots make `slots`; `bytes` is what is allocated, `(pages + extra_pages) * page_bytes`.
    `own_slots` is what the stage would have alone. `share_gb` is the pool's part of the size as SGLang splits it,
    `host_size_gb` the float that makes SGLang's own constructor build exactly these pages (independent pools only).
    `inside_size`: whether the size counts these bytes (None with a ratio). None stands for what is not known.
    """

    name: str
    follows: str | None
    page_size: int
    bytes_per_slot: int | None
    page_bytes: int
    device_slots: int | None
    extra_pages: int
    slots: int | None
    pages: int | None
    bytes: int | None
    own_slots: int | None
    share_gb: float | None
    host_size_gb: float | None
    inside_size: bool | None
    trace: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """The pool as plan files write it."""
        names = (
            "name", "follows", "page_size", "bytes_per_slot", "page_bytes", "device_slots", "share_gb", "own_slots",
            "slots", "pages", "extra_pages", "bytes", "inside_size", "host_size_gb",
        )  # fmt: skip
        return {**{name: getattr(self, name) for name in names}, "trace": list(self.trace)}


@dataclass(frozen=True)
class StagePlan:
    """Host pools of one stage; amounts are per rank. `size_bytes` is the size asked for (None with a ratio)."""

    stage: int
    layers: int | None
    pools: tuple[HostPoolSize, ...]
    size_bytes: int | None

    def __getitem__(self, name: str) -> HostPoolSize:
        for pool in self.pools:
            if pool.name == name:
                return pool
        raise KeyError(name)

    @property
    def bytes(self) -> int | None:
        """Host bytes of all pools of a rank, or None when one of them is not known."""
        known = [pool.bytes for pool in self.pools if pool.bytes is not None]
        return sum(known) if len(known) == len(self.pools) else None

    @property
    def over_size_bytes(self) -> int | None:
        """Bytes of a rank beyond the size."""
        return None if self.size_bytes is None or self.bytes is None else max(0, self.bytes - self.size_bytes)

    @property
    def unused_bytes(self) -> int | None:
        """Bytes of the size that a rank leaves unused."""
        return None if self.size_bytes is None or self.bytes is None else max(0, self.size_bytes - self.bytes)

    def as_dict(self) -> dict[str, Any]:
        """The stage as plan files write it."""
        return {
            "stage": self.stage,
            "layers": self.layers,
            "pools": [pool.as_dict() for pool in self.pools],
            "bytes": self.bytes,
            "size_bytes": self.size_bytes,
            "over_size_bytes": self.over_size_bytes,
            "unused_bytes": self.unused_bytes,
        }
