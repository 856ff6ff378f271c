"""What readers give is what the field's own readers give: json, ruamel.yaml, tomllib, repr, shlex, argparse."""

from __future__ import annotations

import argparse
import json
import shlex
import sys
from io import StringIO
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError
from ruamel.yaml.scalarstring import (
    DoubleQuotedScalarString,
    FoldedScalarString,
    LiteralScalarString,
    SingleQuotedScalarString,
)

from hicache_config.arguments.releases import table
from hicache_config.sources import read, read_command
from hicache_config.sources.json_tree import read_json
from hicache_config.sources.python_repr import ReprReader
from hicache_config.sources.text import Lines
from hicache_config.sources.toml_tree import read_toml
from hicache_config.sources.tree import Mapping, Node, Scalar, Sequence, plain
from hicache_config.sources.yaml_tree import read_yaml

from .shown import cut

_TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
_NUMBERS = st.one_of(st.integers(), st.floats(allow_nan=False, allow_infinity=False))
_SCALARS = st.one_of(st.none(), st.booleans(), _NUMBERS, _TEXT)


def values(scalars: st.SearchStrategy[Any] = _SCALARS) -> st.SearchStrategy[Any]:
    return st.recursive(
        scalars,
        lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(_TEXT, inner, max_size=4)),
        max_leaves=12,
    )


def scalars_of(node: Node) -> list[Scalar]:
    if isinstance(node, Scalar):
        return [node]
    inner = node.items if isinstance(node, Sequence) else [entry.value for entry in node.entries]
    return [scalar for each in inner for scalar in scalars_of(each)]


@given(values(), st.sampled_from([None, 1, 3]), st.booleans())
def test_json_reads_as_the_standard_library_does(value: Any, indent: int | None, ascii_only: bool) -> None:
    text = json.dumps(value, indent=indent, ensure_ascii=ascii_only)
    node, notes = read_json(text)
    assert node is not None
    assert notes == []
    assert repr(plain(node)) == repr(json.loads(text))


@given(values(), st.booleans())
def test_a_place_in_json_holds_its_value_as_it_is_written(value: Any, ascii_only: bool) -> None:
    text = json.dumps({"a": value}, indent=2, ensure_ascii=ascii_only)
    node, _ = read_json(text)
    assert node is not None
    for scalar in scalars_of(node):
        assert json.loads(text[scalar.start : scalar.end]) == scalar.value


@given(_TEXT, st.booleans())
def test_each_character_of_a_json_text_is_traced_to_where_it_is_written(value: str, ascii_only: bool) -> None:
    text = json.dumps(value, ensure_ascii=ascii_only)
    node, _ = read_json(text)
    assert isinstance(node, Scalar)
    traced = node.traced(text)
    assert traced.text == value
    ends = [*traced.starts, len(text) - 1][1:]
    assert [json.loads(f'"{text[start:end]}"') for start, end in zip(traced.starts, ends, strict=True)] == list(value)


_YAML_NUMBERS = st.one_of(st.integers(), st.floats(-1e6, 1e6))


@given(
    values(st.one_of(st.none(), st.booleans(), _YAML_NUMBERS, st.text("abc: -#'\"\n{}[]é", max_size=8))), st.booleans()
)
def test_yaml_reads_as_ruamel_does(value: Any, flow: bool) -> None:
    yaml = YAML(typ="safe", pure=True)
    yaml.default_flow_style = flow
    out = StringIO()
    yaml.dump(value, out)
    try:
        expected = YAML(typ="safe", pure=True).load(out.getvalue())
    except YAMLError:
        assume(False)  # it does not read back all that it writes: {:0: null}
    trees, notes = read_yaml(out.getvalue(), Lines(out.getvalue()))
    assert notes == []
    assert [_text_keys(plain(tree)) for tree in trees] == [_text_keys(expected)]


def _text_keys(value: Any) -> Any:
    """Keys as text: a key that looks like a number is text for us."""
    if isinstance(value, dict):
        return {str(key): _text_keys(inner) for key, inner in value.items()}
    return [_text_keys(inner) for inner in value] if isinstance(value, list) else value


@given(st.text("ab \n'\"\\é😀:", max_size=20), st.sampled_from(["'", '"', "|", ">"]))
def test_each_character_of_a_yaml_text_is_traced_to_where_it_is_written(value: str, style: str) -> None:
    kinds = {
        "'": SingleQuotedScalarString,
        '"': DoubleQuotedScalarString,
        "|": LiteralScalarString,
        ">": FoldedScalarString,
    }
    out = StringIO()
    YAML().dump({"a": {"b": kinds[style](value)}}, out)
    text = out.getvalue()
    (tree,), _ = read_yaml(text, Lines(text))
    assert isinstance(tree, Mapping)
    node = tree.at("a", "b")
    assert isinstance(node, Scalar)
    traced = node.traced(text)
    assert traced.text == node.value
    assert list(traced.starts) == sorted(traced.starts)
    for char, start in zip(traced.text, traced.starts, strict=True):
        assert char.isspace() or text[start] in (char, "\\")


@pytest.mark.skipif(sys.version_info < (3, 11), reason="tomllib is new in 3.11")
@given(st.dictionaries(_TEXT, values(st.one_of(st.booleans(), st.integers(-(2**63), 2**63 - 1), _TEXT)), max_size=4))
def test_toml_reads_as_the_standard_library_does(value: dict[str, Any]) -> None:
    import tomllib

    text = "".join(f"{_toml(key)} = {_toml(inner)}\n" for key, inner in value.items())
    node, notes = read_toml(text, Lines(text))
    assert node is not None
    assert notes == []
    assert plain(node) == tomllib.loads(text) == value


def _toml(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_toml(key)} = {_toml(inner)}" for key, inner in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",\n ".join(map(_toml, value)) + "]"
    if isinstance(value, str):
        return (
            json.dumps(value).replace("\x7f", "\\u007f")
            if value.isascii()
            else '"' + "".join(map(_toml_char, value)) + '"'
        )
    return json.dumps(value)


def _toml_char(char: str) -> str:
    return f"\\U{ord(char):08x}" if not char.isprintable() or char in '"\\' else char


@pytest.mark.skipif(sys.version_info < (3, 11), reason="tomllib is new in 3.11")
@given(
    st.lists(
        st.sampled_from(["[a]\n", "[[b]]\n", "[a.c]\n", "[b.d]\n", "x = 1\n", "y.z = 'q'\n", "[e]\n", "f = {g = 1}\n"]),
        max_size=8,
    )
)
def test_toml_tables_are_those_of_the_standard_library(parts: list[str]) -> None:
    import tomllib

    text = "".join(parts)
    try:
        expected = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        assume(False)
    node, notes = read_toml(text, Lines(text))
    assert node is not None
    assert notes == []
    assert plain(node) == expected


_PRINTED = st.recursive(
    st.one_of(st.none(), st.booleans(), _NUMBERS, _TEXT),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.lists(inner, max_size=3).map(tuple), st.dictionaries(_TEXT, inner, max_size=3)
    ),
    max_leaves=8,
)
_NAMES = st.text("abcdefghij_", min_size=1, max_size=8)


@given(st.dictionaries(_NAMES, _PRINTED, max_size=5))
def test_what_python_prints_is_read_back(arguments: dict[str, Any]) -> None:
    for text in (
        "ServerArgs(" + ", ".join(f"{key}={value!r}" for key, value in arguments.items()) + ")",
        repr(arguments),
    ):
        reader = ReprReader(text)
        assert reader.record(0) == len(text)
        assert {entry.key: plain(entry.value) for entry in reader.entries} == json.loads(json.dumps(arguments))


@given(st.dictionaries(_NAMES, _PRINTED, min_size=1, max_size=5), st.integers(0))
def test_of_printed_arguments_that_are_cut_off_only_whole_ones_are_read(arguments: dict[str, Any], cut_at: int) -> None:
    line = "server_args=ServerArgs(" + ", ".join(f"{key}={value!r}" for key, value in arguments.items()) + ")"
    document = read("x.log", text=line[: len("server_args=ServerArgs(") + cut_at % len(line)])
    whole = json.loads(json.dumps(arguments))
    for given_ in document.engines[0].given:
        assert whole[given_.key] == given_.value


# --- shell and command line ----------------------------------------------------------------------------------------

_WORDS = st.text(st.characters(exclude_categories=["Cs", "Cc", "Zl", "Zp"]), min_size=1, max_size=8).filter(
    lambda word: not word.startswith(("-", "\u2010", "\u2011", "\u2012", "\u2013", "\u2014", "\u2015", "\u2212"))
)


@given(_WORDS, st.sampled_from([" ", " \\\n  ", "="]))
def test_a_quoted_word_of_a_script_is_the_word(word: str, between: str) -> None:
    assume("sglang" not in word)
    script = f"sglang serve --tp 2 --served-model-name{between}{shlex.quote(word)}\n"
    document = read("x.sh", text=script)
    given_ = document.engines[0].given[1]
    assert given_.value == word
    assert given_.value_place is not None
    assert shlex.split(cut(document.text, given_.value_place)) == [word]


@given(_WORDS)
def test_a_script_within_a_script_keeps_places(word: str) -> None:
    assume("sglang" not in word and "'" not in word)
    inner = f"exec sglang serve --tp 2 --served-model-name {shlex.quote(word)}"
    text = json.dumps(
        {"kind": "Pod", "containers": [{"command": ["sh", "-c"], "args": [inner]}]}, indent=1, ensure_ascii=False
    )
    document = read("x.json", text=text)
    assert document.format == "kubernetes"
    given_ = document.engines[0].given[1]
    assert given_.value == word
    assert given_.key_place is not None
    assert cut(document.text, given_.key_place) == "--served-model-name"


def _argparse(release: str) -> argparse.ArgumentParser:
    """A parser with a release's flags, all values left as text."""
    parser = argparse.ArgumentParser(add_help=False, exit_on_error=False)
    for argument in table(release).values():
        if not argument.flags or "-h" in argument.flags:
            continue
        settings: dict[str, Any] = {"dest": argument.name}
        if argument.action == "BooleanOptionalAction":
            settings["action"] = argparse.BooleanOptionalAction
        elif argument.kind == "flag":
            settings["action"] = "store_true"
        elif argument.nargs is not None:
            settings |= {"nargs": argument.nargs, "const": argument.const if argument.nargs == "?" else None}
        parser.add_argument(*argument.flags, **settings)
    return parser


class _RefusedError(Exception):
    pass


_PARSER = _argparse("0.5.23")
_PIECES = st.sampled_from(
    ["--tp", "--tp-size", "--hicache-size", "--hicache-si", "--hicache-size=3", "--hicache-ratio=", "--enable-hierarchical-cache", "-1",
     "--enable-hierarchical-cache=1", "-x", "-1.5", "100", "a b", "--hicache-size 3", "", "-", "--cuda-graph-bs", "--lora-paths", "a=b",
     "--model-checksum", "--no-lora-strict-loading", "--lora-strict-loading", "{\"a\": 1}", "--model-path", "--dist-init-addr", "--log-level-h"]
)  # fmt: skip


@given(st.lists(_PIECES, max_size=7))
def test_a_command_line_is_read_as_argparse_reads_it(words: list[str]) -> None:
    document = read_command(["python", "-m", "sglang.launch_server", *words])
    (engine,) = document.engines
    errors = [noted for noted in engine.notes if noted.finding.severity == "error"]

    def refuse(message: str) -> None:
        raise _RefusedError(message)

    _PARSER.error = refuse  # type: ignore[method-assign,assignment]
    from hicache_config.arguments.names import find

    try:
        expected = vars(_PARSER.parse_args(words))
    except (_RefusedError, argparse.ArgumentError):
        unknown = [given_ for given_ in engine.given if find(given_.key, "0.5.23") is None]
        misused = [given_ for given_ in engine.given if given_.key.startswith("--enable-hierarchical") and given_.value]
        assert errors or unknown or misused
        return
    assert errors == []
    got: dict[str, Any] = {}
    for given_ in engine.given:
        named = find(given_.key, "0.5.23")
        assert named is not None
        assert named.argument is not None
        value = given_.value
        if named.argument.kind == "flag":
            value = not named.is_negated
        got[named.argument.name] = value
    given_by_argparse = {
        name: value for name, value in expected.items() if value is not None and (value is not False or name in got)
    }
    assert got == given_by_argparse
