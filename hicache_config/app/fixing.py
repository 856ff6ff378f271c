"""Safe fixes: what `validate --fix` writes and `--diff` shows. Every fix has to prove itself.

One after the other, a safe fix is spliced into the text and the result is checked again: it stays when its finding is
gone and no error is new. Notes are left alone: nothing is wrong there. Must not import anything above this floor.
"""

from __future__ import annotations

import difflib
import os
import re
import stat
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from ..arguments.names import find
from ..core.findings import Finding
from ..reports.report import SourceReport
from ..sources import read
from ..sources.document import Document
from .checking import check_document
from .options import Options
from .splicing import Edit, Splicer, apply, splicer_for

#: Findings about values that the readers left out.
_READING = ("HC003", "HC004", "HC008", "HC009")
#: No source needs more rounds; each round settles one finding.
_MOST = 100


@dataclass(frozen=True)
class Fixed:
    """A source after its safe fixes: the text before and after, what was fixed, and what could only be shown."""

    source: str
    before: str
    after: str
    fixed: tuple[Finding, ...] = ()
    shown: tuple[Finding, ...] = ()

    @property
    def is_changed(self) -> bool:
        """Whether there is anything to write."""
        return self.before != self.after

    def diff(self) -> str:
        """The change as a unified diff."""
        before, after = (re.findall(r"[^\n]*\n|[^\n]+", text) for text in (self.before, self.after))
        lines = difflib.unified_diff(before, after, self.source, self.source)
        return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)


def fix(document: Document, options: Options) -> Fixed:
    """The safe fixes of one document, each proven; nothing is written."""
    text = document.text
    fixed: list[Finding] = []
    refused: set[tuple[str, str | None, str]] = set()
    for _ in range(_MOST):
        current = replace(document, text=text) if text == document.text else _again(document, text)
        found = _next(current, options, refused)
        if found is None:
            break
        finding, changed = found
        if changed is not None and _is_better(document, text, changed, finding, options):
            text = changed
            fixed.append(finding)
        else:
            refused.add(_key(finding))
    left = [placed.finding for entry in check_document(_again(document, text), options) for placed in entry.findings]
    return Fixed(
        document.source, document.text, text, tuple(fixed), tuple(each for each in left if each.fix is not None)
    )


def _again(document: Document, text: str) -> Document:
    return read(document.source, text=text, form=document.format)


def _key(finding: Finding) -> tuple[str, str | None, str]:
    return finding.code, finding.argument, finding.message


def _next(
    document: Document, options: Options, refused: set[tuple[str, str | None, str]]
) -> tuple[Finding, str | None] | None:
    """The first safe fix that was not tried yet, and the text with it (None where it can't be spliced)."""
    splicer = splicer_for(document.format, document.text, options.release().name)
    for index, entry in enumerate(check_document(document, options)):
        for placed in entry.findings:
            finding = placed.finding
            if finding.fix is None or not finding.fix.safe or finding.severity == "note" or _key(finding) in refused:
                continue
            edits = (
                None
                if splicer is None or entry.is_broken
                else _edits(document, index, finding, splicer, options.release().name)
            )
            return finding, None if edits is None else apply(document.text, edits)
    return None


def _edits(document: Document, index: int, finding: Finding, splicer: Splicer, release: str) -> list[Edit] | None:
    """The edits of a fix, None when one of them can't be made."""
    assert finding.fix is not None  # only findings with a fix come here
    given = {}
    for each in document.engines[index].given:
        named = find(each.key, release)
        given[named.field if named is not None else each.key] = each
    edits = []
    for argument, value in finding.fix.set.items():
        there = given.get(argument)
        beside = given.get(finding.argument or "")
        if any(each is not None and each.place is not None and each.place.file for each in (there, beside)):
            return None  # it stands in another file, which may serve others
        if there is not None:
            edit = splicer.remove(there) if value is None else splicer.replace(there, value)
        elif value is None:
            continue
        else:
            edit = None if beside is None else splicer.insert(beside, argument, value)
        if edit is None:
            return None
        edits.append(edit)
    return edits


def _is_better(document: Document, before: str, after: str, finding: Finding, options: Options) -> bool:
    """Whether the finding is gone and no error is new."""
    old, new = check_document(_again(document, before), options), check_document(_again(document, after), options)
    if any(entry.is_broken for entry in new) or len(old) != len(new):
        return False
    left = [(placed.finding.code, placed.finding.argument) for entry in new for placed in entry.findings]
    # What could not be read (NaN, a key twice) must still be there: the fix would have thrown it away.
    kept = _unread(new) == _unread(old)
    return kept and (finding.code, finding.argument) not in left and _errors(new) <= _errors(old)


def _unread(entries: list[SourceReport]) -> Counter[str]:
    """How often each finding of the readers is there."""
    codes = (placed.finding.code for entry in entries for placed in entry.findings)
    return Counter(code for code in codes if code in _READING)


def _errors(entries: list[SourceReport]) -> set[str]:
    return {placed.finding.code for entry in entries for placed in entry.findings if placed.finding.severity == "error"}


def write(fixed: Fixed) -> None:
    """Write a changed source: in place of the old one at once, its mode and line ends kept, links followed.

    Raises OSError, and ValueError for a file whose bytes are not those that were checked.
    """
    path = Path(os.path.realpath(fixed.source))
    data = path.read_bytes()
    mark = b"\xef\xbb\xbf" if data.startswith(b"\xef\xbb\xbf") else b""
    crlf = data.count(b"\r\n") == data.count(b"\n") > 0
    if _encoded(fixed.before, crlf=crlf, mark=mark) != data:
        raise ValueError(f"{fixed.source} was changed meanwhile, or has mixed line ends; nothing is written")
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(_encoded(fixed.after, crlf=crlf, mark=mark))
        Path(name).chmod(stat.S_IMODE(path.stat().st_mode))
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink()
        raise


def _encoded(text: str, *, crlf: bool, mark: bytes) -> bytes:
    return mark + (text.replace("\n", "\r\n") if crlf else text).encode("utf-8")


def fixable(documents: list[Document]) -> Iterator[Document]:
    """The documents that `--fix` may write: files that could be read."""
    for document in documents:
        if document.engines and Path(document.source).is_file():
            yield document
