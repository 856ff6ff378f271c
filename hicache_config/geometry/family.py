"""What a family of models is, and the case that it answers.

To add one: a module with a class of this shape, and a line in `families.py`. Must not import anything above this floor.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from ..arguments import ServerArgs
from ..core.pools import DevicePool
from ..core.releases import Release
from .classes import ModelClass
from .model import Model
from .parallel import Parallel, StageLayers
from .pipeline import Question
from .settle import Settings


@dataclass(frozen=True)
class Case:
    """A model with its arguments and everything that was settled before a family is asked.

    `layers` are those of the whole model; `slots` the known device slots of a rank by pool name (kv, swa, mamba).
    """

    model: Model
    model_class: ModelClass
    args: ServerArgs
    question: Question
    release: Release
    parallel: Parallel
    settings: Settings
    layers: int
    slots: Mapping[str, int] = field(default_factory=dict)

    @property
    def page_size(self) -> int:
        """Slots of a page, on the device and on the host."""
        return self.settings.page_size

    def is_on(self, variable: str) -> bool:
        """Whether one of SGLang's environment variables is switched on (0.5.23, environ.py:EnvBool)."""
        return self.question.environment.get(variable, "").lower() in {"true", "1", "yes", "y"}


@dataclass(frozen=True)
class FamilyPage:
    """A family as the reference shows it: its pools, the formula in words, how it was checked, and models of it."""

    name: str
    title: str
    pools: Sequence[str]
    formula: str
    checked: str
    models: Sequence[str]


class Family(Protocol):
    """One family of models."""

    @property
    def page(self) -> FamilyPage:
        """What the reference says of the family; `page.name` is its name."""

    def matches(self, case: Case) -> bool:
        """Whether the case belongs to this family. Families are asked in order; the first one that matches answers."""

    def pools(self, case: Case, stage: StageLayers) -> list[DevicePool]:
        """The device pools of a rank of one stage, in SGLang's order of construction; raises RefusedError."""
