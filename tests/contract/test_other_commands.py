"""explain, rules and schema: what they answer, for everything that they can be asked."""

from __future__ import annotations

import json

import pytest
from jsonschema import Draft202012Validator

from tests.contract.support import call

RULES = json.loads(call("rules", "--format", "json").stdout)


def test_every_rule_has_a_line_and_codes_that_follow_their_kind() -> None:
    lines = call("rules").stdout.splitlines()
    assert [line.split()[0] for line in lines] == [rule["code"] for rule in RULES]
    codes = [rule["code"] for rule in RULES]
    assert codes == sorted(set(codes))
    assert {rule["severity"] for rule in RULES} <= {"error", "warning", "note"}
    assert all(rule["name"] and rule["why"] and rule["name"] == rule["name"].lower() for rule in RULES)


@pytest.mark.parametrize("rule", [rule["code"] for rule in RULES])
def test_every_rule_can_be_explained(rule: str) -> None:
    result = call("explain", rule)
    assert result.exit_code == 0
    assert result.stdout.startswith(f"# {rule} ")


@pytest.mark.parametrize("subject", ["hicache_size", "--hicache-size", "hicache-size"])
def test_an_argument_is_explained_in_any_spelling(subject: str) -> None:
    result = call("explain", subject)
    assert result.exit_code == 0
    for words in ("# hicache_size", "`--hicache-size`", "GB (10**9 bytes)", "per rank", "default: `0`"):
        assert words in result.stdout


@pytest.mark.parametrize(
    ("subject", "meant"), [("hicache-sise", "hicache_size"), ("--hicache-raito", "hicache_ratio"), ("HC1200", "HC120")]
)
def test_a_typing_error_is_told(subject: str, meant: str) -> None:
    result = call("explain", subject)
    assert (result.exit_code, result.stdout) == (2, "")
    assert meant in result.stderr


@pytest.mark.parametrize("name", ["args", "pools", "plan", "report"])
def test_schemas_are_json_schema_2020_12(name: str) -> None:
    schema = json.loads(call("schema", name).stdout)
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert schema["$id"]
    Draft202012Validator.check_schema(schema)


def test_the_pools_schema_takes_the_sample_of_the_contract() -> None:
    sample = {
        "stages": [
            {
                "pools": [
                    {"name": "kv", "slots": 2000000, "bytes_per_slot": 12464, "page_size": 64},
                    {"name": "indexer", "follows": "kv", "bytes_per_slot": 792, "page_size": 64, "extra_pages": 1},
                    {"name": "mamba", "slots": 600, "bytes_per_slot": 38633472, "page_size": 1, "device_bytes": 23218716672},
                ]
            }
        ]
    }  # fmt: skip
    validator = Draft202012Validator(json.loads(call("schema", "pools").stdout))
    validator.validate(sample)
    sample["stages"][0]["pools"][0]["slotz"] = 1
    assert not validator.is_valid(sample)


def test_nulls_are_allowed_where_a_number_may_not_be_known() -> None:
    pool = json.loads(call("schema", "plan").stdout)["$defs"]["PoolShape"]
    nullable = {"follows", "bytes_per_slot", "device_slots", "share_gb", "own_slots", "slots", "pages", "bytes",
                "inside_size", "host_size_gb"}  # fmt: skip
    for name, field in pool["properties"].items():
        assert ({"type": "null"} in field.get("anyOf", [])) is (name in nullable), name
    assert set(pool["required"]) == set(pool["properties"])
