"""A document as text for fixtures: engines, arguments, notes; places are `line:column-line:column`."""

from __future__ import annotations

import json
from collections.abc import Iterator

from hicache_config.arguments.given import Given, Place
from hicache_config.sources import Document, Noted


def shown(document: Document) -> str:
    """The whole document, one fact a line."""
    return "\n".join(_lines(document)) + "\n"


def _lines(document: Document) -> Iterator[str]:
    yield f"format {document.format}"
    for noted in document.notes:
        yield _note(document, noted)
    for engine in document.engines:
        yield f"engine {engine.name or '-'}"
        for given in engine.given:
            yield from _given(document, given)
        for key in engine.not_known:
            yield f"  {key} is not known"
        for name, value in engine.environment.items():
            yield f"  env {name}={value}"
        if engine.memory_limit_bytes is not None:
            yield f"  limit {engine.memory_limit_bytes} {_cut(document, engine.memory_limit_place)}"
        for name, value in engine.reported.items():
            yield f"  reported {name} {json.dumps(value)}"
        for noted in engine.notes:
            yield "  " + _note(document, noted)


def _given(document: Document, given: Given) -> Iterator[str]:
    text = "text " if given.as_text else ""
    yield f"  {given.key} = {text}{json.dumps(given.value, ensure_ascii=False)}"
    yield f"      whole {_cut(document, given.place)}"
    if given.value_place is not None:
        yield f"      value {_cut(document, given.value_place)}"
    for pointer, place in given.inner.items():
        yield f"      {pointer} {_cut(document, place)}"


def _note(document: Document, noted: Noted) -> str:
    finding = noted.finding
    return f"{finding.code} {finding.severity} {_cut(document, noted.place)}: {finding.message}. -> {finding.help}"


def _cut(document: Document, place: Place | None) -> str:
    if place is None:
        return "nowhere"
    whole = document.included[place.file] if place.file else document.text
    text = json.dumps(cut(whole, place), ensure_ascii=False)
    file = f"{place.file}:" if place.file else ""
    return f"{file}{place.line}:{place.column}-{place.end_line}:{place.end_column} {text}"


def cut(text: str, place: Place) -> str:
    """The stretch of a text that a place names."""
    lines = text.split("\n")
    if place.line == place.end_line:
        return lines[place.line - 1][place.column - 1 : place.end_column - 1]
    middle = lines[place.line : place.end_line - 1]
    return "\n".join(
        [lines[place.line - 1][place.column - 1 :], *middle, lines[place.end_line - 1][: place.end_column - 1]]
    )
