"""Latent attention (MLA): one compressed row for all heads, the same on every tensor rank.

Must not import anything above this floor.
"""

from __future__ import annotations

from ..core.pools import DevicePool
from .attention import is_latent, is_sparse, latent
from .family import Case, FamilyPage
from .packed import packed_layers
from .parallel import StageLayers
from .pieces import latent_pool


class Mla:
    """One pool of latents, replicated on the tensor ranks."""

    page = FamilyPage(
        name="mla",
        title="Latent attention (MLA)",
        pools=("kv",),
        formula=(
            "kv: (kv_lora_rank + qk_rope_head_dim) x bytes of a value x layers of the stage, packed draft layers "
            "included. Every tensor rank holds the same rows; with decode context parallelism its share of them."
        ),
        checked="SGLang's own device and host pools, and whole models through its own configuration",
        models=("deepseek-ai/DeepSeek-V3", "moonshotai/Kimi-K2.5"),
    )

    def matches(self, case: Case) -> bool:
        return is_latent(case.model) and not is_sparse(case.model)

    def pools(self, case: Case, stage: StageLayers) -> list[DevicePool]:
        packed = packed_layers(case, stage)
        shape, slots = latent(case.model), case.slots.get("kv")
        return [latent_pool("kv", shape, case.settings.store, stage.count, slots, packed=packed)]
