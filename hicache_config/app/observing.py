"""What a server's log says was allocated, held against the plan of its arguments.

Must not import anything above this floor.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from ..arguments import Place
from ..core.findings import Finding
from ..core.plan import Plan
from ..core.sizes import HostPoolSize
from ..core.units import GB
from ..sources.document import Noted

_STAGE = re.compile(r"\bPP(\d+)\b")


def observed(reported: Mapping[str, object], plan: Plan | None) -> list[Noted]:
    """Where the log's host pools differ from the plan, at their lines; one note where all of them are as planned.

    `reported` is what sources.allocations gathers. Pools that the plan does not name, and sizes that it does not
    know, are passed over.
    """
    pools = reported.get("host_pools")
    if plan is None or not isinstance(pools, list):
        return []
    compared, differing = 0, []
    for entry in pools:
        expected = _expected(entry, plan)
        if expected is None:
            continue
        compared += 1
        differing += [_differs(entry, *pair) for pair in _differences(entry, expected)]
    if differing or not compared:
        return differing
    text = f"the {compared} host pools that the log names are as planned" if compared > 1 else _ONE
    return [Noted(Finding("HC314", "log-as-planned", "note", text), None)]


_ONE = "the host pool that the log names is as planned"


def _expected(entry: Mapping[str, Any], plan: Plan) -> HostPoolSize | None:
    """The planned pool that a line of the log speaks of."""
    match = _STAGE.search(str(entry.get("rank", "")))
    number = int(match[1]) if match else 0
    if match is None and len(plan.stages) > 1:
        return None
    stage = next((stage for stage in plan.stages if stage.stage == number), None)
    return None if stage is None else next((pool for pool in stage.pools if pool.name == entry.get("pool")), None)


def _differences(entry: Mapping[str, Any], pool: HostPoolSize) -> Iterator[tuple[str, str]]:
    """What the log says and what the plan says, where they are not the same; the log's GB have two decimals."""
    for name, planned in (("slots", pool.slots), ("pages", pool.pages)):
        if planned is not None and name in entry and entry[name] != planned:
            yield f"{entry[name]:,} {name}", f"{planned:,}"
    if "slots" in entry or "pages" in entry or pool.pages is None or "gb" not in entry:
        return
    # SGLang books and prints what it accounts for; an extra page is allocated beyond it.
    planned_gb = f"{pool.pages * pool.page_bytes / GB:.2f}"
    if f"{entry['gb']:.2f}" != planned_gb:
        yield f"{entry['gb']:.2f} GB", f"{planned_gb} GB"


def _differs(entry: Mapping[str, Any], said: str, planned: str) -> Noted:
    rank = f" on {entry['rank']}" if entry.get("rank") else ""
    finding = Finding(
        "HC313",
        "log-differs-from-plan",
        "warning",
        f"the log says {said} of host pool {entry['pool']!r}{rank}; the plan of these arguments says {planned}",
        "Name the release that ran (--sglang), the GPU (--gpu), the model and the device slots; if they are right, "
        "please report the difference.",
        asked=planned,
        gets=said,
        pool=str(entry["pool"]),
    )
    line = int(entry["line"])
    return Noted(finding, Place(line, 1, line, 2))
