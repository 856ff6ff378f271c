"""A file of `--config` becomes the words that SGLang's own merger makes of it, recorded by merging.py."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hicache_config.sources.config_file import ConfigFile
from hicache_config.sources.folder import Folder
from hicache_config.sources.text import Lines, Traced

RECORDED = sorted((Path(__file__).parents[1] / "recorded").glob("merging-*.jsonl"))


def cases(path: Path) -> list[dict[str, Any]]:
    header, *lines = map(json.loads, path.read_text("utf-8").splitlines())
    assert f"merging-{header['sglang']}.jsonl" == path.name
    return lines


def read(text: str, folder: Path, release: str) -> ConfigFile:
    (folder / "server.yaml").write_text(text, "utf-8")
    command = "--config server.yaml --port 1"
    words = [Traced.of(word, command.index(word)) for word in command.split()]
    return ConfigFile(words, Lines(command, folder=Folder(folder)), release)


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.stem)
def test_the_words_are_those_of_the_real_merger(path: Path, tmp_path: Path) -> None:
    release = path.stem.partition("-")[2]
    wrong = []
    for case in cases(path):
        found = read(case["text"], tmp_path, release)
        words = [word.text for word in found.before]
        refused = any(noted.finding.severity == "error" for noted in found.notes)
        same = refused if "refused" in case else words == case["words"]
        # What is there twice is an error here, and NaN or infinity too; SGLang takes the last one.
        if not same and not (refused and found.notes[0].finding.code in ("HC003", "HC004")):
            wrong.append((case, words, [noted.finding.message for noted in found.notes]))
    assert not wrong, "\n".join(map(str, wrong))


def test_every_word_of_a_file_keeps_its_place(tmp_path: Path) -> None:
    text = "tp-size: 8\nhicache-ratio: 1.50\nhicache-mem-layout: 'page_first'\n"
    found = read(text, tmp_path, "0.5.23")
    places = [found.lines.place(word.begin, word.end) for word in found.before]
    assert {place.file for place in places} == {(tmp_path / "server.yaml").as_posix()}
    written = [text.splitlines()[place.line - 1][place.column - 1 : place.end_column - 1] for place in places]
    assert written == ["tp-size", "8", "hicache-ratio", "1.50", "hicache-mem-layout", "'page_first'"]
