"""Compose files to the servers of their services, with `env_file`, `extends` and the `.env` file beside them.

Must not import anything above this floor.
"""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Mapping as Map
from dataclasses import dataclass, field, replace
from pathlib import Path

from ..core.findings import Severity
from .container import Surroundings, engines_of_words, limit_of
from .document import Engine, Noted
from .env_file import read_env_file
from .folder import NotOpened, Opened
from .limits import docker_bytes
from .manifest import Substitute, compose_variables, scalar_at, variables, words_of
from .notes import note, shortened
from .text import Lines, Traced
from .tree import Mapping, Node, Scalar, Sequence, text_of

DEEPEST = 10

#: Where a service's memory limit stands: the Compose specification's two places and that of older files.
_LIMITS: tuple[tuple[str, ...], ...] = (
    ("deploy", "resources", "limits", "memory"),
    ("mem_limit",),
    ("resources", "limits", "memory"),
)


@dataclass(frozen=True)
class _File:
    """A Compose file: its services, its text, what its offsets count from, and where it lies."""

    services: Node | None
    text: str
    base: int = 0
    folder: Path | None = None


@dataclass(frozen=True)
class _Service:
    """What a service has, those that it extends included."""

    words: Map[str, list[Traced]] = field(default_factory=dict)
    environment: Map[str, Traced] = field(default_factory=dict)
    limits: Map[tuple[str, ...], Traced] = field(default_factory=dict)
    notes: tuple[Noted, ...] = ()

    def over(self, base: _Service) -> _Service:
        """This service where it says something, what it extends elsewhere."""
        return _Service(
            {**base.words, **self.words},
            {**base.environment, **self.environment},
            {**base.limits, **self.limits},
            (*base.notes, *self.notes),
        )


def is_compose(node: Node) -> bool:
    """Whether a document has the shape of a Compose file."""
    services = node.get("services") if isinstance(node, Mapping) else None
    return isinstance(services, Mapping) and all(isinstance(entry.value, Mapping) for entry in services.entries)


def read_compose(node: Node, text: str, lines: Lines, release: str) -> Iterator[tuple[str, Engine]]:
    """The servers of a Compose file, each with the name of its service."""
    services = node.get("services") if isinstance(node, Mapping) else None
    reader = _Reader(lines)
    for entry in services.entries if isinstance(services, Mapping) else ():
        if isinstance(entry.value, Mapping):
            service = reader.service(entry.key, _File(services, text))
            words = [word for key in ("entrypoint", "command") for word in service.words.get(key, [])]
            around = replace(_limit(service, lines), environment=service.environment)
            for engine in engines_of_words(words, lines, release, around):
                yield entry.key, engine


class _Reader:
    """Reads services; `substitute` puts in the values of the `.env` file beside the source."""

    def __init__(self, lines: Lines) -> None:
        self.lines = lines
        self._files: dict[int, _File] = {}
        self._variables: dict[int, dict[str, Traced]] = {}
        self.substitute: Substitute = compose_variables({})
        try:
            if lines.folder is not None:
                self.substitute = compose_variables(self._variables_of(lines.folder.open(".env", lines)))
        except NotOpened:
            self.substitute = compose_variables({})

    def service(self, name: str, file: _File, around: tuple[tuple[int, str], ...] = ()) -> _Service:
        """A service by its name in a file; `around` are those that extend it."""
        node = file.services.get(name) if isinstance(file.services, Mapping) else None
        if not isinstance(node, Mapping):
            return _Service()
        extended = self._extended(node, file, (*around, (file.base, name)))
        words = {
            key: [word.shifted(file.base) for word in words_of(node.get(key), file.text, self.substitute, split=True)]
            for key in ("entrypoint", "command")
            if node.get(key) is not None
        }
        from_files, notes = self._env_files(node.get("env_file"), file)
        given = variables(node.get("environment"), file.text, self.substitute)
        environment = {**from_files, **{each: value.shifted(file.base) for each, value in given.items()}}
        limits = {
            keys: self.substitute(scalar.traced(file.text)).shifted(file.base)
            for keys in _LIMITS
            if (scalar := scalar_at(node, *keys)) is not None
        }
        return _Service(words, environment, limits, tuple(notes)).over(extended)

    # --- extends --------------------------------------------------------------------------------------------------

    def _extended(self, node: Mapping, file: _File, around: tuple[tuple[int, str], ...]) -> _Service:
        extends = node.get("extends")
        if extends is None:
            return _Service()
        where = extends.get("file") if isinstance(extends, Mapping) else None
        named = extends.get("service") if isinstance(extends, Mapping) else extends
        name = text_of(named)
        if name is None:
            return _Service()
        try:
            other = file if where is None else self._other(where, file)
        except NotOpened as why:
            assert where is not None
            return _Service(notes=(self._unread(where, file, "that the service extends", str(why)),))
        if (other.base, name) in around or len(around) > DEEPEST:
            return _Service(notes=(self._unread(extends, file, "that the service extends", "extends it in turn"),))
        if not isinstance(other.services, Mapping) or not isinstance(other.services.get(name), Mapping):
            return _Service(notes=(self._unread(extends, file, "that the service extends", "has no such service"),))
        return self.service(name, other, around)

    def _other(self, where: Node, file: _File) -> _File:
        from .yaml_tree import read_yaml

        opened = self._open(where, file)
        if opened.base not in self._files:
            trees, _ = read_yaml(opened.text, opened.lines)
            services = next((tree.get("services") for tree in trees if isinstance(tree, Mapping)), None)
            self._files[opened.base] = _File(services, opened.text, opened.base, opened.path.parent)
        return self._files[opened.base]

    # --- env_file -------------------------------------------------------------------------------------------------

    def _env_files(self, node: Node | None, file: _File) -> tuple[dict[str, Traced], list[Noted]]:
        """The variables of a service's files, a later one over an earlier one, and notes for those not read."""
        found: dict[str, Traced] = {}
        notes = []
        for item in node.items if isinstance(node, Sequence) else [node]:
            where = item.get("path") if isinstance(item, Mapping) else item
            if where is None:
                continue
            try:
                found |= self._variables_of(self._open(where, file))
            except NotOpened as why:
                required = item.get("required") if isinstance(item, Mapping) else None
                if not (isinstance(required, Scalar) and required.value is False):
                    notes.append(self._unread(where, file, "of env_file", str(why), severity="note"))
        return found, notes

    def _variables_of(self, opened: Opened) -> dict[str, Traced]:
        if opened.base not in self._variables:
            self._variables[opened.base] = read_env_file(
                opened.text, opened.base, lambda value, known: compose_variables(known)(value)
            )
        return self._variables[opened.base]

    # --- other files ----------------------------------------------------------------------------------------------

    def _open(self, where: Node, file: _File) -> Opened:
        if not isinstance(where, Scalar) or self.lines.folder is None:
            raise NotOpened("is no name of a file")
        name = self.substitute(where.traced(file.text))
        if not name.is_known:
            raise NotOpened("has a name that is not known")
        return self.lines.folder.open(name.text, self.lines, file.folder)

    def _unread(self, where: Node, file: _File, what: str, why: str, severity: Severity | None = None) -> Noted:
        named = where.get("service") if isinstance(where, Mapping) else where
        shown = named.traced(file.text).text if isinstance(named, Scalar) else "the file"
        place = self.lines.place(where.start + file.base, where.end + file.base)
        message = f"{shortened(shown)} {what} {why}, so what stands there is not checked"
        return note("HC009", message, "Check it together with its file.", place, severity=severity)


def _limit(service: _Service, lines: Lines) -> Surroundings:
    """The smallest limit that the service has."""
    found = [limit_of(limit, lines, docker_bytes) for limit in service.limits.values()]
    notes = tuple(note for each in found for note in each.notes)
    amounts = [each for each in found if each.limit is not None]
    smallest = min(amounts, key=lambda each: each.limit or 0, default=Surroundings())
    return replace(smallest, notes=(*notes, *service.notes))
