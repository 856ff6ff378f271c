"""Whatever a source holds, a reader gives a document with places inside its text, and raises nothing."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hicache_config.sources import FORMATS, read, read_command

from .hostile import batches, byte_batches, check, long_look

NAMES = ("x", "x.json", "x.yaml", "x.toml", "x.sh", "x.log", "Dockerfile", "x.service", "x.py", "x.md")


@pytest.mark.parametrize("form", FORMATS)
def test_a_forced_format_never_raises(form: str) -> None:
    @long_look
    @given(batches(form))
    def holds(texts: list[str]) -> None:
        for text in texts:
            check(read("source", text=text, form=form))

    holds()


@long_look
@given(st.sampled_from(FORMATS).flatmap(batches), st.sampled_from(NAMES))
def test_a_sniffed_format_never_raises(texts: list[str], name: str) -> None:
    for text in texts:
        check(read(name, text=text))


@long_look
@given(byte_batches(), st.sampled_from(NAMES))
def test_bytes_never_raise(batch: list[bytes], name: str) -> None:
    for data in batch:
        check(read(name, text=data))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("beside")


@long_look
@given(
    scripts=batches("shell"),
    units=batches("systemd"),
    trees=batches("yaml"),
    form=st.sampled_from(("shell", "compose", "kubernetes", "systemd")),
)
def test_files_beside_a_source_never_raise(
    folder: Path, scripts: list[str], units: list[str], trees: list[str], form: str
) -> None:
    for script, unit, tree in zip(scripts, units, trees, strict=True):
        for name, text in (("a.sh", script), ("b.env", unit), (".env", unit), ("c.yaml", tree)):
            (folder / name).write_text(text, "utf-8", "surrogatepass")
        text = {"shell": script, "systemd": unit}.get(form, tree)
        check(read(str(folder / "source"), text=text, form=form))


@long_look
@given(batches("command"))
def test_a_launch_command_never_raises(words: list[str]) -> None:
    check(read_command(words))
    check(read_command(["sglang", "serve", *words]))
