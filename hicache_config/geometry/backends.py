"""The attention kernels that SGLang chooses, as far as they decide the page size or the row of sparse attention.

Source: SGLang 0.5.23, arg_groups/model_override_base.py:get_default_attn_backend, model_overrides/*.py and
overrides.py. Must not import anything above this floor.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ..arguments import ServerArgs
from .attention import heads, is_latent, is_sparse
from .gpu import Gpu
from .minimax_settings import ARCHITECTURES as M3_ARCHITECTURES
from .minimax_settings import m3_backend
from .model import Model
from .sliding import MIMO_V2, STEP3P

#: Classes of the DeepSeek family, whose latent attention has kernels of its own on sm100.
DEEPSEEK_FAMILY = frozenset(
    {
        "DeepseekV3ForCausalLM",
        "DeepseekV32ForCausalLM",
        "KimiK25ForConditionalGeneration",
        "MistralLarge3ForCausalLM",
        "PixtralForConditionalGeneration",
        "GlmMoeDsaForCausalLM",
        "Glm5NextForConditionalGeneration",
        "HYV4ForCausalLM",
        "LongcatFlashForCausalLM",
        "Dots3NoteForCausalLM",
    }
)
#: Hybrids of Qwen3-Next's kind, whose page size on sm100 SGLang sets itself.
QWEN_HYBRIDS = frozenset(
    {
        "Qwen3NextForCausalLM",
        "Qwen3_5MoeForConditionalGeneration",
        "InternS2PreviewForConditionalGeneration",
        "InternS2MobiusForConditionalGeneration",
        "Qwen3_5ForConditionalGeneration",
    }
)
#: Latent attention that flashinfer does not compute deterministically.
_DETERMINISTIC_LATENT = frozenset(
    {
        "DeepseekV2ForCausalLM",
        "DeepseekV3ForCausalLM",
        "DeepseekV32ForCausalLM",
        "MistralLarge3ForCausalLM",
        "PixtralForConditionalGeneration",
        "GlmMoeDsaForCausalLM",
        "Glm4MoeLiteForCausalLM",
    }
)
NEMOTRON_H = frozenset({"NemotronHForCausalLM", "NemotronHPuzzleForCausalLM", "NemotronH_Omni_Reasoning_V3"})
#: Gemma 4, whose classes settle the kernels that arguments leave open (0.5.23, model_overrides/gemma4.py).
_GEMMA4 = frozenset(
    {
        "DiffusionGemmaForBlockDiffusion",
        "Gemma4ForCausalLM",
        "Gemma4ForConditionalGeneration",
        "Gemma4UnifiedForConditionalGeneration",
    }
)
_TRITON_ON_SM100 = frozenset(
    {
        "FalconH1ForCausalLM",
        "JetNemotronForCausalLM",
        "JetVLMForConditionalGeneration",
        "MiniCPMV4_6ForConditionalGeneration",
        "MiniCPMV4_7ForConditionalGeneration",
    }
)
_WINDOWED_DENSE = frozenset({"Olmo2ForCausalLM", "Exaone4ForCausalLM", "ExaoneMoEForCausalLM", "ExaoneMoeForCausalLM"})
#: Classes whose states of cached prefixes can have a buffer of their own (0.5.23, overrides.py).
_EXTRA_BUFFER = frozenset(
    {
        "BailingMoeV2_5ForCausalLM",
        "BailingMoeV3ForCausalLM",
        "BailingMoeV3VLForConditionalGeneration",
        "FalconH1ForCausalLM",
        "Glm5NextForConditionalGeneration",
        "GraniteMoeHybridForCausalLM",
        "InklingForConditionalGeneration",
        "InternS2PreviewForConditionalGeneration",
        "KimiK3ForConditionalGeneration",
        "KimiLinearForCausalLM",
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
    }
)


@dataclass(frozen=True)
class Backends:
    """Names of the attention kernels: the common one, and those of prefill, decoding and the draft if they differ."""

    base: str
    prefill: str | None = None
    decode: str | None = None
    draft: str | None = None

    def uses(self, name: str, *, draft: bool = False) -> bool:
        """Whether one of them is `name`; the draft's counts only when asked for."""
        return name in (self.base, self.prefill, self.decode, self.draft if draft else None)


def attention_backends(
    model: Model, args: ServerArgs, gpu: Gpu, environment: Mapping[str, str] | None = None
) -> Backends:
    """The kernels in the end: what the arguments name, else what the model class asks for, else the default."""
    base, prefill, decode = args.attention_backend, args.prefill_attention_backend, args.decode_attention_backend
    draft = args.others.get("speculative_draft_attention_backend")
    if model.architecture == "DeepseekV4ForCausalLM":
        return Backends("dsv4", prefill, decode, draft)
    if base is None and prefill is None and decode is None:
        base = kernels_of_class(model, args, gpu)
        if model.architecture in M3_ARCHITECTURES:
            base = m3_backend(model, args, gpu, environment or {})
        if base == "trtllm_mla" and model.architecture == "KimiK3ForConditionalGeneration":
            base, prefill, decode = None, "trtllm_mla", "trtllm_mla"
    elif base is None and model.architecture in _GEMMA4:
        base = kernels_of_class(model, args, gpu)
    if base is None and is_deterministic(args):
        base = _of_deterministic_inference(model, gpu)
    if prefill is not None and prefill == decode:
        base = prefill
    if base is None:
        base = default_backend(model, args, gpu)
    if base == "fa3" and args.kv_cache_dtype == "fp8_e5m2":
        base = "triton"
    return Backends(base, prefill, decode, draft)


def is_deterministic(args: ServerArgs) -> bool:
    """Whether inference is to be deterministic (0.5.23, attention_hook.py:handle_deterministic_inference)."""
    return bool(args.others.get("enable_deterministic_inference") or args.others.get("rl_on_policy_target"))


def _of_deterministic_inference(model: Model, gpu: Gpu) -> str:
    """Its own default (0.5.23, overrides.py:_deterministic_attention_backend)."""
    if gpu.major not in {10, 12}:
        return "fa3"
    return "triton" if model.architecture in _DETERMINISTIC_LATENT else "flashinfer"


def kernels_of_class(model: Model, args: ServerArgs, gpu: Gpu) -> str | None:
    """What a model class asks for when the arguments name no kernels; None leaves the default."""
    name = model.architecture
    if name in DEEPSEEK_FAMILY:
        return "dsa" if is_sparse(model) else ("trtllm_mla" if gpu.is_sm100 else None)
    if name == "KimiK3ForConditionalGeneration":
        return "trtllm_mla" if gpu.name in {"sm100", "sm103"} and args.dcp_size == 1 else None
    if name in {"GptOssForCausalLM", "Llama4ForConditionalGeneration", "Llama4ForCausalLM"}:
        return "trtllm_mha" if gpu.is_sm100 else "fa3" if gpu.is_hopper else "triton"
    if name in _GEMMA4:
        return "trtllm_mha" if gpu.is_sm100 and name != "DiffusionGemmaForBlockDiffusion" else "triton"
    if name in STEP3P:
        return "fa4" if gpu.is_blackwell else "fa3" if gpu.is_hopper else None
    if name in MIMO_V2 and gpu.is_sm100:
        return "fa4"
    if name == "BeamForCausalLM" and (gpu.is_hopper or gpu.is_sm100 or gpu.major == 12):
        return "trtllm_mha"
    if name in _WINDOWED_DENSE and (name == "Olmo2ForCausalLM" or model.has("sliding_window_pattern")):
        return "trtllm_mha" if gpu.is_sm100 else "fa3" if gpu.major >= 8 else "triton"
    if name == "InklingForConditionalGeneration":
        return "fa4" if gpu.is_hopper or gpu.is_sm100 else "triton"
    if name.startswith("IQuestQ1"):
        return "fa3"
    return _of_hybrid(model, args, gpu)


def _of_hybrid(model: Model, args: ServerArgs, gpu: Gpu) -> str | None:
    """The same for models with linear layers; they differ from the default on Blackwell alone."""
    name = model.architecture
    if (name in QWEN_HYBRIDS or name == "Qwen4ExpForConditionalGeneration") and gpu.is_sm100:
        wanted = default_backend(model, args, gpu)
        # SGLang looks at the strategy before it settles "auto".
        named = args.mamba_radix_cache_strategy in {"extra_buffer", "extra_buffer_lazy"}
        keeps_one_state = not named and not _has_no_prefix_cache(args)
        if wanted == "trtllm_mha" and not (keeps_one_state and args.speculative_algorithm is None):
            return wanted
        return "triton"
    if name in NEMOTRON_H and gpu.is_blackwell:
        if args.speculative_algorithm is None:
            return "trtllm_mha" if gpu.is_sm100 else None
        return "trtllm_mha" if gpu.is_sm100 and args.speculative_eagle_topk in {None, 1} else "triton"
    if gpu.is_sm100 and name in _TRITON_ON_SM100:
        return "triton"
    if gpu.is_sm100 and name in {"Lfm2ForCausalLM", "Lfm2MoeForCausalLM"}:
        return "flashinfer"
    if gpu.is_sm100 and name == "GraniteMoeHybridForCausalLM" and "mamba" in (model.words("layer_types") or ()):
        return "flashinfer"
    return None


def keeps_extra_states(model: Model, args: ServerArgs) -> bool:
    """Whether Mamba states of cached prefixes have a buffer of their own."""
    return not _has_no_prefix_cache(args) and state_strategy(model, args).startswith("extra_buffer")


def state_strategy(model: Model, args: ServerArgs, page: int | None = None) -> str:
    """How states of cached prefixes are kept, where there is a prefix cache; `page` is the one of the model's class.

    Source: 0.5.23, overrides.py:_mamba_radix_cache_resolution.
    """
    if args.mamba_radix_cache_strategy != "auto":
        return args.mamba_radix_cache_strategy
    wanted = not args.disable_overlap_schedule or (page or args.page_size or 1) > 1
    return "extra_buffer" if wanted and can_keep_extra_states(model, args) else "no_buffer"


def can_keep_extra_states(model: Model, args: ServerArgs) -> bool:
    """Whether a class and its kernels of linear layers can keep states of cached prefixes in a buffer of their own."""
    return model.architecture in _EXTRA_BUFFER and args.others.get("linear_attn_backend", "triton") == "triton"


def _has_no_prefix_cache(args: ServerArgs) -> bool:
    """Whether the prefix cache is off; a decode server has its own switch (0.5.23, pd_disaggregation_hook.py)."""
    if args.disaggregation_mode == "decode":
        return not args.disaggregation_decode_enable_radix_cache
    return args.disable_radix_cache


def default_backend(model: Model, args: ServerArgs, gpu: Gpu) -> str:
    """The default for a class that asks for nothing."""
    if is_latent(model):
        return "fa3" if gpu.is_hopper else "flashinfer" if gpu.is_sm100 else "triton"
    topk = args.speculative_eagle_topk
    chain = topk is None or (topk == 1 and args.page_size in {None, 1})
    if gpu.is_hopper and chain:
        return "fa3"
    algorithm = (args.speculative_algorithm or "").upper()
    if gpu.is_sm100 and chain and (not algorithm or topk is not None or algorithm == "DFLASH"):
        return "fa4" if has_uneven_rows(model) else "trtllm_mha"
    return "flashinfer"


def has_uneven_rows(model: Model) -> bool:
    """Whether keys and values have different widths, in full or sliding layers."""
    shape = heads(model)
    swa_key = model.maybe_integer("swa_head_dim", least=1) or shape.key
    swa_value = model.maybe_integer("swa_v_head_dim", least=1) or swa_key
    return shape.key != shape.value or swa_key != swa_value
