"""What rules need to know of a model: which host pools it will have, and what its class can do.

Geometry knows families; here are only the yes-or-no questions that SGLang's checks ask. Source: SGLang 0.5.23,
configs/model_config.py, configs/hybrid_arch.py and the lists in arg_groups/overrides.py.
Must not import anything above this floor.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ..arguments import ServerArgs
from ..geometry.attention import heads, is_latent, is_sparse
from ..geometry.backends import attention_backends, can_keep_extra_states, kernels_of_class, state_strategy
from ..geometry.classes import class_of
from ..geometry.gpu import Gpu
from ..geometry.model import Model, RefusedError
from ..geometry.pipeline import Settled
from ..geometry.settle import page_of_class, settle
from ..geometry.sliding import STEP3P, could_slide, gives_sliding_up

#: Classes with recurrent states of their own (0.5.23, overrides.py:_MAMBA_RADIX_CACHE_ARCHS).
_LINEAR = frozenset(
    {
        "BailingMoeV2_5ForCausalLM",
        "BailingMoeV3ForCausalLM",
        "BailingMoeV3VLForConditionalGeneration",
        "FalconH1ForCausalLM",
        "Glm5NextForConditionalGeneration",
        "InternS2MobiusForConditionalGeneration",
        "InternS2PreviewForConditionalGeneration",
        "JetNemotronForCausalLM",
        "JetVLMForConditionalGeneration",
        "KimiK3ForConditionalGeneration",
        "KimiLinearForCausalLM",
        "Lfm2ForCausalLM",
        "Lfm2MoeForCausalLM",
        "MiniCPMV4_6ForConditionalGeneration",
        "MiniCPMV4_7ForConditionalGeneration",
        "NemotronHForCausalLM",
        "NemotronHPuzzleForCausalLM",
        "NemotronH_Omni_Reasoning_V3",
        "Qwen3NextForCausalLM",
        "Qwen3_5ForCausalLM",
        "Qwen3_5ForConditionalGeneration",
        "Qwen3_5MoeForCausalLM",
        "Qwen3_5MoeForConditionalGeneration",
        "Qwen4ExpForConditionalGeneration",
        "ZayaForCausalLM",
    }
)
_V4 = frozenset({"DeepseekV4ForCausalLM", "DeepseekV4ForCausalLMNextN", "DeepseekV4ForCausalLMDSpark"})
_M3 = frozenset({"MiniMaxM3SparseForCausalLM", "MiniMaxM3SparseForConditionalGeneration"})
INKLING = "InklingForConditionalGeneration"
_MINICPM = frozenset({"MiniCPMForCausalLM", "MiniCPMSALAForCausalLM"})


@dataclass(frozen=True)
class Traits:
    """Answers about one model under its arguments.

    `latent`: one row for all heads (MLA); `sparse`: selects by index keys (DSA); `linear`: has recurrent states;
    `sliding`: sliding-window layers have a pool of their own; `may_slide`: they would, unless it is given up;
    `asymmetric`: keys and values have different widths; `v4`, `m3`: DeepSeek V4's and MiniMax M3's own pools;
    `lightning`: MiniCPM with sparse or lightning layers; `in_stages`: the class runs under pipeline parallelism (None
    where it is unknown). `settled` is what the model and the GPU settle, also where its pools are refused.
    """

    architecture: str
    latent: bool = False
    sparse: bool = False
    linear: bool = False
    sliding: bool = False
    may_slide: bool = False
    asymmetric: bool = False
    v4: bool = False
    m3: bool = False
    lightning: bool = False
    in_stages: bool | None = None
    page: int | None = None
    kernels: str | None = None
    strategy: str = "auto"
    extra_states: bool = False
    chunk: int = 64
    settled: Mapping[str, Settled] = field(default_factory=dict)

    @property
    def is_step(self) -> bool:
        """Whether it is Step 3.5 or 3.7, whose sliding-window pool HiCache gives up."""
        return self.architecture in STEP3P

    @property
    def has_recurrent_states(self) -> bool:
        """Whether a Mamba pool is there."""
        return self.linear or (self.lightning and self.architecture in _MINICPM)

    @property
    def keeps_states(self) -> bool:
        """Whether the prefix cache keeps recurrent states, those of Inkling's short convolutions among them."""
        return self.linear or self.architecture == INKLING


def traits_of(model: Model | None, args: ServerArgs, gpu: str = "sm90") -> Traits | None:
    """The traits of a model, None without one or where its config.json has no usable architecture."""
    if model is None:
        return None
    try:
        name = model.architecture
    except RefusedError:
        return None
    page = _own_page(model, args, gpu)
    strategy = state_strategy(model, args, page)
    if name == INKLING and args.mamba_radix_cache_strategy == "auto":
        strategy = "extra_buffer"  # its class sets it, whatever else is asked
    return Traits(
        architecture=name,
        latent=is_latent(model),
        sparse=is_sparse(model),
        linear=name in _LINEAR or (name == "GraniteMoeHybridForCausalLM" and "mamba" in _kinds(model)),
        sliding=could_slide(model) and not args.disable_hybrid_swa_memory and gives_sliding_up(model, args) is None,
        may_slide=could_slide(model),
        asymmetric=_is_asymmetric(model),
        v4=name in _V4,
        m3=name in _M3,
        lightning=name in _MINICPM and _has_mixed_layers(model),
        in_stages=_runs_in_stages(model),
        page=page,
        kernels=_own_kernels(model, args, gpu),
        strategy=strategy,
        extra_states=can_keep_extra_states(model, args),
        chunk=_chunk(model),
        settled=_settled(model, args, gpu),
    )


def _settled(model: Model, args: ServerArgs, gpu: str) -> Mapping[str, Settled]:
    """Page size and sliding-window memory, with the KV type left out where that is what is refused."""
    if model.architecture in _V4:
        return {"page_size": Settled("page_size", args.page_size, 256, "DeepSeek V4 has pages of 256")}
    try:
        return settle(model, class_of(model), args, Gpu.of(gpu)).changed
    except RefusedError:
        pass
    try:
        plain = args.model_copy(update={"kv_cache_dtype": "auto"})
        settled = settle(model, class_of(model), plain, Gpu.of(gpu)).changed
    except RefusedError:
        return {}
    return {name: each for name, each in settled.items() if name != "kv_cache_dtype"}


def _own_kernels(model: Model, args: ServerArgs, gpu: str) -> str | None:
    try:
        return kernels_of_class(model, args, Gpu.of(gpu))
    except RefusedError:
        return None


def _own_page(model: Model, args: ServerArgs, gpu: str) -> int | None:
    try:
        kind = Gpu.of(gpu)
        own = page_of_class(model, args, kind, attention_backends(model, args, kind))
    except RefusedError:
        return None
    return None if own is None else own[0]


def _chunk(model: Model) -> int:
    """Tokens of a chunk of states (0.5.23, overrides.py:mamba_cache_chunk_size, configs/)."""
    default = 256 if model.architecture in ("FalconH1ForCausalLM", "GraniteMoeHybridForCausalLM") else 64
    own = model.get("mamba_chunk_size")
    return own if isinstance(own, int) and own > 0 else default


def _kinds(model: Model) -> tuple[str, ...]:
    kinds = model.get("layer_types")
    return tuple(map(str, kinds)) if isinstance(kinds, list) else ()


def _is_asymmetric(model: Model) -> bool:
    if is_latent(model) or model.architecture in _V4:
        return False
    try:
        full = heads(model)
    except RefusedError:
        return False
    if full.key != full.value:
        return True
    key, value = model.get("swa_head_dim"), model.get("swa_v_head_dim")
    return isinstance(key, int) and isinstance(value, int) and key != value


def _has_mixed_layers(model: Model) -> bool:
    kinds = model.get("mixer_types")
    names = set(map(str, kinds)) if isinstance(kinds, list) else set()
    return "lightning-attn" in names or ("minicpm4" in names and model.has("sparse_config"))


def _runs_in_stages(model: Model) -> bool | None:
    try:
        return class_of(model).runs_in_stages
    except RefusedError:
        return None
