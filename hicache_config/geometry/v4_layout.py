"""How DeepSeek V4 and V4.1 lay out their caches: bytes of a page of each kind. Pure arithmetic.

Source: SGLang 0.5.23, kernels/ops/attention/dsv4/kv_layout.py and mem_cache/deepseek_v4_memory_pool.py
(select_dsv4_kv_layout, resolve_compressed_kv_layout). Must not import anything above this floor.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from .gpu import Gpu
from .model import refuse

#: Values of one latent: 448 without positions and 64 with.
LATENT = 512
ROPE = 64


@dataclass(frozen=True)
class Layout:
    """One arrangement: bytes of a token, and what a page is rounded up to."""

    name: str
    token_bytes: int
    aligned_to: int

    def page_bytes(self, slots: int) -> int:
        """Bytes of a page of `slots` tokens in one layer."""
        return -(-slots * self.token_bytes // self.aligned_to) * self.aligned_to


V4 = Layout("v4", 584, 576)
UNIFORM = Layout("uniform_fp8", LATENT, LATENT)
V41 = Layout("v41", 528, 512)
V41_NEW = Layout("v41_new", 528, 528)
V41_FP4 = Layout("v41_fp4", 288, 256)
V41_FP4_NEW = Layout("v41_fp4_new", 288, 288)
_FOUR_BITS = {"v41": V41_FP4, "v41_new": V41_FP4_NEW}


@dataclass(frozen=True)
class Layouts:
    """The layout of the sliding cache, and what was asked for the compressed ones: None, "fp8" or "fp4"."""

    main: Layout
    compressed: str | None = None

    def of_ratio(self, ratio: int) -> Layout:
        """The layout of the cache that keeps one latent for `ratio` tokens; 4-bit by default for ratios 1 and 2."""
        if self.main.name not in _FOUR_BITS:
            return self.main
        four_bits = self.compressed == "fp4" or (self.compressed is None and ratio in (1, 2))
        return _FOUR_BITS[self.main.name] if four_bits else self.main


def layouts(backend: str, environment: Mapping[str, str], gpu: Gpu) -> Layouts:
    """The layouts that SGLANG_DSV4_KV_LAYOUT and SGLANG_DSV4_COMPRESSED_KV_LAYOUT ask for, under an attention backend.

    `backend` is --dsv4-attn-backend as settled. What SGLang stops at raises a RefusedError.
    """
    mode = environment.get("SGLANG_DSV4_KV_LAYOUT", "v4").lower()
    option = environment.get("SGLANG_DSV4_COMPRESSED_KV_LAYOUT", "auto").lower()
    if backend == "trtllm":
        _must(mode in {"auto", "v4"} and option in {"auto", "fp8"}, "trtllm keeps its own pages of 512 bytes a token")
        return Layouts(UNIFORM)
    if backend == "flashmla_mega" and mode != "v41_new":
        mode = "v41"
    _must(mode in {"auto", "v4", "v41", "v41_new"}, f"SGLANG_DSV4_KV_LAYOUT={mode} is none of auto, v4, v41, v41_new")
    _must(option in {"auto", "fp8", "fp4"}, f"SGLANG_DSV4_COMPRESSED_KV_LAYOUT={option} is none of auto, fp8, fp4")
    if mode == "v4" or (mode == "auto" and not gpu.is_sm100):
        _must(mode != "v4" or option != "fp4", "the v4 layout has no 4-bit compressed cache")
        return Layouts(V4)
    _must(gpu.is_sm100, f"the V4.1 layouts need sm100 or sm103; --gpu is {gpu.name}")
    return Layouts(V41_NEW if mode == "v41_new" else V41, None if option == "auto" else option)


def index_token_bytes(width: int, four_bits: bool) -> int:
    """Bytes of an index key: a byte a value and a scale of 4 bytes for 128, or 4 bits a value and a byte for 32."""
    return width // 2 + width // 32 if four_bits else width + width // 128 * 4


def _must(holds: bool, problem: str) -> None:
    if not holds:
        raise refuse(
            "HC620",
            "v4-layout-refused",
            f"the cache layout of DeepSeek V4 is refused: {problem}",
            "Unset SGLANG_DSV4_KV_LAYOUT and SGLANG_DSV4_COMPRESSED_KV_LAYOUT, or choose a layout for this GPU.",
        )
