"""Pools files that are wrong or do not go together, and sizes that hold nothing. Rows are bytes of a slot on a rank."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

_SIZE: Mapping[str, Any] = {"enable_hierarchical_cache": True, "hicache_size": 100}
_TWO: Mapping[str, Any] = {**_SIZE, "pp_size": 2}
_TOTAL: Mapping[str, Any] = {"accounting": "total"}
_KV: Mapping[str, Any] = {"name": "kv", "slots": 1_000_000, "bytes_per_slot": 4096, "page_size": 64}
_SLIDING: Mapping[str, Any] = {"name": "swa", "slots": 250_000, "bytes_per_slot": 4096, "page_size": 64}


def _file(*stages: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """A pools file of stages, a pool on a line."""
    shown = [",\n".join(f"  {json.dumps(pool)}" for pool in stage) for stage in stages]
    return {"pools.json": '{"stages": [' + ",\n ".join(f'{{"pools": [\n{each}]}}' for each in shown) + "]}\n"}


def _wrong(
    bad: Mapping[str, str], good: Mapping[str, str] | None = None, args: Mapping[str, Any] = _SIZE, **settings: Any
) -> dict[str, Any]:
    return {
        "bad": args,
        "good": args,
        "bad_files": bad,
        "good_files": _file([_KV]) if good is None else good,
        "settings": {"pools": "pools.json", **settings},
    }


POOLS: Mapping[str, Mapping[str, Any]] = {
    "HC301": {
        "bad": {"enable_hierarchical_cache": True, "hicache_size": 1, "page_size": 8192},
        "good": {"enable_hierarchical_cache": True, "hicache_size": 1, "page_size": 64},
        "settings": {"model": "Qwen/Qwen3-8B", **_TOTAL},
    },
    "HC302": _wrong(_file([{**_KV, "bytes_per_slot": 0}])),
    "HC303": _wrong(
        _file([_KV, _SLIDING], [_KV, {**_SLIDING, "bytes_per_slot": 0}]),
        _file([_KV, _SLIDING], [_KV, _SLIDING]),
        _TWO,
    ),
    "HC305": {
        "bad": {"enable_hierarchical_cache": True},
        "good": {"enable_hierarchical_cache": True},
        "settings": {"model": "Qwen/Qwen3-8B", "device_slots": {"kv": 500_000}, "host_memory": "8GiB"},
        "good_settings": {"model": "Qwen/Qwen3-8B", "device_slots": {"kv": 500_000}, "host_memory": "512GiB"},
    },
    "HC310": _wrong(_file([{"name": "kv", "slots": 1_000_000, "page_size": 64}])),
    "HC311": _wrong(
        _file([_KV, {"name": "indexer", "bytes_per_slot": 132, "page_size": 64, "follows": "kvs"}]),
        _file([_KV, {"name": "indexer", "bytes_per_slot": 132, "page_size": 64, "follows": "kv"}]),
    ),
    "HC312": _wrong(_file([{"name": "kv", "slot": 1_000_000, "bytes_per_slot": 4096}])),
    "HC401": _wrong(_file([_KV, _SLIDING], [_KV]), _file([_KV, _SLIDING], [_KV, _SLIDING]), _TWO),
    "HC402": _wrong(_file([_KV], [{**_KV, "slots": 900_000}]), _file([_KV], [_KV]), _TWO, **_TOTAL),
    "HC403": _wrong(_file([_KV], [{**_KV, "page_size": 128}]), _file([_KV], [_KV]), _TWO, **_TOTAL),
    "HC404": _wrong(_file([_KV], [{**_KV, "page_rule": "whole"}]), _file([_KV], [_KV]), _TWO, **_TOTAL),
    "HC439": {
        "bad": _TWO,
        "good": {**_SIZE, "pp_size": 3},
        "files": _file([_KV], [_KV], [_KV]),
        "settings": {"pools": "pools.json"},
    },
}
