"""Hybrids with sliding windows and states: three pools that share a size. Must not import anything above this floor."""

from __future__ import annotations

from ..core.pools import DevicePool
from .family import Case, FamilyPage
from .linear import linear_layers, mamba_pool
from .parallel import StageLayers
from .states import linear_reader
from .swa import sliding_pools


class MambaSwa:
    """kv, swa and mamba."""

    page = FamilyPage(
        name="mamba_swa",
        title="Sliding window with states",
        pools=("kv", "swa", "mamba"),
        formula="kv and swa as a hybrid sliding window, mamba as a linear hybrid; SGLang shares the size between them.",
        checked="SGLang's own device and host pools; whole models with stand-ins for Inkling's model classes",
        models=("Inkling",),
    )

    def matches(self, case: Case) -> bool:
        return case.settings.sliding and linear_reader(case.model) is not None

    def pools(self, case: Case, stage: StageLayers) -> list[DevicePool]:
        return [*sliding_pools(case, stage), mamba_pool(case, stage, linear_layers(case))]
