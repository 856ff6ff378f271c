"""Sparse attention by index keys (DSA): latents, and index keys in the layers that select for themselves.

Must not import anything above this floor.
"""

from __future__ import annotations

from ..core.pools import DevicePool
from .attention import index_keys, is_latent, is_sparse, latent, shares_selection
from .family import Case, FamilyPage
from .model import refuse
from .older_pools import key_layers
from .packed import packed_layers
from .parallel import StageLayers
from .pieces import index_pool, latent_pool


class Dsa:
    """A pool of latents and the index keys that follow it."""

    page = FamilyPage(
        name="dsa",
        title="Sparse latent attention with an indexer (DSA)",
        pools=("kv", "indexer"),
        formula=(
            "kv: row x layers of the stage. The row is (kv_lora_rank + qk_rope_head_dim) x bytes of a value, or for "
            "fp8 with scales in the row kv_lora_rank + kv_lora_rank / 128 x 4 + qk_rope_head_dim x 2 (656 bytes). "
            "indexer, follows kv: 132 bytes a slot and owning layer over index_kpool, one page more than kv. A layer "
            "that shares the selection of the layer before it owns no index keys. Outside the size in SGLang."
        ),
        checked="SGLang's own device and host pools, and whole models through its own configuration",
        models=("deepseek-ai/DeepSeek-V3.2", "zai-org/GLM-5.2-FP8"),
    )

    def matches(self, case: Case) -> bool:
        return is_latent(case.model) and is_sparse(case.model)

    def pools(self, case: Case, stage: StageLayers) -> list[DevicePool]:
        check_sparse(case)
        layers = range(stage.first, stage.first - (-stage.count // split_ranks(case)))
        owners = sum(not shares_selection(case.model, layer) for layer in layers)
        return sparse_pools(case, len(layers), owners, packed_layers(case, stage))


def check_sparse(case: Case) -> None:
    """Refuse what SGLang refuses for sparse attention (0.5.23, model_overrides/deepseek_v2.py)."""
    if case.parallel.decode_cp > 1:
        raise refuse(
            "HC417",
            "sparse-decode-context",
            f"--dcp-size {case.parallel.decode_cp} is refused for sparse attention with HiCache",
            "Write --dcp-size 1.",
            argument="dcp_size",
            asked=case.parallel.decode_cp,
        )


def split_ranks(case: Case) -> int:
    """Context-parallel ranks over which the layers of a prefill server's cache are split; 1 without that.

    The first of them owns the most layers, and the pools here are its. Source: SGLang 0.5.23, layers/cp/utils.py
    and arg_groups/model_overrides/deepseek_v2.py (the ranks that context parallelism gets).
    """
    args = case.args
    if not (args.enable_dsa_cache_layer_split and args.enable_prefill_cp and args.disaggregation_mode == "prefill"):
        return 1
    if args.cp_strategy == "interleave" and args.attn_cp_size > 1:
        return args.attn_cp_size
    return max(1, case.parallel.tensor // case.parallel.attention_dp)


def sparse_pools(case: Case, layers: int, owners: int, packed: int = 0) -> list[DevicePool]:
    """Latents of `layers` and index keys of `owners` of them, with packed draft layers in both.

    A stage without an owner has no pool of index keys, packed drafts or not.
    """
    keys, store, slots = index_keys(case.model), case.settings.store, case.slots.get("kv")
    owners, kept = key_layers(case.release, layers, owners)
    pools = [
        latent_pool(
            "kv",
            latent(case.model),
            store,
            layers,
            slots,
            packed=packed,
            index_bytes=keys.device_bytes(owners, slots, store.page_size),
            draft_index_bytes=keys.device_bytes(1, slots, store.page_size),
        )
    ]
    if kept:
        pools.append(index_pool(keys, store, kept, slots, packed=packed))
    return pools
