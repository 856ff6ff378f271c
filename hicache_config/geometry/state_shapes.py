"""A rank's share of the state of one linear layer: Mamba 1 and 2, gated delta, KDA. Pure arithmetic.

Must not import anything above this floor.
"""

from __future__ import annotations

from dataclasses import dataclass

from .model import refuse
from .pieces import State


@dataclass(frozen=True)
class StateTypes:
    """Types of the two parts of a state, where the arguments or the environment name them."""

    conv: str | None = None
    temporal: str | None = None


_DEFAULT = StateTypes()


def mamba2_state(
    ranks: int,
    *,
    inner: int,
    groups: int,
    heads: int,
    width: int,
    size: int,
    window: int,
    types: StateTypes = _DEFAULT,
) -> State:
    """A rank's share of a Mamba 2 or gated-delta state; groups that the ranks do not divide are repeated.

    `inner` values go through the convolution with 2 x groups x size beside them; `window` is its kernel.
    Source: SGLang 0.5.23, configs/mamba_utils.py:Mamba2StateShape.create.
    """
    key_heads = -(-groups // ranks)
    if groups % ranks:
        groups = ranks
    conv = share(inner + 2 * groups * size, ranks, "values of the convolution")
    own = share(heads, ranks, "heads of the linear layers")
    return State(
        (conv * (window - 1),),
        own * width * size,
        types.conv or "bfloat16",
        types.temporal or "float32",
        own, width, size, key_heads,
    )  # fmt: skip


def mamba1_state(ranks: int, *, inner: int, size: int, window: int, types: StateTypes = _DEFAULT) -> State:
    """A rank's share of a Mamba 1 state: a head for each inner value, and nothing but these in the convolution.

    Source: SGLang 0.5.23, configs/mamba_utils.py:Mamba2StateShape.create_full_rank.
    """
    own = share(inner, ranks, "values of the convolution")
    return State(
        (own * (window - 1),), own * size, types.conv or "bfloat16", types.temporal or "float32", own, 1, size, 1
    )


def delta_state(
    ranks: int, *, heads: int, width: int, window: int, types: StateTypes = _DEFAULT, key_heads: int | None = None,
    key_width: int | None = None,
) -> State:  # fmt: skip
    """A rank's share of a KDA state. Source: SGLang 0.5.23, configs/mamba_utils.py:KimiLinearStateShape.create."""
    key_heads, key_width = key_heads or heads, key_width or width
    values = share(heads * width, ranks, "values of the linear layers")
    keys = share(key_heads * key_width, ranks, "keys of the linear layers")
    own = share(heads, ranks, "heads of the linear layers")
    return State(
        ((window - 1) * (values + 2 * keys),),
        own * width * width,
        types.conv or "bfloat16",
        types.temporal or "float32",
        own, width, width, -(-key_heads // ranks), True,
    )  # fmt: skip


def full_rank_state(ranks: int, *, inner: int, size: int, window: int, types: StateTypes = _DEFAULT) -> State:
    """A rank's share of a Mamba 1 state. Source: 0.5.23, configs/mamba_utils.py:Mamba2StateShape.create_full_rank."""
    own = share(inner, ranks, "channels of the linear layers")
    return State(
        (own * (window - 1),), own * size, types.conv or "bfloat16", types.temporal or "float32", own, 1, size, 1
    )


def share(total: int, ranks: int, what: str) -> int:
    """A rank's part of a total that the ranks must divide; else a refusal."""
    if total % ranks:
        raise refuse(
            "HC416",
            "state-indivisible",
            f"the {total} {what} are not divisible by the {ranks} tensor ranks of attention",
            "Choose --tp-size, --attn-dp-size and --attn-cp-size so that they are.",
            argument="tp_size",
        )
    return total // ranks
