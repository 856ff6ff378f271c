"""The memory of this host as SGLang would see it when it builds host pools, and limits on pinning.

Source: SGLang 0.5.23, mem_cache/host_memory.py and pool_host/base.py (available memory, bounded by the cgroup since
0.5.21, less a reserve, divided by the ranks of the host since 0.5.19). Must not import anything above this floor.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..core.releases import Release
from ..core.units import RESERVE_BYTES
from .cgroup import CgroupError, Headroom, headroom
from .pages import HugePages, huge_pages, transparent_huge_pages


@dataclass(frozen=True)
class HostFacts:
    """What can be read of this machine; None stands for what can't.

    `available_bytes` is MemAvailable. `cgroup` is the tightest limit over this process, `cgroup_problem` why it can't
    be told. `memlock_bytes` limits what a process may lock (-1: no limit; pinning by CUDA does not count against it,
    registering memory for RDMA does), `shm_free_bytes` is what /dev/shm has free (the `shm` storage backend lives
    there).
    """

    total_bytes: int
    available_bytes: int
    cgroup: Headroom | None = None
    cgroup_problem: str | None = None
    huge_pages: tuple[HugePages, ...] = ()
    transparent_huge_pages: str | None = None
    memlock_bytes: int | None = None
    shm_free_bytes: int | None = None

    def usable_bytes(self, release: Release) -> int:
        """What the ranks of this host have together before the reserve: the cgroup counts since 0.5.21."""
        if self.cgroup is None or not release.has_fraction:
            return self.available_bytes
        return min(self.available_bytes, self.cgroup.bytes)

    def claim_bytes(self, release: Release, ranks: int) -> int:
        """What one of `ranks` ranks may claim for host pools; negative when not even the reserve is there."""
        room = self.usable_bytes(release) - RESERVE_BYTES
        return room // ranks if release.divides_host_memory else room

    def as_dict(self) -> dict[str, Any]:
        """The facts as `doctor --format json` writes them."""
        return {
            "total_bytes": self.total_bytes,
            "available_bytes": self.available_bytes,
            "cgroup": None
            if self.cgroup is None
            else {
                "headroom_bytes": self.cgroup.bytes,
                "limit_bytes": self.cgroup.limit_bytes,
                "used_bytes": self.cgroup.used_bytes,
                "file": self.cgroup.file,
            },
            "cgroup_problem": self.cgroup_problem,
            "huge_pages": [
                {"page_bytes": pages.page_bytes, "total": pages.total, "free": pages.free} for pages in self.huge_pages
            ],
            "transparent_huge_pages": self.transparent_huge_pages,
            "memlock_bytes": self.memlock_bytes,
            "shm_free_bytes": self.shm_free_bytes,
        }


def examine_host(proc: Path = Path("/proc"), sys: Path = Path("/sys"), shm: Path = Path("/dev/shm")) -> HostFacts:
    """Read the facts of this machine and of this process's limits."""
    import psutil

    memory = psutil.virtual_memory()
    room, problem = None, None
    try:
        room = headroom(proc)
    except CgroupError as error:
        problem = str(error)
    return HostFacts(
        total_bytes=int(memory.total),
        available_bytes=int(memory.available),
        cgroup=room,
        cgroup_problem=problem,
        huge_pages=huge_pages(sys),
        transparent_huge_pages=transparent_huge_pages(sys),
        memlock_bytes=_memlock(),
        shm_free_bytes=_free(shm),
    )


def _memlock() -> int | None:
    try:
        import resource
    except ImportError:  # not a POSIX system
        return None
    soft, _ = resource.getrlimit(resource.RLIMIT_MEMLOCK)
    return -1 if soft == resource.RLIM_INFINITY else int(soft)


def _free(folder: Path) -> int | None:
    try:
        status = os.statvfs(folder)
    except OSError:
        return None
    return int(status.f_bavail * status.f_frsize)
