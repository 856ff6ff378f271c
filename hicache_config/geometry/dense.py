"""Plain attention with keys and values of each head: MHA and GQA, equal and unequal widths, bf16, fp8 and mxfp8.

Must not import anything above this floor.
"""

from __future__ import annotations

from ..core.pools import DevicePool
from .attention import heads, is_latent, is_plain, rank_heads
from .family import Case, FamilyPage
from .model import refuse
from .packed import packed_layers
from .parallel import StageLayers
from .pieces import MXFP8_BLOCK, Heads, heads_pool


class Dense:
    """One pool of keys and values."""

    page = FamilyPage(
        name="dense",
        title="Plain attention (MHA, GQA)",
        pools=("kv",),
        formula=(
            "kv: KV heads of a rank x (key width + value width) x bytes of a value x layers of the stage, packed "
            "draft layers included; mxfp8 adds a scale byte for 32 values. KV heads of a rank are those of the model "
            "over the tensor ranks of attention, at least one."
        ),
        checked=(
            "SGLang's own device and host pools, and whole models through its own configuration: public ones, and "
            "every class by the default configuration of its type"
        ),
        models=("meta-llama/Llama-3.1-70B-Instruct", "Qwen/Qwen3-235B-A22B", "MiniMaxAI/MiniMax-M2.5"),
    )

    def matches(self, case: Case) -> bool:
        return not is_latent(case.model) and is_plain(case.model)

    def pools(self, case: Case, stage: StageLayers) -> list[DevicePool]:
        shape = rank_heads(heads(case.model), case.parallel.head_ranks)
        packed = packed_layers(case, stage)
        check_mxfp8(case, shape, packed)
        layers = stage.count * loops(case)
        return [heads_pool("kv", shape, case.settings.store, layers, case.slots.get("kv"), packed=packed)]


def loops(case: Case) -> int:
    """How often a loop model runs through its layers, each time with KV of its own.

    Source: 0.5.23, model_runner_components/layer_setup.py:_get_loop_num.
    """
    return case.model.integer("loop_num" if case.model.has("loop_num") else "num_loops", 1)


def check_mxfp8(case: Case, shape: Heads, packed: int) -> None:
    """Refuse what SGLang's mxfp8 pools refuse (0.5.23, pool_host/mha_mxfp8.py, memory_pool.py)."""
    if case.settings.kv_type != "mxfp8":
        return
    problem = None
    if case.page_size != 128:
        problem = f"pages of 128 slots; here they have {case.page_size}"
    elif shape.key % MXFP8_BLOCK or shape.value % MXFP8_BLOCK:
        problem = f"widths that 32 divides; here they are {shape.key} and {shape.value}"
    elif shape.key != shape.value:
        problem = f"keys and values of one width; here they are {shape.key} and {shape.value}"
    elif packed:
        problem = "drafts outside the rows of the model; here they are packed into them"
    if problem is not None:
        raise refuse(
            "HC608",
            "mxfp8-host-pool",
            f"a host pool of --kv-cache-dtype mxfp8 needs {problem}: SGLang stops after the weights are loaded",
            "Write --kv-cache-dtype fp8_e4m3.",
            argument="kv_cache_dtype",
            asked="mxfp8",
        )
