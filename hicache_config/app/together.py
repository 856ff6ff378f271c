"""Engines of one source that share a machine: what they take together. Must not import anything above this floor."""

from __future__ import annotations

from collections.abc import Sequence

from ..core.findings import Finding
from ..core.units import RESERVE_BYTES, format_gb
from ..sources.document import Document
from .examining import Examined
from .options import Options


def together(document: Document, examined: Sequence[Examined], options: Options) -> list[Finding]:
    """A warning where the engines of a Compose file fit one by one and not all at once.

    Compose starts them on one machine. Without the caller's memory of it, and of engines whose bytes are not known or
    which run on several machines, nothing is said.
    """
    if document.format != "compose" or options.host_memory_bytes is None:
        return []
    takes = {engine.name: _bytes_of(each) for engine, each in zip(document.engines, examined, strict=True)}
    known = {name: amount for name, amount in takes.items() if amount}
    room = options.host_memory_bytes - RESERVE_BYTES
    if len(known) < 2 or sum(known.values()) <= room or max(known.values()) > room:
        return []
    listed = " + ".join(f"{format_gb(amount)} of {name}" for name, amount in known.items())
    return [
        Finding(
            "HC506",
            "engines-exceed-the-machine",
            "warning",
            f"the engines take {format_gb(sum(known.values()))} together ({listed}); the machine has "
            f"{format_gb(options.host_memory_bytes)}, of which SGLang keeps 10 GiB free",
            "Give each a smaller --hicache-size, or a machine of its own.",
        )
    ]


def _bytes_of(examined: Examined) -> int | None:
    """Host bytes of all ranks of an engine on its machine; None where they are not known, or there are several."""
    plan, nodes = examined.plans.get("sglang"), examined.machines.nodes
    if plan is None or len(nodes) != 1 or not examined.resolution.host_pools:
        return None
    by_stage = {stage.stage: stage.bytes for stage in plan.stages}
    held = [(by_stage.get(stage), ranks) for stage, ranks in nodes[0].ranks_by_stage.items()]
    return None if any(amount is None for amount, _ in held) else sum((amount or 0) * ranks for amount, ranks in held)
