"""A source of any format to a document: the one way in. Never raises for what a source holds.

Must not import anything above this floor.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from ..core.releases import NEWEST
from .document import Document, Noted
from .files import Unreadable, is_folder, load, walk
from .folder import Folder
from .formats import Content, reader
from .notes import note
from .sniff import FORMATS, sniff
from .text import Lines, Traced, without_surrogates

#: Arguments whose names other programs' files are likely to share.
_SHARED_NAMES = frozenset({"device", "dtype", "quantization", "load_format", "is_embedding"})

#: Characters that are read of each format; more takes too long.
LONGEST = {
    "json": 2_000_000,
    "server-info": 2_000_000,
    "toml": 300_000,
    "shell": 300_000,
    "command": 300_000,
    "dockerfile": 300_000,
    "systemd": 300_000,
    "python": 300_000,
    "markdown": 200_000,
}


def read(source: str, *, text: str | bytes | None = None, form: str | None = None, release: str = NEWEST) -> Document:
    """The engines of one source. `-` is standard input; `text` is used instead of what `source` names, when given.

    `form` forces a format (one of FORMATS), `release` is the SGLang release whose flags a command line is read with.
    Raises ValueError for a `form` that there is not; for a bad source never: its document has no engines, and notes.
    """
    if form is not None and form not in FORMATS:
        raise ValueError(f"{form!r} is no format; there are {', '.join(FORMATS)}")
    try:
        content, notes = load(source, text, form)
    except Unreadable as error:
        return Document(source, form or "unknown", error.text, notes=(error.noted,))
    if not content.strip():
        empty = note("HC007", f"{_shown(source)} is empty", "Write arguments into it, such as hicache_size: 100.")
        return Document(source, form or "unknown", content, notes=(*notes, empty))
    return _parsed(source, content, form, release, notes)


def read_all(
    sources: Iterable[str], form: str | None = None, release: str = NEWEST, *, skip_unrelated: bool = False
) -> Iterator[Document]:
    """The documents of several sources. A folder is walked in the order of names; bystanders in it are left out.

    `skip_unrelated` leaves them out among named files as well, for callers that name every file of a repository.
    """
    for source in sources:
        if is_folder(source):
            yield from _folder(source, form, release)
            continue
        document = read(source, form=form, release=release)
        if not skip_unrelated or _concerns_us(document, release):
            yield document


def read_command(argv: Sequence[str], release: str = NEWEST) -> Document:
    """The engine of a launch command given as words; places count in the words joined by single blanks."""
    from .formats.command import of_words

    words = [without_surrogates(word) for word in argv]
    text = " ".join(words)
    lines = Lines(text, folder=Folder(Path(), is_free=True))
    traced, start = [], 0
    for word in words:
        traced.append(Traced.of(word, start))
        start += len(word) + 1
    engines = of_words(traced, lines, release)
    notes = () if engines else (_nothing("the command", "Write sglang serve and its flags, or the flags alone."),)
    return Document("command line", "command", text, tuple(engines), notes, _included(lines))


def _folder(folder: str, form: str | None, release: str) -> Iterator[Document]:
    found = False
    for each in walk(folder):
        if isinstance(each, Noted):
            found = True
            yield Document(folder, form or "unknown", "", notes=(each,))
            continue
        document = read(each, form=form, release=release)
        if _concerns_us(document, release):
            found = True
            yield document
    if not found:
        nothing = _nothing(f"the folder {folder}", "Name the file that holds the arguments or the launch command.")
        yield Document(folder, form or "unknown", "", notes=(nothing,))


def _concerns_us(document: Document, release: str) -> bool:
    """Whether a file is more than a bystander: it starts SGLang, has arguments of HiCache or two that sizes depend on.

    A file that could not be read may be any; it counts.
    """
    if not document.engines:
        return any(noted.finding.code != "HC007" for noted in document.notes)
    if document.format not in ("json", "yaml", "toml", "server-info"):
        return True
    keys = [given.key for engine in document.engines for given in engine.given]
    if any("hicache" in key or "hierarchical" in key for key in keys):
        return True
    from ..arguments import ServerArgs
    from ..arguments.names import find

    found = [find(key, release) for key in keys]
    sized = {named.field for named in found if named and named.field in ServerArgs.model_fields} - _SHARED_NAMES
    return len(sized) > 1


def _parsed(source: str, text: str, form: str | None, release: str, notes: Sequence[Noted]) -> Document:
    lines = Lines(text, folder=Folder.of(source))
    chosen = form or sniff(source, text)
    limit = LONGEST.get(chosen)
    if limit is not None and len(text) > limit:
        large = note(
            "HC005",
            f"{_shown(source)} has {len(text):,} characters; {limit:,} are read as {chosen}",
            "Is it the right file?",
        )
        return Document(source, chosen, text, notes=(*notes, large))
    try:
        actual, engines, found = reader(chosen).read(Content(text, lines, release, form))
    except RecursionError:
        deep = note("HC005", f"{_shown(source)} is nested too deep", "Write it flatter.")
        return Document(source, chosen, text, notes=(*notes, deep))
    if not engines and not found:
        found = [_nothing(_shown(source), f"Read as {actual}; another format can be forced with --from.")]
    return Document(source, actual, text, tuple(engines), (*notes, *found), _included(lines))


def _included(lines: Lines) -> dict[str, str]:
    return {other.file: other.text for other in lines.others}


def _shown(source: str) -> str:
    return "standard input" if source == "-" else source


def _nothing(where: str, help: str) -> Noted:
    return note("HC007", f"{where} starts no SGLang server and holds no arguments of one", help)


__all__ = ["FORMATS", "read", "read_all", "read_command"]
