"""All families, in the order in which they are asked. Must not import anything above this floor."""

from __future__ import annotations

from .added import ADDED
from .deepseek_v4 import DeepseekV4
from .dense import Dense
from .dsa import Dsa
from .family import Case, Family, FamilyPage
from .linear import Linear
from .mamba_swa import MambaSwa
from .minimax import MiniMaxSparse
from .mla import Mla
from .qsa import Qsa
from .swa import Swa

FAMILIES: tuple[Family, ...] = (
    DeepseekV4(),
    MiniMaxSparse(),
    Qsa(),
    MambaSwa(),
    Linear(),
    Swa(),
    Dsa(),
    Mla(),
    Dense(),
)


def family_of(case: Case) -> Family | None:
    """The first family that the case belongs to."""
    return next((family for family in FAMILIES if family.matches(case)), None)


def families() -> tuple[FamilyPage, ...]:
    """The table of families for the reference, and what is added to their pools."""
    return (*(family.page for family in FAMILIES), *ADDED)
