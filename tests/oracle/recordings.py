"""Reading and writing what the real SGLang came to: `tests/recorded/*.jsonl`, `*.jsonl.gz` (README.md has the shapes).

The standard library alone, so that tests replay the recordings anywhere.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parent.parent / "recorded"
KIND, VERSION = "hicache-oracle", 1
Entry = dict[str, Any]


def read(path: Path) -> tuple[dict[str, Any], list[Entry]]:
    """The header and the entries (`id`, `case`, `result`) of one recording. Raises ValueError for another file."""
    content = path.read_bytes()
    lines = (gzip.decompress(content) if path.suffix == ".gz" else content).decode().splitlines()
    header = json.loads(lines[0])
    if header.get("kind") != KIND or header.get("version") != VERSION:
        raise ValueError(f"{path.name} is not a recording of version {VERSION}: {lines[0][:80]}")
    return header, [json.loads(line) for line in lines[1:]]


def write(path: Path, header: dict[str, Any], entries: Iterable[Entry]) -> None:
    """One entry a line, compact, in the order of their ids, the header first."""
    ordered = sorted(entries, key=lambda entry: entry["id"])
    first = {"kind": KIND, "version": VERSION, **header, "cases": len(ordered)}
    lines = (json.dumps(line, separators=(",", ":"), allow_nan=False) for line in [first, *ordered])
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(".part")
    content = ("\n".join(lines) + "\n").encode()
    part.write_bytes(gzip.compress(content, mtime=0) if path.suffix == ".gz" else content)
    part.replace(path)


def files(what: str = "") -> list[Path]:
    """The recordings whose names begin with that word, sorted."""
    return sorted([*FOLDER.glob(f"{what}*.jsonl"), *FOLDER.glob(f"{what}*.jsonl.gz")])


def differences(recorded: Any, now: Any, place: str = "") -> list[str]:
    """Where two results differ, one line each, as `stages[0].pools[1].slots: recorded 5, now 6`."""
    if isinstance(recorded, dict) and isinstance(now, dict):
        keys = sorted({*recorded, *now})
        pairs = [(f"{place}.{key}".lstrip("."), recorded.get(key, "nothing"), now.get(key, "nothing")) for key in keys]
    elif isinstance(recorded, list) and isinstance(now, list) and len(recorded) == len(now):
        pairs = [(f"{place}[{number}]", old, new) for number, (old, new) in enumerate(zip(recorded, now, strict=True))]
    else:
        return [] if recorded == now else [f"{place}: recorded {_short(recorded)}, now {_short(now)}"]
    return [line for where, old, new in pairs for line in differences(old, new, where)]


def _short(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 160 else f"{text[:157]}..."
