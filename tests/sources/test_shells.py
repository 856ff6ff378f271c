"""Small facts of shell scripts and files of variables, as tables."""

from __future__ import annotations

import pytest

from hicache_config.sources import read
from hicache_config.sources.env_file import read_env_file
from hicache_config.sources.manifest import compose_variables

from .looking import codes, given_of
from .shown import cut

# --- variables of a shell ---------------------------------------------------------------------------------------------


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


# --- shell: files, loops, texts of commands ---------------------------------------------------------------------------


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
