"""Words of a shell script with their expansions: what is known becomes text, what is not stays a hole that says why.

Nothing is executed, and this process's own environment is not looked at. Must not import anything above this floor.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from .shell_lex import Literal, Piece, Substitution, Variable, Word
from .text import Builder, Traced, Unknown

#: Longer values and lists are not followed, so that no script grows without bound (A=$A$A).
LONGEST_VALUE = 65_536
MOST_WORDS = 4_096

_WHY = {"command": "is the output of a command", "arithmetic": "is computed by the shell", "": "is not known"}


@dataclass(frozen=True)
class Value:
    """What a variable holds: one text, or the words of an array."""

    words: tuple[Traced, ...]
    is_array: bool = False

    def same_as(self, other: Value | None) -> bool:
        """Whether both hold the same known words."""
        return (
            other is not None
            and self.is_array == other.is_array
            and [word.text for word in self.words] == [word.text for word in other.words]
            and all(word.is_known for word in (*self.words, *other.words))
        )


@dataclass
class Budget:
    """Characters that expansions may still make, for a whole script."""

    left: int = 4_000_000

    def spend(self, value: Value) -> bool:
        """Whether the value may still be used."""
        self.left -= 1 + sum(1 + len(word.text) for word in value.words)
        return self.left > 0


@dataclass
class Scope:
    """Variables of a script, and which of them it exports."""

    values: dict[str, Value] = field(default_factory=dict)
    exported: set[str] = field(default_factory=set)
    budget: Budget = field(default_factory=Budget)

    def copy(self) -> Scope:
        """A copy with variables of its own."""
        return Scope(dict(self.values), set(self.exported), self.budget)


class _Fields:
    """Collects the words that one word expands to; `end` is where that word ends in the document."""

    def __init__(self, begin: int, end: int) -> None:
        self.begin, self.end, self.stop = begin, end, end
        self.done: list[Traced] = []
        self.current = Builder(begin)
        self.open = False

    def add(self, text: Traced) -> None:
        """Text that belongs to the word at hand."""
        self.open, self.stop = True, self.end
        if len(self.current) + len(text.text) <= LONGEST_VALUE:
            self.current.add_all(text)
        else:
            self.current.add_hole(Unknown(text.text[:20], "is too long to follow", self.begin, self.end, "HC009"))

    def several(self, words: Sequence[Traced]) -> None:
        """Words of a list: they keep their own places, unless text of this word touches them."""
        for index, word in enumerate(words[:MOST_WORDS]):
            if index == 0 and self.open:
                self.add(word)
                continue
            self.close()
            self.current = Builder(word.begin)
            self.add(word)
            self.stop = word.end

    def close(self) -> None:
        """The word at hand ends."""
        if self.open:
            self.done.append(self.current.done(self.stop))
        self.current, self.open, self.stop = Builder(self.begin), False, self.end


def expand(word: Word, scope: Scope, source: Traced) -> list[Traced]:
    """The words that a word becomes; none where it expands to nothing."""
    begin, end = source.offset(word.begin), source.end_at(word.end)
    fields = _Fields(begin, end)
    _expand_into(fields, word.pieces, scope, source)
    fields.close()
    return fields.done


def expand_to_one(word: Word, scope: Scope, source: Traced) -> Traced:
    """The single text that a word becomes where the shell splits nothing (an assignment)."""
    out = Builder(source.offset(word.begin))
    for piece in word.pieces:
        for text in _joined(_values(piece, scope, source)):
            out.add_all(text)
            if len(out) > LONGEST_VALUE:
                whole = source.part(word.begin, word.end)
                return Traced.hole(
                    Unknown(whole.shown()[:40], "is too long to follow", whole.begin, whole.end, "HC009")
                )
    return out.done(source.end_at(word.end))


def _expand_into(fields: _Fields, pieces: Iterable[Piece], scope: Scope, source: Traced) -> None:
    for piece in pieces:
        if isinstance(piece, Literal):
            fields.add(piece.text)
            continue
        begin, end = source.offset(piece.begin), source.end_at(piece.end)
        value = _values(piece, scope, source)
        if value.is_array and isinstance(piece, Variable) and piece.index != "*":
            fields.several(value.words)
        elif piece.quoted:
            fields.add(_one(value, begin, end))
        else:
            _split_into(fields, value, begin, end)


def _split_into(fields: _Fields, value: Value, begin: int, end: int) -> None:
    """An expansion without quotes: the shell splits it at white space."""
    words = [part for word in value.words for part in _split(word)]
    if len(words) > 1:
        fields.several(words)
    elif words:
        fields.add(words[0].moved_to(begin, end))


def _split(text: Traced) -> list[Traced]:
    out, start = [], None
    for index, char in enumerate(text.text + " "):
        if char in " \t\n":
            if start is not None:
                out.append(text.part(start, index))
            start = None
        elif start is None:
            start = index
    return out


def _one(value: Value, begin: int, end: int) -> Traced:
    out = Builder(begin)
    for text in _joined(value):
        out.add_all(text)
    return out.done(end).moved_to(begin, end)


def _joined(value: Value) -> list[Traced]:
    texts: list[Traced] = []
    for word in value.words:
        if texts:
            texts.append(Traced.at(" ", word.begin, word.begin))
        texts.append(word)
    return texts


def _values(piece: Piece, scope: Scope, source: Traced) -> Value:
    """What a piece stands for."""
    if isinstance(piece, Literal):
        return Value((piece.text,))
    whole = source.part(piece.begin, piece.end)
    if isinstance(piece, Substitution):
        return _hole(whole, _WHY[piece.kind], "HC009")
    if piece.operator == "other":
        return _hole(whole, "is rewritten by the shell", "HC009")
    value = _element(scope.values.get(piece.name), piece.index)
    if value is not None and not scope.budget.spend(value):
        return _hole(whole, "is too long to follow", "HC009")
    is_set = value is not None and (not piece.operator.startswith(":") or any(word.text for word in value.words))
    if piece.operator.endswith("+"):
        return _argument(piece, scope, source) if is_set else Value((Traced.at("", whole.begin, whole.end),))
    if is_set and value is not None:
        return value
    if piece.operator.endswith(("-", "=")):
        default = _argument(piece, scope, source)
        if piece.operator.endswith("=") and piece.index is None:
            scope.values[piece.name] = default
        return default
    if value is not None and not piece.operator:
        return value
    if piece.name in "@*":
        return Value(_hole(whole, "are the words the script is called with", "HC008").words, is_array=True)
    if piece.name.isdigit():
        return _hole(whole, "is a word the script is called with", "HC008")
    unset = _hole(whole, "has no value in this file", "HC008")
    return Value(unset.words, is_array=piece.index in ("@", "*"))


def _element(value: Value | None, index: str | None) -> Value | None:
    if value is None or (index in ("@", "*")):
        return value
    if not value.is_array:
        return value
    number = (
        int(index)
        if index is not None and index.isascii() and index.isdigit() and len(index) < 6
        else 0
        if index is None
        else -1
    )
    return Value((value.words[number],)) if 0 <= number < len(value.words) else None


def _argument(piece: Variable, scope: Scope, source: Traced) -> Value:
    out = Builder(source.offset(piece.begin))
    for part in piece.argument:
        for text in _joined(_values(part, scope, source)):
            out.add_all(text)
            if len(out) > LONGEST_VALUE:
                return _hole(source.part(piece.begin, piece.end), "is too long to follow", "HC009")
    return Value((out.done(source.end_at(piece.end)),))


def _hole(whole: Traced, why: str, code: str) -> Value:
    return Value((Traced.hole(Unknown(whole.shown(), why, whole.begin, whole.end, code)),))
