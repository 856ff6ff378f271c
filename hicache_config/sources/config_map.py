"""ConfigMaps and Secrets of a manifest: what containers beside them take from them as variables and as files.

Must not import anything above this floor.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from collections.abc import Mapping as Map

from .launch import mentions_launch
from .text import Traced
from .tree import Mapping, Node, Scalar, Sequence, text_of

#: Kinds that hold texts for others, and the key that these stand under.
HOLDING = {"ConfigMap": "data", "Secret": "stringData"}
#: What may be the name of a variable; other keys are files.
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_REFERENCES = ("configMapKeyRef", "secretKeyRef")
_SOURCES = ("configMapRef", "secretRef")


class ConfigMaps:
    """The keys and texts of each ConfigMap, by its name. `ran` are the files that a container was seen to run."""

    def __init__(self, trees: Iterable[Node], text: str) -> None:
        self.maps: dict[str, dict[str, Traced]] = {}
        self.ran: set[int] = set()
        for tree in _objects(trees):
            data = tree.get(HOLDING.get(text_of(tree.get("kind")) or "", ""))
            if isinstance(data, Mapping):
                found = self.maps.setdefault(text_of(tree.at("metadata", "name")) or "", {})
                found |= {e.key: e.value.traced(text) for e in data.entries if isinstance(e.value, Scalar)}

    @property
    def files(self) -> dict[str, Traced]:
        """Every key as a file; of two with one name neither, since nothing tells which is meant."""
        keys = [key for held in self.maps.values() for key in held]
        return {key: each for held in self.maps.values() for key, each in held.items() if keys.count(key) == 1}

    def variable(self, origin: Node | None) -> Traced | None:
        """The value behind `valueFrom`."""
        for kind in _REFERENCES:
            reference = origin.get(kind) if isinstance(origin, Mapping) else None
            if isinstance(reference, Mapping):
                held = self.maps.get(text_of(reference.get("name")) or "", {})
                return held.get(text_of(reference.get("key")) or "")
        return None

    def variables(self, node: Node | None) -> dict[str, Traced]:
        """The variables of `envFrom`."""
        found: dict[str, Traced] = {}
        for item in node.items if isinstance(node, Sequence) else ():
            prefix = (text_of(item.get("prefix")) if isinstance(item, Mapping) else None) or ""
            for kind in _SOURCES:
                reference = item.get(kind) if isinstance(item, Mapping) else None
                name = text_of(reference.get("name")) if isinstance(reference, Mapping) else None
                held = self.maps.get(name or "", {})
                found |= {prefix + key: each for key, each in held.items() if _VARIABLE.fullmatch(prefix + key)}
        return found

    def scripts_of(self, words: Iterable[Traced]) -> Iterator[Traced]:
        """The scripts that the words of a command name as files (`bash /scripts/run.sh`)."""
        files = self.files
        for word in words:
            script = files.get(word.text.rpartition("/")[2])
            if script is not None and mentions_launch(script.text):
                self.ran.add(script.begin)
                yield script

    def left(self) -> Iterator[tuple[str, Traced]]:
        """Scripts that start a server and that no container was seen to run, with their names."""
        held: Iterable[tuple[str, Map[str, Traced]]] = self.maps.items()
        for name, texts in held:
            for key, text in texts.items():
                if text.begin not in self.ran and mentions_launch(text.text):
                    yield "/".join(part for part in (name, key) if part), text


def _objects(trees: Iterable[Node]) -> Iterator[Mapping]:
    """The objects of a file, those of lists included."""
    for tree in trees:
        if isinstance(tree, Mapping):
            yield tree
            items = tree.get("items")
            yield from (
                item for item in (items.items if isinstance(items, Sequence) else ()) if isinstance(item, Mapping)
            )
