"""`validate --format json` as the contract shows it: keys in their order, places, exit statuses, what goes where."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from tests.contract.support import call, findings, validate

REPORT = ["kind", "version", "sglang", "errors", "warnings", "sources"]
SOURCE = ["source", "format", "engine", "resolved", "skipped", "findings"]
FINDING = [
    "code", "name", "severity", "argument", "pointer", "line", "column", "end_line", "end_column", "message", "help",
    "asked", "gets", "fix",
]  # fmt: skip
#: One of everything that a person gets wrong.
BAD = """{
 "model_path": "some/model",
 "enable_hierarchical_cache": true,
 "hicache_size": "100GB",
 "hicache_ratoi": 2.0,
 "hicache_mem_layout": "page_frist",
 "hicache_host_memory_fraction": NaN,
 "tp_size": 2,
 "tp_size": 8,
 "pp_size": 0
}
"""


def test_keys_come_as_shown_and_the_report_has_its_schema() -> None:
    status, report = validate(BAD)
    assert status == 1
    assert (report["kind"], report["version"], report["sglang"]) == ("hicache-report", 1, "0.5.23")
    assert list(report) == REPORT
    (source,) = report["sources"]
    assert list(source) == SOURCE
    assert (source["source"], source["format"], source["engine"]) == ("-", "json", None)
    assert {tuple(finding) for finding in source["findings"]} == {tuple(FINDING)}
    assert all(set(skipped) == {"code", "why"} and skipped["why"] for skipped in source["skipped"])
    schema = json.loads(call("schema", "report").stdout)
    Draft202012Validator.check_schema(schema)
    Draft202012Validator(schema).validate(report)


def test_every_mistake_is_found_at_its_place_in_one_run() -> None:
    _, report = validate(BAD)
    found = findings(report)
    places = {
        code: (each["line"], each["column"], each["end_line"], each["end_column"]) for code, each in found.items()
    }
    assert places["HC101"] == (4, 2, 4, 25)
    assert places["HC010"] == (5, 2, 5, 17)
    assert places["HC102"] == (6, 2, 6, 36)
    assert places["HC004"] == (7, 34, 7, 37)
    assert places["HC003"][0] == 9
    assert places["HC103"] == (10, 2, 10, 14)
    assert report["errors"] == 6
    assert [found[code]["pointer"] for code in ("HC003", "HC004")] == ["/tp_size", "/hicache_host_memory_fraction"]
    assert found["HC101"]["pointer"] == "/hicache_size"
    assert "Write 100" in found["HC101"]["help"]
    assert "per rank" in found["HC101"]["message"]
    assert "hicache_ratio" in found["HC010"]["help"]
    assert "page_first" in found["HC102"]["help"]
    assert found["HC103"]["asked"] == 0


def test_findings_come_by_line_column_and_code_and_sources_as_given(tmp_path: Path) -> None:
    paths = [tmp_path / "b.json", tmp_path / "a.json"]
    for path in paths:
        path.write_text(BAD, encoding="utf-8")
    result = call("validate", *map(str, paths), "--format", "json")
    report = json.loads(result.stdout)
    assert [source["source"] for source in report["sources"]] == list(map(str, paths))
    for source in report["sources"]:
        order = [(each["line"] or 0, each["column"] or 0, each["code"]) for each in source["findings"]]
        assert order == sorted(order)


def test_resolved_holds_what_was_given_and_every_hicache_argument() -> None:
    _, report = validate('{"enable_hierarchical_cache": true, "hicache_size": 100, "tp_size": 8}')
    resolved = report["sources"][0]["resolved"]
    assert resolved["tp_size"] == 8
    assert resolved["hicache_size"] == 100
    properties = json.loads(call("schema", "args").stdout)["properties"]
    assert {name for name in properties if name.startswith("hicache_")} <= resolved.keys()


@pytest.mark.parametrize(
    ("text", "words", "status"),
    [
        ('{"hicache_size": 1, "enable_hierarchical_cache": true}', [], 0),
        ("{}", [], 0),
        ('{"hicache_ratio": 2.0, "hicache_size": 1, "enable_hierarchical_cache": true}', [], 0),
        ('{"hicache_ratio": 2.0, "hicache_size": 1, "enable_hierarchical_cache": true}', ["--strict"], 1),
        ('{"hicache_size": -1}', [], 1),
        ('{"hicache_size": -1}', ["--ignore", "HC103"], 0),
        ('{"hicache_size": -1}', ["--select", "HC2"], 0),
        ("{", [], 2),
        ("", [], 2),
        ("[]", [], 2),
        ('"text"', [], 2),
    ],
)
def test_exit_statuses_and_a_json_report_in_every_case(text: str, words: list[str], status: int) -> None:
    found, report = validate(text, *words)
    assert found == status
    assert report["kind"] == "hicache-report"
    if status == 2:
        assert report["errors"] > 0


@pytest.mark.parametrize(
    "words",
    [
        [], ["no/such.json", "--", "sglang"], ["-", "--format", "yaml"], ["-", "--sglang", "0.5.9"],
        ["-", "--sglang", "latest"], ["-", "--sglang", "0.5." + "9" * 5000], ["-", "--device-slots", "kv"],
        ["-", "--device-slots", "kv=" + "9" * 5000], ["-", "--device-slots", "kv=1.5"], ["-", "--host-memory", "lots"],
        ["-", "--host-memory", "-1GB"], ["-", "--env", "=x"], ["-", "--select", "banana"], ["-", "--ignore", "HC12345"],
        ["-", "--ranks-per-node", "-1"],
    ],
)  # fmt: skip
@pytest.mark.parametrize("command", ["validate", "plan"])
def test_wrong_usage_is_told_on_standard_error(command: str, words: list[str]) -> None:
    result = call(command, *words, input="{}")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "Error: " in result.stderr


def test_quiet_prints_what_fails() -> None:
    both = '{"hicache_ratio": 2.0, "hicache_size": 1, "enable_hierarchical_cache": true}'
    for command in ("validate", "plan"):
        words = [command, "-", "--format", "json", "--quiet", "--model", "openai/gpt-oss-120b"]
        assert findings_of(call(*words, input=both).stdout) == set()
        strict = call(*words, "--strict", input=both)
        assert (strict.exit_code, findings_of(strict.stdout)) == (1, {"HC120"})
    assert call("validate", "-", "--quiet", input=both).stdout == ""


def findings_of(text: str) -> set[str]:
    report = json.loads(text)
    return {each["code"] for entry in report.get("sources", [report]) for each in entry["findings"]}


def test_releases_are_named_by_their_three_numbers() -> None:
    for version in ("0.5.23.post1", "v0.5.23", "0.5.23rc0"):
        assert validate("{}", "--sglang", version)[1]["sglang"] == "0.5.23"
    _, newer = validate("{}", "--sglang", "0.9.0")
    assert newer["sglang"] == "0.5.23"
    assert newer["warnings"] == 1


def test_keys_in_flag_spelling_carry_what_a_command_line_would() -> None:
    flags = '{"--tp": "8", "hicache-size": "100", "--enable-hierarchical-cache": "", "--hicache-ratio": "nan"}'
    _, report = validate(flags)
    resolved = report["sources"][0]["resolved"]
    assert (resolved["tp_size"], resolved["hicache_size"], resolved["enable_hierarchical_cache"]) == (8, 100, True)
    assert list(findings(report)) == ["HC103"]
    status, report = validate('{"tp_size": "8", "enable_hierarchical_cache": ""}')
    assert status == 1
    assert [each["code"] for each in report["sources"][0]["findings"]] == ["HC101", "HC101"]
    _, report = validate('{"hicache-size": "1.5"}')
    assert findings(report)["HC101"]["help"] == "Write 1 or 2."


@pytest.mark.parametrize("value", ["NaN", "-Infinity", "1e999", "[NaN]", '{"a": NaN}', "9" * 30, "true", "null", "[]"])
@pytest.mark.parametrize(
    "key", ["hicache_size", "hicache_ratio", "no_such", "--tp", "hicache_storage_backend_extra_config"]
)
def test_no_value_breaks_the_report(key: str, value: str) -> None:
    status, report = validate(f'{{"{key}": {value}, "pp_size": 0}}')
    assert status == 1
    assert "HC103" in findings(report)
    if "N" in value or "I" in value or "e9" in value:
        assert "HC004" in findings(report)


def test_a_value_that_is_no_number_hides_nothing_else() -> None:
    _, report = validate('{"hicache_ratoi": NaN, "hicache_size": Infinity, "enable_hierarchical_cache": true}')
    codes = [each["code"] for each in report["sources"][0]["findings"]]
    assert codes.count("HC004") == 2
    assert "hicache_ratio" in findings(report)["HC010"]["help"]


def test_a_launch_command_is_read_after_the_dashes() -> None:
    words = ["sglang", "serve", "--model-path", "x", "--tp=8", "--enable-hierarchical-cache", "--hicache-siez", "100"]
    result = call("validate", "--format", "json", "--", *words)
    (source,) = json.loads(result.stdout)["sources"]
    assert (source["source"], source["format"]) == ("command line", "command")
    assert source["resolved"]["tp_size"] == 8
    (finding,) = (each for each in source["findings"] if each["severity"] == "error")
    assert "--hicache-size" in finding["help"]


def test_text_names_place_unit_and_scope() -> None:
    text = call("validate", "-", "--from", "json", input=BAD).stdout
    assert "-:4:2: error HC101 wrong-type" in text
    assert 'hicache_size": "100GB"' in text
    assert "GB (10**9 bytes), per rank" in text
    assert text.rstrip().splitlines()[-1].startswith("6 errors")


def test_the_same_input_gives_the_same_bytes() -> None:
    for form in ("text", "json", "sarif", "github", "junit"):
        runs = {call("validate", "-", "--from", "json", "--format", form, input=BAD).stdout for _ in range(2)}
        assert len(runs) == 1
