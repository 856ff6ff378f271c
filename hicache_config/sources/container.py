"""A container or a command with what stands around it (variables, memory limit) to an engine.

Shell scripts, Dockerfiles, Kubernetes and Compose files all end here. Must not import anything above this floor.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from ..arguments.given import Place
from ..core.releases import release_key
from .command import parse
from .document import Engine, Noted
from .launch import Launch, are_arguments, find_launch, image_arguments, inner_scripts, without_model_type
from .limits import LimitError, docker_bytes, slurm_bytes
from .notes import not_known, note, shortened
from .shell import Command, read_script
from .shell_document import read_document
from .shell_values import MOST_WORDS, Scope, Value
from .text import Lines, Traced

#: Variables that can change what SGLang does; an unknown one is worth a note.
_TELLING_VARIABLE = re.compile(r"(?:SGLANG|SGL|MOONCAKE|HICACHE)_\w+")
#: Programs that limit the memory of what they start, their options for it, and how they count.
_LIMITING = (
    (frozenset({"docker", "podman", "nerdctl"}), ("--memory", "-m"), docker_bytes),
    (frozenset({"srun", "sbatch", "salloc"}), ("--mem",), slurm_bytes),
)
_SHELL = re.compile(r"(?:.*/)?(?:ba|z|da|a|k)?sh")


@dataclass(frozen=True)
class Surroundings:
    """What a file says beside a command: variables, and the memory limit with its place."""

    environment: Mapping[str, Traced] = field(default_factory=dict)
    limit: int | None = None
    limit_place: Place | None = None
    notes: tuple[Noted, ...] = ()


def engines_of_script(script: Traced, lines: Lines, release: str, around: Surroundings | None = None) -> list[Engine]:
    """The servers that a script starts."""
    around = around or Surroundings()
    scope = Scope({name: Value((value,)) for name, value in around.environment.items()}, set(around.environment))
    return [
        engine
        for command in read_script(script, lines, scope)
        for engine in _of_command(command, lines, release, around)
    ]


def engines_of_words(
    words: Sequence[Traced], lines: Lines, release: str, around: Surroundings | None = None
) -> list[Engine]:
    """The servers that the words of one command start: itself, or the script it hands to a shell.

    Words without a command count where they are flags that tell SGLang apart (the image then names the command).
    """
    around = around or Surroundings()
    if len(words) > MOST_WORDS:
        words, around = words[:MOST_WORDS], replace(around, notes=(*around.notes, _too_many_words()))
    launch = find_launch(words) or image_arguments(words)
    if launch is None and (scripts := inner_scripts(words) or _shell_scripts(words)):
        return [engine for script in scripts for engine in engines_of_script(script, lines, release, around)]
    if launch is None and are_arguments(words, release):
        launch = Launch(tuple(words), ())
    return [engine_of_launch(launch, lines, release, around)] if launch is not None else []


def _too_many_words() -> Noted:
    return note("HC005", f"only the first {MOST_WORDS:,} words of this command are read", "Is it the right file?")


def _shell_scripts(words: Sequence[Traced]) -> list[Traced]:
    """The scripts that a shell is handed with -c."""
    for index, word in enumerate(words[:-1]):
        if index and re.fullmatch(r"-[a-z]*c", word.text) and _SHELL.fullmatch(words[0].text):
            return [words[index + 1]]
    return []


def _of_command(command: Command, lines: Lines, release: str, around: Surroundings) -> list[Engine]:
    if command.document is not None:
        return read_document(command.document, command.scope, lines, release)
    exported = {
        name: command.scope.values[name].words[0]
        for name in sorted(command.scope.exported)
        if name in command.scope.values and command.scope.values[name].words
    }
    outer = Launch((), command.outer).environment
    cut = len(command.words) >= MOST_WORDS
    around_it = (*command.outer, *command.words)
    limited = _limit_around(around_it, lines)
    from_files, unread = _of_files(around_it, lines)
    surroundings = Surroundings(
        {**around.environment, **exported, **from_files, **outer},
        limited.limit if limited.limit is not None else around.limit,
        limited.limit_place if limited.limit is not None else around.limit_place,
        (*around.notes, *limited.notes, *unread, *command.notes, *((_too_many_words(),) if cut else ())),
    )
    launch = find_launch(command.words) or image_arguments(command.words)
    if launch is None:  # read_script only gives commands that start a server
        return [Engine(notes=surroundings.notes)]
    return [engine_of_launch(launch, lines, release, surroundings)]


def engine_of_launch(launch: Launch, lines: Lines, release: str, around: Surroundings | None = None) -> Engine:
    """The engine that a server's start makes, with what stands around it."""
    around = around or Surroundings()
    # Source: SGLang's cli/serve.py takes a first word as the model since 0.5.16.
    model_first = launch.model_first and release_key(release) >= (0, 5, 16)
    words = without_model_type(launch.arguments) if launch.model_first else launch.arguments
    parsed = parse(words, lines, release, model_first=model_first, launcher=launch.launcher)
    environment, notes = known_environment({**around.environment, **launch.environment}, lines)
    return Engine(
        given=tuple(parsed.given),
        not_known=tuple(parsed.not_known),
        environment=environment,
        memory_limit_bytes=around.limit,
        memory_limit_place=around.limit_place,
        notes=tuple(_once((*around.notes, *notes, *parsed.notes))),
    )


def _once(notes: Iterable[Noted]) -> list[Noted]:
    seen: list[Noted] = []
    for each in notes:
        if each not in seen:
            seen.append(each)
    return seen


def known_environment(variables: Mapping[str, Traced], lines: Lines) -> tuple[dict[str, str], list[Noted]]:
    """The variables whose value is known, and a note for each of SGLang's that is not."""
    known = {name: value.text for name, value in variables.items() if value.is_known}
    notes = [
        not_known(unknown, lines, name)
        for name, value in variables.items()
        if _TELLING_VARIABLE.fullmatch(name)
        for unknown in value.unknown.values()
    ]
    return known, notes


def _limit_around(words: Sequence[Traced], lines: Lines) -> Surroundings:
    """The memory limit of a `docker run` or an `srun` around a server."""
    programs = {word.text.rpartition("/")[2] for word in words}
    for runners, options, read in _LIMITING:
        if not runners.intersection(programs):
            continue
        for index, word in enumerate(words):
            option, sign, _ = word.text.partition("=")
            if option not in options or (not sign and index + 1 >= len(words)):
                continue
            if option == "-m" and index + 1 < len(words) and words[index + 1].text.startswith(("sglang", "dynamo")):
                continue  # python -m MODULE
            return limit_of(word.behind(len(option) + 1) if sign else words[index + 1], lines, read)
    return Surroundings()


def _of_files(words: Sequence[Traced], lines: Lines) -> tuple[dict[str, Traced], list[Noted]]:
    """The variables of `docker run --env-file FILE`, and a note for each file that could not be read."""
    found: dict[str, Traced] = {}
    notes: list[Noted] = []
    for index, word in enumerate(words):
        option, sign, _ = word.text.partition("=")
        if option != "--env-file" or (not sign and index + 1 >= len(words)):
            continue
        from .env_file import variables_of

        named = word.behind(len(option) + 1) if sign else words[index + 1]
        more, unread = variables_of(named, lines, option)
        found |= more
        notes += unread
    return found, notes


def limit_of(value: Traced, lines: Lines, read: Callable[[str], int]) -> Surroundings:
    """A memory limit as it is written, or the note that it is none."""
    place = lines.place(value.begin, value.end)
    if not value.is_known:
        return Surroundings(notes=tuple(not_known(each, lines, "the memory limit") for each in value.unknown.values()))
    try:
        amount = read(value.text)
    except LimitError as error:
        message = f"the memory limit {shortened(value.text)} is no amount: {error}"
        return Surroundings(notes=(note("HC009", message, "Until then the limit is not checked.", place),))
    return Surroundings(limit=amount or None, limit_place=place)
