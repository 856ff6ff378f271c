"""Reading a pools file: stages of device pools, with every problem at its place in that file.

Must not import anything above this floor.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pydantic import ValidationError

from ..arguments.given import Place
from ..arguments.pools_file import PoolEntry, PoolsFile, StageEntry
from ..core.findings import Finding
from ..core.pools import DevicePool, Stage
from ..sources.document import Noted
from ..sources.jsonfile import read_json_file
from ..sources.notes import shortened
from .resolving import stage_count_differs

#: pydantic's kinds of a wrong value, in words; `{}` is the limit.
_EXPECTED = {
    "int_type": "a whole number is expected",
    "string_type": "text is expected",
    "bool_type": "true or false is expected",
    "list_type": "a list is expected",
    "tuple_type": "a list is expected",
    "model_type": "a mapping is expected",
    "model_attributes_type": "a mapping is expected",
    "greater_than_equal": "at least {} is expected",
    "less_than_equal": "at most {} is expected",
    "literal_error": "one of {} is expected",
    "too_short": "at least one is expected",
    "string_too_short": "a name is expected",
}


@dataclass(frozen=True)
class PoolsReading:
    """Stages of a pools file; empty when something is wrong, which `notes` say at their places in that file."""

    stages: tuple[Stage, ...] = ()
    notes: tuple[Noted, ...] = ()

    def findings(self, path: str) -> list[Finding]:
        """The notes as findings of the engine that the pools are for: a place in the pools file goes into the text."""
        return [_told(noted, path) for noted in self.notes]


def _told(noted: Noted, path: str) -> Finding:
    place, finding = noted.place, noted.finding
    if finding.argument is not None or finding.code == "HC001":  # about an argument, or the text names the file itself
        return finding
    where = path if place is None else f"{path}:{place.line}:{place.column}"
    return replace(finding, message=f"{where}: {finding.message}")


def read_pools(path: str, pp_size: int, slots: Mapping[str, int]) -> PoolsReading:
    """The stages of the file at `path` for a pipeline of `pp_size`; `slots` are device slots by pool that win."""
    read = read_json_file(path)
    if any(noted.finding.severity == "error" for noted in read.notes):
        return PoolsReading(notes=read.notes)
    try:
        file = PoolsFile.model_validate(read.value)
    except ValidationError as error:
        found = [_noted(detail, read.places) for detail in error.errors(include_url=False)]
        return PoolsReading(notes=(*read.notes, *found))
    entries = file.stages * pp_size if len(file.stages) == 1 else file.stages
    if len(entries) != pp_size:
        return PoolsReading(notes=(*read.notes, Noted(stage_count_differs(len(entries), pp_size))))
    problems: list[Noted] = []
    stages = []
    for index, entry in enumerate(entries):
        stage, wrong = Stage.of(_pools(entry, slots), entry.layers)
        stages.append(stage)
        problems += [Noted(replace(finding, stage=index), _place(read.places, f"/stages/{index}")) for finding in wrong]
    return PoolsReading(() if problems else tuple(stages), (*read.notes, *problems))


def _pools(entry: StageEntry, slots: Mapping[str, int]) -> list[DevicePool]:
    pools = [pool.pool() for pool in entry.pools]
    # Slots that the caller names replace those of the file; its device bytes then no longer hold.
    return [replace(p, slots=slots[p.name], device_bytes=None) if p.name in slots else p for p in pools]


def _noted(detail: Mapping[str, Any], places: Mapping[str, Place]) -> Noted:
    loc: Sequence[Any] = detail["loc"]
    pointer = "".join(f"/{part}" for part in loc)
    name = str(loc[-1]) if loc else ""
    help_ = "See `hicache-config schema pools`."
    if detail["type"] == "extra_forbidden":
        known = {"pools", "layers"} if len(loc) == 3 else {"stages"} if len(loc) == 1 else set(PoolEntry.model_fields)
        close = difflib.get_close_matches(name, sorted(known), n=1)
        message = f"{pointer} is no field of a pools file"
        help_ = f"Did you mean {close[0]}?" if close else f"The fields here: {', '.join(sorted(known))}."
    elif detail["type"] == "missing":
        message = f"{pointer} is missing"
    else:
        message = f"{pointer or 'the value'} is {shortened(json.dumps(detail['input']))}; {_expected(detail)}"
    return Noted(
        Finding("HC312", "pools-file-wrong", "error", message, help_, pointer=pointer), _place(places, pointer)
    )


def _place(places: Mapping[str, Place], pointer: str) -> Place | None:
    """The place of a pointer, or of the nearest thing around it that the file has."""
    while pointer and pointer not in places:
        pointer = pointer.rpartition("/")[0]
    return places.get(pointer)


def _expected(detail: Mapping[str, Any]) -> str:
    limits: Mapping[str, Any] = detail.get("ctx") or {}
    words = _EXPECTED.get(detail["type"], str(detail["msg"]))
    return words.format(limits.get("ge", limits.get("le", limits.get("expected", ""))))
