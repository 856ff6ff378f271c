"""Bad sources of every kind give one clear finding, no engine, no traceback, and neither hang nor fill the memory."""

from __future__ import annotations

import io
import os
import sys
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest

from hicache_config.sources import Document, read, read_all, read_command
from hicache_config.sources.files import LARGEST

from .hostile import check
from .looking import codes


def refused(document: Document, code: str, *words: str) -> None:
    """The document has no engine and one note, of this code, with these words in its message."""
    check(document)
    assert document.is_broken
    assert codes(document) == [code]
    message = document.notes[0].finding.message
    assert all(word in message for word in words), message
    assert document.notes[0].finding.help


@pytest.mark.parametrize("name", ["x.json", "x.yaml", "x.toml", "x.sh", "x.log", "Dockerfile", "x"])
@pytest.mark.parametrize("text", ["", " \n\t\n", "\ufeff"])
def test_an_empty_source(name: str, text: str) -> None:
    refused(read(name, text=text), "HC007", "empty")


@pytest.mark.parametrize("name", ["x.json", "x.yaml", "x.toml", "x.sh", "x.log", "Dockerfile", "x"])
def test_a_binary_source(name: str) -> None:
    refused(read(name, text=b"\x7fELF\x02\x01\0\0\0" + bytes(range(256))), "HC006", "binary")


def test_bytes_that_are_no_utf_8_are_named_at_their_place() -> None:
    document = read("x.json", text=b'{\r\n  "\xc3\xa4": "\xff"}')
    refused(document, "HC006", "0xff", "UTF-8")
    place = document.notes[0].place
    assert place is not None
    assert (place.line, place.column) == (2, 9)


def test_a_log_is_read_in_spite_of_broken_bytes() -> None:
    document = read("x.log", text=b"caf\xe9\nserver_args=ServerArgs(hicache_size=3)\n")
    assert codes(document) == ["HC006"]
    assert [given.value for given in document.engines[0].given] == [3]


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
@pytest.mark.parametrize("ends", ["\n", "\r\n", "\r"])
def test_marks_and_line_ends_do_not_move_places(encoding: str, ends: str) -> None:
    text = ends.join(["{", ' "tp_size": 2,', ' "hicache_size": 7}'])
    document = read("x.json", text=text.encode(encoding))
    given = document.engines[0].given[1]
    assert given.value == 7
    assert given.place is not None
    assert (given.place.line, given.place.column, given.place.end_line, given.place.end_column) == (3, 2, 3, 19)


@pytest.mark.parametrize("ends", ["\r\n", "\r"])
def test_line_ends_of_windows_do_not_break_a_script(ends: str) -> None:
    document = read("x.sh", text=ends.join(["sglang serve --tp 2 \\", "  --hicache-size 7", ""]))
    assert [(given.key, given.value) for given in document.engines[0].given] == [("--tp", "2"), ("--hicache-size", "7")]
    assert codes(document) == []


DEEP: dict[str, Callable[[int], str]] = {
    "x.json": lambda depth: "[" * depth + "]" * depth,
    "y.json": lambda depth: '{"a":' * depth + "1" + "}" * depth,
    "x.yaml": lambda depth: "a: " + "[" * depth + "]" * depth,
    "block.yaml": lambda depth: "".join(f"{' ' * level}a:\n" for level in range(depth)),
    "dashes.yaml": lambda depth: "- " * depth + "x",
    "x.toml": lambda depth: "a = " + "[" * depth + "]" * depth,
    "keys.toml": lambda depth: ".".join("a" * depth) + " = 1",
}


@pytest.mark.parametrize("name", DEEP)
@pytest.mark.parametrize("depth", [150, 20_000])
def test_deep_nesting_is_refused(name: str, depth: int) -> None:
    depth = min(depth, 500) if name == "block.yaml" else depth
    document = read(name, text=DEEP[name](depth))
    check(document)
    assert document.is_broken
    assert codes(document)[0] in ("HC005", "HC002")


def test_deep_nesting_in_a_log_ends_the_arguments() -> None:
    document = read("x.log", text="server_args=ServerArgs(hicache_size=1, a=" + "[" * 50_000)
    assert codes(document) == ["HC019"]
    assert [given.value for given in document.engines[0].given] == [1]


def test_deep_nesting_in_a_script_is_not_followed() -> None:
    text = "sglang serve --hicache-size " + "${A:-" * 5_000 + "1" + "}" * 5_000
    document = read("x.sh", text=text)
    check(document)
    assert document.engines[0].given == ()


def test_an_alias_bomb_is_refused() -> None:
    rows = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    rows += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 10)]
    refused(read("x.yaml", text="\n".join(rows)), "HC005", "aliases")


def test_an_alias_that_holds_itself_is_refused() -> None:
    document = read("x.yaml", text="a: &a\n  b: *a\n")
    assert document.is_broken
    check(document)


def test_a_script_that_doubles_its_variables_stays_small() -> None:
    text = "A=xxxxxxxxxx\n" + "A=$A$A\n" * 60 + 'B=("$A" "$A")\n' + 'B+=("${B[@]}" "${B[@]}")\n' * 40
    document = read("x.sh", text=text + 'sglang serve --hicache-size $A --tp "${B[@]}" --pp-size 2\n')
    check(document)
    assert [given.key for given in document.engines[0].given][-1:] == ["--pp-size"]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("x.service", "[Service]\nEnvironment=A={a}\nExecStart=sglang serve --tp {b} --pp-size 2\n"),
        ("compose.yaml", "services:\n  a:\n    command: sglang serve --tp {b} --pp-size 2\n"),
        ("pod.yaml", "kind: Pod\nenv: {{A: {a}}}\nargs: [sglang, serve, --tp, {b}, --pp-size, '2']\n"),
    ],
)
def test_a_long_value_put_in_many_times_is_not_followed(name: str, text: str, tmp_path: Path) -> None:
    reference = "$(A)" if name.startswith("pod") else "${A}"
    long = "a" * 60_000
    (tmp_path / ".env").write_text(f"A={long}\n")
    content = text.format(a=long, b=reference * 5_000)
    (engine,) = read(str(tmp_path / name), text=content).engines
    assert engine.not_known == ("--tp",)
    assert engine.given[-1].key == "--pp-size"


@pytest.mark.parametrize(
    "lines",
    [
        "x = x + x\n" * 2_000,
        "x = f'{x}{x}'\n" * 2_000,
        "y = y + y\n" * 2_000,
        "y += y\n" * 2_000,
    ],
)
def test_a_program_that_doubles_its_values_ends(lines: str) -> None:
    text = f"import sglang\nx = 'sglang serve '\ny = ['sglang', 'serve', '--tp', '2']\n{lines}"
    document = read("x.py", text=text)
    assert "HC005" in codes(document)
    assert document.notes[-1].finding.message == "only the first part of this program is looked at"


def test_a_hundred_megabytes_are_refused_in_little_memory(tmp_path: Path) -> None:
    path = tmp_path / "large.json"
    with path.open("wb") as file:
        file.truncate(100 * 2**20)
    tracemalloc.start()
    document = read(str(path))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    refused(document, "HC005", "larger than 16 MiB")
    assert peak < 3 * LARGEST


def test_of_a_large_log_the_beginning_is_read() -> None:
    text = "[2026-01-01 00:00:00] server_args=ServerArgs(hicache_size=5)\n" + "x" * 99 + "\n"
    document = read("x.log", text=(text + ("x" * 999 + "\n") * (LARGEST // 1000 + 1)).encode())
    assert codes(document) == ["HC005"]
    assert document.notes[0].finding.severity == "note"
    assert [given.value for given in document.engines[0].given] == [5]


@pytest.mark.parametrize("form", ["json", "yaml", "toml", "shell", "command", "dockerfile"])
def test_more_text_than_a_format_is_read_of(form: str) -> None:
    refused(read("x", text="a" * 4_100_000, form=form), "HC005", "characters")


def test_a_source_that_is_not_there(tmp_path: Path) -> None:
    refused(read(str(tmp_path / "nothing.json")), "HC001", "is not there")


def test_a_dangling_link(tmp_path: Path) -> None:
    link = tmp_path / "link.json"
    link.symlink_to(tmp_path / "nothing.json")
    refused(read(str(link)), "HC001", "link")


def test_a_link_that_points_at_itself(tmp_path: Path) -> None:
    link = tmp_path / "link.json"
    link.symlink_to(link)
    refused(read(str(link)), "HC001")


@pytest.mark.parametrize("name", ["a\0b", "x" * 5_000, ""])
def test_a_name_that_no_file_can_have(name: str) -> None:
    (document,) = read_all([name])
    refused(document, "HC001")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_without_permission(tmp_path: Path) -> None:
    path = tmp_path / "secret.json"
    path.write_text("{}")
    path.chmod(0)
    refused(read(str(path)), "HC001", "may not be read")


def test_a_file_that_the_system_refuses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "secret.json"
    path.write_text("{}")

    def refuse(self: Path, *_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied", str(self))

    monkeypatch.setattr(Path, "open", refuse)
    refused(read(str(path)), "HC001", "may not be read")


def test_a_folder_given_as_a_file(tmp_path: Path) -> None:
    refused(read(str(tmp_path)), "HC001", "is a folder")


def test_an_empty_folder(tmp_path: Path) -> None:
    (document,) = read_all([str(tmp_path)])
    refused(document, "HC007", "folder")


def test_a_folder_that_may_not_be_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: str) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(os, "scandir", refuse)
    (document,) = read_all([str(tmp_path)])
    refused(document, "HC001", "may not be read")


def test_a_folder_is_walked_in_order_without_bystanders(tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    (tmp_path / ".git").mkdir()
    (tmp_path / "b" / "launch.sh").write_text("sglang serve --hicache-size 2\n")
    (tmp_path / "a.json").write_text('{"hicache_size": 1}')
    (tmp_path / "package.json").write_text('{"name": "x", "scripts": {"build": "y"}}')
    (tmp_path / "broken.json").write_text("{")
    (tmp_path / "setup.sh").write_text("apt-get update\n")
    (tmp_path / "picture.png").write_bytes(b"\x89PNG\0")
    (tmp_path / ".git" / "c.json").write_text('{"hicache_size": 3}')
    (tmp_path / "gone.json").symlink_to(tmp_path / "nowhere")
    (tmp_path / "round").symlink_to(tmp_path)
    os.mkfifo(tmp_path / "pipe.json")
    documents = list(read_all([str(tmp_path)]))
    names = [str(Path(document.source).relative_to(tmp_path)) for document in documents]
    assert names == ["a.json", "broken.json", "gone.json", "b/launch.sh"]
    assert [codes(document) for document in documents] == [[], ["HC002"], ["HC001"], []]


class Closing(io.RawIOBase):
    """A pipe that breaks while it is read."""

    def read(self, size: int = -1) -> bytes:
        raise OSError(5, "Input/output error")


def test_a_pipe_that_breaks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", type("Broken", (), {"buffer": Closing()})())
    refused(read("-"), "HC001", "standard input")


def test_standard_input_that_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    refused(read("-"), "HC001", "closed")


def test_standard_input_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", type("Given", (), {"buffer": io.BytesIO(b"hicache_size: 3")})())
    (document,) = read_all(["-"])
    assert (document.source, document.format) == ("-", "yaml")
    assert document.engines[0].given[0].value == 3


def test_an_unknown_format_is_wrong_usage() -> None:
    with pytest.raises(ValueError, match="no format"):
        read("x", text="{}", form="xml")


@pytest.mark.parametrize("words", [[], [""], ["ls", "-l"], ["sglang"], ["python", "-m", "vllm.serve", "--tp", "2"]])
def test_a_command_that_starts_no_server(words: list[str]) -> None:
    refused(read_command(words), "HC007")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("x.json", '{"detail": "Not Found"}'),
        ("x.json", "[]"),
        ("x.json", "3"),
        ("x.yaml", "just some words"),
        ("x.yaml", "apiVersion: v1\nkind: Service\nmetadata: {name: x}\n"),
        ("x.yaml", "services:\n  db: {image: postgres}\n"),
        ("x.yaml", "containers:\n- args: [--tensor-parallel-size, '2']\n"),
        ("x.sh", "echo 'sglang serve --tp 2'\npkill -f sglang.launch_server\n"),
        ("x.log", "nothing happened\n"),
        ("Dockerfile", 'FROM x\nCMD ["nginx"]\n'),
    ],
)
def test_a_source_without_an_engine(name: str, text: str) -> None:
    document = read(name, text=text)
    check(document)
    assert document.is_broken
    assert codes(document) == ["HC007"]


@pytest.mark.parametrize(
    ("name", "text", "line", "column"),
    [
        ("x.json", '{\n "a" 1}', 2, 6),
        ("x.json", '{"a": tru}', 1, 7),
        ("x.json", '{"a": "b\nc"}', 1, 9),
        ("x.json", '{"a": "\\x"}', 1, 8),
        ("x.json", '{"a": 1} 2', 1, 10),
        ("x.json", '{"a": 01}', 1, 7),
        ("x.yaml", "a: [1, 2\nb: 3\n", 2, 2),
        ("x.yaml", "a:\n\tb: 1\n", 2, 1),
        ("x.yaml", 'a: "\\q"\n', 1, 6),
        ("x.toml", "a = \n", 1, 5),
        ("x.toml", "a = 1\nb = yes\n", 2, 5),
        ("x.toml", "[a\n", 1, 3),
    ],
)
def test_a_syntax_error_is_named_at_its_place(name: str, text: str, line: int, column: int) -> None:
    document = read(name, text=text)
    check(document)
    assert document.is_broken
    assert codes(document)[0] == "HC002"
    place = document.notes[0].place
    assert place is not None
    assert (place.line, place.column) == (line, column)
