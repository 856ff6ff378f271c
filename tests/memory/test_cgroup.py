"""The cgroup walk over trees written for the tests, versions 2 and 1; tests marked `live` compare it with SGLang's."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hicache_config.memory import CgroupError, headroom

GIB = 2**30
Files = Mapping[str, str]


class Machine:
    """A procfs and cgroup mounts below a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.proc = folder / "proc"
        (self.proc / "self").mkdir(parents=True)
        self.memberships: list[str] = []
        self.mounts: list[str] = []

    def member(self, path: str, controllers: str = "") -> Machine:
        self.memberships.append(f"0:{controllers}:{path}")
        return self

    def mount(self, name: str, kind: str = "cgroup2", root: str = "/", options: str = "rw") -> Machine:
        folder = self.folder / name
        folder.mkdir(parents=True, exist_ok=True)
        shown = str(folder).replace(" ", "\\040")
        self.mounts.append(f"30 23 0:26 {root} {shown} rw,nosuid shared:4 - {kind} none {options}")
        return self

    def group(self, path: str, files: Files) -> Machine:
        folder = self.folder / path
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in files.items():
            (folder / name).write_text(text, encoding="utf-8")
        return self

    def write(self) -> Path:
        (self.proc / "self/cgroup").write_text("\n".join(self.memberships) + "\n", encoding="utf-8")
        (self.proc / "self/mountinfo").write_text("\n".join(self.mounts) + "\n", encoding="utf-8")
        return self.proc


def v2(limit: object = "max", used: int = 0, *, high: object = "max", files: int = 0, least: int = 0) -> Files:
    stat = f"anon 5\nactive_file {files // 2}\ninactive_file {files - files // 2}\nslab 7\n"
    return {"memory.max": f"{limit}\n", "memory.high": f"{high}\n", "memory.current": f"{used}\n", "memory.stat": stat,
            "memory.min": f"{least}\n"}  # fmt: skip


def v1(limit: int, used: int = 0, files: int = 0) -> Files:
    stat = f"active_file 1\ninactive_file 1\ntotal_active_file {files}\ntotal_inactive_file 0\n"
    return {"memory.limit_in_bytes": f"{limit}\n", "memory.usage_in_bytes": f"{used}\n", "memory.stat": stat}


def container(folder: Path) -> Machine:
    return Machine(folder).member("/").mount("cg")


def tightest_of_the_levels(folder: Path) -> Machine:
    machine = Machine(folder).member("/a/b").mount("cg")
    machine.group("cg/a/b", v2(100 * GIB, 10 * GIB)).group("cg/a", v2(80 * GIB, 20 * GIB))
    return machine


#: Trees by name, with the room that SGLang computes (0.5.23), or None.
TREES: dict[str, tuple[Callable[[Path], Machine], int | None]] = {
    "no limit": (lambda at: container(at).group("cg", v2()), None),
    "one limit": (lambda at: container(at).group("cg", v2(64 * GIB, 4 * GIB)), 60 * GIB),
    "files count as free": (lambda at: container(at).group("cg", v2(64 * GIB, 4 * GIB, files=3 * GIB)), 63 * GIB),
    "files beyond the usage": (lambda at: container(at).group("cg", v2(64 * GIB, 1 * GIB, files=3 * GIB)), 64 * GIB),
    "high is a limit too": (lambda at: container(at).group("cg", v2(64 * GIB, 4 * GIB, high=32 * GIB)), 28 * GIB),
    "over the limit": (lambda at: container(at).group("cg", v2(4 * GIB, 5 * GIB)), 0),
    "tightest of the levels": (tightest_of_the_levels, 60 * GIB),
    "the root has no files": (
        lambda at: Machine(at).member("/a").mount("cg").group("cg/a", v2(8 * GIB, GIB)), 7 * GIB,
    ),
    "a protected child takes the credit": (
        lambda at: container(at).group("cg", v2(64 * GIB, 4 * GIB, files=3 * GIB)).group("cg/kid", v2(least=1)),
        60 * GIB,
    ),
    "a protected grandchild too": (
        lambda at: container(at).group("cg", v2(64 * GIB, 4 * GIB, files=3 * GIB)).group("cg/kid", v2())
        .group("cg/kid/kid", v2(least=9)), 60 * GIB,
    ),
    "a child that can't be read too": (
        lambda at: container(at).group("cg", v2(64 * GIB, 4 * GIB, files=3 * GIB)).group("cg/kid", {}), 60 * GIB,
    ),
    "its own protection takes nothing": (
        lambda at: container(at).group("cg", v2(64 * GIB, 4 * GIB, files=3 * GIB, least=5)), 63 * GIB,
    ),
    "a namespace root in mountinfo": (
        lambda at: Machine(at).member("/").mount("cg", root="/docker/abc").group("cg", v2(16 * GIB, GIB)), 15 * GIB,
    ),
    "a blank in the mount point": (
        lambda at: Machine(at).member("/").mount("c g").group("c g", v2(16 * GIB, GIB)), 15 * GIB,
    ),
    "version 1": (
        lambda at: Machine(at).member("/x", "cpu,memory").mount("m", "cgroup", options="rw,memory")
        .group("m/x", v1(32 * GIB, 4 * GIB, files=GIB)).group("m", v1(2**63 - 4096, 9 * GIB)), 29 * GIB,
    ),
    "version 1 without the controller": (
        lambda at: Machine(at).member("/x", "cpu").mount("m", "cgroup", options="rw,cpu").group("m/x", {}), None,
    ),
    "both versions": (
        lambda at: Machine(at).member("/x", "memory").member("/y").mount("m", "cgroup", options="rw,memory").mount("cg")
        .group("m/x", v1(32 * GIB, 4 * GIB)).group("cg/y", v2(16 * GIB, GIB)), 15 * GIB,
    ),
}  # fmt: skip

BROKEN: dict[str, Callable[[Path], Machine]] = {
    "not mounted": lambda at: Machine(at).member("/a"),
    "outside of the mount": lambda at: Machine(at).member("/../b").mount("cg", root="/docker").group("cg", v2()),
    "a limit without its usage": lambda at: container(at).group("cg", {"memory.max": "5\n"}),
    "a limit that is no number": lambda at: container(at).group("cg", {**v2(), "memory.max": "lots\n"}),
    "statistics without files": lambda at: container(at).group("cg", {**v2(9, 1), "memory.stat": "anon 5\n"}),
}


@pytest.mark.parametrize("name", TREES)
def test_room_is_what_the_tightest_level_leaves(name: str, tmp_path: Path) -> None:
    make, expected = TREES[name]
    room = headroom(make(tmp_path).write())
    assert (None if room is None else room.bytes) == expected


@pytest.mark.parametrize("name", BROKEN)
def test_limits_that_can_not_be_judged_are_an_error(name: str, tmp_path: Path) -> None:
    with pytest.raises(CgroupError):
        headroom(BROKEN[name](tmp_path).write())


def test_a_system_without_procfs_has_no_limit(tmp_path: Path) -> None:
    assert headroom(tmp_path) is None


def test_the_limit_says_where_it_stands(tmp_path: Path) -> None:
    room = headroom(tightest_of_the_levels(tmp_path).write())
    assert room is not None
    assert (room.limit_bytes, room.used_bytes) == (80 * GIB, 20 * GIB)
    assert room.file == str(tmp_path / "cg/a/memory.max")


@settings(max_examples=30)
@given(limits=st.lists(st.tuples(st.integers(0, 10**12), st.integers(0, 10**12)), min_size=1, max_size=5))
def test_room_never_exceeds_that_of_any_level(
    limits: list[tuple[int, int]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    names = [f"/{'/'.join('abcde'[: depth + 1])}" for depth in range(len(limits))]
    machine = Machine(tmp_path_factory.mktemp("tree")).member(names[-1]).mount("cg")
    for name, (limit, used) in zip(names, limits, strict=True):
        machine.group(f"cg{name}", v2(limit, used))
    room = headroom(machine.write())
    assert room is not None
    assert room.bytes == min(max(0, limit - used) for limit, used in limits)


@pytest.mark.live
def test_sglang_comes_to_the_same_room(sglang_python: Callable[[str], Path], tmp_path: Path) -> None:
    trees = {**{name: make for name, (make, _) in TREES.items()}, **BROKEN}
    procs = {name: str(make(tmp_path / str(index)).write()) for index, (name, make) in enumerate(trees.items())}
    code = (
        "import json, sys; from pathlib import Path\n"
        "from sglang.srt.mem_cache.host_memory import _cgroup_memory_headroom as room\n"
        "def ask(proc):\n"
        "    try: return room(Path(proc))\n"
        "    except Exception as error: return 'error'\n"
        "print(json.dumps({name: ask(proc) for name, proc in json.load(sys.stdin).items()}))"
    )
    done = subprocess.run(
        [str(sglang_python("0.5.23")), "-W", "ignore", "-c", code], input=json.dumps(procs), capture_output=True,
        text=True, check=True,
    )  # fmt: skip
    theirs = json.loads(done.stdout.splitlines()[-1])

    def ours(proc: str) -> object:
        try:
            room = headroom(Path(proc))
        except CgroupError:
            return "error"
        return None if room is None else room.bytes

    assert theirs == {name: ours(proc) for name, proc in procs.items()}
