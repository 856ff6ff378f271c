"""Qwen4-Exp: a linear hybrid whose attention layers select by compressed index keys (QSA).

The index keys have pages of kv, and their bytes come out of kv's share. Must not import anything above this floor.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from ..core.pools import DevicePool
from .attention import heads, rank_heads
from .family import Case, FamilyPage
from .linear import mamba_pool
from .model import Model, refuse
from .packed import packed_on
from .parallel import StageLayers
from .pieces import Heads, heads_pool
from .speculation import algorithm_of
from .states import Linear, qwen4_layers, state_types

ARCHITECTURE = "Qwen4ExpForConditionalGeneration"
#: --qsa-indexer-dtype, in bytes of a value (0.5.23, qsa_kv_pool.py:resolve_qsa_indexer_dtype).
_INDEX_BYTES = {"auto": 2, "bfloat16": 2, "fp8_e4m3": 1}
_CONV_BYTES = 2
_TOKEN_BYTES = 8


@dataclass(frozen=True)
class Compressed:
    """Compressed index keys: values of one, how many tokens share it, and bytes of a value."""

    width: int
    ratio: int
    value_bytes: int

    def page_bytes(self, page_size: int) -> int:
        """Bytes of a page in one layer."""
        return page_size // self.ratio * self.width * self.value_bytes

    def device_bytes(self, slots: int, page_size: int) -> int:
        """Bytes on the device in one layer, a page of padding included."""
        return -(-(slots + page_size) // self.ratio) * self.width * self.value_bytes


class Qsa:
    """A kv pool over the attention layers, states, and compressed index keys."""

    page = FamilyPage(
        name="qsa",
        title="Linear hybrid with compressed index keys (QSA)",
        pools=("kv", "mamba", "indexer"),
        formula=(
            "kv and mamba as a linear hybrid, pages of 64; layers of ple_layer_ids add their convolution window to "
            "each state. indexer, follows kv: indexer_kv_heads x indexer_head_dim x bytes / indexer_compress_ratio a "
            "token and attention layer. SGLang takes the index out of kv's share: share x kv / (kv + index), in "
            "device bytes."
        ),
        checked="whole models through SGLang's own configuration, its device and host pools (made-up config.json)",
        models=("Qwen4-Exp",),
    )

    def matches(self, case: Case) -> bool:
        return case.model.architecture == ARCHITECTURE and case.model.has("indexer_n_heads")

    def pools(self, case: Case, stage: StageLayers) -> list[DevicePool]:
        layers = qwen4_layers(
            case.model,
            case.parallel.attention_tensor,
            state_types(case.args.mamba_ssm_dtype, case.question.environment),
        )
        owned = len(stage.of(layers.attention))
        packed = int(algorithm_of(case) == "EAGLE" and packed_on(case, stage))
        shape = heads(case.model)
        own = rank_heads(Heads(shape.count, shape.key, shape.key), case.parallel.head_ranks)
        slots = case.slots.get("kv")
        pools = [heads_pool("kv", own, case.settings.store, owned, slots, packed=packed), _states(case, stage, layers)]
        if owned == 0:
            raise refuse(
                "HC655",
                "stage-without-index-keys",
                f"pipeline stage {stage.index} owns no attention layer, so it has no compressed index keys: SGLang "
                "stops there when it builds the host pools while the other stages wait",
                "Change --pp-size or SGLANG_PP_LAYER_PARTITION so that every stage owns an attention layer.",
                argument="pp_size",
                stage=stage.index,
            )
        return [*pools, _index(case, compressed(case), owned, packed)]


def compressed(case: Case) -> Compressed:
    """The index keys of the model, their type as asked; what SGLang refuses raises a RefusedError.

    Source: 0.5.23, layers/attention/qsa/config.py and qsa_kv_pool.py.
    """
    model = case.model
    asked = case.args.qsa_indexer_dtype
    narrow = case.settings.gpu.is_hopper or case.settings.gpu.is_sm100
    if asked not in _INDEX_BYTES or (asked == "fp8_e4m3" and not narrow):
        raise refuse(
            "HC656",
            "index-type-refused",
            f"--qsa-indexer-dtype {asked} is refused on {case.settings.gpu.name}; fp8_e4m3 needs sm90 or sm100",
            "Write --qsa-indexer-dtype auto.",
            asked=asked,
        )
    ratio = model.integer("indexer_compress_ratio", least=2)
    if case.page_size % ratio:
        raise model.wrong("indexer_compress_ratio", ratio, f"a divisor of the page of {case.page_size} slots")
    width = model.integer("indexer_kv_heads") * model.integer("indexer_head_dim")
    return Compressed(width, ratio, _INDEX_BYTES[asked])


def _index(case: Case, keys: Compressed, layers: int, packed: int) -> DevicePool:
    slots, page = case.slots.get("kv"), case.page_size
    count = layers + packed
    total = keys.page_bytes(page) * count
    return DevicePool(
        "indexer",
        slots=slots,
        bytes_per_slot=total // page if total % page == 0 else None,
        page_size=page,
        follows="kv",
        page_bytes=total,
        device_bytes=None if slots is None else keys.device_bytes(slots, page) * count,
        fraction_bytes=0,
        carved=True,
    )


def _states(case: Case, stage: StageLayers, layers: Linear) -> DevicePool:
    """The states, with the rows of the layers that mix embeddings of n-grams (0.5.23, configs/qwen4_exp.py)."""
    pool = mamba_pool(case, stage, layers)
    mixing = _mixing_layers(case.model)
    if not mixing:
        return pool
    model = case.model
    grams = model.integer("ngram_size", 3)
    window = (model.integer("ple_conv_kernel_size", 4) - 1) * grams
    row = model.integer("hidden_size") * model.integer("hc_count", 4) * window * _CONV_BYTES
    beside = row * len(stage.of(mixing)) + max(grams - 1, 0) * _TOKEN_BYTES
    return replace(pool, bytes_per_slot=(pool.bytes_per_slot or 0) + beside)


def _mixing_layers(model: Model) -> tuple[int, ...]:
    """Layers with a convolution over n-gram embeddings; `ple_layer_ids` counts from 1."""
    return tuple(sorted({layer - 1 for layer in model.integers("ple_layer_ids") or ()}))
