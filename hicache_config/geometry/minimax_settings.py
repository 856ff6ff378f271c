"""What SGLang settles for MiniMax M3: its 4-bit checkpoints, kernels, page size, and the type of its index keys.

Source: SGLang 0.5.23, arg_groups/model_overrides/minimax_m3.py. Must not import anything above this floor.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from ..arguments import ServerArgs
from .given import given
from .gpu import Gpu
from .model import Model, refuse

if TYPE_CHECKING:
    from .family import Case

ARCHITECTURES = frozenset({"MiniMaxM3SparseForCausalLM", "MiniMaxM3SparseForConditionalGeneration"})
FOUR_BIT = "minimax_m3_nvfp4"
KEEPS_WIDE_QUERIES = "SGLANG_DISABLE_M3_FP8_ATTN_GEMM"


def is_four_bit(model: Model, args: ServerArgs) -> bool:
    """Whether the checkpoint has 4-bit experts, which SGLang serves by a stack of its own."""
    if model.architecture not in ARCHITECTURES:
        return False
    asked = given(args, "quantization")
    if asked is not None:
        return bool(asked == FOUR_BIT)
    section = model.get("quantization_config")
    if not isinstance(section, Mapping):
        return False
    if section.get("quant_method") == FOUR_BIT:
        return True
    four_bits = str(section.get("moe_quant_algo", "")).upper() == "NVFP4"
    return (
        section.get("quant_method") == "mxfp8"
        and four_bits
        and section.get("moe_quant_format") == "nvfp4-pack-quantized"
    )


def is_native_four_bit(model: Model, args: ServerArgs, gpu: Gpu) -> bool:
    """Whether KV is kept in 4-bit page rows (0.5.23, model_config.py:uses_minimax_m3_nvfp4_native_stack)."""
    return gpu.is_blackwell and is_four_bit(model, args)


def keeps_wide_queries(environment: Mapping[str, str]) -> bool:
    """Whether fp8 attention is switched off (0.5.23, environ.py:EnvBool)."""
    return environment.get(KEEPS_WIDE_QUERIES, "").lower() in {"true", "1", "yes", "y"}


def m3_backend(model: Model, args: ServerArgs, gpu: Gpu, environment: Mapping[str, str]) -> str | None:
    """The attention kernels that M3 asks for where the arguments name none; None leaves the default."""
    if is_four_bit(model, args):
        return "trtllm_mha" if gpu.is_blackwell else "fa3"
    if gpu.is_sm100:
        narrow = args.kv_cache_dtype == "fp8_e4m3" and not keeps_wide_queries(environment)
        return "trtllm_mha" if narrow else "fa4"
    return "fa3" if gpu.is_hopper else None


def m3_page(model: Model, args: ServerArgs, gpu: Gpu, backend: str) -> int | None:
    """The page size that M3 sets, or None where it leaves the page as it is."""
    if is_four_bit(model, args):
        if args.page_size not in {None, 128}:
            raise refuse(
                "HC653",
                "four-bit-page",
                f"--page-size {args.page_size} is refused for 4-bit checkpoints of MiniMax M3, whose pages have 128 "
                "slots",
                "Write --page-size 128, or leave it out.",
                argument="page_size",
                asked=args.page_size,
            )
        return 128
    wanted = {"fa4", "trtllm_mha"} if gpu.is_sm100 else {"fa3"} if gpu.is_hopper else set()
    chosen = args.attention_backend or (m3_backend(model, args, gpu, {}) if backend == "triton" else backend)
    return 128 if args.page_size is None and chosen in wanted else None


def m3_kv_type(model: Model, args: ServerArgs, gpu: Gpu) -> str | None:
    """The KV type that a 4-bit checkpoint sets, or None where M3 sets none."""
    if not is_four_bit(model, args):
        return None
    if args.kv_cache_dtype == "auto":
        return "fp8_e4m3"
    if gpu.is_blackwell and args.kv_cache_dtype != "fp8_e4m3":
        raise refuse(
            "HC654",
            "four-bit-kv-type",
            f"--kv-cache-dtype {args.kv_cache_dtype} is refused for 4-bit checkpoints of MiniMax M3 on Blackwell",
            "Write --kv-cache-dtype fp8_e4m3, or leave it out.",
            argument="kv_cache_dtype",
            asked=args.kv_cache_dtype,
        )
    return None


def index_bytes(case: Case) -> int:
    """Bytes of one value of an index key (0.5.23, memory_pool.py:get_minimax_sparse_index_dtype)."""
    settings = case.settings
    wide = keeps_wide_queries(case.question.environment)
    narrow_queries = settings.gpu.is_sm100 and settings.backends.base == "trtllm_mha" and not wide
    if settings.kv_type == "fp8_e4m3" and (settings.gpu.is_hopper or narrow_queries):
        return 1
    return 4 if settings.model_type == "float32" else 2
