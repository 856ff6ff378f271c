"""systemd units (and Podman's quadlets) to the server that they start.

Source: systemd.service(5), systemd.exec(5), systemd.syntax(7): a backslash at the end joins lines, `$NAME` as a word of
its own is split, `${NAME}` is not, `%` begins a specifier that systemd fills in. Must not import anything above this
floor.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from .container import Surroundings, engines_of_words, limit_of
from .document import Engine
from .env_file import variables_of
from .limits import systemd_bytes
from .manifest import LONGEST_VALUE, split_words
from .notes import NoteList
from .text import Builder, Lines, Traced, Unknown

MOST_SETTINGS = 5_000

_SECTION = re.compile(r"[ \t]*\[([^\]\n]{1,60})\][ \t]*$")
_SETTING = re.compile(r"[ \t]*([A-Za-z]+)[ \t]*=[ \t]*")
_COMMENT = re.compile(r"[ \t]*[#;]")
_VARIABLE = re.compile(r"\$\$|%%|%[A-Za-z]|\$\{([A-Za-z_]\w*)\}|\$([A-Za-z_]\w*)", re.ASCII)
_ALONE = re.compile(r"\$([A-Za-z_]\w*)", re.ASCII)
_LIMITS = ("MemoryMax", "MemoryHigh", "MemoryLimit")
_STARTING = {"Service": ("ExecStart",), "Container": ("Exec",)}


@dataclass
class _Unit:
    """What the settings so far say; an empty setting takes back those before it."""

    environment: dict[str, Traced] = field(default_factory=dict)
    files: list[Traced] = field(default_factory=list)
    limits: dict[str, Traced] = field(default_factory=dict)
    commands: list[Traced] = field(default_factory=list)


def read_unit(source: Traced, lines: Lines, release: str) -> list[Engine]:
    """The servers that a unit starts, with its variables and its memory limit."""
    unit = _Unit()
    for section, name, value in _settings(source):
        if section not in _STARTING:
            continue
        if name == "Environment":
            unit.environment = _environment(unit.environment, value)
        elif name == "EnvironmentFile":
            unit.files = [*unit.files, value] if value.text else []
        elif name in _LIMITS:
            unit.limits[name] = value
        elif name in _STARTING[section]:
            unit.commands = [*unit.commands, value] if value.text else []
    notes = NoteList()
    variables = {**unit.environment, **_of_files(unit.files, lines, notes)}
    around = replace(_limit(unit, lines), environment=variables)
    around = replace(around, notes=(*around.notes, *notes))
    return [
        engine
        for command in unit.commands
        for engine in engines_of_words(_words(command, variables), lines, release, around)
    ]


def _settings(source: Traced) -> Iterator[tuple[str, str, Traced]]:
    """Section, name and value of each setting; joined lines with blanks, comments between them left out."""
    section, count, here, text = "", 0, 0, source.text
    while here < len(text) and count < MOST_SETTINGS:
        end = _end_of_line(text, here)
        heading = _SECTION.match(text, here, end)
        setting = _SETTING.match(text, here, end)
        if heading is not None:
            section = heading[1]
        elif setting is not None and not _COMMENT.match(text, here, end):
            value = Builder(source.offset(setting.end()))
            start = setting.end()
            while text[:end].endswith("\\", start) and end < len(text):
                _add(value, source, start, end - 1)
                value.add(" ", source.offset(end - 1))
                start, end = end + 1, _end_of_line(text, end + 1)
                while _COMMENT.match(text, start, end) and end < len(text):
                    start, end = end + 1, _end_of_line(text, end + 1)
            _add(value, source, start, end)
            whole = value.done(source.end_at(end))
            count += 1
            yield section, setting[1], whole.part(0, len(whole.text.rstrip()))
        here = end + 1


def _end_of_line(text: str, start: int) -> int:
    end = text.find("\n", start)
    return len(text) if end < 0 else end


def _add(out: Builder, source: Traced, start: int, end: int) -> None:
    for index in range(start, end):
        out.add_from(source, index)


# --- variables ----------------------------------------------------------------------------------------------------


def _environment(before: dict[str, Traced], value: Traced) -> dict[str, Traced]:
    """`Environment=`: one or more `NAME=value`, each in quotes or not."""
    if not value.text:
        return {}
    found = dict(before)
    for word in split_words(value):
        name, sign, _ = word.text.partition("=")
        if sign:
            found[name] = _filled(word.behind(len(name) + 1), {})
    return found


def _of_files(files: list[Traced], lines: Lines, notes: NoteList) -> dict[str, Traced]:
    found: dict[str, Traced] = {}
    for named in files:
        is_optional = named.text.startswith("-")
        name = _filled(named.part(1, len(named.text)) if is_optional else named, {})
        more, unread = variables_of(name, lines, "EnvironmentFile")
        found |= more
        for each in () if is_optional else unread:
            notes.append(each)
    return found


def _limit(unit: _Unit, lines: Lines) -> Surroundings:
    """The smallest of the unit's limits."""
    found = [limit_of(_filled(value, {}), lines, systemd_bytes) for value in unit.limits.values() if value.text]
    amounts = [each for each in found if each.limit is not None]
    smallest = min(amounts, key=lambda each: each.limit or 0, default=Surroundings())
    return replace(smallest, notes=tuple(note for each in found for note in each.notes))


# --- commands -----------------------------------------------------------------------------------------------------


def _words(command: Traced, variables: dict[str, Traced]) -> list[Traced]:
    """The words of `ExecStart=` without the characters that say how it is run."""
    plain = command.part(len(command.text) - len(command.text.lstrip("@-:+!|")), len(command.text))
    words = []
    for word in split_words(plain):
        alone = _ALONE.fullmatch(word.text)
        value = variables.get(alone[1]) if alone is not None else None
        if value is not None and value.is_known:
            words += split_words(value)
        else:
            words.append(_filled(word, variables))
    return words


def _filled(word: Traced, variables: dict[str, Traced]) -> Traced:
    """A word with its variables; specifiers and variables without a value stay holes."""
    out = Builder(word.begin)
    here = 0
    for match in _VARIABLE.finditer(word.text):
        _add(out, word, here, match.start())
        here = match.end()
        part = word.part(match.start(), match.end())
        value = variables.get(match[1] or match[2] or "")
        if match[0] in ("$$", "%%"):
            out.add_from(word, match.start())
        elif value is not None and len(out) + len(value.text) > LONGEST_VALUE:
            out.add_hole(Unknown(match[0], "is too long to follow", part.begin, part.end, "HC009"))
        elif value is not None:
            out.add_all(value.moved_to(part.begin, part.end))
        else:
            why = "is a specifier that systemd fills in" if match[0][0] == "%" else "has no value in this unit"
            code = "HC009" if match[0][0] == "%" else "HC008"
            out.add_hole(Unknown(match[0], why, part.begin, part.end, code))
    if not here:
        return word
    _add(out, word, here, len(word.text))
    return out.done(word.end)
