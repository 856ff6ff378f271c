"""Every rule is complete: why, examples that fail and pass, a place in SGLang, and numbers that are all accounted for."""

from __future__ import annotations

from pathlib import Path

import pytest

from hicache_config.core.findings import Finding
from hicache_config.rules.coverage import NUMBERS, WITHOUT_A_RULE
from hicache_config.rules.examples import EXAMPLES, WITHOUT_EXAMPLES
from hicache_config.rules.registry import Rule, all_rules
from tests.rules import showing
from tests.rules.judging import findings

RULES = all_rules()
CHECKED = [rule for rule in RULES if rule.check is not None]
#: Findings of other floors with examples: these run through reading, `validate` and `plan`.
SHOWN = [rule for rule in RULES if rule.check is None and rule.unshown is None]


def named(rule: Rule) -> str:
    return f"{rule.code}-{rule.name}"


def said(rule: Rule, kind: str, folder: Path) -> list[Finding]:
    """All findings of an example; `kind` is bad or good, `folder` the working directory."""
    if rule.check is None:
        return [finding for found in showing.show(rule, kind) for finding in found]
    assert {**rule.files, **rule.bad_files, **rule.good_files} == {}  # only findings of other floors need files
    own = rule.settings if kind == "bad" or rule.good_settings is None else rule.good_settings
    return list(findings(getattr(rule, kind), {"sglang": rule.until or "0.5.23", **own}, folder))


def codes(rule: Rule, kind: str, folder: Path) -> list[str]:
    return [finding.code for finding in said(rule, kind, folder)]


@pytest.mark.parametrize("rule", [*CHECKED, *SHOWN], ids=named)
def test_the_bad_example_yields_the_finding(rule: Rule, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert rule.code in codes(rule, "bad", tmp_path)


@pytest.mark.parametrize("rule", [*CHECKED, *SHOWN], ids=named)
def test_the_good_example_does_not(rule: Rule, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert rule.code not in codes(rule, "good", tmp_path)


@pytest.mark.parametrize("rule", [*CHECKED, *SHOWN], ids=named)
def test_what_passes_has_no_other_error(rule: Rule, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A repair that only trades one error for another is none."""
    monkeypatch.chdir(tmp_path)
    unknown = {"HC600", "HC601"} - {rule.code}  # no model is named, or one whose pools are not known: not the repair's
    errors = {finding.code for finding in said(rule, "good", tmp_path) if finding.severity == "error"}
    assert errors - unknown == set()


#: Examples that cannot fail for one reason alone: the other code says the same of another side.
TOGETHER = {
    "HC013": {"HC101"},  # SGLang's reader breaks it, and it is of another type
    "HC303": {"HC401"},  # a pool without bytes on one stage is a pool that the others have
    "HC404": {"HC304"},  # page rules are DeepSeek V4's, which takes no size
    "HC659": {"HC647"},  # a draft that runs in no stages, beside drafting in stages
    "HC683": {"HC614"},  # the tree and the pools came together
    "HC688": {"HC303"},  # no attention is a KV pool without bytes
}


@pytest.mark.parametrize("rule", [*CHECKED, *SHOWN], ids=named)
def test_the_bad_example_fails_for_its_reason_alone(
    rule: Rule, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    unknown = {"HC600"} - {rule.code}  # no model is named
    errors = {finding.code for finding in said(rule, "bad", tmp_path) if finding.severity == "error"}
    assert errors - unknown - {rule.code} == TOGETHER.get(rule.code, set())


@pytest.mark.parametrize("rule", [rule for rule in RULES if rule.check is None], ids=named)
def test_a_finding_of_another_floor_has_both_examples_or_a_reason(rule: Rule) -> None:
    bad = (rule.bad, {**rule.files, **rule.bad_files}, rule.settings)
    good = (rule.good, {**rule.files, **rule.good_files}, rule.settings)
    if rule.good_settings is not None:
        good = (rule.good, {**rule.files, **rule.good_files}, rule.good_settings)
    if rule.unshown is None:
        assert any(bad[:2])
        assert any(good[:2])
        assert bad != good
    else:
        assert len(rule.unshown) > 40
        assert bad == good == ({}, {}, {})


def test_examples_and_reasons_are_those_of_rules() -> None:
    """None is left behind when a code goes, and none has both."""
    assert set(EXAMPLES) | set(WITHOUT_EXAMPLES) <= {rule.code for rule in RULES if rule.check is None}
    assert set(EXAMPLES) & set(WITHOUT_EXAMPLES) == set()


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
