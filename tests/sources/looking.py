"""What tests ask a document."""

from __future__ import annotations

from typing import Any

from hicache_config.sources import Document


def given_of(document: Document, engine: int = 0) -> dict[str, Any]:
    """The arguments of an engine, by their keys."""
    return {given.key: given.value for given in document.engines[engine].given}


def codes(document: Document) -> list[str]:
    """The codes of all notes, the document's first."""
    notes = [*document.notes, *(noted for engine in document.engines for noted in engine.notes)]
    return [noted.finding.code for noted in notes]
