"""The words of a launch command to arguments, as argparse would read them.

Source: SGLang 0.5.23, server_args.py:prepare_server_args (argparse with abbreviations) and cli/serve.py (a first word
without a dash is the model). Must not import anything above this floor.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from ..arguments.given import Given, Place
from ..arguments.names import find
from ..arguments.releases import FlagMatch, match_flag
from ..core.releases import NEWEST
from .json_tree import inside_text
from .notes import NoteList, not_known, note, shortened
from .text import Builder, Lines, Traced

_DASHES = "\u2010\u2011\u2012\u2013\u2014\u2015\u2212"
_LONG_DASH = re.compile(rf"[-{_DASHES}]*[{_DASHES}][-{_DASHES}]*(?=[A-Za-z])")
_NEGATIVE_NUMBER = re.compile(r"-\d+|-\d*\.\d+")
_SEVERAL = re.compile(r"(--[A-Za-z][\w-]*)[ \t\n]+\S")


@dataclass
class Parsed:
    """What a command line gives; `not_known` are flags whose value is not, `foreign` those of another program."""

    given: list[Given] = field(default_factory=list)
    notes: NoteList = field(default_factory=NoteList)
    not_known: list[str] = field(default_factory=list)
    foreign: list[Traced] = field(default_factory=list)


def parse(
    words: Sequence[Traced], lines: Lines, release: str = NEWEST, *, model_first: bool = False, launcher: str = "sglang"
) -> Parsed:
    """The arguments in the words behind a launch command.

    `model_first`: a first word without a dash is the model (`sglang serve MODEL`). `launcher` names the program when it
    is another one than SGLang and has flags of its own; those are noted and left out.
    """
    return _Parser(words, lines, release, launcher).parse(model_first)


class _Parser:
    def __init__(self, words: Sequence[Traced], lines: Lines, release: str, launcher: str) -> None:
        self.lines, self.release, self.launcher = lines, release, launcher
        self.out = Parsed()
        self.words = [part for word in words for part in self._straightened(word)]
        self.here = 0

    def parse(self, model_first: bool) -> Parsed:
        positional = model_first and self.words and not self.words[0].text.startswith("-")
        model = [self.words.pop(0)] if positional else []
        if any(word.text.startswith("--config") for word in self.words):
            self._config_file()
        from_file = len(self.out.given)
        if model:
            self._give("--model-path", None, model)
        self._read()
        self._without_overridden(from_file)
        if self.out.foreign:
            shown = ", ".join(dict.fromkeys(word.text.partition("=")[0] for word in self.out.foreign))
            first = self.out.foreign[0]
            self.out.notes.append(
                note(
                    "HC014",
                    f"not checked: {shown} of {self.launcher}, which SGLang does not have",
                    "",
                    self._place(first),
                )
            )
        return self.out

    def _read(self) -> None:
        while self.here < len(self.words):
            word = self.words[self.here]
            self.here += 1
            if word.text == "--":
                self._stray(self.words[self.here :])
                break
            if self._is_option(word):
                self._option(word)
            else:
                self._stray([word])

    def _config_file(self) -> None:
        """Read the words of the file that `--config` names first: what the command line says wins over them."""
        if self.launcher != "sglang":
            self._config_of_another()
            return
        from .config_file import ConfigFile

        found = ConfigFile(self.words, self.lines, self.release)
        for noted in found.notes:
            self.out.notes.append(noted)
        self.words = found.before
        self._read()
        self.words, self.here = found.words, 0

    def _config_of_another(self) -> None:
        for word in self.words:
            if word.text.partition("=")[0] == "--config":
                message = f"the file that --config of {self.launcher} names is not read here"
                help = "Check it as a source of its own; what the command line says wins over it."
                self.out.notes.append(note("HC009", message, help, self._place(word), severity="note"))

    def _without_overridden(self, from_file: int) -> None:
        """Drop what the file of --config gives and the command line gives again: that is what it is for."""
        named = [find(each.key, self.release) for each in self.out.given]
        again = {each.field for each in named[from_file:] if each is not None}
        kept = [
            each
            for each, known in zip(self.out.given[:from_file], named, strict=False)
            if known is None or known.field not in again
        ]
        self.out.given[:from_file] = kept

    # --- words ----------------------------------------------------------------------------------------------------

    def _straightened(self, word: Traced) -> list[Traced]:
        """The word with plain dashes; several words where a flag and its value were written as one."""
        dash = _LONG_DASH.match(word.text)
        if dash is not None:
            meant = "--" + re.split(r"[=\s]", word.text[dash.end() :], maxsplit=1)[0]
            place = self._place(word.part(0, dash.end()))
            message = f"{shortened(word.shown())} begins with a typographic dash, which SGLang does not take for a flag"
            self.out.notes.append(note("HC012", message, f"Write {meant} with two plain hyphens.", place))
            fixed = Builder(word.begin)
            for char in "--":
                fixed.add(char, word.starts[0])
            fixed.add_all(word.part(dash.end(), len(word.text)))
            word = fixed.done(word.end)
        several = _SEVERAL.match(word.text)
        if several is None or match_flag(self.release, several[1]).kind != "exact":
            return [word]
        message = f"{shortened(word.shown())} is one word; SGLang's parser takes it for neither a flag nor a value"
        self.out.notes.append(
            note("HC018", message, "Make the flag and its value two items, or join them with =.", self._place(word))
        )
        return [word.part(match.start(), match.end()) for match in re.finditer(r"\S+", word.text)]

    def _is_option(self, word: Traced) -> bool:
        """Whether argparse takes a word for an option and not for a value."""
        text = word.text
        if not text.startswith("-") or text == "-" or 0 in word.unknown:
            return False
        if self._match(word).kind != "none":
            return True
        return _NEGATIVE_NUMBER.fullmatch(text) is None and " " not in text

    def _match(self, word: Traced) -> FlagMatch:
        """What a word is taken for; a value in the word does not matter, nor its length."""
        return match_flag(self.release, word.text.partition("=")[0][:200])

    # --- options --------------------------------------------------------------------------------------------------

    def _option(self, word: Traced) -> None:
        match = self._match(word)
        key, sign, _ = word.text.partition("=")
        key_word = word.part(0, len(key))
        if not key_word.is_known:
            self._note_holes(key_word)
            return
        own = [word.behind(len(key) + 1)] if sign else None
        argument = match.argument
        if argument is None:
            self._unknown(word, key_word, own)
        elif own is not None:
            self._give(key, key_word, own, several=argument.nargs in ("+", "*"))
        elif argument.kind == "flag":
            self._give(key, key_word, [])
        elif argument.nargs in ("+", "*"):
            values = self._values()
            if values or argument.nargs == "*":
                self._give(key, key_word, values, several=True)
            else:
                self._missing(key, key_word)
        elif argument.nargs == "?" and not self._value_follows():
            place = self._place(key_word)
            self.out.given.append(Given(key, argument.const, False, place, place))
        elif self._value_follows():
            self._give(key, key_word, [self._take()])
        else:
            self._missing(key, key_word)

    def _unknown(self, word: Traced, key_word: Traced, own: list[Traced] | None) -> None:
        """A flag that the release does not have: the word behind it is taken for its value."""
        values = own if own is not None else [self._take()] if self._value_follows() else []
        if self.launcher != "sglang":
            self.out.foreign.append(word)
        else:
            self._give(key_word.text, key_word, values)

    def _value_follows(self) -> bool:
        return (
            self.here < len(self.words)
            and self.words[self.here].text != "--"
            and not self._is_option(self.words[self.here])
        )

    def _take(self) -> Traced:
        self.here += 1
        return self.words[self.here - 1]

    def _values(self) -> list[Traced]:
        values = []
        while self._value_follows():
            values.append(self._take())
        return values

    # --- results --------------------------------------------------------------------------------------------------

    def _give(self, key: str, key_word: Traced | None, values: list[Traced], *, several: bool = False) -> None:
        holes = [value for value in values if not value.is_known]
        for value in holes:
            self._note_holes(value, key)
        if holes:
            self.out.not_known.append(key)
            return
        key_place = self._place(key_word) if key_word is not None else None
        places = [self._place(value) for value in values]
        value_place = span(places[0], places[-1]) if places else None
        text: str | list[str] = [value.text for value in values] if several else values[0].text if values else ""
        self.out.given.append(
            Given(
                key, text, True, span(key_place or value_place, value_place), key_place, value_place,
                inside_text(values[0], self.lines) if len(values) == 1 else {},
            )
        )  # fmt: skip

    def _missing(self, key: str, key_word: Traced) -> None:
        following = self.words[self.here].shown() if self.here < len(self.words) else None
        before = f"before {shortened(following)}" if following else "at the end of the command"
        self.out.notes.append(
            note(
                "HC015",
                f"{key} has no value {before}",
                "Write its value behind it, or take the flag out.",
                self._place(key_word),
                argument=key,
            )
        )

    def _stray(self, words: Sequence[Traced]) -> None:
        for word in words:
            if not word.is_known:
                self._note_holes(word)
            else:
                message = f"{shortened(word.text) or 'an empty word'} belongs to no flag; SGLang refuses it"
                self.out.notes.append(
                    note("HC016", message, "Take it out, or write the flag that it is the value of.", self._place(word))
                )

    def _note_holes(self, word: Traced, argument: str | None = None) -> None:
        for unknown in word.unknown.values():
            self.out.notes.append(not_known(unknown, self.lines, argument))

    def _place(self, word: Traced) -> Place:
        return self.lines.place(word.begin, word.end)


def span(first: Place | None, last: Place | None) -> Place | None:
    """From the start of one place to the end of another; the first alone where the other does not follow it."""
    return first if first is None or last is None else first.to(last)
