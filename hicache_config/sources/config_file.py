"""The file of `--config FILE` to the words that SGLang's own merger puts in front of a command line.

Source: ConfigArgumentMerger and prepare_server_args of the wheels 0.5.10 to 0.5.23 (srt/server_args_config_parser.py,
since 0.5.19 in srt/utils/): the switch and the path have to be two words, the file has to end in .yaml or .yml and to
hold one mapping; each key becomes a flag, each value its text as Python prints it. PyYAML reads YAML 1.1.

Must not import anything above this floor.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Sequence
from pathlib import PurePath
from typing import Any

from ..arguments.given import Given
from ..core.releases import release_key
from . import merger
from .document import Noted
from .folder import NotOpened, Opened
from .notes import note, shortened
from .text import Builder, Lines, Traced
from .tree import MISSING, Entry, Mapping, Node, Scalar
from .tree import Sequence as TreeSequence
from .yaml_tree import read_yaml

_SWITCH = "--config"
_YAML_11 = {
    **dict.fromkeys(("yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"), True),
    **dict.fromkeys(("no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"), False),
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
}
_BASES = (
    (re.compile(r"[-+]?0b[01_]+"), 2),
    (re.compile(r"[-+]?0x[0-9a-fA-F_]+"), 16),
    (re.compile(r"[-+]?0[0-7_]+"), 8),
    (re.compile(r"[-+]?(?:0|[1-9][0-9_]*)"), 10),
)
_SIXTIES = re.compile(r"[-+]?[1-9][0-9_]*(?::[0-5]?[0-9])+|[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+\.[0-9_]*")
_FLOAT = re.compile(r"[-+]?[0-9][0-9_]*\.[0-9_]*(?:[eE][-+][0-9]+)?|\.[0-9][0-9_]*(?:[eE][-+][0-9]+)?")
_ENDLESS = re.compile(r"([-+]?)\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)")
#: A number with more digits is left as it is written.
_LONGEST = 400


class ConfigFile:
    """The words of a command with those of the file that `--config` names taken out of it and its place."""

    def __init__(self, words: Sequence[Traced], lines: Lines, release: str) -> None:
        """`before` are the words of the file, `words` those of the command without the switch and the path."""
        self.lines, self.release = lines, release
        self.notes: list[Noted] = []
        self.before: list[Traced] = []
        self.words = list(words)
        at = [index for index, word in enumerate(words) if word.text == _SWITCH]
        if len(at) > 1:
            self._note(words[at[1]], "--config stands twice, which SGLang refuses", "Name one file.")
        elif at and at[0] + 1 < len(words) and words[at[0] + 1].is_known:
            self._take_in(words[at[0] + 1], words[: at[0]], words[at[0] + 2 :])
        for word in self.words:
            if word.text.startswith(f"{_SWITCH}="):
                message = "SGLang looks for --config as a word of its own; as --config=FILE the file is never read"
                self._note(word, message, "Write --config FILE.", severity="warning")

    def _take_in(self, named: Traced, before: Sequence[Traced], after: Sequence[Traced]) -> None:
        suffix = PurePath(named.text).suffix
        if suffix.lower() not in (".yaml", ".yml"):
            return self._note(named, f"--config takes a file that ends in .yaml or .yml, not in {suffix or 'nothing'}",
                              "Rename it.")  # fmt: skip
        try:
            if self.lines.folder is None:
                raise NotOpened("can't be looked for")
            opened = self.lines.folder.open(named.text, self.lines)
        except NotOpened as why:
            message = f"the file {shortened(named.text)} that --config names {why}, so what it holds is not checked"
            help = "Check it where it lies; what the command line says wins over it."
            self.notes.append(note("HC009", message, help, self._place(named), severity="note"))
            return None
        self.words = [*before, *after]
        self.before = list(self._words(opened, named))
        return None

    def _words(self, opened: Opened, named: Traced) -> Iterator[Traced]:
        trees, notes = read_yaml(opened.text, opened.lines)
        self.notes += notes
        node = trees[0] if trees else None
        if len(trees) > 1 or not (node is None or isinstance(node, Mapping) or _is_nothing(node)):
            what = f"{len(trees)} documents" if len(trees) > 1 else "no mapping"
            return self._note(
                named, f"SGLang refuses {shortened(named.text)}, which holds {what}", "Write one mapping."
            )
        for entry in node.entries if isinstance(node, Mapping) else ():
            place = opened.lines.place(entry.key_start, max(entry.key_end, entry.value.end))
            if merger.is_refused(entry.key, self.release) or _is_meta(entry.value):
                message = f"SGLang's --config reader refuses {entry.key}, which it can't hand on"
                help = f"Give --{entry.key.replace('_', '-')} on the command line."
                self.notes.append(note("HC020", message, help, place, argument=entry.key))
                continue
            if isinstance(_value(entry.value, opened.text), bool) and merger.is_switch(entry.key, self.release):
                yield from (opened.located(word) for word in self._of_entry(entry, opened.text))
                continue
            beside = [Given(entry.key, None, place=place)]
            self.notes += merger.broken_values([entry], beside, opened.text, self.release)
            for word in self._of_entry(entry, opened.text):
                yield opened.located(word)
        return None

    def _of_entry(self, entry: Entry, text: str) -> Iterator[Traced]:
        key = Builder(entry.key_start)
        for char in "--":
            key.add(char, entry.key_start)
        for index, char in enumerate(entry.key):
            key.add(char, min(entry.key_start + index, max(entry.key_start, entry.key_end - 1)))
        flag, value = key.done(entry.key_end), entry.value
        if isinstance(value, TreeSequence):
            yield from ([flag, *(_word(item, text, str) for item in value.items)] if value.items else [])
        elif isinstance(value, Mapping):
            printed = json.dumps if release_key(self.release) >= (0, 5, 14) else str
            yield from (flag, _word(value, text, printed))
        elif value.value is not MISSING:
            known = _value(value, text)
            if not isinstance(known, bool):
                yield from (flag, _word(value, text, str))
            elif not merger.is_switch(entry.key, self.release):
                yield from (flag, _word(value, text, lambda value: str(value).lower()))
            elif known:
                yield flag

    def _note(self, word: Traced, message: str, help: str, **more: Any) -> None:
        self.notes.append(note("HC020", message, help, self._place(word), argument="config", **more))

    def _place(self, word: Traced) -> Any:
        return self.lines.place(word.begin, word.end)


def _is_meta(node: Node) -> bool:
    """Whether a value is one of the two words that YAML 1.1 has for its own use."""
    return isinstance(node, Scalar) and node.style == "plain" and node.value in ("=", "<<")


def _is_nothing(node: Node) -> bool:
    return isinstance(node, Scalar) and node.value is None


def _word(node: Node, text: str, printed: Any) -> Traced:
    """A value as the word that SGLang makes of it; the characters keep their places where it is written just so."""
    if isinstance(node, Scalar):
        traced = node.traced(text)
        word = str(printed(_value(node, text)))
        return traced if traced.text == word else Traced.at(word, node.start, node.end)
    return Traced.at(str(printed(_value(node, text))), node.start, node.end)


def _value(node: Node, text: str) -> Any:
    """What PyYAML makes of a node: YAML 1.1, where `on` is true and `010` is eight."""
    if isinstance(node, Mapping):
        return {entry.key: _value(entry.value, text) for entry in node.entries}
    if isinstance(node, TreeSequence):
        return [_value(item, text) for item in node.items]
    raw = text[node.start : node.end]
    if node.style != "plain" or raw.startswith("!"):
        return node.value
    word = node.value if isinstance(node.value, str) else raw
    if word in _YAML_11:
        return _YAML_11[word]
    return word if len(word) > _LONGEST else _number(word)


def _number(word: str) -> Any:
    digits = word.replace("_", "")
    sign, unsigned = (digits[0], digits[1:]) if digits[:1] in ("-", "+") else ("", digits)
    for pattern, base in _BASES:
        if pattern.fullmatch(word):
            return int(sign + (unsigned.removeprefix("0b").removeprefix("0x") or "0"), base)
    if _SIXTIES.fullmatch(word):
        total: int | float = 0
        for part in unsigned.split(":"):
            total = total * 60 + (float(part) if "." in part else int(part or "0"))
        return -total if sign == "-" else total
    if _FLOAT.fullmatch(word):
        return float(digits)
    endless = _ENDLESS.fullmatch(word)
    return word if endless is None else math.nan if endless[1] is None else float(f"{endless[1]}inf")
