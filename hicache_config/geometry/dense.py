"""Plain attention with keys and values of each head: MHA and GQA, equal and unequal widths, bf16, fp8 and mxfp8.

Must not import anything above this floor.
"""

from __future__ import annotations

from ..core.pools import DevicePool
from .attention import Heads, heads, is_latent
from .family import Case, FamilyPage
from .model import refuse
from .parallel import StageLayers
from .rows import MXFP8_BLOCK, heads_row, pool_bytes


class Dense:
    """One pool of keys and values."""

    page = FamilyPage(
        name="dense",
        title="Plain attention (MHA, GQA)",
        pools=("kv",),
        formula=(
            "kv: KV heads of a rank x (key width + value width) x bytes of a value x layers of the stage; "
            "mxfp8 adds a scale byte for 32 values. KV heads of a rank are those of the model over the tensor ranks of "
            "attention, at least one."
        ),
        checked="the real SGLang's device and host pools, and whole models through its own configuration",
        models=("meta-llama/Llama-3.1-70B-Instruct", "Qwen/Qwen3-235B-A22B", "MiniMaxAI/MiniMax-M2.5"),
    )

    def matches(self, case: Case) -> bool:
        return not is_latent(case.model)

    def pools(self, case: Case, stage: StageLayers) -> list[DevicePool]:
        return [heads_pool("kv", case, rank_heads(case), stage.count * loops(case))]


def rank_heads(case: Case) -> Heads:
    """Keys and values of full attention on one rank."""
    shape = heads(case.model)
    return Heads(case.parallel.kv_heads(shape.count), shape.key, shape.value)


def heads_pool(name: str, case: Case, shape: Heads, layers: int, *, packed: int = 0) -> DevicePool:
    """A pool of keys and values over `layers` of the stage and `packed` draft layers of the same row.

    `shape` holds the heads of a rank. SGLang's weight counts the layers with a page of padding, not the draft.
    """
    settings = case.settings
    if settings.kv_type == "mxfp8":
        _check_mxfp8(case, shape, packed)
    row = heads_row(shape, settings)
    slots = case.slots.get(name)
    return DevicePool(
        name,
        slots=slots,
        bytes_per_slot=row * (layers + packed),
        page_size=case.page_size,
        device_bytes=pool_bytes(slots, row * layers, case.page_size),
    )


def loops(case: Case) -> int:
    """How often a loop model runs through its layers, each time with KV of its own.

    Source: 0.5.23, model_runner_components/layer_setup.py:_get_loop_num.
    """
    key = "loop_num" if case.model.has("loop_num") else "num_loops"
    return case.model.integer(key, 1)


def _check_mxfp8(case: Case, shape: Heads, packed: int) -> None:
    """Refuse what SGLang's mxfp8 pools refuse (0.5.23, pool_host/mha_mxfp8.py and mha.py:get_mha_host_pool_cls)."""
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
