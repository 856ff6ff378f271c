"""How much memory the cgroups of this process leave to it, as SGLang 0.5.23 counts it.

The least room over all levels from the process's own cgroup up to the mount, of version 2 and version 1 where both
are mounted. Pages of files that the kernel can take back count as free, as in MemAvailable. Source: SGLang 0.5.23,
mem_cache/host_memory.py. Must not import anything of the project.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath


class CgroupError(RuntimeError):
    """The limits of this process can't be read; the message says where. SGLang then refuses to size by a fraction."""


@dataclass(frozen=True)
class Flavour:
    """File names of one cgroup version. `cache` are the keys of memory.stat that count as free."""

    name: str
    limits: tuple[str, ...]
    usage: str
    cache: tuple[str, ...]


V2 = Flavour("cgroup2", ("memory.max", "memory.high"), "memory.current", ("active_file", "inactive_file"))
V1 = Flavour(
    "cgroup", ("memory.limit_in_bytes",), "memory.usage_in_bytes", ("total_active_file", "total_inactive_file")
)


@dataclass(frozen=True)
class Headroom:
    """Room below one limit: `bytes` = `limit_bytes` - `used_bytes`, at least 0. `file` is where the limit stands."""

    bytes: int
    limit_bytes: int
    used_bytes: int
    file: str


@dataclass(frozen=True)
class _Mount:
    flavour: Flavour
    root: PurePosixPath
    folder: Path


def headroom(proc: Path = Path("/proc")) -> Headroom | None:
    """The tightest limit over this process, or None where there is none (or no procfs).

    Raises CgroupError where a limit is there but can't be judged, or the process's cgroup is not mounted.
    """
    try:
        memberships = _memberships((proc / "self/cgroup").read_text("utf-8"))
        mounts = list(_mounts((proc / "self/mountinfo").read_text("utf-8")))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise CgroupError(f"the cgroups of this process can't be read: {error}") from error
    tightest: Headroom | None = None
    is_mounted = False
    for mount in mounts:
        membership = memberships.get(mount.flavour.name)
        folder = None if membership is None else _folder_of(membership, mount)
        if folder is None or not folder.is_dir():
            continue
        is_mounted = True
        for room in _levels(folder, mount):
            if tightest is None or room.bytes < tightest.bytes:
                tightest = room
    if memberships and not is_mounted:
        raise CgroupError("the memory cgroup of this process is not among the mounted cgroup file systems")
    return tightest


def _memberships(text: str) -> Mapping[str, PurePosixPath]:
    """Where the process is, by the type of file system (`cgroup2`, `cgroup`)."""
    found = {}
    for line in text.splitlines():
        _, controllers, path = line.split(":", 2)
        if not controllers:
            found[V2.name] = PurePosixPath(path)
        elif "memory" in controllers.split(","):
            found[V1.name] = PurePosixPath(path)
    return found


def _mounts(text: str) -> Iterator[_Mount]:
    """The mounted cgroup file systems that govern memory."""
    for line in text.splitlines():
        before, after = line.split(" - ", 1)
        kind, _, options = after.split()[:3]
        fields = before.split()
        root, folder = PurePosixPath(_plain(fields[3])), Path(_plain(fields[4]))
        if kind == V2.name:
            yield _Mount(V2, root, folder)
        elif kind == V1.name and "memory" in options.split(","):
            yield _Mount(V1, root, folder)


def _plain(path: str) -> str:
    """A path of mountinfo with its octal escapes (blanks and the like) undone."""
    return re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), path)


def _folder_of(membership: PurePosixPath, mount: _Mount) -> Path | None:
    """The process's folder below a mount; None where the mount shows another part of the hierarchy.

    In a cgroup namespace the membership may be relative to a root that mountinfo names by its place on the host.
    """
    if membership.is_relative_to(mount.root):
        below = membership.relative_to(mount.root)
    elif mount.root != PurePosixPath("/"):
        below = membership.relative_to("/")
    else:
        return None
    if ".." in below.parts:
        raise CgroupError(f"the cgroup {membership} lies outside of what is mounted")
    return mount.folder / below


def _levels(folder: Path, mount: _Mount) -> Iterator[Headroom]:
    """The room below each limit, from the process's folder up to the mount."""
    try:
        while True:
            used: int | None = None
            for name in mount.flavour.limits:
                limit = _limit(folder / name)
                if limit is None:
                    continue
                if used is None:
                    used = _used(folder, mount.flavour)
                yield Headroom(max(0, limit - used), limit, used, str(folder / name))
            if folder == mount.folder:
                return
            folder = folder.parent
    except (OSError, ValueError, KeyError) as error:
        raise CgroupError(f"the memory limits in {folder} can't be read: {error}") from error


def _limit(file: Path) -> int | None:
    """A limit in bytes; None where there is no such file (the root has none) or no limit."""
    try:
        text = file.read_text("utf-8").strip()
    except FileNotFoundError:
        return None
    return None if text == "max" else int(text)


def _used(folder: Path, flavour: Flavour) -> int:
    """Bytes in use that the kernel can't simply take back."""
    usage = int((folder / flavour.usage).read_text("utf-8"))
    stat = dict(line.split() for line in (folder / "memory.stat").read_text("utf-8").splitlines())
    cache = sum(int(stat[key]) for key in flavour.cache)
    if flavour is V2 and cache > 0 and _has_protected_children(folder):
        cache = 0
    return max(0, usage - cache)


def _has_protected_children(folder: Path) -> bool:
    """Whether a cgroup below may keep its pages (memory.min); one that can't be read counts as such."""
    try:
        for child in folder.iterdir():
            if not child.is_dir():
                continue
            if int((child / "memory.min").read_text("utf-8")) != 0 or _has_protected_children(child):
                return True
    except (OSError, ValueError):
        return True
    return False
