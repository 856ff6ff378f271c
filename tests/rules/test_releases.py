"""Layout, io backend and write policy in each release are what that release's own functions make of them.

Recorded by tests/oracle/older_resolution.py from the wheels of 0.5.10 to 0.5.23.
"""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest

from hicache_config.arguments import ServerArgs
from hicache_config.arguments.releases import known, table
from hicache_config.core.releases import Release
from hicache_config.rules.case import Case
from hicache_config.rules.registry import run
from hicache_config.rules.resolution import resolve_arguments
from tests.rules.judging import recordings

RECORDED = json.loads((recordings.FOLDER / "resolution-releases.json").read_text("utf-8"))
LAYOUTS = ("layer_first", "page_first", "page_first_direct", "page_first_kv_split", "page_head")
COPIES = ("direct", "kernel", "kernel_ascend")
GRID = tuple(
    itertools.product(
        LAYOUTS,
        COPIES,
        (None, "file", "mooncake", "npu_memcache"),
        (None, "fa3"),
        ("write_back", "write_through"),
        ("cache", "buffer_only"),
    )
)
ANSWERS = {name: group["answers"] for group in RECORDED["releases"] for name in group["releases"]}


def values_of(point: tuple[Any, ...], release: str) -> dict[str, Any] | None:
    """A point of the grid as arguments, None where the release does not have one of its values."""
    values = {name: value for name, value in zip(RECORDED["axes"], point, strict=True) if value is not None}
    for name, value in list(values.items()):
        argument = table(release).get(name)
        if argument is None and value == "cache":
            del values[name]
        elif argument is None or (argument.choices and value not in argument.choices):
            return None
    return {"enable_hierarchical_cache": True, **values}


def test_every_release_is_recorded() -> None:
    assert sorted(ANSWERS) == sorted(known())
    assert all(len(answers) == len(GRID) for answers in ANSWERS.values())


@pytest.mark.parametrize("name", sorted(ANSWERS))
def test_release(name: str) -> None:
    release = Release.of(name)
    asked = 0
    for point, answer in zip(GRID, ANSWERS[name], strict=True):
        values = values_of(point, name)
        if values is None:
            continue
        asked += 1
        args = ServerArgs.model_validate(values, context={"release": name})
        resolution = resolve_arguments(args, release)
        if isinstance(answer, list):
            assert [resolution.value(field) for field in RECORDED["watched"]] == answer, values
        case = Case(args, release, resolution, written=frozenset(values))
        codes = {finding.code for finding in run(case)[0] if finding.severity == "error"}
        assert isinstance(answer, str) == bool(codes & {"HC211", "HC212", "HC213"}), (values, codes)
    assert asked > 100
