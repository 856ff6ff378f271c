"""The findings of an engine at their places in the document. Must not import anything above this floor."""

from __future__ import annotations

from collections.abc import Sequence

from ..arguments import Place
from ..core.findings import Finding
from ..reports.report import Placed, in_order
from ..sources.document import Document
from .examining import Examined
from .options import Options
from .suppressing import Suppressions


def placed(
    document: Document,
    examined: Examined,
    extra: Sequence[Finding],
    options: Options,
    suppressions: Suppressions | None = None,
) -> tuple[Placed, ...]:
    """The findings of an engine at their places in the document, in order, each once.

    Those that the options do not want, or that a comment in the source answers, are left out.
    """
    found = [at(document, finding, place_of(finding, examined)) for finding in (*examined.findings, *extra)]
    found += [at(document, noted.finding, noted.place) for noted in (*examined.notes, *document.notes)]
    once = {
        (each.finding.code, each.finding.message, each.place): each
        for each in found
        if options.wants(each.finding.code)
    }
    answered = Suppressions.of(document) if suppressions is None else suppressions
    return in_order(answered.apply(once.values()))


def at(document: Document, finding: Finding, place: Place | None) -> Placed:
    """A finding at its place, with the text of the file that it lies in where that is not the document."""
    return Placed(finding, place, document.included.get(place.file) if place is not None and place.file else None)


def place_of(finding: Finding, examined: Examined) -> Place | None:
    """Where the argument of a finding was written; a pointer into its value is followed as far as its places go."""
    each = examined.reading.given.get(finding.argument or "")
    if each is None:
        places = [given.key_place for given in examined.given if given.key == finding.argument]
        # Of an argument whose value is not known there is only the note that says so.
        places += [noted.place for noted in examined.notes if noted.finding.argument == finding.argument is not None]
        return next((place for place in places if place is not None), None)
    if finding.pointer is not None:
        inner = finding.pointer.removeprefix(f"/{finding.argument}")
        while inner:
            if inner in each.inner:
                return each.inner[inner]
            inner = inner.rpartition("/")[0]
    return each.place
