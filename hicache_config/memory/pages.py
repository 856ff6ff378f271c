"""Huge pages of this machine, and how SGLANG_HUGEPAGE_SIZE rounds a buffer. Must not import the project.

Source of the rounding: SGLang 0.5.23, mem_cache/storage/mmap (buffers are mapped in whole huge pages).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

_FOLDER = re.compile(r"hugepages-(\d+)kB")


@dataclass(frozen=True)
class HugePages:
    """One size of huge pages: how many are set aside and how many of them are free, on the whole machine."""

    page_bytes: int
    total: int
    free: int

    @property
    def free_bytes(self) -> int:
        """Bytes in free pages of this size."""
        return self.free * self.page_bytes


def huge_pages(sys: Path = Path("/sys")) -> tuple[HugePages, ...]:
    """The sizes that the kernel offers, smallest first; empty where it offers none or they can't be read."""
    found = []
    try:
        folders = list((sys / "kernel/mm/hugepages").iterdir())
    except OSError:
        return ()
    for folder in folders:
        match = _FOLDER.fullmatch(folder.name)
        total, free = _number(folder / "nr_hugepages"), _number(folder / "free_hugepages")
        if match is not None and total is not None and free is not None:
            found.append(HugePages(int(match[1]) * 1024, total, free))
    return tuple(sorted(found, key=lambda pages: pages.page_bytes))


def transparent_huge_pages(sys: Path = Path("/sys")) -> str | None:
    """`always`, `madvise` or `never`, as set for the machine; None where it can't be read."""
    try:
        text = (sys / "kernel/mm/transparent_hugepage/enabled").read_text("utf-8")
    except OSError:
        return None
    match = re.search(r"\[(\w+)\]", text)
    return match[1] if match else None


def _number(file: Path) -> int | None:
    try:
        return int(file.read_text("utf-8"))
    except (OSError, ValueError):
        return None
