"""Kubernetes manifests, Helm values and Kustomize patches to the servers in them.

Found by shape, not by kind: any mapping with `command` or `args` is a container, any list of flags in values is one,
any list of patches that add to `args` is one. Must not import anything above this floor.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from collections.abc import Mapping as Map
from dataclasses import dataclass, replace

from .config_map import HOLDING, ConfigMaps
from .container import Surroundings, engines_of_script, engines_of_words, limit_of
from .document import Engine
from .launch import mentions_launch
from .limits import kubernetes_bytes
from .manifest import Substitute, kubernetes_variables, scalar_at, split_words, variables, words_of
from .template import MASK, with_holes
from .text import Lines, Traced
from .tree import Entry, Mapping, Node, Scalar, Sequence, moved, text_of

_LISTS_OF_FLAGS = re.compile(r"(?:\w*(?:args?|flags|arguments|options|command|cmd))", re.IGNORECASE)
#: Keys under which people write about commands; a patch is read as what it is.
_TOLD = frozenset({"description", "summary", "title", "name", "comment", "help", "message", "notes", "patch"})
_PATCHED = re.compile(r"(?P<container>.*/containers/[^/]+)/(?P<what>args|command|env|resources/limits/memory)(?:/.*)?")


@dataclass(frozen=True)
class Found:
    """An engine and the name of what it was found in."""

    name: str | None
    engine: Engine


class KubernetesReader:
    """Walks the trees of a file and collects the servers in them."""

    def __init__(self, text: str, lines: Lines, release: str) -> None:
        self.text, self.lines, self.release = text, lines, release
        self.maps = ConfigMaps((), text)

    def read_all(self, trees: Iterable[Node]) -> Iterator[Found]:
        """The servers of all documents of a file, those that only a ConfigMap's scripts start included."""
        self.maps = ConfigMaps(trees, self.text)
        if self.lines.folder is not None:
            self.lines.folder.mounted |= self.maps.files
        for tree in trees:
            yield from self.read(tree)
        for name, script in self.maps.left():
            for engine in engines_of_script(script, self.lines, self.release):
                yield Found(name, engine)

    def read(self, node: Node, name: str | None = None) -> Iterator[Found]:
        """The servers within a node; `name` is that of the object around it."""
        if isinstance(node, Sequence):
            yield from self._patches(node)
            for item in node.items:
                yield from self.read(item, name)
        if not isinstance(node, Mapping) or text_of(node.get("kind")) in HOLDING:
            return
        name = _name(node.at("metadata", "name")) or name
        engines = list(self._container(node)) or list(self._values(node))
        own = _name(node.get("name"))
        for engine in engines or self._scripts(node):
            yield Found("/".join(dict.fromkeys(part for part in (name, own) if part)) or None, engine)
        for entry in node.entries:
            if not engines or isinstance(entry.value, Mapping):
                yield from self._of_entry(entry, own or name)
            if entry.key == "patch":
                yield from self._patch_text(entry.value, name)

    def _of_entry(self, entry: Entry, name: str | None) -> Iterator[Found]:
        """What stands under a key, which is a name itself for a role in values and a service of a graph."""
        if entry.key == "services" and isinstance(entry.value, Mapping):
            for service in entry.value.entries:
                yield from self.read(service.value, service.key)
        else:
            yield from self.read(entry.value, entry.key if _is_helm_word(entry.key) else name)

    # --- containers -----------------------------------------------------------------------------------------------

    def _container(self, node: Mapping) -> Iterator[Engine]:
        command, args = node.get("command"), node.get("args")
        if command is None and args is None:
            return
        around, substitute = self._around(node)
        # A single text is no list of words in Kubernetes, but Helm values and older tools have it.
        words = [
            word
            for part in (command, args)
            for word in words_of(part, self.text, substitute, split=isinstance(part, Scalar))
        ]
        engines = engines_of_words(words, self.lines, self.release, around)
        yield from engines
        for script in () if engines else self.maps.scripts_of(words):
            yield from engines_of_script(script, self.lines, self.release, around)

    def _around(self, node: Mapping) -> tuple[Surroundings, Substitute]:
        """The variables and the limit beside a command."""
        given = self.maps.variables(node.get("envFrom"))
        for key in ("env", "environment", "envs", "extraEnv", "extraEnvVars"):
            given |= variables(node.get(key), self.text, self._substitute(given), self.maps.variable)
        limit = scalar_at(node, "resources", "limits", "memory") or scalar_at(node, "memory")
        substitute = self._substitute(given)
        found = limit_of(substitute(limit.traced(self.text)), self.lines, kubernetes_bytes) if limit else Surroundings()
        return replace(found, environment=given), substitute

    def _substitute(self, known: Map[str, Traced]) -> Substitute:
        """Variables by their values, expressions of a template by holes."""
        put_in = kubernetes_variables(known)
        return lambda text: with_holes(put_in(text), self.lines)

    # --- Helm values ----------------------------------------------------------------------------------------------

    def _values(self, node: Mapping) -> Iterator[Engine]:
        """Lists of flags under a key such as `extraArgs`; each item may hold a flag and its value."""
        around, substitute = self._around(node)
        for entry in node.entries:
            if _LISTS_OF_FLAGS.fullmatch(entry.key) is None or isinstance(entry.value, Mapping):
                continue
            items = words_of(entry.value, self.text, substitute, split=False)
            words = [word for item in items for word in (split_words(item) if item.text.startswith("-") else [item])]
            yield from engines_of_words(words, self.lines, self.release, around)

    # --- scripts --------------------------------------------------------------------------------------------------

    def _scripts(self, node: Mapping) -> Iterator[Engine]:
        """Scripts under any key: `entrypoint` of a RayJob, `run` of a task or a workflow's step."""
        if any(entry.key in ("args", "command") for entry in node.entries):
            return
        for entry in node.entries:
            value = entry.value
            if not isinstance(value, Scalar) or entry.key in _TOLD or not mentions_launch(text_of(value) or ""):
                continue
            around, substitute = self._around(node)
            yield from engines_of_script(substitute(value.traced(self.text)), self.lines, self.release, around)

    # --- Kustomize ------------------------------------------------------------------------------------------------

    def _patches(self, node: Sequence) -> Iterator[Found]:
        """JSON patches that add words to a container, one engine a container."""
        words: dict[str, list[Traced]] = {}
        around: dict[str, Surroundings] = {}
        substitute = self._substitute({})
        for item in node.items:
            path, value = (text_of(item.get("path")), item.get("value")) if isinstance(item, Mapping) else (None, None)
            match = (
                _PATCHED.fullmatch(path) if path is not None and isinstance(item, Mapping) and item.get("op") else None
            )
            if match is None or value is None:
                continue
            container = match["container"]
            if match["what"] in ("args", "command"):
                words.setdefault(container, []).extend(words_of(value, self.text, substitute, split=False))
            elif match["what"] == "env":
                listed = value if isinstance(value, Sequence) else Sequence((value,), value.start, value.end)
                before = around.get(container, Surroundings())
                found: Map[str, Traced] = {**before.environment, **variables(listed, self.text, substitute)}
                around[container] = replace(before, environment=found)
            elif isinstance(value, Scalar):
                limited = limit_of(value.traced(self.text), self.lines, kubernetes_bytes)
                around[container] = replace(limited, environment=around.get(container, Surroundings()).environment)
        for container, listed_words in words.items():
            number = container.rpartition("/")[2]
            for engine in engines_of_words(listed_words, self.lines, self.release, around.get(container)):
                yield Found(f"container {number}", engine)

    def _patch_text(self, node: Node, name: str | None) -> Iterator[Found]:
        """A patch that a kustomization holds as text."""
        if not isinstance(node, Scalar) or not isinstance(node.value, str):
            return
        from .yaml_tree import read_yaml

        inner = node.traced(self.text)
        trees, _ = read_yaml(inner.text, Lines(inner.text))
        for tree in trees:
            yield from self.read(moved(tree, inner), name)


def _name(node: Node | None) -> str | None:
    """A name, where no template makes it."""
    name = text_of(node)
    return None if name is None or MASK in name else name


def _is_helm_word(key: str) -> bool:
    """Whether a key names a role in values (`prefill`, `decode`), and not a part of a manifest."""
    return key.lower() in ("prefill", "decode", "leader", "worker", "engine", "router")
