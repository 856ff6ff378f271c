"""Every rule is complete: why, examples that fail and pass, a place in SGLang, and numbers that are all accounted for."""

from __future__ import annotations

from pathlib import Path

import pytest

from hicache_config.rules.coverage import NUMBERS, WITHOUT_A_RULE
from hicache_config.rules.registry import Rule, all_rules
from tests.rules.judging import findings

RULES = all_rules()
CHECKED = [rule for rule in RULES if rule.check is not None]
#: Pages of other floors' findings that have an example which this way of asking can show.
#: HC438 and HC439 come from the Python interface, not from a configuration.
SHOWN = [
    rule
    for rule in RULES
    if rule.check is None and rule.bad and "architecture" not in rule.settings and rule.code not in ("HC438", "HC439")
]


def named(rule: Rule) -> str:
    return f"{rule.code}-{rule.name}"


@pytest.mark.parametrize("rule", [*CHECKED, *SHOWN], ids=named)
def test_the_bad_example_yields_the_finding(rule: Rule, tmp_path: Path) -> None:
    settings = {"sglang": rule.until or "0.5.23", **rule.settings}
    codes = [finding.code for finding in findings(rule.bad, settings, tmp_path)]
    assert rule.code in codes


@pytest.mark.parametrize("rule", [*CHECKED, *SHOWN], ids=named)
def test_the_good_example_does_not(rule: Rule, tmp_path: Path) -> None:
    settings = {"sglang": rule.until or "0.5.23", **rule.settings}
    if rule.code == "HC109":
        settings = {}
    codes = [finding.code for finding in findings(rule.good, settings, tmp_path)]
    assert rule.code not in codes


@pytest.mark.parametrize("rule", RULES, ids=named)
def test_a_rule_has_its_page(rule: Rule) -> None:
    assert len(rule.why) > 20
    assert rule.name == rule.name.lower()
    assert rule.why.endswith((".", ")"))
    if rule.check is not None:
        assert rule.bad or rule.settings or rule.name == "page"
        assert rule.bad != rule.good or rule.settings
        assert rule.check.__doc__
        assert "SGLang" in rule.why or "wheel" in rule.why


@pytest.mark.parametrize("rule", [rule for rule in CHECKED if rule.severity == "error"], ids=named)
def test_an_error_says_what_to_do(rule: Rule, tmp_path: Path) -> None:
    settings = {"sglang": rule.until or "0.5.23", **rule.settings}
    for finding in findings(rule.bad, settings, tmp_path):
        if finding.code == rule.code:
            assert finding.message
            assert finding.help
            assert finding.argument


def test_every_number_is_covered_or_has_its_reason() -> None:
    covered = {number for rule in RULES for number in rule.covers}
    assert [number for number in NUMBERS if number not in covered and number not in WITHOUT_A_RULE] == []
    assert [number for number in WITHOUT_A_RULE if number in covered] == []


def test_late_rules_name_their_place() -> None:
    for rule in RULES:
        if rule.late is not None:
            path, _, function = rule.late.partition(":")
            assert path.endswith(".py")
            assert function
