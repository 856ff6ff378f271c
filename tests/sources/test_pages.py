"""Each page of a reading rule shows an example that gives its finding, and one that does not."""

from __future__ import annotations

import pytest

from hicache_config.rules import reading  # noqa: F401 (declares the pages)
from hicache_config.rules.registry import _RULES, Rule
from hicache_config.sources import read
from hicache_config.sources.notes import KINDS


def found(example: object) -> list[str]:
    assert isinstance(example, dict)
    ((name, text),) = example.items()
    document = read(name) if not text else read(name, text=text)
    notes = [*document.notes, *(noted for engine in document.engines for noted in engine.notes)]
    return [noted.finding.code for noted in notes]


@pytest.mark.parametrize("code", KINDS)
def test_a_page_shows_a_source_that_fails_and_one_that_passes(code: str) -> None:
    rule: Rule = _RULES[code]
    assert (rule.name, rule.severity) == KINDS[code]
    assert code in found(rule.bad)
    assert found(rule.good) == []
