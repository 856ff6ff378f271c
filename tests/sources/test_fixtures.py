"""Every fixture gives the engines, places and notes of the `.out` file beside it.

`HICACHE_WRITE_FIXTURES=1 pytest tests/sources/test_fixtures.py` writes them anew: read the
difference before committing.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from hicache_config.sources import read

from .shown import shown

FIXTURES = Path(__file__).parent / "fixtures"
#: What lies in other folders is taken in by these.
INPUTS = sorted(path for path in FIXTURES.glob("*") if path.suffix != ".out" and path.is_file())
INPUTS += [FIXTURES / "project" / "compose.yaml"]


@pytest.mark.parametrize("path", INPUTS, ids=lambda path: path.name)
def test_a_fixture_reads_as_recorded(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(FIXTURES)
    expected = path.with_name(path.name + ".out")
    got = shown(read(str(path.relative_to(FIXTURES)), text=path.read_bytes()))
    if os.environ.get("HICACHE_WRITE_FIXTURES") == "1":
        expected.write_text(got, "utf-8")
    assert got == expected.read_text("utf-8")


def test_every_fixture_is_recorded() -> None:
    assert {path.name for path in FIXTURES.rglob("*.out")} == {path.name + ".out" for path in INPUTS}
