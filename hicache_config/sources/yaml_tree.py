"""YAML to trees with the place of every key and value: several documents, anchors, merge keys, capped expansion.

ruamel.yaml parses (YAML 1.2); nothing is constructed by tags. Must not import anything above this floor.
"""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Iterator
from typing import Any

from .document import Noted
from .json_tree import DEEPEST, LONGEST_NUMBER
from .notes import NoteList, note, shortened
from .text import Lines
from .tree import MISSING, Entry, Mapping, Node, Scalar, Sequence

#: Longer texts are refused: parsing takes about ten seconds a megabyte.
LONGEST = 300_000
#: Nodes after the expansion of aliases; the largest manifests we met have some thousands.
MOST_NODES = 100_000

_INTEGER = re.compile(r"[-+]?[0-9][0-9_]*|0o[0-7]+|0x[0-9a-fA-F]+")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9][0-9_]*(?:\.[0-9_]*)?)(?:[eE][-+]?[0-9]+)?")
_NOT_A_NUMBER = re.compile(r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)")
_ANCHOR = re.compile(r"&\S+[ \t]+")
_FIXED: dict[str, Any] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_STYLES = {None: "plain", "": "plain", "'": "single", '"': "double", "|": "literal", ">": "folded"}


class TooLarge(Exception):  # noqa: N818 (a limit was met; the caller notes it)
    """Aliases expand to more nodes, or nest deeper, than the limits."""

    def __init__(self, why: str, offset: int) -> None:
        super().__init__(why)
        self.offset = offset


def read_yaml(text: str, lines: Lines) -> tuple[list[Node], list[Noted]]:
    """The documents of a YAML text that could be parsed, and what was found."""
    trees: list[Node] = []
    notes: list[Noted] = []
    if len(text) > LONGEST:
        return [], [
            note(
                "HC005",
                f"the YAML text has {len(text):,} characters; {LONGEST:,} are read",
                "Split the file, or give JSON.",
            )
        ]
    deep = _too_deep(text)
    if deep is not None:
        return [], [
            note(
                "HC005",
                f"values are nested deeper than {DEEPEST} levels",
                "Write it flatter.",
                lines.place(deep, deep + 1),
            )
        ]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # an anchor may be defined twice: the last one counts
            for composed in _compose(text):
                converter = _Converter(text, lines)
                trees.append(converter.convert(composed, 0))
                notes += converter.notes
    except TooLarge as error:
        place = lines.place(error.offset, error.offset + 1)
        notes.append(note("HC005", str(error), "Write the values out, or split the file.", place))
    except RecursionError:
        notes.append(note("HC005", "values are nested too deep", "Write it flatter."))
    except _errors() as error:
        notes.append(_syntax(error, lines))
    return trees, notes


def _compose(text: str) -> Iterator[Any]:
    from ruamel.yaml import YAML

    yield from YAML(typ="safe", pure=True).compose_all(text)


def _errors() -> tuple[type[Exception], ...]:
    from ruamel.yaml.error import YAMLError

    # ruamel.yaml lets plain ones through on some broken texts: a bad escape, a directive without a number.
    return (YAMLError, ValueError, IndexError, AttributeError, AssertionError, TypeError, KeyError, NotImplementedError)


def _too_deep(text: str) -> int | None:
    """Where brackets nest deeper than the limit; ruamel.yaml would recurse into them."""
    depth = 0
    for match in re.finditer(r"[\[\]{}]", text):
        depth = max(0, depth + (1 if match[0] in "[{" else -1))
        if depth > DEEPEST:
            return match.start()
    return None


def _syntax(error: Exception, lines: Lines) -> Noted:
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    problem = getattr(error, "problem", None) or getattr(error, "context", None) or ""
    words = shortened(str(problem)) if mark is not None else "it can't be parsed"
    place = lines.place(mark.index, mark.index + 1) if mark is not None else None
    tab = mark is not None and lines.text[mark.index : mark.index + 1] == "\t"
    help = (
        "Indent with spaces; YAML takes no tabs."
        if tab
        else "Look at quotes, colons and indentation there and in the line above."
    )
    return note("HC002", f"YAML: {words}", help, place)


class _Converter:
    """Turns ruamel.yaml's nodes into ours, with aliases written out up to the limit."""

    def __init__(self, text: str, lines: Lines) -> None:
        self.text, self.lines = text, lines
        self.notes = NoteList()
        self.count = 0
        self.reported: set[tuple[int, str]] = set()

    def convert(self, node: Any, depth: int) -> Node:
        if node is None:
            return Scalar(None, 0, 0)
        self.count += 1
        start, end = node.start_mark.index, node.end_mark.index
        if self.count > MOST_NODES:
            raise TooLarge(f"the aliases stand for more than {MOST_NODES:,} values", start)
        if depth > DEEPEST:
            raise TooLarge(f"values are nested deeper than {DEEPEST} levels", start)
        if node.id == "scalar":
            return self._scalar(node, start, end)
        end = start + len(self.text[start:end].rstrip())
        if node.id == "sequence":
            return Sequence(tuple(self.convert(item, depth + 1) for item in node.value), start, end)
        return self._mapping(node, start, end, depth)

    def _mapping(self, node: Any, start: int, end: int, depth: int) -> Mapping:
        own: dict[str, Entry] = {}
        merged: dict[str, Entry] = {}
        for key, value in node.value:
            name = key.value if key.id == "scalar" else f"? {key.id}"
            if name == "<<" and key.id == "scalar" and not key.style:
                for entry in self._merged(value, depth):
                    merged.setdefault(entry.key, entry)
                continue
            key_end = key.end_mark.index
            found = self.convert(value, depth + 1)
            if isinstance(found, Scalar) and found.value is None and found.start == found.end:
                found = Scalar(None, key_end, key_end)  # nothing is written; the parser has it where the next key is
            entry = Entry(str(name), key.start_mark.index, key_end, found)
            if entry.key in own:
                self._duplicate(entry, own[entry.key])
                del own[entry.key]
            own[entry.key] = entry
        entries = [entry for key, entry in merged.items() if key not in own]
        return Mapping((*entries, *own.values()), start, end)

    def _merged(self, value: Any, depth: int) -> Iterator[Entry]:
        for source in value.value if value.id == "sequence" else [value]:
            node = self.convert(source, depth + 1)
            if isinstance(node, Mapping):
                yield from node.entries

    def _duplicate(self, entry: Entry, first: Entry) -> None:
        if (entry.key_start, entry.key) in self.reported:
            return
        self.reported.add((entry.key_start, entry.key))
        line = self.lines.line(first.key_start)
        message = f"the key {shortened(entry.key)} is written twice, first in line {line}; the last value counts"
        place = self.lines.place(entry.key_start, max(entry.key_end, entry.value.end))
        self.notes.append(note("HC003", message, "Keep one of them.", place))

    def _scalar(self, node: Any, start: int, end: int) -> Scalar:
        style = _STYLES.get(node.style, "plain")
        if style in ("literal", "folded"):
            end = start + len(self.text[start:end].rstrip())
        anchor = _ANCHOR.match(self.text, start, end)
        start = anchor.end() if anchor is not None else start
        tag = str(getattr(node, "tag", None) or "")
        if style != "plain" or (tag.endswith(":str") and self.text[start : start + 1] == "!"):
            return Scalar(node.value, start, end, style)
        return Scalar(self._plain(node.value, start, end), start, end)

    def _plain(self, word: str, start: int, end: int) -> Any:
        if word in _FIXED:
            return _FIXED[word]
        if _NOT_A_NUMBER.fullmatch(word):
            return self._no_number(word, start, end, "is not a number that SGLang could use")
        if len(word) > LONGEST_NUMBER:
            return word
        if _INTEGER.fullmatch(word):
            digits = word.replace("_", "")
            if digits[:2] in ("0o", "0x"):
                return int(digits, 0)
            return int(digits) if digits.strip("+-") else word
        if _FLOAT.fullmatch(word):
            value = float(word.replace("_", ""))
            return value if math.isfinite(value) else self._no_number(word, start, end, "is beyond the largest float")
        return word

    def _no_number(self, word: str, start: int, end: int, why: str) -> Any:
        self.notes.append(
            note("HC004", f"{word} {why}", "Write a finite number, or leave it out.", self.lines.place(start, end))
        )
        return MISSING
