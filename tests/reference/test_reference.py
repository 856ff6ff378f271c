"""The reference and the schemas come from the metadata alone, and committed copies are up to date."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from hicache_config.arguments import ServerArgs
from hicache_config.arguments.releases import known
from hicache_config.core.releases import NEWEST
from hicache_config.reference.pages import explain, rule_line, rule_page, rule_record
from hicache_config.reference.schemas import breaches, schema_files, schema_of
from hicache_config.reference.site import pages, stale, write
from hicache_config.rules.registry import all_rules

ROOT = Path(__file__).resolve().parents[2]
SOURCES = sorted((ROOT / "hicache_config").rglob("*.py"))


def test_every_code_that_the_program_can_say_has_a_page() -> None:
    said = {code for path in SOURCES for code in re.findall(r'"(HC[0-9]{3})"', path.read_text(encoding="utf-8"))}
    assert sorted(said - {rule.code for rule in all_rules()}) == []


def test_committed_schemas_and_pages_are_up_to_date() -> None:
    assert stale(dict(schema_files()), ROOT / "schemas") == []
    assert stale(pages(), ROOT / "docs" / "reference") == []


def test_stale_missing_and_superfluous_files_are_found(tmp_path: Path) -> None:
    files = {"index.md": "a\n", "rules/HC001.md": "b\n"}
    assert len(write(files, tmp_path)) == 2
    assert stale(files, tmp_path) == []
    (tmp_path / "index.md").write_text("changed", encoding="utf-8")
    (tmp_path / "rules" / "HC999.md").write_text("old", encoding="utf-8")
    assert [Path(path).name for path in stale(files, tmp_path)] == ["index.md", "HC999.md"]
    write(files, tmp_path)
    assert stale(files, tmp_path) == []
    (tmp_path / "index.md").unlink()
    assert [Path(path).name for path in stale(files, tmp_path)] == ["index.md"]


@pytest.mark.parametrize("name", ["args", "pools", "plan", "report"])
def test_schemas_are_sound(name: str) -> None:
    schema = schema_of(name)
    Draft202012Validator.check_schema(schema)
    assert schema["$schema"].endswith("2020-12/schema")
    assert schema["$id"].startswith("urn:hicache-config:")
    assert schema["title"]


@pytest.mark.parametrize("release", known())
def test_the_arguments_of_each_release_have_a_schema(release: str) -> None:
    schema = schema_of("args", release)
    Draft202012Validator.check_schema(schema)
    Draft202012Validator(schema).validate({"hicache_size": 100, "--tp": "8"})


def test_the_schema_of_the_arguments_knows_units_scope_and_choices() -> None:
    properties = schema_of("args")["properties"]
    assert (properties["hicache_size"]["unit"], properties["hicache_size"]["scope"]) == ("GB (10**9 bytes)", "per rank")
    assert "page_first_direct" in properties["hicache_mem_layout"]["enum"]
    assert set(ServerArgs.model_fields) <= set(properties)
    assert schema_of("args", "0.5.12")["properties"]["hicache_mem_layout"]["default"] == "layer_first"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('{"hicache_size": -1}', "/hicache_size"),
        ('{"hicache_size": "100GB"}', "/hicache_size"),
        ('{"hicache_mem_layout": "page_frist"}', "/hicache_mem_layout"),
        ('{"hicache_ratio": 0}', "/hicache_ratio"),
    ],
)
def test_a_file_is_held_against_a_schema(text: str, says: str) -> None:
    found = breaches(text.encode(), "args")
    assert found
    assert found[0].startswith(says)
    assert breaches(b'{"hicache_size": 100}', "args") == []


@pytest.mark.parametrize("data", [b"{", b"\xff\xfe{", b"[" * 100_000])
def test_what_is_no_json_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        breaches(data, "args")


@pytest.mark.parametrize(
    ("subject", "heading"),
    [
        ("HC301", "# HC301 size-too-small"),
        ("hc301", "# HC301"),
        ("size-too-small", "# HC301"),
        ("hicache_size", "# hicache_size"),
        ("--hicache-size", "# hicache_size"),
        ("hicache-size", "# hicache_size"),
        ("--tp", "# tp_size"),
        ("host", "# host"),
    ],
)
def test_rules_and_arguments_are_explained_in_any_spelling(subject: str, heading: str) -> None:
    page, close = explain(subject, NEWEST)
    assert page is not None
    assert page.startswith(heading)
    assert close is None


@pytest.mark.parametrize(
    ("subject", "meant"), [("HC9999", None), ("hicache_siez", "hicache_size"), ("--hicache-ratoi", "hicache_ratio")]
)
def test_what_is_not_known_gets_the_closest_name(subject: str, meant: str | None) -> None:
    page, close = explain(subject, NEWEST)
    assert page is None
    if meant is not None:
        assert close == meant


def test_an_argument_tells_its_history() -> None:
    page, _ = explain("hicache_mem_layout", NEWEST)
    assert page is not None
    assert "since 0.5.14" in page


def test_every_rule_can_be_listed_and_shown() -> None:
    for rule in all_rules():
        assert rule.code in rule_line(rule)
        assert json.dumps(rule_record(rule))
        assert rule.why in rule_page(rule)
