"""Simple commands of a shell script in order, and how variables come out of `if`, `case` and loops.

Both arms of an `if` and the body of a loop are walked once. Must not import anything above this floor.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from .shell_lex import Array, HereDocument, Operator, Token, Word
from .shell_values import MOST_WORDS, Scope, Value
from .text import Builder, Traced, Unknown

Simple: TypeAlias = "list[Word | Array]"

#: Conditions and loops that are followed in one script, and within each other.
MOST_FRAMES = 2_000
DEEPEST = 50

_OPENING = {"if": "if", "case": "case", "while": "loop", "until": "loop", "for": "loop", "select": "loop"}
_CLOSING = frozenset({"fi", "esac", "done"})
_OF_ARGUMENTS = re.compile(r"\$#|\$\{#\}|\$@|\$\*|\bgetopts\b")
_PASSED = frozenset({"then", "do", "{", "}", "!", "time", "elif", "else"})


@dataclass
class Frame:
    """An open `if`, `case` or loop: the variables before it and at the end of each arm so far."""

    kind: str
    keyword: str
    begin: int
    before: Scope
    arms: list[Scope] = field(default_factory=list)
    has_else: bool = False


class Flow:
    """Keeps the frames and the variables of a script while its commands go by."""

    def __init__(self, source: Traced, scope: Scope) -> None:
        self.source, self.scope = source, scope
        self.frames: list[Frame] = []
        self._in_pattern = False
        self._opened = 0

    # --- commands -------------------------------------------------------------------------------------------------

    def commands(self, tokens: Sequence[Token]) -> Iterator[Simple | HereDocument]:
        """Simple commands without their keywords, and here-documents."""
        command: Simple = []
        follows_test = False  # whether what comes next runs only when a test holds: [ … ] && A=1
        for token in tokens:
            if self._in_pattern and (self._still_pattern(token) or not isinstance(token, Word)):
                continue
            if isinstance(token, HereDocument):
                yield token
            elif isinstance(token, Operator):
                yield from self._maybe(command) if follows_test else self._finished(command)
                follows_test = token.text in ("&&", "||") and (follows_test or _is_test(command))
                command = []
                if token.text.startswith(";") and token.text != ";":
                    self._next_arm(is_else=False)
                    self._in_pattern = bool(self.frames) and self.frames[-1].kind == "case"
            else:
                if len(command) < MOST_WORDS:
                    command.append(token)
                if isinstance(token, Word) and token.bare == "in" and len(command) == 3 and _bare(command[0]) == "case":
                    self._open(command[0])
                    command, self._in_pattern = [], True
        yield from self._maybe(command) if follows_test else self._finished(command)

    def _maybe(self, command: Simple) -> Iterator[Simple]:
        """A command that may not run: what it sets is not known afterwards."""
        before = self.scope.copy()
        yield from self._finished(command)
        if command and self.scope.values != before.values:
            first = command[0].begin
            self.scope = self._merged(Frame("if", "&&", first, before), [self.scope, before])

    def _still_pattern(self, token: Token) -> bool:
        """Whether a token where a pattern of `case` is expected leaves it open."""
        if isinstance(token, Word) and token.bare == "*" and self.frames:
            self.frames[-1].has_else = True
        if (isinstance(token, Operator) and token.text == ")") or (isinstance(token, Word) and token.bare == "esac"):
            self._in_pattern = False
        return self._in_pattern

    def _finished(self, command: Simple) -> Iterator[Simple]:
        while command:
            word = _bare(command[0])
            if word in _OPENING:
                self._open(command[0])
                if word in ("for", "select", "case"):
                    return
            elif word in _CLOSING:
                self._close()
            elif word == "function":
                command = command[1:]
            elif word in ("elif", "else"):
                self._next_arm(is_else=word == "else")
            elif word not in _PASSED:
                yield command
                return
            command = command[1:]

    # --- frames ---------------------------------------------------------------------------------------------------

    def _open(self, token: Word | Array) -> None:
        keyword = _bare(token) or ""
        begin = token.begin
        self._opened += 1
        if self._opened > MOST_FRAMES or len(self.frames) >= DEEPEST:
            return  # nobody writes that many; what it would set is taken as set
        self.frames.append(Frame(_OPENING[keyword], keyword, begin, self.scope.copy()))

    def loop_variable(self, name: str, unknown: Unknown) -> None:
        """A variable that each pass of a loop sets anew."""
        self.scope.values[name] = Value((Traced.hole(unknown),))

    def _next_arm(self, *, is_else: bool) -> None:
        if self.frames and self.frames[-1].kind != "loop":
            frame = self.frames[-1]
            frame.arms.append(self.scope)
            frame.has_else = frame.has_else or is_else
            self.scope = frame.before.copy()

    def _close(self) -> None:
        if not self.frames:
            return
        frame = self.frames.pop()
        if frame.kind == "loop" and self._reads_arguments(frame):
            # The script is called without arguments, as $1 is taken for unset: its own values hold.
            self.scope = Scope(frame.before.values, self.scope.exported, self.scope.budget)
            return
        arms = [*frame.arms, self.scope]
        if not frame.has_else:
            arms.append(frame.before)
        self.scope = self._merged(frame, arms)

    def _reads_arguments(self, frame: Frame) -> bool:
        """Whether a loop goes over the words that the script is called with."""
        head = re.split(r"\bdo\b", self.source.text[frame.begin : frame.begin + 200], maxsplit=1)[0]
        return _OF_ARGUMENTS.search(head) is not None

    def _merged(self, frame: Frame, arms: Sequence[Scope]) -> Scope:
        out = Scope({}, set().union(*(arm.exported for arm in arms)), self.scope.budget)
        for name in dict.fromkeys(name for arm in arms for name in arm.values):
            values = [arm.values.get(name) for arm in arms]
            first = values[0]
            if first is not None and all(other is first or first.same_as(other) for other in values[1:]):
                out.values[name] = first
            else:
                out.values[name] = self._differing(name, frame, values)
        return out

    def _differing(self, name: str, frame: Frame, values: Sequence[Value | None]) -> Value:
        begin = self.source.offset(frame.begin)
        depends = f"depends on `{self._shown(frame.begin)}`"
        end = begin + len(frame.keyword)
        if frame.keyword == "&&":
            depends, end = "is set in a command that runs only when a test holds", begin + len(name)
        unknown = Unknown(f"${name}", depends, begin, end, "HC009")
        arrays = [value for value in values if value is not None and value.is_array]
        if not arrays:
            part = _common_text([value.words for value in values if value is not None])
            if part is None or None in values:
                return Value((Traced.hole(unknown),))
            rest = Builder(part.begin)
            rest.add_all(part)
            rest.add(" ", begin)
            rest.add_hole(replace(unknown, shown=f"a part of {name}"))
            return Value((rest.done(part.end),))
        common = _common_start([value.words if value is not None else () for value in values])
        return Value((*common, Traced.hole(replace(unknown, shown=f"a part of {name}"))), is_array=True)

    def _shown(self, begin: int) -> str:
        return re.split(r"[\n;]", self.source.text[begin : begin + 60], maxsplit=1)[0].strip()


def _bare(token: Word | Array) -> str | None:
    return token.bare if isinstance(token, Word) else None


def _is_test(command: Simple) -> bool:
    return bool(command) and _bare(command[0]) in ("[", "[[", "test")


def _common_text(texts: Sequence[Sequence[Traced]]) -> Traced | None:
    """The shortest of several texts where the others go on behind it with more words (`CMD="$CMD --flag"`)."""
    if any(len(words) != 1 for words in texts):
        return None
    shortest = min((words[0] for words in texts), key=lambda text: len(text.text))
    length = len(shortest.text)
    for (text,) in texts:
        goes_on = text.text[length : length + 1] in ("", " ", "\t", "\n") or shortest.text[-1:].isspace()
        holes = {at: hole for at, hole in text.unknown.items() if at < length}
        if not goes_on or text.text[:length] != shortest.text or holes != shortest.unknown:
            return None
    return shortest if len(shortest.text.split()) > 1 else None


def _common_start(lists: Sequence[Sequence[Traced]]) -> tuple[Traced, ...]:
    common: list[Traced] = []
    for words in zip(*lists, strict=False):
        if any(word is not words[0] and not (word.is_known and word.text == words[0].text) for word in words):
            break
        common.append(words[0])
    return tuple(common)
