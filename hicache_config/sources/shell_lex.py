"""Shell text to tokens: words made of pieces, operators, arrays, here-documents. Nothing is expanded here.

A hand-made lexer for what launch scripts hold; what it does not know becomes a piece that says so, never an error.
Must not import anything above this floor.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TypeAlias

from .text import Builder, Traced

#: Nesting of ${A:-${B:-…}} that is followed.
DEEPEST = 10

_NAME = re.compile(r"[A-Za-z_]\w*|[0-9@*#?$!-]", re.ASCII)
_ARRAY = re.compile(r"([A-Za-z_]\w*)(\+?)=\(", re.ASCII)
_OPERATOR = re.compile(r";;&|;;|;&|&&|\|\||\|&|[;&|()\n]")
_REDIRECT = re.compile(r"(?:\d*|&)(?:<<<|<<-?|>>|>\||<&|>&|<>|[<>])(?!\()")
_EXPANSION = re.compile(r":?[-=?+]")
_INDEX = re.compile(r"\[([^\]\n]{0,80})\]")
_BROKEN_END = re.compile(r"\\[ \t]+(?=\n|$|#)")
_ENDS_WORD = frozenset(" \t\n;&|()<>")


@dataclass(frozen=True)
class Literal:
    """Characters as they are."""

    text: Traced
    quoted: bool


@dataclass(frozen=True)
class Variable:
    """`$NAME` or `${NAME…}`: `operator` is one of :- - := = :? ? :+ + or "" and `other` for any other rewriting."""

    name: str
    begin: int
    end: int
    quoted: bool
    index: str | None = None
    operator: str = ""
    argument: tuple[Piece, ...] = ()


@dataclass(frozen=True)
class Substitution:
    """`$(…)`, backquotes, `$((…))` or `<(…)`: what can't be known without running it."""

    kind: str
    begin: int
    end: int
    quoted: bool


Piece: TypeAlias = "Literal | Variable | Substitution"


@dataclass(frozen=True)
class Word:
    """A word before its expansions; offsets count in the lexed text."""

    pieces: tuple[Piece, ...]
    begin: int
    end: int

    @property
    def bare(self) -> str | None:
        """The text of a word without quotes and expansions, for keywords."""
        if len(self.pieces) == 1 and isinstance(self.pieces[0], Literal) and not self.pieces[0].quoted:
            return self.pieces[0].text.text
        return None


@dataclass(frozen=True)
class Array:
    """`NAME=(…)` or `NAME+=(…)`; `begin` is its offset in the lexed text."""

    name: str
    append: bool
    words: tuple[Word, ...]
    begin: int


@dataclass(frozen=True)
class Operator:
    """What stands between commands; `begin` is its offset in the lexed text."""

    text: str
    begin: int


@dataclass(frozen=True)
class HereDocument:
    """The lines of a here-document; `is_literal` where its label is quoted, so that nothing in it is expanded."""

    text: Traced
    is_literal: bool = False


Token: TypeAlias = "Word | Array | Operator | HereDocument"


class Lexer:
    """Takes a script apart. `broken_ends` are offsets of backslashes with blanks behind them at the end of a line."""

    def __init__(self, source: Traced) -> None:
        self.source, self.text = source, source.text
        self.here = 0
        self.broken_ends: list[int] = []
        self._waiting: list[tuple[str, bool, bool]] = []

    def tokens(self) -> list[Token]:
        """All tokens of the script."""
        out: list[Token] = []
        while (token := self._token()) is not None:
            out.append(token)
            if isinstance(token, Operator) and token.text == "\n" and self._waiting:
                out += self._here_documents()
        return out

    # --- tokens ---------------------------------------------------------------------------------------------------

    def _token(self) -> Token | None:
        while True:
            self._blanks()
            if self.here >= len(self.text):
                return None
            redirect = _REDIRECT.match(self.text, self.here)
            if redirect is None:
                break
            self._redirection(redirect)
        operator = _OPERATOR.match(self.text, self.here)
        if operator is not None:
            self.here = operator.end()
            return Operator(operator[0], operator.start())
        array = _ARRAY.match(self.text, self.here)
        if array is not None:
            self.here = array.end()
            return Array(array[1], array[2] == "+", self._array_words(), array.start())
        return self._word()

    def _blanks(self) -> None:
        """Over blanks, joined lines and comments."""
        while self.here < len(self.text):
            char = self.text[self.here]
            broken = _BROKEN_END.match(self.text, self.here)
            if char in " \t" or self.text.startswith("\\\n", self.here):
                self.here += 1 if char in " \t" else 2
            elif broken is not None:
                self.broken_ends.append(self.here)
                self.here = broken.end()
            elif char == "#" and (self.here == 0 or self.text[self.here - 1] in " \t\n;&|("):
                end = self.text.find("\n", self.here)
                self.here = len(self.text) if end < 0 else end
            else:
                return

    def _redirection(self, match: re.Match[str]) -> None:
        """Over a redirection and its target; a here-document's lines are read behind the end of the line."""
        self.here = match.end()
        self._blanks()
        operator = match[0].lstrip("0123456789&")
        target = self._word() if self.here < len(self.text) and self.text[self.here] not in "\n;|()" else None
        if operator in ("<<", "<<-") and target is not None:
            label = "".join(piece.text.text for piece in target.pieces if isinstance(piece, Literal))
            quoted = any(isinstance(piece, Literal) and piece.quoted for piece in target.pieces)
            self._waiting.append((label, operator == "<<-", quoted))

    def _here_documents(self) -> list[Token]:
        out: list[Token] = []
        for label, tabs, quoted in self._waiting:
            start = self.here
            blanks = r"\t*" if tabs else ""
            end = re.compile(rf"^{blanks}{re.escape(label)}$", re.MULTILINE)
            match = end.search(self.text, start)
            stop = match.start() if match is not None else len(self.text)
            out.append(HereDocument(self.source.part(start, stop), quoted))
            self.here = min(match.end() + 1, len(self.text)) if match is not None else stop
        self._waiting = []
        return out

    def _array_words(self) -> tuple[Word, ...]:
        words: list[Word] = []
        while True:
            self._blanks()
            if self.here >= len(self.text):
                return tuple(words)
            char = self.text[self.here]
            if char == ")":
                self.here += 1
                return tuple(words)
            if char in "\n;&|<>(":
                self.here += 1
            else:
                words.append(self._word())

    def _word(self) -> Word:
        begin = self.here
        pieces = self._pieces("", 0)
        if self.here == begin:  # a character that begins nothing
            self.here += 1
            pieces = [Literal(self.source.part(begin, self.here), False)]
        return Word(tuple(pieces), begin, self.here)

    # --- pieces ---------------------------------------------------------------------------------------------------

    def _pieces(self, closing: str, depth: int) -> list[Piece]:
        """Pieces up to `closing` ('"' or '}'), or to the end of the word; the closing character is not consumed."""
        pieces: list[Piece] = []
        quoted = closing == '"'
        plain = Builder(self.source.offset(self.here))

        def flush(quoted: bool) -> None:
            nonlocal plain
            if len(plain):
                pieces.append(Literal(plain.done(self.source.offset(self.here)), quoted))
            plain = Builder(self.source.offset(self.here))

        while self.here < len(self.text):
            char = self.text[self.here]
            if char == closing or (not closing and char in _ENDS_WORD):
                break
            if char == "\\":
                if not closing and _BROKEN_END.match(self.text, self.here):
                    break
                self._escape(plain, quoted)
            elif char == "'" and not quoted:
                flush(quoted)
                pieces.append(self._single(self.here + 1))
            elif char == '"' and not quoted:
                flush(quoted)
                pieces += self._double(depth)
            elif char in "$`":
                flush(quoted)
                pieces.append(self._dollar(quoted, depth) if char == "$" else self._backquotes(quoted))
            else:
                plain.add_from(self.source, self.here)
                self.here += 1
        flush(quoted)
        return pieces

    def _escape(self, plain: Builder, quoted: bool) -> None:
        following = self.text[self.here + 1 : self.here + 2]
        if following == "\n":
            self.here += 2
        elif following and (not quoted or following in '$`"\\'):
            plain.add_from(self.source, self.here + 1)
            self.here += 2
        else:
            plain.add_from(self.source, self.here)
            self.here += 1

    def _single(self, start: int) -> Literal:
        end = self.text.find("'", start)
        end = len(self.text) if end < 0 else end
        self.here = min(end + 1, len(self.text))
        return Literal(self.source.part(start, end), True)

    def _double(self, depth: int) -> list[Piece]:
        begin = self.here
        self.here += 1
        pieces = self._pieces('"', depth)
        self.here = min(self.here + 1, len(self.text))
        return pieces or [Literal(Traced.at("", self.source.offset(begin), self.source.offset(self.here)), True)]

    def _backquotes(self, quoted: bool) -> Substitution:
        begin = self.here
        end = self.text.find("`", begin + 1)
        self.here = len(self.text) if end < 0 else end + 1
        return Substitution("command", begin, self.here, quoted)

    def _dollar(self, quoted: bool, depth: int) -> Piece:
        begin = self.here
        if self.text.startswith("$'", begin) and not quoted:
            return self._single(begin + 2)
        if self.text.startswith("$(", begin):
            kind = "arithmetic" if self.text.startswith("$((", begin) else "command"
            self.here = self._closing_bracket(begin + 1)
            return Substitution(kind, begin, self.here, quoted)
        if self.text.startswith("${", begin):
            return self._braces(begin, quoted, depth)
        name = _NAME.match(self.text, begin + 1)
        self.here = name.end() if name is not None else begin + 1
        if name is None:
            return Literal(self.source.part(begin, self.here), True)
        return Variable(name[0], begin, self.here, quoted)

    def _closing_bracket(self, here: int) -> int:
        depth = 0
        for match in re.compile(r"[()]").finditer(self.text, here):
            depth += 1 if match[0] == "(" else -1
            if depth == 0:
                return match.end()
        return len(self.text)

    def _braces(self, begin: int, quoted: bool, depth: int) -> Piece:
        name = _NAME.match(self.text, begin + 2)
        if name is None or depth >= DEEPEST:
            return self._rewriting(begin, "", quoted)
        self.here = name.end()
        index = _INDEX.match(self.text, self.here)
        self.here = index.end() if index is not None else self.here
        if self.text.startswith("}", self.here):
            self.here += 1
            return Variable(name[0], begin, self.here, quoted, index[1] if index else None)
        operator = _EXPANSION.match(self.text, self.here)
        if operator is None:
            return self._rewriting(begin, name[0], quoted)
        self.here = operator.end()
        argument = self._pieces("}", depth + 1)
        self.here = min(self.here + 1, len(self.text))
        return Variable(name[0], begin, self.here, quoted, index[1] if index else None, operator[0], tuple(argument))

    def _rewriting(self, begin: int, name: str, quoted: bool) -> Piece:
        end = self.text.find("}", begin)
        self.here = len(self.text) if end < 0 else end + 1
        return Variable(name, begin, self.here, quoted, operator="other")
