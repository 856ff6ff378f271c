"""Small facts of formats, command lines and files of arguments, as tables."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hicache_config.sources import read, read_all, read_command
from hicache_config.sources.jsonfile import read_json_file
from hicache_config.sources.sniff import sniff

from .looking import codes, given_of
from .shown import cut

# --- formats ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "text", "form"),
    [
        ("a.json", "{}", "json"),
        ("a.txt", ' {"a": 1}', "json"),
        ("-", "[1]", "json"),
        ("-", "server_args=ServerArgs(", "log"),
        ("a.yml", "a", "yaml"),
        ("-", "# note\nhicache-size: 3\n", "yaml"),
        ("-", "- op: add\n", "yaml"),
        ("-", "#!/usr/bin/env bash\nls\n", "shell"),
        ("run", "python -m sglang.launch_server --tp 2", "shell"),
        ("-", "# note\nFROM x\nCMD y\n", "dockerfile"),
        ("Dockerfile.gpu", "", "dockerfile"),
        ("prod.Dockerfile", "", "dockerfile"),
        ("-", "[prefill]\nhicache_size = 1\n", "toml"),
        ("-", "hicache_size = 1\n", "toml"),
        ("-", "--tp 2", "command"),
        ("-", "some words", "shell"),
        ("-", "words\nkey: value", "yaml"),
    ],
)
def test_the_format_is_told_by_name_and_content(name: str, text: str, form: str) -> None:
    assert sniff(name, text) == form


# --- command line -----------------------------------------------------------------------------------------------------


def test_places_of_a_command_line_count_in_its_words_joined() -> None:
    document = read_command(["sglang", "serve", "--tp", "8", "--hicache-size=100"])
    assert document.source == "command line"
    assert document.text == "sglang serve --tp 8 --hicache-size=100"
    tp, size = document.engines[0].given
    assert [
        cut(document.text, place) for place in (tp.place, size.place, size.key_place, size.value_place) if place
    ] == [
        "--tp 8",
        "--hicache-size=100",
        "--hicache-size",
        "100",
    ]


def test_flags_alone_are_a_command_line() -> None:
    assert given_of(read_command(["--host", "::", "--enable-hicache"])) == {"--host": "::", "--enable-hicache": ""}


def test_a_flag_of_several_values_takes_them_all() -> None:
    words = ["--bucket-inter-token-latency", "1", "2", "4", "--tp", "2"]
    assert given_of(read_command(words, release="0.5.20")) == {
        "--bucket-inter-token-latency": ["1", "2", "4"],
        "--tp": "2",
    }


@pytest.mark.parametrize(("release", "is_model"), [("0.5.15", False), ("0.5.16", True), ("0.5.23", True)])
def test_the_first_word_is_the_model_since_0_5_16(release: str, is_model: bool) -> None:
    document = read_command(["sglang", "serve", "/models/a", "--tp", "2"], release=release)
    assert given_of(document) == {**({"--model-path": "/models/a"} if is_model else {}), "--tp": "2"}
    assert codes(document) == ([] if is_model else ["HC016"])


def test_what_stands_behind_two_dashes_belongs_to_nothing() -> None:
    document = read_command(["sglang", "serve", "--tp", "2", "--", "--pp", "2"])
    assert given_of(document) == {"--tp": "2"}
    assert codes(document) == ["HC016", "HC016"]


def test_a_config_file_is_said_not_to_be_read() -> None:
    document = read_command(["sglang", "serve", "--config", "server.yaml", "--tp", "2"])
    assert codes(document) == ["HC009"]
    assert document.engines[0].notes[0].finding.severity == "note"


# --- files of arguments -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("release", "codes_"), [("0.5.13", ["HC013"]), ("0.5.14", [])])
def test_a_mapping_is_broken_by_sglang_until_0_5_13(release: str, codes_: list[str]) -> None:
    text = "hicache-storage-backend-extra-config: {prefetch_threshold: 256}\n"
    assert codes(read("x.yaml", text=text, release=release)) == codes_


@pytest.mark.parametrize(
    "line",
    [
        "lora-strict-loading: true",
        "hicache-size: true",
        "bucket-inter-token-latency: [[1], [2]]",
        "hicache-size: 1:30",
        "enable-metrics: yes",
    ],
)
def test_other_values_that_sglang_breaks(line: str) -> None:
    assert codes(read("x.yaml", text=line, release="0.5.20")) == ["HC013"]


@pytest.mark.parametrize(
    "line",
    ['hicache-write-policy: "on"', "bucket-inter-token-latency: [1, 2]", "enable-metrics: true", "hicache-size: 10"],
)
def test_values_that_sglang_reads_as_they_are(line: str) -> None:
    assert codes(read("x.yaml", text=line, release="0.5.20")) == []


@pytest.mark.parametrize("wrapper", ["server_args", "info", "args", "server_info"])
def test_arguments_in_a_wrapper(wrapper: str) -> None:
    value = [
        {"name": "one", wrapper: {"hicache_size": 1}, "env": {"A": "1"}},
        {"name": "two", wrapper: {"hicache_size": 2}},
    ]
    document = read("x.json", text=json.dumps(value))
    assert [(engine.name, engine.environment) for engine in document.engines] == [("one", {"A": "1"}), ("two", {})]
    assert [given_of(document, number) for number in (0, 1)] == [{"hicache_size": 1}, {"hicache_size": 2}]


def test_one_wrapper_around_a_list() -> None:
    document = read("x.json", text='{"server_args": [{"tp_size": 1}, {"tp_size": 2}]}')
    assert [engine.name for engine in document.engines] == ["engine-1", "engine-2"]


def test_a_key_that_no_release_knows_is_still_handed_on() -> None:
    assert given_of(read("x.json", text='{"hicache_sise": 3}')) == {"hicache_sise": 3}


def test_a_mapping_without_keys_is_an_engine_with_defaults() -> None:
    document = read("x.json", text="{}")
    assert [engine.given for engine in document.engines] == [()]


def test_several_documents_of_a_yaml_file_are_several_engines() -> None:
    document = read("x.yaml", text="hicache-size: 1\n---\nhicache-size: 2\n")
    assert [given_of(document, number)["hicache-size"] for number in (0, 1)] == [1, 2]


def test_an_anchor_may_be_defined_twice() -> None:
    document = read("x.yaml", text="hicache-size: &a 1\npp-size: &a 2\ntp-size: *a\n")
    assert given_of(document) == {"hicache-size": 1, "pp-size": 2, "tp-size": 2}


@pytest.mark.parametrize(("text", "engines"), [("[" + '{"tp_size": 2},' * 1500 + '{"tp_size": 1}]', 1000)])
def test_of_endless_engines_the_first_are_read(text: str, engines: int) -> None:
    document = read("x.json", text=text)
    assert len(document.engines) == engines
    assert codes(document) == ["HC005"]


@pytest.mark.parametrize("word", ["--tp 2 " * 5_000, "a " * 5_000])
def test_of_endless_words_the_first_are_read(word: str) -> None:
    document = read_command(["sglang", "serve", *word.split()])
    assert codes(document)[0] == "HC005"


def test_of_endless_trouble_the_first_is_named() -> None:
    document = read("x.json", text="{" + '"tp_size": NaN, ' * 500 + '"tp_size": 1}')
    assert len(document.notes) == 100
    assert given_of(document) == {"tp_size": 1}


def test_named_files_without_arguments_can_be_left_out(tmp_path: Path) -> None:
    other = tmp_path / "package.json"
    other.write_text('{"name": "x", "version": "1"}')
    assert list(read_all([str(other)], skip_unrelated=True)) == []


# --- JSON files that are no configuration -----------------------------------------------------------------------------


def test_a_json_file_with_places(tmp_path: Path) -> None:
    path = tmp_path / "pools.json"
    path.write_text('{"stages": [\n  {"pools": [], "pools": [1]}]}')
    read_ = read_json_file(str(path))
    assert read_.value == {"stages": [{"pools": [1]}]}
    assert [cut(read_.text, read_.places[pointer]) for pointer in ("/stages/0", "/stages/0/pools/0")] == [
        '{"pools": [], "pools": [1]}',
        "1",
    ]
    assert [noted.finding.code for noted in read_.notes] == ["HC003"]


@pytest.mark.parametrize(("text", "code"), [("{", "HC002"), (None, "HC001")])
def test_a_json_file_that_can_not_be_read(tmp_path: Path, text: str | None, code: str) -> None:
    path = tmp_path / "pools.json"
    if text is not None:
        path.write_text(text)
    read_ = read_json_file(str(path))
    assert read_.value is None
    assert [noted.finding.code for noted in read_.notes] == [code]


# --- arguments within a larger file -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "engines"),
    [
        ({"name": "x", "a": {"b": {"hicache_size": 1}}}, [{"hicache_size": 1}]),
        ({"a": [{"tp_size": 2, "pp_size": 2}, {"tp_size": 4}]}, [{"tp_size": 2, "pp_size": 2}, {"tp_size": 4}]),
        ({"model": {"hidden_size": 8}, "x": {"tp_size": 2, "pp_size": 3}}, [{"tp_size": 2, "pp_size": 3}]),
        ({"hicache_size": 1, "x": {"tp_size": 2, "pp_size": 3}}, None),
    ],
)
def test_arguments_are_found_where_they_stand(value: Any, engines: list[dict[str, Any]] | None) -> None:
    document = read("x.json", text=json.dumps(value))
    found = [given_of(document, number) for number in range(len(document.engines))]
    assert found == ([value] if engines is None else engines)
