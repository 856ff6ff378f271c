"""Hybrids of attention and linear layers (Mamba, gated delta, KDA, lightning): KV of the attention layers and states.

Must not import anything above this floor.
"""

from __future__ import annotations

from ..core.pools import DevicePool
from .attention import heads, is_latent, is_sparse, latent, rank_heads, shares_selection
from .backends import keeps_extra_states
from .dense import check_mxfp8
from .dsa import check_sparse, sparse_pools
from .family import Case, FamilyPage
from .model import refuse
from .packed import packed_layers
from .parallel import StageLayers
from .pieces import Drafting, Heads, State, heads_pool, latent_pool, replay_bytes, state_pool
from .speculative_numbers import REQUESTS
from .states import Linear as LinearLayers
from .states import linear_reader, state_types


class Linear:
    """A kv pool over the attention layers and a mamba pool over the linear ones."""

    page = FamilyPage(
        name="linear",
        title="Hybrid of attention and linear layers or Mamba",
        pools=("kv", "mamba", "indexer"),
        formula=(
            "kv: as plain, latent or sparse attention, over the attention layers of the stage (values as wide as "
            "keys). mamba, in states: (values of the convolution window x their bytes + values of the recurrent state "
            "x their bytes) x linear layers of the stage; layers of Falcon-H1 and ZAYA1 have both. "
            "SGLang shares the size by device bytes: a page of padding "
            "for kv, a state of padding, replay rings and speculative states for mamba."
        ),
        checked="SGLang's own device and host pools, and whole models through its own configuration",
        models=("Qwen/Qwen3.5-397B-A17B", "nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16", "moonshotai/Kimi-K3"),
    )

    def matches(self, case: Case) -> bool:
        return linear_reader(case.model) is not None

    def pools(self, case: Case, stage: StageLayers) -> list[DevicePool]:
        layers = linear_layers(case)
        return [*_attention(case, stage, layers), mamba_pool(case, stage, layers)]


def linear_layers(case: Case) -> LinearLayers:
    """Which layers have attention and which a state, and a rank's state."""
    reader = linear_reader(case.model)
    assert reader is not None  # the family matched
    if case.model.architecture == "ZayaForCausalLM" and case.args.speculative_algorithm is not None:
        raise refuse(
            "HC690",
            "states-refuse-drafts",
            "speculative decoding needs a window of convolution in each part of a state, which ZAYA1 does not have: "
            "SGLang stops when it builds the device pools, after the weights are loaded",
            "Turn speculative decoding off.",
            argument="speculative_algorithm",
        )
    types = state_types(case.args.mamba_ssm_dtype, case.question.environment)
    return reader(case.model, case.parallel.attention_tensor, types)


def _attention(case: Case, stage: StageLayers, layers: LinearLayers) -> list[DevicePool]:
    owned = stage.of(layers.attention)
    packed = packed_layers(case, stage)
    store, slots = case.settings.store, case.slots.get("kv")
    if not layers.attention:
        return [DevicePool("kv", slots=slots, bytes_per_slot=0, page_size=case.page_size)]
    if is_latent(case.model):
        if is_sparse(case.model):
            check_sparse(case)
            owners = sum(not shares_selection(case.model, layer) for layer in owned)
            return sparse_pools(case, len(owned), owners, packed)
        return [latent_pool("kv", latent(case.model), store, len(owned), slots, packed=packed)]
    shape = heads(case.model)
    own = rank_heads(Heads(shape.count, shape.key, shape.key), case.parallel.head_ranks)
    check_mxfp8(case, own, packed)
    return [heads_pool("kv", own, store, len(owned), slots, packed=packed)]


def mamba_pool(case: Case, stage: StageLayers, layers: LinearLayers) -> DevicePool:
    """The states of a stage, weighed with what speculation and replay add on the device."""
    owned, slots = len(stage.of(layers.linear)), case.slots.get("mamba")
    requests = _requests(case, slots)
    rings = _ring_bytes(case, layers.state, owned, slots, requests)
    return state_pool(layers.state, owned, slots, _drafting(case, layers.state, requests), rings)


def _requests(case: Case, states: int | None) -> int:
    """Most requests of an attention group at once, as far as speculative states count them.

    Source: 0.5.23, kv_cache_configurator.py:resolve_max_num_reqs and _calculate_mamba_ratio.
    """
    limit = (case.args.max_running_requests or REQUESTS) // case.parallel.attention_dp
    limit = max(1, limit)
    if "kv" in case.slots:
        limit = min(limit, case.slots["kv"] // 2)
    return limit if states is None else min(limit, states // states_of_a_request(case))


def states_of_a_request(case: Case) -> int:
    """States that SGLang reserves for each running request."""
    args, skips = case.args, case.is_on("SGLANG_OPT_MAMBA_SKIP_DECODE_LOCK")
    if keeps_extra_states(case.model, args):
        lazy = args.mamba_radix_cache_strategy == "extra_buffer_lazy"
        overlaps = not args.disable_overlap_schedule and case.parallel.stages == 1
        return (2 if skips else 3) + (1 if lazy or not overlaps else 2)
    return 3


def _drafting(case: Case, state: State, requests: int) -> Drafting | None:
    tokens = case.args.speculative_num_draft_tokens
    if case.args.speculative_algorithm is None or tokens is None or case.args.disaggregation_mode == "prefill":
        return None
    return Drafting(requests, tokens, keeps_temporal=not (case.args.enable_linear_replayssm_spec and state.heads))


def _ring_bytes(case: Case, state: State, layers: int, slots: int | None, requests: int) -> int:
    args = case.args
    if slots is None or not (args.enable_linear_replayssm or args.enable_linear_replayssm_spec) or not state.heads:
        return 0
    verifying = args.enable_linear_replayssm_spec
    length = case.args.others.get("linear_replayssm_cache_len", 16)
    entries = requests + 1 if verifying and not state.per_key else slots + 1
    return replay_bytes(state, layers, entries, length if isinstance(length, int) else 16, verifying=verifying)
