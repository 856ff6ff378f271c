"""`validate`: everything that is wrong with the engines of some sources. Must not import anything above this floor."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from ..arguments import Given
from ..reports.report import Report, SourceReport, in_order
from ..sources.document import Document, Engine
from .comparing import compare
from .examining import Examined, examine
from .options import Options
from .placing import at, placed
from .suppressing import Suppressions
from .together import together

#: From so many sources on, checking them in several processes pays for starting these.
_MANY = 64


def validate(
    documents: Iterable[Document], options: Options | None = None, *, progress: Callable[[int, int], None] | None = None
) -> Report:
    """Check every engine of every document. Raises OptionsError for options that can't be used.

    Many documents are checked in several processes. `progress` is told how many are done, and of how many.
    """
    options = options or Options()
    release = options.release()
    known = list(documents)
    entries: list[SourceReport] = []
    for done, found in enumerate(_checked(known, options), 1):
        entries += found
        if progress is not None:
            progress(done, len(known))
    return Report(release.name, tuple(entries))


def _checked(documents: Sequence[Document], options: Options) -> Iterator[list[SourceReport]]:
    """The entries of each document, in order."""
    processes = min(os.cpu_count() or 1, 8)
    if len(documents) < _MANY or processes == 1:
        yield from (check_document(document, options) for document in documents)
        return
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing import get_context

    with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
        yield from pool.map(partial(check_document, options=options), documents, chunksize=8)


def check(
    arguments: Mapping[str, Any],
    *,
    sglang: str | None = None,
    environment: Mapping[str, str] | None = None,
    gpu: str | None = None,
    host_memory: int | None = None,
) -> Examined:
    """Examine arguments that a program holds, by SGLang's field names; for engines that check while they start.

    `sglang` None means the installed release, else the newest known; `host_memory` is what a node has, in bytes. Raises
    OptionsError for a version that is none.
    """
    engine = Engine(given=tuple(Given(name, value) for name, value in arguments.items()), environment=environment or {})
    options = Options(sglang=sglang, host_memory_bytes=host_memory)
    if gpu is not None:
        options = replace(options, gpu=gpu)
    return examine(engine, "python", options)


def check_document(document: Document, options: Options) -> list[SourceReport]:
    """The report entries of one document: one an engine, or one that says why there is none."""
    if not document.engines:
        notes = [
            at(document, noted.finding, noted.place) for noted in document.notes if options.wants(noted.finding.code)
        ]
        return [
            SourceReport(document.source, document.format, findings=in_order(notes), text=document.text, is_broken=True)
        ]
    suppressions = Suppressions.of(document)
    examined = [examine(engine, document.format, options, document.source) for engine in document.engines]
    entries = [_entry(document, index, each, options, suppressions) for index, each in enumerate(examined)]
    shared = [at(document, found, None) for found in together(document, examined, options) if options.wants(found.code)]
    complaints = [each for each in suppressions.complaints() if options.wants(each.finding.code)]
    entries[0] = replace(entries[0], findings=in_order((*entries[0].findings, *complaints, *shared)))
    return entries


def _entry(
    document: Document, index: int, examined: Examined, options: Options, suppressions: Suppressions
) -> SourceReport:
    engine = document.engines[index]
    # Notes of the whole document belong to its first engine, so that each is counted once.
    whole = document if index == 0 else replace(document, notes=())
    extra = list(examined.of_sizing("sglang"))
    if options.compare is not None:
        extra += compare(document, engine, options, examined, options.compare)
    return SourceReport(
        source=document.source,
        format=document.format,
        engine=engine.name,
        resolved=resolved_of(examined),
        skipped=examined.skipped,
        findings=placed(whole, examined, extra, options, suppressions),
        text=document.text,
    )


def resolved_of(examined: Examined) -> dict[str, object]:
    """What was given and every HiCache argument's final value."""
    return dict(examined.resolution.final())
