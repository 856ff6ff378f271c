"""`validate`: everything that is wrong with the engines of some sources. Must not import anything above this floor."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ..arguments import Given
from ..reports.report import Placed, Report, SourceReport, in_order
from ..sources.document import Document, Engine
from .comparing import compare
from .examining import Examined, examine, placed
from .options import Options


def validate(documents: Iterable[Document], options: Options | None = None) -> Report:
    """Check every engine of every document. Raises OptionsError for options that can't be used."""
    options = options or Options()
    release = options.release()
    entries = [entry for document in documents for entry in check_document(document, options)]
    return Report(release.name, tuple(entries))


def check(
    arguments: Mapping[str, Any],
    *,
    sglang: str | None = None,
    environment: Mapping[str, str] | None = None,
    gpu: str | None = None,
) -> Examined:
    """Examine arguments that a program holds, by SGLang's field names; for engines that check while they start.

    `sglang` None means the installed release, else the newest known. Raises OptionsError for a version that is none.
    """
    engine = Engine(given=tuple(Given(name, value) for name, value in arguments.items()), environment=environment or {})
    options = Options(sglang=sglang) if gpu is None else Options(sglang=sglang, gpu=gpu)
    return examine(engine, "python", options)


def check_document(document: Document, options: Options) -> list[SourceReport]:
    """The report entries of one document: one an engine, or one that says why there is none."""
    if not document.engines:
        notes = [Placed(noted.finding, noted.place) for noted in document.notes if options.wants(noted.finding.code)]
        return [
            SourceReport(document.source, document.format, findings=in_order(notes), text=document.text, is_broken=True)
        ]
    return [_entry(document, index, options) for index in range(len(document.engines))]


def _entry(document: Document, index: int, options: Options) -> SourceReport:
    engine = document.engines[index]
    examined = examine(engine, document.format, options)
    # Notes of the whole document belong to its first engine, so that each is counted once.
    whole = document if index == 0 else Document(document.source, document.format, document.text)
    planned = examined.plans.get("sglang")
    extra = list(planned.findings) if planned else []
    if options.compare is not None:
        extra += compare(engine, document.format, options, examined, options.compare)
    return SourceReport(
        source=document.source,
        format=document.format,
        engine=engine.name,
        resolved=resolved_of(examined),
        skipped=examined.skipped,
        findings=placed(whole, examined, extra, options),
        text=document.text,
    )


def resolved_of(examined: Examined) -> dict[str, object]:
    """What was given and every HiCache argument's final value."""
    return dict(examined.resolution.final())
