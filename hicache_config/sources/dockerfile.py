"""A Dockerfile to the server that its last stage starts: ENV, ARG, ENTRYPOINT and CMD in both forms.

Must not import anything above this floor.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from ..core.releases import NEWEST
from .container import Surroundings, engines_of_script, engines_of_words
from .document import Engine
from .json_tree import read_json
from .shell_lex import Lexer, Word
from .shell_values import Scope, Value, expand_to_one
from .text import Lines, Traced
from .tree import Scalar, Sequence

_INSTRUCTION = re.compile(r"[ \t]*(?P<name>[A-Za-z]+)[ \t]+")
_NAME = re.compile(r"([A-Za-z_]\w*)(?:=|[ \t]+)", re.ASCII)


@dataclass
class _Stage:
    """What a stage has set: variables, entry point and command, each as words or as a script.

    A build argument holds until the stage ends, and a variable of the same name wins over it; a server sees variables
    alone.
    """

    scope: Scope = field(default_factory=Scope)
    entrypoint: list[Traced] | Traced | None = None
    command: list[Traced] | Traced | None = None


def read_dockerfile(source: Traced, lines: Lines, release: str = NEWEST) -> list[Engine]:
    """The server that an image of this file starts; none where its commands are no server's."""
    stage = _Stage()
    outside: Scope | None = None  # the build arguments before the first stage
    stages: dict[str, _Stage] = {}
    for name, rest in _instructions(source):
        if name == "FROM":
            outside = stage.scope if outside is None else outside
            stage = _next_stage(rest, outside, stages)
        elif name == "ARG" and "=" not in rest.text and outside is not None:
            _take_over(stage.scope, rest.text.strip(), outside)
        elif name in ("ENV", "ARG"):
            _set(stage.scope, rest, export=name == "ENV")
        elif name == "ENTRYPOINT":
            stage.entrypoint, stage.command = _form(rest), None
        elif name == "CMD":
            stage.command = _form(rest)
    return _engines(stage, lines, release)


def _next_stage(rest: Traced, outside: Scope, stages: dict[str, _Stage]) -> _Stage:
    """The stage that a FROM begins: what another one of this file has set as variables, or nothing."""
    words = [expand_to_one(token, outside, rest).text for token in Lexer(rest).tokens() if isinstance(token, Word)]
    words = [word for word in words if not word.startswith("--")]
    base = stages.get(words[0].lower()) if words else None
    stage = _Stage()
    if base is not None:
        kept = {name: value for name, value in base.scope.values.items() if name in base.scope.exported}
        stage = _Stage(Scope(kept, set(kept)), base.entrypoint, base.command)
    stages[str(len(stages))] = stage
    if len(words) == 3 and words[1].lower() == "as":
        stages[words[2].lower()] = stage
    return stage


def _take_over(scope: Scope, name: str, outside: Scope) -> None:
    """`ARG NAME`: the value that it has before the first stage."""
    value = outside.values.get(name)
    if value is not None and name not in scope.exported:
        scope.values[name] = value


def _engines(stage: _Stage, lines: Lines, release: str) -> list[Engine]:
    variables = {
        name: value.words[0]
        for name, value in stage.scope.values.items()
        if name in stage.scope.exported and value.words
    }
    around = Surroundings(variables)
    # An entry point in shell form takes no words from CMD.
    if isinstance(stage.entrypoint, Traced):
        return engines_of_script(stage.entrypoint, lines, release, around)
    if isinstance(stage.command, Traced):
        return engines_of_script(stage.command, lines, release, around) if not stage.entrypoint else []
    return engines_of_words([*(stage.entrypoint or []), *(stage.command or [])], lines, release, around)


def _instructions(source: Traced) -> Iterator[tuple[str, Traced]]:
    """Instructions with their words; comment lines within one are blanked, joined lines stay joined by a backslash."""
    text = re.sub(r"^[ \t]*#[^\n]*$", lambda match: " " * len(match[0]), source.text, flags=re.MULTILINE)
    text = re.sub(r"\\[ \t]+$", lambda match: " " * (len(match[0]) - 1) + "\\", text, flags=re.MULTILINE)
    # A blank line does not end an instruction that is joined to what follows.
    text = re.sub(r"(?<=\\\n)(?:[ \t]*\n)+", lambda match: " " * len(match[0]), text)
    plain = Traced(text, source.starts, source.begin, source.end)
    for match in re.finditer(r"(?:[^\n\\]|\\\n|\\.?)+", text):
        head = _INSTRUCTION.match(text, match.start(), match.end())
        if head is not None:
            yield head["name"].upper(), plain.part(head.end(), match.end())


def _set(scope: Scope, rest: Traced, *, export: bool) -> None:
    tokens = [token for token in Lexer(rest).tokens() if isinstance(token, Word)]
    name = _NAME.match(rest.text)
    if name is not None and not name[0].endswith("=") and export:
        # ENV NAME the rest of the line
        value = rest.part(name.end(), len(rest.text.rstrip()))
        scope.values[name[1]] = Value((value,))
        scope.exported.add(name[1])
        return
    for token in tokens:
        word = expand_to_one(token, scope, rest)
        pair = re.match(r"([A-Za-z_]\w*)=", word.text, re.ASCII)
        if pair is not None and (export or pair[1] not in scope.exported):
            scope.values[pair[1]] = Value((word.part(pair.end(), len(word.text)),))
            if export:
                scope.exported.add(pair[1])


def _form(rest: Traced) -> list[Traced] | Traced:
    """The words of exec form (a JSON array), else the script of shell form."""
    if not rest.text.lstrip().startswith("["):
        return rest
    joined = rest.text.replace("\\\n", "  ")
    node, _ = read_json(joined)
    if not isinstance(node, Sequence):
        return rest
    plain = Traced(joined, rest.starts, rest.begin, rest.end)
    return [plain.located(item.traced(joined)) for item in node.items if isinstance(item, Scalar)]
