"""A source of any format to a document: the one way in. Never raises for what a source holds.

Must not import anything above this floor.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from ..arguments import ServerArgs
from ..arguments.names import find
from ..core.releases import NEWEST
from .arguments_file import ArgumentsReader
from .compose import is_compose, read_compose
from .container import engine_of_launch, engines_of_script, engines_of_words, named
from .dockerfile import read_dockerfile
from .document import Document, Engine, Noted
from .files import Unreadable, is_folder, load, walk
from .json_tree import read_json
from .kubernetes import KubernetesReader
from .launch import Launch
from .log import read_log
from .manifest import split_words
from .notes import note
from .sniff import FORMATS, sniff
from .text import Lines, Traced, without_surrogates
from .toml_tree import read_toml
from .tree import Mapping, Node
from .tree import Sequence as TreeSequence
from .yaml_tree import read_yaml

#: Arguments that sizes depend on and whose names no other program's files are likely to share.
_SIZED = frozenset(ServerArgs.model_fields) - {"device", "dtype", "quantization", "load_format", "is_embedding"}

#: Characters that are read of each format; more takes too long.
LONGEST = {
    "json": 2_000_000,
    "server-info": 2_000_000,
    "toml": 300_000,
    "shell": 300_000,
    "command": 300_000,
    "dockerfile": 300_000,
}

_MANIFEST_KEYS = frozenset({"apiVersion", "kind", "containers", "services", "spec", "metadata", "image"})
_Result = tuple[str, Sequence[Engine], Sequence[Noted]]


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
    words = [without_surrogates(word) for word in argv]
    text = " ".join(words)
    lines = Lines(text)
    traced, start = [], 0
    for word in words:
        traced.append(Traced.of(word, start))
        start += len(word) + 1
    engines = _of_command(traced, lines, release)
    notes = () if engines else (_nothing("the command", "Write sglang serve and its flags, or the flags alone."),)
    return Document("command line", "command", text, tuple(engines), notes)


def _of_command(words: Sequence[Traced], lines: Lines, release: str) -> list[Engine]:
    """Engines of a command that is said to be one: flags alone count, whichever they are."""
    engines = engines_of_words(words, lines, release)
    if not engines and words and words[0].text[:1] in "-\u2010\u2011\u2012\u2013\u2014\u2015\u2212" and words[0].text:
        return [engine_of_launch(Launch(tuple(words), ()), lines, release)]
    return engines


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
    found = [find(key, release) for key in keys]
    sized = {named.field for named in found if named and named.field in _SIZED}
    return len(sized) > 1


def _parsed(source: str, text: str, form: str | None, release: str, notes: Sequence[Noted]) -> Document:
    lines = Lines(text)
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
        actual, engines, found = _READERS[chosen](_Content(text, lines, release, form))
    except RecursionError:
        deep = note("HC005", f"{_shown(source)} is nested too deep", "Write it flatter.")
        return Document(source, chosen, text, notes=(*notes, deep))
    if not engines and not found:
        found = [_nothing(_shown(source), f"Read as {actual}; another format can be forced with --from.")]
    return Document(source, actual, text, tuple(engines), (*notes, *found))


def _shown(source: str) -> str:
    return "standard input" if source == "-" else source


def _nothing(where: str, help: str) -> Noted:
    return note("HC007", f"{where} starts no SGLang server and holds no arguments of one", help)


# --- formats ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Content:
    """A text to read, with the release that it is read for, and the format that was asked for, if one was."""

    text: str
    lines: Lines
    release: str
    form: str | None

    def in_order(self, engines: Sequence[Engine]) -> tuple[Engine, ...]:
        return named([(None, engine) for engine in engines])


def _json(content: _Content) -> _Result:
    node, notes = read_json(content.text, content.lines)
    if node is None:
        return content.form or "json", (), notes
    if content.form is None and _is_manifest(node):
        return _manifest([node], content, notes)
    collected = ArgumentsReader(content.text, content.lines, content.release).read(node)
    actual = content.form or ("server-info" if collected.is_server_info else "json")
    return actual, named(collected.engines), [*notes, *collected.notes]


def _yaml(content: _Content) -> _Result:
    trees, notes = read_yaml(content.text, content.lines)
    if not trees:
        return content.form or "yaml", (), notes
    if content.form != "yaml":
        found = _manifest(trees, content, notes)
        if found[1] or content.form is not None or any(_is_manifest(tree) for tree in trees):
            return found
    reader = ArgumentsReader(content.text, content.lines, content.release, for_config=True)
    for tree in trees:
        reader.read(tree)
    return "yaml", named(reader.out.engines), [*notes, *reader.out.notes]


def _manifest(trees: Sequence[Node], content: _Content, notes: Sequence[Noted]) -> _Result:
    text, lines, release = content.text, content.lines, content.release
    if content.form == "compose" or (content.form is None and any(is_compose(tree) for tree in trees)):
        return "compose", named([found for tree in trees for found in read_compose(tree, text, lines, release)]), notes
    reader = KubernetesReader(text, lines, release)
    return "kubernetes", named([(found.name, found.engine) for tree in trees for found in reader.read(tree)]), notes


def _is_manifest(node: Node) -> bool:
    if isinstance(node, TreeSequence):
        return any(isinstance(item, Mapping) and None not in (item.get("op"), item.get("path")) for item in node.items)
    return isinstance(node, Mapping) and any(entry.key in _MANIFEST_KEYS for entry in node.entries)


def _toml(content: _Content) -> _Result:
    node, notes = read_toml(content.text, content.lines)
    if node is None:
        return "toml", (), notes
    collected = ArgumentsReader(content.text, content.lines, content.release).read(node)
    return "toml", named(collected.engines), [*notes, *collected.notes]


def _command(content: _Content) -> _Result:
    words = split_words(Traced.of(content.text))
    return "command", content.in_order(_of_command(words, content.lines, content.release)), ()


def _shell(content: _Content) -> _Result:
    script = Traced.of(content.text)
    return "shell", content.in_order(engines_of_script(script, content.lines, content.release)), ()


def _dockerfile(content: _Content) -> _Result:
    engines = read_dockerfile(Traced.of(content.text), content.lines, content.release)
    return "dockerfile", content.in_order(engines), ()


def _log(content: _Content) -> _Result:
    return "log", read_log(content.text, content.lines), ()


_READERS: dict[str, Callable[[_Content], _Result]] = {
    "json": _json, "server-info": _json, "yaml": _yaml, "kubernetes": _yaml, "compose": _yaml, "toml": _toml,
    "command": _command, "shell": _shell, "dockerfile": _dockerfile, "log": _log,
}  # fmt: skip

__all__ = ["FORMATS", "read", "read_all", "read_command"]
