"""The example engine, run as its first lines say: torchrun, real processes, real buffers."""

from __future__ import annotations

import io
import os
import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def torchrun(ranks: int, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Unbuffered, as containers run Python: what ranks write to the stream that they share is not held back to the end."""
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(ranks)]
    return subprocess.run(
        [*command, "examples/mini_engine.py", *arguments],
        cwd=ROOT,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(
    ("ranks", "kv", "mamba"),
    [
        # 7 and 8 layers: 1 and 2 of them attention.
        (2, [229_728, 229_728], 1_346),
        # 3, 4, 4 and 4 layers: the first stage has no attention layer, the others one each.
        (4, [None, 459_504, 459_504, 459_504], 2_693),
    ],
)
def test_uneven_stages_hold_the_same_slots_within_the_size(ranks: int, kv: list[int | None], mamba: int) -> None:
    done = torchrun(ranks)
    assert done.returncode == 0, done.stderr
    lines = sorted(line for line in done.stdout.splitlines() if line.startswith("stage"))
    assert len(lines) == ranks
    for line, slots in zip(lines, kv, strict=True):
        found = {name: int(text.replace(",", "")) for name, text in re.findall(r"(\w+) ([\d,]+) slots", line)}
        assert found == {**({} if slots is None else {"kv": slots}), "mamba": mamba}
        used = re.search(r"; ([\d,]+) bytes of 1,000,000,000", line)
        assert used is not None
        assert int(used[1].replace(",", "")) <= 10**9


class Writes(io.StringIO):
    """A stream that remembers each write."""

    def __init__(self) -> None:
        super().__init__()
        self.each: list[str] = []

    def write(self, text: str) -> int:
        self.each.append(text)
        return super().write(text)


def test_a_line_and_its_end_are_one_write() -> None:
    """Two ranks write to one stream: a line in two writes can be cut by another rank's."""
    stream = Writes()
    runpy.run_path(str(ROOT / "examples" / "mini_engine.py"))["say"]("stage 0", stream)
    assert stream.each == ["stage 0\n"]


def test_every_rank_ends_with_the_error_of_the_one_that_failed() -> None:
    done = torchrun(2, "--fail-rank", "1")
    assert done.returncode == 1
    for rank in (0, 1):
        assert f"rank {rank}: HC310 pool-impossible: rank 1: pool 'kv': slots is -1" in done.stderr
    assert 'mini_engine.py", line' not in done.stderr  # the only traceback is torchrun's own
