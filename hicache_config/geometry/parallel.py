"""Ranks, KV heads a rank, the layers of each pipeline stage, and which ranks lie on which machine. Pure functions.

May import core and arguments, nothing above.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ..arguments import ServerArgs
from .model import refuse

PARTITION = "SGLANG_PP_LAYER_PARTITION"


@dataclass(frozen=True)
class StageLayers:
    """The layers of one pipeline stage.

    `first` to `end` (exclusive) are those that its pools cover, `weights` how many the split gave it. They differ for
    model classes that do not tell their pools which layers they have: then each stage's pools cover all.
    """

    index: int
    first: int
    end: int
    weights: int
    is_last: bool

    @property
    def count(self) -> int:
        """How many layers the pools cover."""
        return self.end - self.first

    def of(self, layers: tuple[int, ...]) -> tuple[int, ...]:
        """Those of the given layer numbers that the stage's pools cover."""
        return tuple(layer for layer in layers if self.first <= layer < self.end)


@dataclass(frozen=True)
class Parallel:
    """Sizes of an engine. `replicas` are whole engines side by side, `attention_dp` groups inside the tensor ranks."""

    tensor: int
    stages: int
    replicas: int
    attention_dp: int
    attention_cp: int
    decode_cp: int
    nodes: int

    @property
    def attention_tensor(self) -> int:
        """Ranks that share the heads of attention. Source: 0.5.23, runtime_context.py:derive_attn_tp_size."""
        return self.tensor // self.attention_dp // self.attention_cp

    @property
    def head_ranks(self) -> int:
        """Ranks that share KV heads; those of a decode context group keep the same ones.

        Source: 0.5.23, configs/model_config.py:ModelConfig.get_num_kv_heads.
        """
        return max(1, self.attention_tensor // self.decode_cp)

    @classmethod
    def of(cls, args: ServerArgs) -> Parallel:
        """The sizes that the arguments ask for; those that SGLang refuses raise a RefusedError.

        With `enable_dp_attention` `dp_size` means attention groups (0.5.23, arg_groups/parallel_hook.py).
        """
        replicas, attention = args.dp_size, args.attn_dp_size
        if args.enable_dp_attention and attention == 1:
            replicas, attention = 1, args.dp_size
        found = cls(args.tp_size, args.pp_size, replicas, attention, args.attn_cp_size, args.dcp_size, args.nnodes)
        if found.tensor % (found.attention_dp * found.attention_cp):
            raise refuse(
                "HC412",
                "tensor-ranks-indivisible",
                f"--tp-size {found.tensor} is not divisible by the groups of attention: {found.attention_dp} "
                f"data-parallel times {found.attention_cp} context-parallel",
                "Choose --attn-dp-size and --attn-cp-size whose product divides --tp-size.",
                argument="attn_dp_size" if found.attention_dp > 1 else "attn_cp_size",
            )
        if found.decode_cp > 1 and found.attention_tensor % found.decode_cp:
            raise refuse(
                "HC413",
                "decode-context-ranks-indivisible",
                f"--dcp-size {found.decode_cp} does not divide the {found.attention_tensor} tensor ranks of attention",
                "Choose a --dcp-size that divides them.",
                argument="dcp_size",
            )
        return found


# --- layers -------------------------------------------------------------------------------------------------------


def split_layers(layers: int, stages: int, environment: Mapping[str, str]) -> tuple[tuple[int, int], ...]:
    """First layer and end (exclusive) of each stage; the last stages take the remainder. A bad partition is refused.

    Source: SGLang 0.5.23, distributed/utils.py:get_pp_indices.
    """
    text = environment.get(PARTITION)
    if text is None or stages == 1:
        base, remainder = divmod(layers, stages)
        counts = [base + (index >= stages - remainder) for index in range(stages)]
    else:
        counts = _partition(text, layers, stages)
    bounds, first = [], 0
    for count in counts:
        bounds.append((first, first + count))
        first += count
    return tuple(bounds)


def _partition(text: str, layers: int, stages: int) -> list[int]:
    pieces = text.split(",")
    problem = None
    counts: list[int] = []
    try:
        counts = [int(piece) for piece in pieces]
    except ValueError:
        problem = "is not a list of whole numbers"
    if problem is None and len(counts) != stages:
        problem = f"has {len(counts)} numbers, and --pp-size is {stages}"
    if problem is None and sum(counts) != layers:
        problem = f"sums to {sum(counts)}, and the model has {layers} layers"
    if problem is None and min(counts) < 0:
        problem = "has a negative number"
    if problem is not None:
        base, remainder = divmod(layers, stages)
        example = ",".join(str(base + (index >= stages - remainder)) for index in range(stages))
        raise refuse(
            "HC414",
            "layer-partition-wrong",
            f"{PARTITION}={text} {problem}",
            f"Write {stages} numbers that sum to {layers}, such as {example}.",
            argument="pp_size",
            asked=text,
        )
    return counts


# --- machines -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class NodeRanks:
    """What one machine holds: for each pipeline stage with ranks there, how many (all replicas together)."""

    node: int
    ranks_by_stage: Mapping[int, int]

    @property
    def ranks(self) -> int:
        """All ranks of the machine."""
        return sum(self.ranks_by_stage.values())


def placement(tensor: int, stages: int, nodes: int, replicas: int = 1) -> tuple[NodeRanks, ...]:
    """Which ranks SGLang starts on each machine: whole stages where there are at least as many as machines.

    Else a stage's tensor ranks are spread over machines. Replicas all lie on the same machines. A stage that no
    machine starts (sizes where neither of stages and machines divides the other) has no ranks anywhere; see
    `stages_never_started`. Source: SGLang 0.5.23, entrypoints/engine.py:_calculate_rank_ranges.
    """
    stages_a_node = max(stages // nodes, 1)
    nodes_a_stage = max(nodes // stages, 1)
    tensor_a_node = tensor // nodes_a_stage
    found = []
    for node in range(nodes):
        first = stages_a_node * (node // nodes_a_stage)
        held = range(first, min(first + stages_a_node, stages))
        found.append(NodeRanks(node, {stage: tensor_a_node * replicas for stage in held if tensor_a_node}))
    return tuple(found)


def stages_never_started(tensor: int, stages: int, nodes: int) -> tuple[int, ...]:
    """Stages of which some tensor rank is started on no machine, so that the others wait for ever."""
    started = [0] * stages
    for node in placement(tensor, stages, nodes):
        for stage, ranks in node.ranks_by_stage.items():
            started[stage] += ranks
    return tuple(stage for stage, ranks in enumerate(started) if ranks < tensor)
