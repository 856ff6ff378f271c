"""What geometry answers: the pools of every pipeline stage, and the values that the engine settles on the way there.

Must not import anything above this floor.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ..core.capacity import Capacity
from ..core.findings import Finding
from ..core.pools import Stage


@dataclass(frozen=True)
class Question:
    """What else decides the pools besides the model and the arguments.

    `release` is the name of an SGLang release; `gpu` such as "sm90" decides defaults (page size, KV row and dtype);
    `environment` holds SGLang's variables (SGLANG_PP_LAYER_PARTITION, …); `device_slots` are known slots by pool name
    (`kv`, `swa`, `mamba`); `draft_config` is the config.json of a separate draft model.
    """

    release: str
    gpu: str = "sm90"
    environment: Mapping[str, str] = field(default_factory=dict)
    device_slots: Mapping[str, int] = field(default_factory=dict)
    draft_config: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class Settled:
    """A value that the engine chose or rewrote because of the model or the GPU: field, asked, gets, and why."""

    argument: str
    asked: Any
    gets: Any
    why: str


@dataclass(frozen=True)
class Pipeline:
    """The answer. `stages` are in order and empty when the model is refused (`findings` then hold the error).

    `family` is the family's name, `settled` the values the engine decides (by argument), `assumptions` what is not
    known or was taken for granted, in words. `capacity` is the one in force where the engine works it out from the
    pools (decode servers); None: the arguments' own.
    """

    family: str
    stages: tuple[Stage, ...]
    settled: Mapping[str, Settled] = field(default_factory=dict)
    assumptions: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()
    capacity: Capacity | None = None
