"""The groups themselves: what they gather, how they fail, what passes for one."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import Any

import pytest

from hicache_config.sync import GroupError, SingleRank, ThreadGroup, as_group, resolve_with, run_on_threads
from hicache_config.sync.torch_group import TorchGroup, default_device
from tests.sync.cases import SEED, terms
from tests.sync.conftest import Run


def test_a_gather_gives_all_messages_in_rank_order(run: Run) -> None:
    def work(raw: Any) -> list[list[bytes]]:
        group = as_group(raw)
        return [list(group.gather(bytes([group.rank, number]) * 8)) for number in range(3)]

    expected = [[bytes([rank, number]) * 8 for rank in range(4)] for number in range(3)]
    assert run(4, work) == [expected] * 4


def test_no_group_is_a_single_rank() -> None:
    group = as_group(None)
    assert isinstance(group, SingleRank)
    assert (group.rank, group.size, group.gather(b"12345678")) == (0, 1, [b"12345678"])
    found = resolve_with(None, SEED[0], terms())
    assert found["kv"].slots == 8_023_104
    assert found.decided_by == (0,)


def test_a_rank_group_is_taken_as_it_is() -> None:
    (group,) = ThreadGroup.create(1)
    assert as_group(group) is group


@pytest.mark.parametrize(
    "thing",
    [
        object(),  # torch.distributed.GroupMember.NON_GROUP_MEMBER is one of these
        -100,
        "world",
        SimpleNamespace(rank=0, size=1),
        SimpleNamespace(rank=lambda: 0, size=lambda: 1, gather=lambda message: [message]),
        SimpleNamespace(rank=0, size="1", gather=lambda message: [message]),
    ],
)
def test_anything_else_is_no_group(thing: object) -> None:
    with pytest.raises(TypeError, match="no rank group: give a torch"):
        as_group(thing)


def test_threads_that_do_not_come_are_named() -> None:
    def work(group: ThreadGroup) -> object:
        if group.rank in (1, 3):
            return None
        return group.gather(b"")

    results = run_on_threads(4, work)
    for rank in (0, 2):
        error = results[rank]
        assert isinstance(error, GroupError)
        assert error.missing
        assert set(error.missing) <= {1, 3}
        assert "one has ended" in str(error)


def test_a_round_of_threads_fails_on_all_or_none() -> None:
    """A thread that is too late must not find the messages of those that gave up, as if they were there."""
    first, late = ThreadGroup.create(2, timeout_s=0.05)
    with pytest.raises(GroupError, match=r"not all came within 0\.05 s") as gave_up:
        first.gather(b"")
    assert gave_up.value.missing == (1,)
    assert "timeout" in gave_up.value.help
    with pytest.raises(GroupError) as too_late:
        late.gather(b"")
    assert too_late.value.missing == (1,)


def test_leaving_after_a_round_does_not_disturb_it() -> None:
    """One thread ends as soon as it has its answer; the other, which has not woken up yet, must still get its own."""
    for _ in range(200):
        results = run_on_threads(3, lambda group: group.gather(bytes([group.rank])))
        assert results == [[b"\0", b"\1", b"\2"]] * 3


def test_exceptions_of_threads_are_given_back() -> None:
    def work(group: ThreadGroup) -> int:
        if group.rank == 1:
            raise OSError("broken")
        return group.rank

    first, second = run_on_threads(2, work)
    assert first == 0
    assert isinstance(second, OSError)


@pytest.mark.parametrize(
    ("types", "device"),
    [([], "cpu"), (["cpu"], "cpu"), (["cuda"], "cuda"), (["cuda", "cpu"], "cpu"), (["xpu", "cuda"], "xpu")],
)
def test_messages_travel_on_the_cpu_where_the_group_can(types: list[str], device: str) -> None:
    group = SimpleNamespace(_device_types=[SimpleNamespace(type=name) for name in types])
    assert default_device(group) == device
    assert default_device(SimpleNamespace()) == "cpu"


def test_the_device_can_be_given() -> None:
    """On the device of the group's backend; here one that holds no data, to see where the tensors were made."""
    seen: list[str] = []

    def allgather(outputs: list[list[Any]], inputs: list[Any]) -> Any:
        seen.extend(tensor.device.type for tensor in [*outputs[0], *inputs])
        raise RuntimeError("no such backend")

    fake = SimpleNamespace(rank=lambda: 0, size=lambda: 2, allgather=allgather)
    with pytest.raises(GroupError, match=r"torch\.distributed: no such backend") as caught:
        TorchGroup(fake, device="meta").gather(b"12345678")
    assert seen == ["meta"] * 3
    assert "--dist-timeout" in caught.value.help


def test_torch_is_not_imported_for_other_groups() -> None:
    import subprocess
    import sys

    code = (
        "import sys, hicache_config.sync as sync\n"
        "from hicache_config.core.pools import DevicePool, Stage\n"
        "from hicache_config.core.terms import Terms\n"
        "from hicache_config.core.capacity import TotalSize\n"
        "from hicache_config.core.releases import Release\n"
        "terms = Terms(TotalSize(1), 'total', Release.of('0.5.23'))\n"
        "stage = Stage((DevicePool('kv', None, 100, 16),))\n"
        "sync.resolve_with(None, stage, terms)\n"
        "print(sync.run_on_threads(2, lambda group: sync.resolve_with(group, stage, terms))[1]['kv'].slots)\n"
        "print('torch' in sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["10000000", "False"]


def test_threads_are_all_ended() -> None:
    before = threading.active_count()
    run_on_threads(8, lambda group: group.gather(b""))
    assert threading.active_count() == before
