"""What the operator asked for: a total size, a ratio to the device pools, or a share of the host's memory.

Exactly one of the three is in force. Must not import anything of the project but units.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .units import size_bytes


@dataclass(frozen=True)
class TotalSize:
    """A budget in GB (10**9 bytes) per rank.

    Under accounting `total` all host pools of a rank together stay within it; under `sglang` it is what
    `--hicache-size` means to that release.
    """

    size_gb: int | float

    @property
    def bytes(self) -> int:
        """The budget of one rank in whole bytes."""
        return size_bytes(self.size_gb)

    def as_dict(self) -> dict[str, Any]:
        """The capacity as plan files write it."""
        return {"kind": "size", "size_gb": self.size_gb}


@dataclass(frozen=True)
class DeviceRatio:
    """Host slots per device slot, applied to each independent pool as `int(device_slots * ratio)`."""

    ratio: float

    def as_dict(self) -> dict[str, Any]:
        """The capacity as plan files write it."""
        return {"kind": "ratio", "ratio": self.ratio}


@dataclass(frozen=True)
class HostFraction:
    """A share of the host's free memory (all ranks of a host together, after the reserve), since SGLang 0.5.21.

    `ratio` is the most that it grows to. Source: 0.5.23, mem_cache/hicache_auto_size.py.
    """

    fraction: float
    ratio: float

    def as_dict(self) -> dict[str, Any]:
        """The capacity as plan files write it."""
        return {"kind": "fraction", "fraction": self.fraction, "ratio": self.ratio}


Capacity = TotalSize | DeviceRatio | HostFraction
