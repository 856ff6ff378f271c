"""A shell script to the servers it starts. Walked from top to bottom; nothing is executed.

Must not import anything above this floor.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from .document import Noted
from .launch import are_arguments, find_launch, image_arguments, inner_scripts, is_runner, mentions_launch
from .notes import note, shortened
from .shell_beside import Beside
from .shell_document import form_of, unescaped
from .shell_flow import Flow, Simple
from .shell_lex import Array, HereDocument, Lexer, Literal, Word
from .shell_values import MOST_WORDS, Scope, Value, expand, expand_to_one
from .text import Builder, Lines, Traced, Unknown

MOST_COMMANDS = 5_000
DEEPEST_SCRIPT = 4

_ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)(\+?)=", re.ASCII)
_DECLARING = frozenset({"export", "declare", "typeset", "local", "readonly"})
_PROMPT = re.compile(
    r"^[ \t]*(?:\([\w.-]+\)[ \t]*)?"
    r"(?:[\w.-]+@[\w.-]+[^\s$#]*[$#][ \t]+|\$[ \t]+|\$(?=(?:python3?|sglang|docker|nohup|export|env|torchrun)\b))",
    re.MULTILINE,
)
_SECOND_PROMPT = re.compile(r"(?<=\\\n)[ \t]*>[ \t]?(?=[ \t]*[-\u2010-\u2015\u2212])")


@dataclass(frozen=True)
class Command:
    """A command that starts a server: its words, the words of commands around it, and the variables at that point.

    Or a `document` in another format that the script holds (a manifest for kubectl, a unit).
    """

    words: tuple[Traced, ...]
    scope: Scope
    outer: tuple[Traced, ...] = ()
    notes: tuple[Noted, ...] = ()
    document: HereDocument | None = None


def read_script(source: Traced, lines: Lines, scope: Scope | None = None) -> list[Command]:
    """The commands of a script that start a server, in order."""
    plain, notes = without_prompts(source, lines)
    commands = _without_shown(_Walker(plain, lines, scope or Scope(), _Around(Beside(lines))).walk())
    if commands:
        commands[0] = replace(commands[0], notes=(*notes, *commands[0].notes))
    return commands


def _without_shown(commands: list[Command]) -> list[Command]:
    """The commands without those that a program which runs none is handed, where another one is handed the same.

    `log_command "$CMD"` and then `bash -c "$CMD"` start one server.
    """
    texts = [tuple(word.text for word in command.words) for command in commands]
    return [
        command
        for command, text in zip(commands, texts, strict=True)
        if not command.outer or texts.count(text) == 1 or is_runner(command.outer)
    ]


def without_prompts(source: Traced, lines: Lines) -> tuple[Traced, list[Noted]]:
    """The script with blanks for the prompts of a terminal that were copied with it, and a note for each."""
    found = list(_PROMPT.finditer(source.text)) if mentions_launch(source.text) else []
    found += list(_SECOND_PROMPT.finditer(source.text))
    if not found:
        return source, []
    chars = list(source.text)
    notes = []
    for match in sorted(found, key=lambda each: each.start()):
        chars[match.start() : match.end()] = " " * len(match[0])
        shown = match[0].strip()
        start = match.start() + match[0].index(shown)
        part = source.part(start, start + len(shown))
        message = f"{shown} is the prompt of a terminal, copied with the command"
        notes.append(note("HC017", message, "Take it out.", lines.place(part.begin, part.end)))
    return Traced("".join(chars), source.starts, source.begin, source.end, source.unknown), notes


@dataclass(frozen=True)
class _Around:
    """What a script stands in: files beside the outermost one, how deep it is, words of the commands around it."""

    beside: Beside
    depth: int = 0
    outer: tuple[Traced, ...] = ()

    def inside(self, words: tuple[Traced, ...] = ()) -> _Around:
        """The same one script deeper."""
        return _Around(self.beside, self.depth + 1, (*self.outer, *words))


class _Walker:
    def __init__(self, source: Traced, lines: Lines, scope: Scope, around: _Around) -> None:
        self.source, self.lines, self.around = source, lines, around
        self.lexer = Lexer(source)
        self.flow = Flow(source, scope)
        self.found: list[Command] = []
        self.is_open = False  # whether the last command started a server, so that stray flags can belong to it

    def walk(self) -> list[Command]:
        tokens = self.lexer.tokens()
        for count, command in enumerate(self.flow.commands(tokens)):
            if count > MOST_COMMANDS:
                self._too_long()
                break
            self._loop_variables()
            if isinstance(command, HereDocument):
                self._document(command)
            else:
                self._command(command)
        return self.found

    @property
    def scope(self) -> Scope:
        return self.flow.scope

    def _too_long(self) -> None:
        if self.found:
            last = self.found[-1]
            tail = note("HC005", f"only the first {MOST_COMMANDS:,} commands of this script are read", "Split it.")
            self.found[-1] = replace(last, notes=(*last.notes, tail))

    def _loop_variables(self) -> None:
        for frame in self.flow.frames:
            if frame.keyword in ("for", "select") and not frame.arms:
                match = re.compile(r"(?:for|select)\s+([A-Za-z_]\w*)", re.ASCII).match(self.source.text, frame.begin)
                frame.arms.append(frame.before)
                if match is not None:
                    part = self.source.part(match.start(1), match.end(1))
                    why = f"changes with each pass of the `{frame.keyword}` in line {self.lines.line(part.begin)}"
                    self.flow.loop_variable(match[1], Unknown(f"${match[1]}", why, part.begin, part.end, "HC009"))

    # --- one command ----------------------------------------------------------------------------------------------

    def _command(self, command: Simple) -> None:
        first = command[0]
        if isinstance(first, Word) and first.bare in _DECLARING:
            self._declare(command)
            return
        settings = 0
        while settings < len(command) and _assignment(command[settings]) is not None:
            settings += 1
        if settings == len(command):
            for token in command:
                self._assign(token)
            return
        words = [self._setting(token) for token in command[:settings] if isinstance(token, Word)]
        for token in command[settings:]:
            if isinstance(token, Word) and len(words) < MOST_WORDS:
                words += expand(token, self.scope, self.source)
        self._run(words)

    def _declare(self, command: Simple) -> None:
        exports = any(isinstance(word, Word) and word.bare in ("export", "-x", "-gx") for word in command)
        for token in command[1:]:
            name = self._assign(token) or (token.bare if isinstance(token, Word) else None)
            if exports and name is not None:
                self.scope.exported.add(name)

    def _assign(self, token: Word | Array) -> str | None:
        """Carry out an assignment; the name it sets, or None for any other word."""
        if isinstance(token, Array):
            words = [part for word in token.words for part in expand(word, self.scope, self.source)]
            before = self.scope.values.get(token.name) if token.append else None
            both = (*(before.words if before is not None else ()), *words)
            self.scope.values[token.name] = Value(both[:MOST_WORDS], is_array=True)
            return token.name
        found = _assignment(token)
        if found is None:
            return None
        name, append, value = found
        text = expand_to_one(value, self.scope, self.source)
        before = self.scope.values.get(name) if append else None
        if before is not None and not before.is_array and before.words:
            joined = Builder(before.words[0].begin)
            joined.add_all(before.words[0])
            joined.add_all(text)
            text = joined.done(text.end)
        if self.scope.budget.spend(Value((text,))):
            self.scope.values[name] = Value((text,))
        return name

    def _setting(self, token: Word) -> Traced:
        """`NAME=value` in front of a command, as one word."""
        found = _assignment(token)
        if found is None:
            return self.source.part(token.begin, token.end)
        name, _, value = found
        text = expand_to_one(value, self.scope, self.source)
        out = Builder(self.source.offset(token.begin))
        out.add_all(Traced.of(f"{name}=", self.source.offset(token.begin)))
        out.add_all(text)
        return out.done(text.end)

    def _run(self, words: list[Traced]) -> None:
        if not words:
            return
        if words[0].text in ("source", ".") and len(words) > 1:
            self._take_in(words[1])
            return
        if find_launch(words) is not None or image_arguments(words) is not None:
            self._start(words)
            return
        scripts = inner_scripts(words)
        if scripts:
            for script in scripts:
                self._nested(script, tuple(words))
        elif self.is_open and are_arguments(words):
            self._continue(words)
            return
        self.is_open = False

    def _start(self, words: list[Traced]) -> None:
        notes = []
        loop = next((frame for frame in self.flow.frames if frame.kind == "loop"), None)
        if loop is not None:
            begin = self.source.offset(loop.begin)
            message = f"the server is started in a loop (`{loop.keyword}`); what one pass of it would start is read"
            place = self.lines.place(begin, begin + len(loop.keyword))
            notes.append(note("HC009", message, "Write out each command to check them all.", place))
        if any(unknown.code == "HC008" for word in words for unknown in word.unknown.values()):
            notes += self.around.beside.unread
        self.found.append(Command(tuple(words), self.scope.copy(), self.around.outer, tuple(notes)))
        self.is_open = True

    def _take_in(self, named: Traced) -> None:
        """`source FILE`: what the file sets holds from here on; its commands count too."""
        with self.around.beside.open(named) as script:
            if script is not None and self.around.depth < DEEPEST_SCRIPT:
                inner = _Walker(script, self.lines, self.scope, self.around.inside())
                self.found += inner.walk()
                self.flow.scope = inner.scope
        self.is_open = False

    def _continue(self, words: list[Traced]) -> None:
        """Flags where a command is expected: the line before should have ended with a backslash."""
        last = self.found[-1]
        end = last.words[-1].end
        broken = next((at for at in self.lexer.broken_ends if end <= self.source.offset(at) < words[0].begin), None)
        if broken is not None:
            begin = self.source.offset(broken)
            behind = self.lexer.text[broken:].lstrip("\\ \t")[:1]
            what = "a comment stands" if behind == "#" else "blanks stand"
            message, place = (
                f"{what} behind the backslash, so the command ends in this line",
                self.lines.place(begin, begin + 1),
            )
        else:
            message = (
                f"the command above ends before {shortened(words[0].shown())}; a shell would run this line on its own"
            )
            place = self.lines.place(words[0].begin, words[0].end)
        help = (
            "End the line before with a backslash and nothing behind it; no comment or empty line may stand in between."
        )
        self.found[-1] = replace(
            last, words=(*last.words, *words), notes=(*last.notes, note("HC011", message, help, place))
        )

    def _document(self, document: HereDocument) -> None:
        """A here-document: a script, or a file in another format."""
        if form_of(document) is None:
            self._nested(document.text if document.is_literal else unescaped(document.text), ())
        else:
            self.found.append(Command((), self.scope.copy(), document=document))
            self.is_open = False

    def _nested(self, script: Traced, outer: tuple[Traced, ...]) -> None:
        """A script within the script: it sees what is exported."""
        if self.around.depth < DEEPEST_SCRIPT and mentions_launch(script.text):
            seen = (
                self.scope.values
                if not outer
                else {n: v for n, v in self.scope.values.items() if n in self.scope.exported}
            )
            inner = Scope(dict(seen), set(self.scope.exported), self.scope.budget)
            self.found += _Walker(script, self.lines, inner, self.around.inside(outer)).walk()


def _assignment(token: Word | Array) -> tuple[str, bool, Word] | None:
    """Name, whether it appends, and the value of an assignment; an array has its own token."""
    if isinstance(token, Array):
        return token.name, token.append, Word((), 0, 0)
    first = token.pieces[0] if token.pieces else None
    if not isinstance(first, Literal) or first.quoted:
        return None
    match = _ASSIGNMENT.match(first.text.text)
    if match is None:
        return None
    rest = Literal(first.text.part(match.end(), len(first.text.text)), False)
    pieces = (rest, *token.pieces[1:]) if rest.text.text else token.pieces[1:]
    return match[1], bool(match[2]), Word(pieces, token.begin + match.end(), token.end)
