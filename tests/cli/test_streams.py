"""Standard output as it is handed to the program: of any encoding, closed, full; and names that no encoding has."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

ARGUMENTS = '{"enable_hierarchical_cache": true, "hicache_size": "5", "model_path": "模型"}'
NAMES = (b"\xff\xfe.json", "日本.json".encode(), b"a b,c:d%#.json", b"new\nline.json", b"\x1b[31mred.json")
PLAN = ["plan", "--", "sglang", "serve", "--model-path", "Qwen/Qwen3-8B", "--enable-hicache", "--hicache-size", "9"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in NAMES:
        (tmp_path / os.fsdecode(name)).write_text(ARGUMENTS, encoding="utf-8")
    return tmp_path


def run(*words: str, **environment: str) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-m", "hicache_config", *words]
    return subprocess.run(command, capture_output=True, check=False, env={**os.environ, **environment})


@pytest.mark.parametrize("encoding", ["utf-8:strict", "ascii", "latin-1", "cp1252"])
def test_every_format_is_written_in_every_encoding(folder: Path, encoding: str) -> None:
    for form in ("text", "json", "sarif", "github", "junit"):
        done = run("validate", str(folder), "--format", form, PYTHONIOENCODING=encoding)
        assert (done.returncode, done.stderr) == (1, b""), form
        if form in ("json", "sarif"):
            assert json.loads(done.stdout.decode())
        if form == "junit":
            assert len(ElementTree.fromstring(done.stdout)) == len(NAMES)
        assert b"\x1b" not in done.stdout or form == "github"
    written = json.loads(run("validate", str(folder), "--format", "json", PYTHONIOENCODING=encoding).stdout.decode())
    assert {os.fsencode(Path(each["source"]).name) for each in written["sources"]} == set(NAMES)


def test_what_an_encoding_lacks_is_written_plainly() -> None:
    plain = run(*PLAN, PYTHONIOENCODING="ascii").stdout.decode("ascii")
    assert run(*PLAN, PYTHONIOENCODING="utf-8").stdout.decode().replace("█", "#") == plain
    assert "####" in plain


@pytest.mark.parametrize("closed", ["stdout", "stderr"])
@pytest.mark.parametrize("words", [["rules"], PLAN, ["validate", "no/such/file"], ["validate", "--no-such-option"]])
def test_a_closed_stream_is_no_fault(words: list[str], closed: str) -> None:
    code = f"import os; os.close({1 if closed == 'stdout' else 2}); import sys; sys.{closed} = None; sys.argv = ['hicache-config', *{words!r}]; from hicache_config.cli import main; main()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)
    assert done.returncode == run(*words).returncode
    assert b"Traceback" not in done.stderr


@pytest.mark.parametrize("words", [["rules"], PLAN, ["schema", "args"]])
def test_a_full_disk_is_said_and_no_fault(words: list[str]) -> None:
    with Path("/dev/full").open("wb") as full:
        command = [sys.executable, "-m", "hicache_config", *words]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, check=False)
    assert (done.returncode, done.stderr.decode()) == (
        2,
        "hicache-config: the output can't be written: No space left on device\n",
    )
