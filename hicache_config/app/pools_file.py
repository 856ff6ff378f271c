"""Reading a pools file: stages of device pools, with every problem at its place.

Must not import anything above this floor.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from ..arguments.given import Place
from ..arguments.pools_file import PoolEntry, PoolsFile, StageEntry
from ..core.findings import Finding
from ..core.pools import Stage
from ..sources.document import Noted
from ..sources.json_tree import JsonScanner
from ..sources.notes import note
from ..sources.text import Lines, NotTextError, decode
from ..sources.tree import parts, plain


@dataclass(frozen=True)
class PoolsReading:
    """Stages of a pools file; empty when something is wrong, which `notes` say at their places."""

    stages: tuple[Stage, ...] = ()
    notes: tuple[Noted, ...] = ()


def read_pools(path: str, pp_size: int, slots: Mapping[str, int]) -> PoolsReading:
    """The stages of the file at `path` for a pipeline of `pp_size`; `slots` are device slots by pool that win."""
    value, places, notes = _json(path)
    if value is None:
        return PoolsReading(notes=tuple(notes))
    try:
        file = PoolsFile.model_validate(value)
    except ValidationError as error:
        found = [_noted(path, detail, places) for detail in error.errors(include_url=False)]
        return PoolsReading(notes=(*notes, *found))
    entries = file.stages * pp_size if len(file.stages) == 1 else file.stages
    problems: list[Noted] = []
    if len(entries) != pp_size:
        problems.append(Noted(_stage_count(path, len(entries), pp_size), places.get("/stages")))
    stages = []
    for index, entry in enumerate(entries):
        stage, found_ = Stage.of(_pools(entry, slots), entry.layers)
        stages.append(stage)
        problems += [Noted(replace(finding, stage=index), places.get(f"/stages/{index}")) for finding in found_]
    broken = bool(problems) or any(noted.finding.severity == "error" for noted in notes)
    return PoolsReading(() if broken else tuple(stages), (*notes, *problems))


def _json(path: str) -> tuple[Any, Mapping[str, Place], list[Noted]]:
    """The value of a JSON file, the places of its parts by JSON pointer, and what was wrong; None when unreadable."""
    try:
        text = decode(Path(path).read_bytes())
    except OSError as error:
        return None, {}, [note("HC001", f"{path} can't be read: {error.strerror}", "Give the path of a pools file.")]
    except NotTextError as error:
        return None, {}, [note("HC006", f"{path} is not text: {error}", "Give the path of a pools file.")]
    lines = Lines(text)
    scanner = JsonScanner(text, lines)
    node = scanner.read()
    if node is None:
        return None, {}, scanner.notes
    return plain(node), dict(parts(node, lines)), scanner.notes


def _pools(entry: StageEntry, slots: Mapping[str, int]) -> list[Any]:
    pools = [pool.pool() for pool in entry.pools]
    # Slots that the caller names replace those of the file; its device bytes then no longer hold.
    return [replace(p, slots=slots[p.name], device_bytes=None) if p.name in slots else p for p in pools]


def _noted(path: str, detail: Mapping[str, Any], places: Mapping[str, Any]) -> Noted:
    loc: Sequence[Any] = detail["loc"]
    pointer = "".join(f"/{part}" for part in loc)
    where = pointer
    while where and where not in places:
        where = where.rpartition("/")[0]
    name = str(loc[-1]) if loc else ""
    help_ = "See `hicache-config schema pools`."
    if detail["type"] == "extra_forbidden":
        known = {"pools", "layers"} if len(loc) == 3 else {"stages"} if len(loc) == 1 else set(PoolEntry.model_fields)
        close = difflib.get_close_matches(name, sorted(known), n=1)
        message = f"{path}: {pointer} is no field of a pools file"
        help_ = f"Did you mean {close[0]}?" if close else f"The fields here: {', '.join(sorted(known))}."
    elif detail["type"] == "missing":
        message = f"{path}: {pointer} is missing"
    else:
        message = f"{path}: {pointer} is {detail['input']!r}; {_plain(detail['msg'])}"
    return Noted(Finding("HC312", "pools-file-wrong", "error", message, help_, pointer=pointer), places.get(where))


def _plain(message: str) -> str:
    return message[:1].lower() + message[1:]


def _stage_count(path: str, given: int, pp_size: int) -> Finding:
    return Finding(
        "HC439",
        "stage-count-differs",
        "error",
        f"{path} has pools of {given} stages, and --pp-size is {pp_size}",
        "Give one entry a stage, or a single one that stands for each.",
        argument="pp_size",
        asked=pp_size,
    )
