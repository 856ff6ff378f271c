"""What a rank may claim of a host, huge pages, and the facts that can be read of this machine."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hicache_config.core.releases import Release
from hicache_config.memory import Headroom, HostFacts, examine_host, huge_pages
from hicache_config.memory.pages import transparent_huge_pages

GIB = 2**30


def facts(available: int, cgroup: int | None = None) -> HostFacts:
    room = None if cgroup is None else Headroom(cgroup, cgroup + GIB, GIB, "memory.max")
    return HostFacts(total_bytes=2048 * GIB, available_bytes=available, cgroup=room)


@pytest.mark.parametrize(
    ("release", "claim"),
    [
        ("0.5.23", (500 - 10) * GIB // 8),
        ("0.5.21", (500 - 10) * GIB // 8),
        ("0.5.20", (1000 - 10) * GIB // 8),  # the cgroup counts since 0.5.21
        ("0.5.18", (1000 - 10) * GIB),  # ranks divide since 0.5.19
    ],
)
def test_a_claim_follows_the_release(release: str, claim: int) -> None:
    assert facts(1000 * GIB, 500 * GIB).claim_bytes(Release.of(release), 8) == claim


def test_a_roomy_cgroup_does_not_count() -> None:
    assert facts(100 * GIB, 500 * GIB).usable_bytes(Release.of("0.5.23")) == 100 * GIB


def test_less_than_the_reserve_is_negative() -> None:
    assert facts(GIB).claim_bytes(Release.of("0.5.23"), 1) == -9 * GIB


def test_huge_pages_are_read_by_size(tmp_path: Path) -> None:
    for name, total, free in (("hugepages-1048576kB", 4, 3), ("hugepages-2048kB", 100, 0), ("hugepages-xkB", 1, 1)):
        folder = tmp_path / "kernel/mm/hugepages" / name
        folder.mkdir(parents=True)
        (folder / "nr_hugepages").write_text(f"{total}\n", encoding="utf-8")
        (folder / "free_hugepages").write_text(f"{free}\n", encoding="utf-8")
    small, large = huge_pages(tmp_path)
    assert (small.page_bytes, small.total, small.free_bytes) == (2 * 2**20, 100, 0)
    assert (large.page_bytes, large.free_bytes) == (GIB, 3 * GIB)


def test_a_kernel_without_huge_pages_has_none(tmp_path: Path) -> None:
    assert huge_pages(tmp_path) == ()
    assert transparent_huge_pages(tmp_path) is None


def test_transparent_huge_pages_are_the_choice_in_brackets(tmp_path: Path) -> None:
    folder = tmp_path / "kernel/mm/transparent_hugepage"
    folder.mkdir(parents=True)
    (folder / "enabled").write_text("always [madvise] never\n", encoding="utf-8")
    assert transparent_huge_pages(tmp_path) == "madvise"


def test_this_machine_can_be_examined() -> None:
    found = examine_host()
    assert 0 < found.available_bytes <= found.total_bytes
    assert json.loads(json.dumps(found.as_dict()))["total_bytes"] == found.total_bytes


def test_a_cgroup_that_can_not_be_read_is_a_problem_not_a_failure(tmp_path: Path) -> None:
    (tmp_path / "self").mkdir()
    (tmp_path / "self/cgroup").write_text("0::/x\n", encoding="utf-8")
    (tmp_path / "self/mountinfo").write_text("", encoding="utf-8")
    found = examine_host(proc=tmp_path, sys=tmp_path, shm=tmp_path / "none")
    assert found.cgroup is None
    assert found.cgroup_problem
    assert found.shm_free_bytes is None
