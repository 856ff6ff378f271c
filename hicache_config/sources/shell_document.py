"""Files in other formats that a script holds as here-documents: a manifest for kubectl, a unit, a Compose file.

Must not import anything above this floor.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from ..arguments.given import Given
from .document import Engine, Noted
from .manifest import compose_variables
from .notes import not_known
from .shell_lex import HereDocument
from .shell_values import Scope
from .sniff import sniff
from .text import Builder, InnerLines, Lines, Traced, Unknown

#: Longer ones are no files that somebody wrote into a script.
LONGEST = 60_000

_FORMS = ("yaml", "systemd", "python", "dockerfile")
_TELLING = re.compile(r"sglang|hicache|hierarchical")
_MANIFEST = re.compile(r"^(?:apiVersion|kind|services)[ \t]*:", re.MULTILINE)
_ESCAPED = re.compile(r"\\[\\$`\n]")
_LEFT = re.compile(r"\$\{?([A-Za-z_]\w*)[^\s}]*\}?", re.ASCII)


def form_of(document: HereDocument) -> str | None:
    """The format of a here-document that is a file in another one; None where it may be a script."""
    text = document.text.text
    if len(text) > LONGEST or not _TELLING.search(text):
        return None
    form = sniff("", text.strip())
    is_manifest = form != "yaml" or _MANIFEST.search(text) is not None
    return form if form in _FORMS and is_manifest else None


def unescaped(text: Traced) -> Traced:
    """A here-document as the shell writes it: a backslash before another one, a dollar sign or a line end is gone."""
    if "\\" not in text.text:
        return text
    out = Builder(text.begin)
    here = 0
    for match in _ESCAPED.finditer(text.text):
        for index in range(here, match.start()):
            out.add_from(text, index)
        here = match.end() if match[0][1] == "\n" else match.start() + 1
        if here < match.end():
            out.add_from(text, here)
            here = match.end()
    for index in range(here, len(text.text)):
        out.add_from(text, index)
    return out.done(text.end)


def read_document(document: HereDocument, scope: Scope, lines: Lines, release: str) -> list[Engine]:
    """The engines of a here-document in another format."""
    from .formats import Content, reader

    form = form_of(document) or "yaml"
    whole = document.text if document.is_literal else _filled(unescaped(document.text), scope)
    content = Content(whole.text, InnerLines(whole, lines), release, None if form == "yaml" else form)
    actual, engines, _ = reader(form).read(content)
    if actual == "yaml":
        return []
    return [each if document.is_literal else _without_left(each) for each in engines]


def _filled(text: Traced, scope: Scope) -> Traced:
    """The text with the variables whose value is known; the others stay as they are written."""
    known = {
        name: value.words[0]
        for name, value in scope.values.items()
        if not value.is_array and len(value.words) == 1 and value.words[0].is_known
    }
    filled = compose_variables(known)(text)
    return filled if filled.is_known else _shown(filled)


def _shown(text: Traced) -> Traced:
    """The text with what is written there in the place of each hole."""
    chars: list[str] = []
    starts: list[int] = []
    for index, char in enumerate(text.text):
        shown = text.unknown[index].shown if index in text.unknown else char
        chars += shown
        starts += [text.starts[index]] * len(shown)
    return Traced("".join(chars), starts, text.begin, text.end)


def _without_left(engine: Engine) -> Engine:
    """The engine without arguments whose value holds a variable that the script does not set."""
    known, notes, unknown = [], list(engine.notes), list(engine.not_known)
    for given in engine.given:
        left = list(_left(given))
        if left:
            notes += left
            unknown.append(given.key)
        else:
            known.append(given)
    return replace(engine, given=tuple(known), notes=tuple(notes), not_known=tuple(unknown))


def _left(given: Given) -> Iterator[Noted]:
    for value in given.value if isinstance(given.value, list) else [given.value]:
        for match in _LEFT.finditer(value) if isinstance(value, str) else ():
            unknown = Unknown(match[0], "has no value in this file", 0, 0)
            yield replace(not_known(unknown, Lines(""), given.key), place=given.value_place or given.place)
