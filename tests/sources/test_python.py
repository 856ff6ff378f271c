"""Small facts of Python launchers, as tables."""

from __future__ import annotations

import pytest

from hicache_config.sources import read

from .looking import codes, given_of


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
