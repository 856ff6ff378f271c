"""Small facts of the readers, as tables."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hicache_config.sources import Document, read, read_all, read_command
from hicache_config.sources.env_file import read_env_file
from hicache_config.sources.jsonfile import read_json_file
from hicache_config.sources.limits import LimitError, docker_bytes, kubernetes_bytes, slurm_bytes, systemd_bytes
from hicache_config.sources.manifest import compose_variables
from hicache_config.sources.sniff import sniff

from .shown import cut


def given_of(document: Document, engine: int = 0) -> dict[str, Any]:
    return {given.key: given.value for given in document.engines[engine].given}


def codes(document: Document) -> list[str]:
    notes = [*document.notes, *(noted for engine in document.engines for noted in engine.notes)]
    return [noted.finding.code for noted in notes]


# --- memory limits ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "amount"),
    [("64g", 64 * 2**30), ("64G", 64 * 2**30), ("1.5t", 3 * 2**39), ("512m", 2**29), ("1gb", 2**30), ("1GiB", 2**30), ("1024", 1024), ("8k", 8192), ("1b", 1)],
)  # fmt: skip
def test_docker_counts_in_powers_of_1024(text: str, amount: int) -> None:
    assert docker_bytes(text) == amount


@pytest.mark.parametrize(
    ("text", "amount"),
    [("64Gi", 64 * 2**30), ("64G", 64 * 10**9), ("1.5Ti", 3 * 2**39), ("100M", 10**8), ("1e9", 10**9), ("2E3", 2000), ("1E", 10**18), ("128974848", 128974848), ("1500m", 1), ("10k", 10**4), (".5Gi", 2**29)],
)  # fmt: skip
def test_kubernetes_has_both_powers(text: str, amount: int) -> None:
    assert kubernetes_bytes(text) == amount


@pytest.mark.parametrize("text", ["", "lots", "64 gigs", "-1g", "1g junk", "9" * 50, "0x10"])
def test_other_limits_are_refused(text: str) -> None:
    for reader in (docker_bytes, kubernetes_bytes):
        with pytest.raises(LimitError, match="expected"):
            reader(text)


# --- formats ------------------------------------------------------------------------------------------------------


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


# --- variables of a shell -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("before", "word", "value"),
    [
        ("A=5", "$A", "5"),
        ("A=5", "${A}", "5"),
        ("A=5", '"$A"', "5"),
        ("A=5", "'$A'", "$A"),
        ("A=5", "\\$A", "$A"),
        ("A=5", "${A}0", "50"),
        ("", "${A:-7}", "7"),
        ("A=", "${A:-7}", "7"),
        ("A=", "x${A-7}", "x"),
        ("B=8", "${A:-$B}", "8"),
        ("B=8", "${A:-${B:-9}}", "8"),
        ("", "${A:=7}", "7"),
        ("A=1", "${A:+yes}", "yes"),
        ("", "x${A:+yes}", "x"),
        ("A=5", "${A:?needed}", "5"),
        ("A=(1 2 3)", "${A[1]}", "2"),
        ("A=(1 2 3)", "$A", "1"),
        ("A=(1 2 3)", '"${A[*]}"', "1 2 3"),
        ("A=4; A+=5", "$A", "45"),
        ("declare -x A=5", "$A", "5"),
        ("A=$'5'", "$A", "5"),
        ("if true; then A=5; else A=5; fi", "$A", "5"),
        ('A=5\nif [ -n "$B" ]; then C=1; fi', "$A", "5"),
        ("", "${1:-6}", "6"),
        ("f() { local A=5; }", "$A", "5"),
    ],
)
def test_a_variable_with_a_value(before: str, word: str, value: str) -> None:
    document = read("x.sh", text=f"{before}\nsglang serve --tp {word} --pp 2\n")
    assert given_of(document) == {"--tp": value, "--pp": "2"}
    assert codes(document) == []


@pytest.mark.parametrize(
    ("before", "word", "code"),
    [
        ("", "$A", "HC008"),
        ("", "${A}", "HC008"),
        ("", "${A:?needed}", "HC008"),
        ("", "$1", "HC008"),
        ("", "x$A", "HC008"),
        ("A=(1)", "${A[3]}", "HC008"),
        ("A=$B", "$A", "HC008"),
        ("A=5", "${A%x}", "HC009"),
        ("A=5", "${#A}", "HC009"),
        ("A=5", "${!A}", "HC009"),
        ("A=5", "${A:0:1}", "HC009"),
        ("A=5", "$((A + 1))", "HC009"),
        ("", "$(nproc)", "HC009"),
        ("", "`nproc`", "HC009"),
        ("A=$(nproc)", "$A", "HC009"),
        ("if [ x ]; then A=1; fi", "$A", "HC009"),
        ("A=1\n[ -n x ] && A=2", "$A", "HC009"),
        ("A=1\ncase x in a) A=2 ;; esac", "$A", "HC009"),
        ("A=1\nwhile read x; do A=2; done", "$A", "HC009"),
    ],
)
def test_a_value_that_is_not_known_is_named_and_left_out(before: str, word: str, code: str) -> None:
    document = read("x.sh", text=f"{before}\nsglang serve --tp {word} --pp 2\n")
    assert given_of(document) == {"--pp": "2"}
    assert document.engines[0].not_known == ("--tp",)
    assert codes(document) == [code]
    place = document.engines[0].notes[0].place
    assert place is not None
    assert cut(document.text, place).strip('"') in word


@pytest.mark.parametrize(
    "script",
    [
        "nohup python3 -m sglang.launch_server --tp 2 > log 2>&1 &",
        "exec /opt/venv/bin/sglang serve --tp 2",
        "env A=1 sglang serve --tp 2 | tee log",
        "cd /srv && sglang serve --tp 2 || exit 1",
        "( sglang serve --tp 2 ) &",
        "torchrun --nproc_per_node 2 -m sglang.launch_server --tp 2",
        "numactl --membind=0 python -u -m sglang.launch_server --tp 2",
        "python /opt/sglang/launch_server.py --tp 2",
        "bash -lc 'sglang serve --tp 2'",
        'tmux new -d "sglang serve --tp 2"',
        "bash <<EOF\nsglang serve --tp 2\nEOF",
        "cat <<'X' | ssh host\nsglang serve --tp 2\nX",
        'CMD="sglang serve --tp 2"\n$CMD',
        'CMD="sglang serve --tp 2"\neval "$CMD"',
        "CMD=(sglang serve)\nCMD+=(--tp 2)\n\"${CMD[@]}\"",
        "serve() {\n  sglang serve --tp 2\n}",
        "# sglang serve --tp 9\nsglang serve --tp 2 # --tp 9",
        "user@host:~/x$ sglang serve --tp 2",
    ],
)  # fmt: skip
def test_a_server_is_found_however_it_is_started(script: str) -> None:
    document = read("x.sh", text=script)
    assert [given_of(document, number) for number in range(len(document.engines))] == [{"--tp": "2"}]


def test_a_script_sees_only_what_is_exported() -> None:
    text = "A=1\nexport B=2\nbash -c 'sglang serve --tp $B --pp $A'\n"
    document = read("x.sh", text=text)
    assert given_of(document) == {"--tp": "2"}
    assert document.engines[0].environment == {"B": "2"}


# --- command line -------------------------------------------------------------------------------------------------


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


# --- files of arguments -------------------------------------------------------------------------------------------


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


# --- JSON files that are no configuration --------------------------------------------------------------------------


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


# --- shell: files, loops, texts of commands ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "script",
    [
        "sglang serve --tp 2 \ncat <<EOF\nkind: Pod\nargs: [sglang, serve]\nEOF\n--pp-size 2\n",
        "sglang serve --tp 2\nsource gone.sh\n--pp-size 2\n",
    ],
)
def test_flags_behind_something_else_belong_to_no_server(script: str) -> None:
    document = read("x.sh", text=script)
    assert given_of(document) == {"--tp": "2"}


@pytest.mark.parametrize(
    "loop",
    [
        "while [[ $# -gt 0 ]]; do case $1 in --tp) A=$2 ;; esac; shift; done",
        'while getopts "t:" opt; do A=$OPTARG; done',
        'for word in "$@"; do A=$word; done',
        "while (( $# )); do A=$1; shift; done",
    ],
)
def test_a_loop_over_the_words_of_the_script_leaves_its_defaults(loop: str) -> None:
    document = read("x.sh", text=f"A=4\n{loop}\nsglang serve --tp $A\n")
    assert given_of(document) == {"--tp": "4"}
    assert codes(document) == []


@pytest.mark.parametrize(
    ("more", "known"),
    [
        ('CMD="$CMD --pp-size 2"', True),
        ('CMD+=" --pp-size 2"', True),
        ('CMD="${CMD}0"', False),
        ('CMD="sglang serve --tp 8"', False),
    ],
)
def test_a_command_text_that_grows_under_a_condition_keeps_its_start(more: str, known: bool) -> None:
    document = read("x.sh", text=f'CMD="sglang serve --tp 2"\nif [ -n "$X" ]; then {more}; fi\nbash -c "$CMD"\n')
    assert [given_of(document, number) for number in range(len(document.engines))] == ([{"--tp": "2"}] if known else [])


@pytest.mark.parametrize("value", ["8", "a b"])
def test_a_value_that_differs_is_not_known_at_all(value: str) -> None:
    document = read("x.sh", text=f"A=8\nif x; then A='{value}9'; fi\nsglang serve --tp $A\n")
    assert given_of(document) == {}
    assert codes(document) == ["HC009"]


@pytest.mark.parametrize(("shower", "engines"), [("dump_it", 1), ("bash -c", 2), ("echo", 1), ("ssh host", 2)])
def test_a_command_that_is_only_shown_is_no_second_server(shower: str, engines: int) -> None:
    document = read("x.sh", text=f'CMD="sglang serve --tp 2"\n{shower} "$CMD"\nbash -c "$CMD"\n')
    assert len(document.engines) == engines


# --- memory limits of Slurm and systemd -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "amount"),
    [("500G", 500 * 2**30), ("1T", 2**40), ("1024", 2**30), ("2m", 2**21), ("0", 0), ("64GB", 2**36)],
)
def test_slurm_counts_in_mebibytes(text: str, amount: int) -> None:
    assert slurm_bytes(text) == amount


@pytest.mark.parametrize(
    ("text", "amount"),
    [("500G", 500 * 2**30), ("1.5T", 3 * 2**39), ("1073741824", 2**30), ("infinity", 0), ("1 G", 2**30), ("8K", 8192)],
)
def test_systemd_counts_in_powers_of_1024(text: str, amount: int) -> None:
    assert systemd_bytes(text) == amount


@pytest.mark.parametrize("text", ["", "lots", "80%", "-1", "1g g", "1.5"])
def test_other_limits_of_slurm_and_systemd_are_refused(text: str) -> None:
    readers = (slurm_bytes,) if text == "1.5" else (slurm_bytes, systemd_bytes)
    for reader in readers:
        with pytest.raises(LimitError):
            reader(text)


# --- files of variables -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "value"),
    [
        ("A=1", "1"),
        ("export A=1", "1"),
        ("A = 1 ", "1"),
        ('A="a b" # c', "a b"),
        ("A='$B'", "$B"),
        ("A=1 # c", "1"),
        ("A=1#c", "1#c"),
        ("A=#c", ""),
        ('A="x\\ny"', "x\ny"),
        ('A="open', "open"),
        ("B=2\nA=${B}1", "21"),
        ("A=1\nA=2", "2"),
        ("# A=1\nA=3", "3"),
        ("A=", ""),
    ],
)
def test_a_file_of_variables(line: str, value: str) -> None:
    found = read_env_file(line, 0, lambda text, known: compose_variables(known)(text))
    assert found["A"].text == value


# --- Python ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ('"8"', "8"),
        ("str(8)", "8"),
        ('f"{A}"', "4"),
        ('f"{A}{{}}"', "4{}"),
        ('"1" "6"', "16"),
        ('"1" + str(A)', "14"),
        ('r"\\x"', "\\x"),
        ('"\\x38\\N{DIGIT TWO}"', "82"),
        ('"""8"""', "8"),
        ('os.environ.get("X", "7")', "7"),
        ('os.environ.get("X") or "7"', "7"),
        ('"5" if x else "5"', "5"),
        ('" ".join(["a", "b"])', "a b"),
        ('json.dumps({"a": [1, None]})', '{"a": [1, null]}'),
        ('shlex.quote("8")', "8"),
        ('D["a"]', None),
        ("args.tp", None),
        ('os.environ["X"]', None),
        ('"5" if x else "6"', None),
        ("f(1)", None),
        ("B", None),
        ('"%s" % A', None),
    ],
)
def test_what_is_known_of_a_python_expression(expression: str, value: str | None) -> None:
    text = f'A = 4\nsubprocess.run(["sglang", "serve", "--served-model-name", {expression}, "--tp", "2"])\n'
    document = read("x.py", text=text)
    assert given_of(document) == ({"--served-model-name": value} if value is not None else {}) | {"--tp": "2"}
    assert (codes(document) == []) == (value is not None)


@pytest.mark.parametrize("name", ["print", "logger.info", "parser.add_argument", "raise ValueError"])
def test_a_command_that_a_program_only_shows_is_no_server(name: str) -> None:
    assert read("x.py", text=f'{name}("sglang serve --tp 2")\n').engines == ()


def test_a_program_that_python_refuses_is_said_to_be_one() -> None:
    document = read("x.py", text="import sglang\nx = (\n")
    assert codes(document) == ["HC002"]


@pytest.mark.parametrize(
    "text",
    [
        "(" * 9_000,
        "-" * 90_000 + "1",
        "x = " + "+".join("1" * 20_000),
        "f" + "(f" * 90,
        "x = 'ab'\ny = [x, x]\n" + "x = x.join(y)\n" * 2_000,
    ],
)
def test_deep_python_ends(text: str) -> None:
    assert read("x.py", text=f"import sglang\n{text}\n").is_broken


# --- arguments within a larger file ------------------------------------------------------------------------------------


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
