"""The program as a stranger meets it: commands in, status and text out. Nothing of the inside is used."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result

from hicache_config.cli.main import group

#: 78 layers over four stages, 656 bytes of KV per token and layer; GLM-5.2's indexer owns 132 bytes in some layers.
LAYERS = (19, 19, 20, 20)
INDEXED = (7, 4, 5, 5)
#: HiCache with a size of 100 GB per rank.
SIZED: dict[str, Any] = {"enable_hierarchical_cache": True, "hicache_size": 100}
RATIO: dict[str, Any] = {"enable_hierarchical_cache": True, "hicache_ratio": 2.0}


def call(*words: str, input: str | bytes | None = None) -> Result:
    """One run of the program in this process."""
    return CliRunner().invoke(group, words, input=input)


def pool(
    name: str, bytes_per_slot: int | None, slots: int | None = None, page: int = 64, **more: Any
) -> dict[str, Any]:
    """A pool of a pools file."""
    return {"name": name, "slots": slots, "bytes_per_slot": bytes_per_slot, "page_size": page, **more}


def glm(*, indexer: bool, slots: int | None = 2_000_000) -> list[list[dict[str, Any]]]:
    """The four stages of the golden figures."""
    return [
        [
            pool("kv", 656 * layers, slots),
            *([pool("indexer", 132 * owned, follows="kv", extra_pages=1)] if indexer else []),
        ]
        for layers, owned in zip(LAYERS, INDEXED, strict=True)
    ]


def plan(
    folder: Path, arguments: dict[str, Any] | str, stages: list[list[dict[str, Any]]] | None = None, *words: str
) -> tuple[int, dict[str, Any]]:
    """Exit status and JSON of `plan`; standard error stays empty."""
    more = list(words)
    if stages is not None:
        path = folder / "pools.json"
        path.write_text(json.dumps({"stages": [{"pools": pools} for pools in stages]}), encoding="utf-8")
        more += ["--pools", str(path)]
    text = arguments if isinstance(arguments, str) else json.dumps(arguments)
    result = call("plan", "-", "--format", "json", "--sglang", "0.5.23", *more, input=text)
    assert result.stderr == ""
    return result.exit_code, json.loads(result.stdout)


def validate(text: str, *words: str) -> tuple[int, dict[str, Any]]:
    """Exit status and JSON of `validate` for a JSON text; standard error stays empty."""
    result = call("validate", "-", "--format", "json", "--from", "json", "--sglang", "0.5.23", *words, input=text)
    assert result.stderr == ""
    return result.exit_code, json.loads(result.stdout)


def findings(report: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The findings of all sources of a report by code."""
    return {finding["code"]: finding for source in report["sources"] for finding in source["findings"]}


def slots(written: dict[str, Any], name: str = "kv", key: str = "slots") -> list[Any]:
    """A number of one pool, by stage."""
    return [each[key] for stage in written["stages"] for each in stage["pools"] if each["name"] == name]
