"""Compose files to the servers of their services.

Must not import anything above this floor.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from .container import Surroundings, engines_of_words, limit_of
from .document import Engine
from .limits import docker_bytes
from .manifest import compose_variables, scalar_at, variables, words_of
from .text import Lines
from .tree import Mapping, Node

#: Where a service's memory limit stands: the Compose specification's two places and that of older files.
_LIMITS = (("deploy", "resources", "limits", "memory"), ("mem_limit",), ("resources", "limits", "memory"))


def read_compose(node: Node, text: str, lines: Lines, release: str) -> Iterator[tuple[str, Engine]]:
    """The servers of a Compose file, each with the name of its service."""
    services = node.get("services") if isinstance(node, Mapping) else None
    for entry in services.entries if isinstance(services, Mapping) else ():
        if isinstance(entry.value, Mapping):
            for engine in _service(entry.value, text, lines, release):
                yield entry.key, engine


def is_compose(node: Node) -> bool:
    """Whether a document has the shape of a Compose file."""
    services = node.get("services") if isinstance(node, Mapping) else None
    return isinstance(services, Mapping) and all(isinstance(entry.value, Mapping) for entry in services.entries)


def _service(node: Mapping, text: str, lines: Lines, release: str) -> list[Engine]:
    words = [
        word
        for key in ("entrypoint", "command")
        for word in words_of(node.get(key), text, compose_variables, split=True)
    ]
    environment = variables(node.get("environment"), text, compose_variables)
    return engines_of_words(words, lines, release, replace(_limit(node, text, lines), environment=environment))


def _limit(node: Mapping, text: str, lines: Lines) -> Surroundings:
    """The smallest limit that the service has."""
    found = [
        limit_of(compose_variables(scalar.traced(text)), lines, docker_bytes)
        for keys in _LIMITS
        if (scalar := scalar_at(node, *keys)) is not None
    ]
    notes = tuple(note for each in found for note in each.notes)
    amounts = [each for each in found if each.limit is not None]
    smallest = min(amounts, key=lambda each: each.limit or 0, default=Surroundings())
    return replace(smallest, notes=notes)
