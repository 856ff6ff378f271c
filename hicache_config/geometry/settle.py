"""The values that SGLang settles because of the model and the GPU: page size, KV type, row layout, sliding memory.

As SGLang 0.5.23 resolves them (arg_groups/overrides.py, model_overrides/, attention_hook.py, kv_cache_hook.py;
mem_cache/kv_cache_dtype.py). Must not import anything above this floor.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ..arguments import ServerArgs
from .attention import is_latent, is_sparse
from .backends import NEMOTRON_H, QWEN_HYBRIDS, Backends, attention_backends, kernels_of_class
from .checkpoint import checkpoint_kv_type, weights_dtype
from .classes import ModelClass
from .gpu import Gpu
from .minimax_settings import ARCHITECTURES as M3_ARCHITECTURES
from .minimax_settings import m3_kv_type, m3_page
from .model import Model, refuse
from .pieces import Store
from .pipeline import Settled
from .sliding import STEP3P, could_slide, gives_sliding_up, has_sliding_memory

_FP4 = frozenset({"nvfp4", "fp4_mx_block16"})
#: An older name of cutedsl_mla: since 0.5.23 it sets the KV type, up to 0.5.22 it refuses another one.
_TOKENSPEED = "tokenspeed_mla"
_TRTLLM_MHA_PAGES = frozenset({16, 32, 64, 128})


@dataclass(frozen=True)
class Settings:
    """What is settled.

    `kv_type` is a key of pieces.ITEM_BYTES, `model_type` the weights' type, `swa_ratio` sliding slots per full slot
    (None where SGLang sizes them by requests), `sliding` whether sliding layers have a pool of their own, `scaled_row`
    whether an fp8 row of sparse attention keeps its scales in it. `changed` are the values that differ from what was
    asked, by argument.
    """

    gpu: Gpu
    page_size: int
    kv_type: str
    model_type: str
    backends: Backends
    swa_ratio: float | None
    sliding: bool
    scaled_row: bool = False
    changed: Mapping[str, Settled] = field(default_factory=dict)

    @property
    def store(self) -> Store:
        """How KV is kept."""
        return Store(self.kv_type, self.page_size, self.scaled_row)


def settle(
    model: Model, model_class: ModelClass, args: ServerArgs, gpu: Gpu, environment: Mapping[str, str] | None = None
) -> Settings:
    """All settled values of a model under the arguments on a GPU; what SGLang refuses raises a RefusedError."""
    changed: dict[str, Settled] = {}

    def note(argument: str, gets: Any, why: str) -> None:
        asked = getattr(args, argument)
        if asked != gets:
            changed[argument] = Settled(argument, asked, gets, why)

    backends = attention_backends(model, args, gpu, environment or {})
    page_size, page_why = _page_size(model, args, gpu, backends)
    note("page_size", page_size, page_why)
    kv_type, model_type, kv_why = _kv_type(model, model_class, args, gpu)
    if kv_type != args.kv_cache_dtype and not (args.kv_cache_dtype == "bf16" and kv_type == "bfloat16"):
        note("kv_cache_dtype", kv_type, kv_why)
    prefill, decode = _sparse_backends(model, args, gpu, kv_type)
    if is_sparse(model):
        note("dsa_prefill_backend", prefill, f"the default for a KV cache of {kv_type} on {gpu.name}")
        note("dsa_decode_backend", decode, f"the default for a KV cache of {kv_type} on {gpu.name}")
    given_up = gives_sliding_up(model, args)
    if given_up is not None and (could_slide(model) or model.has("sliding_window")):
        note("disable_hybrid_swa_memory", True, given_up)
    ratio, ratio_why = _swa_ratio(model, args)
    if could_slide(model) and ratio is not None:
        note("swa_full_tokens_ratio", ratio, ratio_why)
    if args.attention_backend is None:
        note("attention_backend", backends.base, f"the default of {model_class.name} on {gpu.name}")
    return Settings(
        gpu=gpu,
        page_size=page_size,
        kv_type=kv_type,
        model_type=model_type,
        backends=backends,
        swa_ratio=ratio,
        sliding=has_sliding_memory(model, args),
        scaled_row=is_sparse(model) and _has_scaled_row(args, kv_type, prefill, decode),
        changed=changed,
    )


# --- page size ----------------------------------------------------------------------------------------------------


def page_of_class(model: Model, args: ServerArgs, gpu: Gpu, backends: Backends) -> tuple[int, str] | None:
    """The page size that a class sets before the attention kernels do, and why; None leaves what was asked."""
    if is_sparse(model):
        return 64 * model.integer("index_kpool", 1), "sparse attention has pages of 64 index keys"
    if model.architecture == "Qwen4ExpForConditionalGeneration" and model.has("indexer_n_heads"):
        return 64, "compressed index keys need pages of 64"
    if model.architecture in M3_ARCHITECTURES:
        own = m3_page(model, args, gpu, backends.base)
        return None if own is None else (own, "sparse attention of MiniMax M3 has blocks of 128")
    if model.architecture in QWEN_HYBRIDS and gpu.is_sm100 and args.attention_backend is None:
        page = 64 if backends.base == "trtllm_mha" else 1
        return page, f"SGLang sets it itself for {model.architecture} on {gpu.name}"
    drafts = model.architecture in NEMOTRON_H and args.speculative_algorithm is not None
    if drafts and args.page_size is None and kernels_of_class(model, args, gpu) == backends.base == "trtllm_mha":
        return 64, "trtllm_mha has pages of 16, 32, 64 or 128"
    return None


def _page_size(model: Model, args: ServerArgs, gpu: Gpu, backends: Backends) -> tuple[int, str]:
    page: int | None
    page, why = page_of_class(model, args, gpu, backends) or (args.page_size, "the default")
    if backends.base == "flashmla" or backends.decode == "flashmla":
        page, why = 64, "flashmla has pages of 64"
    if "trtllm_mla" in (backends.base, backends.decode) and page not in {32, 64}:
        page, why = 64, "trtllm_mla has pages of 32 or 64"
    if backends.uses("cutedsl_mla") and page not in {32, 64}:
        page, why = 64, "cutedsl_mla has pages of 32 or 64"
    if _TOKENSPEED in (backends.base, backends.decode) and page not in {32, 64}:
        page, why = 64, f"{_TOKENSPEED} has pages of 32 or 64"
    if backends.uses("trtllm_mha", draft=True) and page not in _TRTLLM_MHA_PAGES:
        page, why = 64, "trtllm_mha has pages of 16, 32, 64 or 128"
    if backends.uses("hpc_ops"):
        page, why = 64, "hpc_ops has pages of 64"
    if backends.uses("fa4") and not is_latent(model) and gpu.is_sm100 and (args.speculative_eagle_topk or 0) <= 1:
        one = model.architecture == "DiffusionGemmaForBlockDiffusion"
        page, why = (1, "fa4 has pages of 1 for this class") if one else (128, "fa4 has pages of 128 on sm100")
    if backends.uses("intel_xpu") and page not in ({16, 32, 64, 128} if is_latent(model) else {64, 128}):
        page, why = 128, "intel_xpu has pages of 64 or 128"
    if model.architecture == "DeepseekV4ForCausalLM":
        page, why = 256, "DeepSeek V4 has pages of 256"
    return (1 if page is None else page), why


# --- KV type and row ----------------------------------------------------------------------------------------------


def _kv_type(model: Model, model_class: ModelClass, args: ServerArgs, gpu: Gpu) -> tuple[str, str, str]:
    """The KV type, the weights' type, and why the KV type is what it is."""
    model_type = weights_dtype(model, args.dtype)
    asked = args.kv_cache_dtype
    if model.architecture == "DeepseekV4ForCausalLM":
        return _v4_kv_type(asked), model_type, "DeepSeek V4 keeps fp8"
    four_bit = m3_kv_type(model, args, gpu)
    if four_bit is not None:
        return four_bit, model_type, "4-bit checkpoints of MiniMax M3 set it"
    if _TOKENSPEED in (args.attention_backend, args.decode_attention_backend):
        return "fp8_e4m3", model_type, f"{_TOKENSPEED} reads fp8_e4m3 alone"
    if asked in _FP4:
        raise refuse(
            "HC605",
            "kv-type-without-host-pool",
            f"--kv-cache-dtype {asked} has no host pool: SGLang stops when it builds the host pools, after the weights "
            "are loaded",
            "Write --kv-cache-dtype fp8_e4m3.",
            argument="kv_cache_dtype",
            asked=asked,
        )
    if asked == "mxfp8" and not gpu.is_blackwell:
        raise refuse(
            "HC606",
            "mxfp8-needs-blackwell",
            f"--kv-cache-dtype mxfp8 needs a Blackwell GPU; --gpu is {gpu.name}",
            "Write --kv-cache-dtype fp8_e4m3, or name the GPU with --gpu sm100.",
            argument="kv_cache_dtype",
            asked=asked,
        )
    if asked == "auto" and is_sparse(model):
        sinks = bool(model.get("learnable_sink"))
        found = "fp8_e4m3" if gpu.major >= 10 and not sinks else "bfloat16"
        return found, model_type, f"the default of sparse attention on {gpu.name}"
    if asked == "auto" and model.architecture == "MuseSparkForConditionalGeneration":
        return "fp8_e4m3", model_type, "the default of this class"
    if asked == "auto":
        if model_class.quantises and checkpoint_kv_type(model) == "FP8":
            return "fp8_e4m3", model_type, "the checkpoint's quantisation asks for it"
        return model_type, model_type, "the type of the weights"
    if is_sparse(model) and asked not in {"bf16", "bfloat16", "fp8_e4m3"}:
        raise refuse(
            "HC607",
            "sparse-kv-type",
            f"--kv-cache-dtype {asked} is refused for sparse attention, which knows bfloat16 and fp8_e4m3",
            "Write --kv-cache-dtype fp8_e4m3 or bfloat16.",
            argument="kv_cache_dtype",
            asked=asked,
        )
    return ("bfloat16" if asked == "bf16" else asked), model_type, "as asked"


def _v4_kv_type(asked: str) -> str:
    """The KV type of DeepSeek V4: fp8, whose rows are laid out by themselves.

    SGLang lets bfloat16 pass and stops at an assertion when it builds the pools (0.5.23, deepseek_v4_memory_pool.py).
    """
    if asked in {"auto", "fp8_e4m3"}:
        return "fp8_e4m3"
    raise refuse(
        "HC619",
        "v4-kv-type",
        f"--kv-cache-dtype {asked} is refused for DeepSeek V4, whose cache is fp8_e4m3",
        "Write --kv-cache-dtype fp8_e4m3, or leave it out.",
        argument="kv_cache_dtype",
        asked=asked,
    )


def _sparse_backends(model: Model, args: ServerArgs, gpu: Gpu, kv_type: str) -> tuple[str | None, str | None]:
    """Kernels of sparse attention for prefill and decoding (0.5.23, overrides.py:_dsa_split_backend_resolution)."""
    prefill, decode = args.dsa_prefill_backend, args.dsa_decode_backend
    if not is_sparse(model):
        return prefill, decode
    default_prefill, default_decode = "flashmla_sparse", "trtllm" if gpu.major >= 10 else "fa3"
    if model.get("learnable_sink"):
        default_prefill = default_decode = "flashmla_sparse"
    elif model.architecture == "GlmMoeDsaForCausalLM" and gpu.major == 12 and kv_type == "fp8_e4m3":
        default_prefill = default_decode = "flashinfer_sparse_mla"
    elif kv_type == "fp8_e4m3":
        default_prefill = default_decode = "trtllm" if gpu.major >= 10 else "flashmla_kv"
    prefill, decode = prefill or default_prefill, decode or default_decode
    if kv_type == "fp8_e4m3" and (prefill == "tilelang") != (decode == "tilelang"):
        raise refuse(
            "HC611",
            "sparse-rows-mixed",
            f"sparse attention with fp8 rows by {prefill} for prefill and by {decode} for decoding: tilelang keeps raw "
            "rows and the other rows with scales, which SGLang refuses to mix",
            "Write tilelang for both --dsa-prefill-backend and --dsa-decode-backend, or for none.",
            argument="dsa_prefill_backend" if prefill == "tilelang" else "dsa_decode_backend",
        )
    return prefill, decode


def _has_scaled_row(args: ServerArgs, kv_type: str, prefill: str | None, decode: str | None) -> bool:
    """Whether an fp8 row keeps scales and an unquantised part (656 bytes) instead of raw values (576).

    Source: 0.5.23, kv_cache_configurator.py:calculate_mla_kv_cache_dim.
    """
    mode = args.disaggregation_mode
    used = {"decode": (decode,), "prefill": (prefill,)}.get(mode, (prefill, decode))
    if "trtllm" in used or (prefill == "tilelang" and decode == "tilelang"):
        return False
    return kv_type == "fp8_e4m3"


def _swa_ratio(model: Model, args: ServerArgs) -> tuple[float | None, str]:
    name = model.architecture
    if model.model_type.startswith("deepseek_v41") and args.swa_full_tokens_ratio is None:
        return None, "DeepSeek V4.1 sizes its sliding window by requests"
    if name in STEP3P and args.enable_hierarchical_cache:
        return 1.0, f"SGLang sets it to 1.0 for {name} when HiCache is on"
    if args.swa_full_tokens_ratio is not None:
        return args.swa_full_tokens_ratio, "as asked"
    if name in {"InklingForConditionalGeneration", "DeepseekV4ForCausalLM"}:
        return 0.1, f"the default of {name}"
    return 0.8, "the default"
