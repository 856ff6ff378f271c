"""Values that SGLang settles by model and GPU, as the real one settled them (0.5.23, its own argument resolution)."""

from __future__ import annotations

from typing import Any

import pytest

from hicache_config.geometry import Pipeline

from .making import DENSE, answer, code

SPARSE = "deepseek-ai/DeepSeek-V3.2"
LATENT = "deepseek-ai/DeepSeek-V3"


def page(pipeline: Pipeline) -> int:
    assert pipeline.stages, pipeline.findings
    return pipeline.stages[0].pools[0].page_size


@pytest.mark.parametrize(
    ("model", "gpu", "given", "expected"),
    [
        (DENSE, "sm90", {}, 1),
        (DENSE, "sm80", {}, 1),
        (DENSE, "sm120", {}, 1),
        (DENSE, "sm100", {}, 64),  # trtllm_mha
        (DENSE, "sm100", {"page_size": 32}, 32),
        (DENSE, "sm100", {"page_size": 256}, 64),
        (DENSE, "sm100", {"attention_backend": "fa4"}, 128),
        (DENSE, "sm90", {"attention_backend": "fa4"}, 1),
        (DENSE, "sm100", {"attention_backend": "triton"}, 1),
        (DENSE, "sm90", {"attention_backend": "hpc_ops", "page_size": 16}, 64),
        (LATENT, "sm90", {}, 1),
        (LATENT, "sm90", {"attention_backend": "flashmla"}, 64),
        (LATENT, "sm100", {}, 64),  # trtllm_mla
        (LATENT, "sm100", {"page_size": 32}, 32),
        (LATENT, "sm100", {"attention_backend": "flashinfer"}, 1),
        (SPARSE, "sm90", {}, 64),
        (SPARSE, "sm90", {"page_size": 128}, 64),
        ("moonshotai/Kimi-K2.5", "sm100", {}, 64),
        ("openai/gpt-oss-120b", "sm100", {}, 64),
        ("openai/gpt-oss-120b", "sm90", {}, 1),
        ("google/gemma-4-26B-A4B", "sm100", {}, 64),
        ("XiaomiMiMo/MiMo-V2-Flash", "sm100", {}, 128),  # fa4: keys and values differ
        ("Qwen/Qwen3.5-397B-A17B", "sm100", {}, 1),
        ("Qwen/Qwen3.5-397B-A17B", "sm100", {"mamba_radix_cache_strategy": "extra_buffer", "page_size": 128}, 64),
        ("nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16", "sm100", {}, 64),
    ],
)
def test_page_size(model: Any, gpu: str, given: dict[str, Any], expected: int) -> None:
    assert page(answer(model, gpu, tp_size=2, **given)) == expected


@pytest.mark.parametrize(
    ("model", "gpu", "given", "expected"),
    [
        (SPARSE, "sm90", {}, 1152),
        (SPARSE, "sm100", {}, 576),
        (SPARSE, "sm90", {"kv_cache_dtype": "fp8_e4m3"}, 656),
        (SPARSE, "sm100", {"kv_cache_dtype": "bfloat16"}, 1152),
        (SPARSE, "sm90", {"kv_cache_dtype": "fp8_e4m3", "dsa_decode_backend": "trtllm"}, 576),
        (SPARSE, "sm120", {"kv_cache_dtype": "fp8_e4m3"}, 576),
        ("zai-org/GLM-5.2-FP8", "sm120", {"kv_cache_dtype": "fp8_e4m3"}, 656),
    ],
)
def test_row_of_sparse_attention(model: str, gpu: str, given: dict[str, Any], expected: int) -> None:
    """Bytes of one layer: 1152 in bf16, 656 in fp8 with scales, 576 in raw fp8."""
    pipeline = answer(model, gpu, tp_size=8, **given)
    stage = pipeline.stages[0]
    assert stage.pools[0].bytes_per_slot == expected * (stage.layers or 0)


def checkpoint(**section: Any) -> dict[str, Any]:
    return {**DENSE, "quantization_config": section}


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        (DENSE, "bfloat16"),
        ({**DENSE, "dtype": None, "torch_dtype": "float16"}, "float16"),
        ({**DENSE, "dtype": None}, "float16"),  # none said counts as float32, which runs in float16
        ({**DENSE, "dtype": "float32"}, "float16"),
        (
            checkpoint(quant_method="modelopt", quant_algo="FP8", kv_cache_scheme={"type": "float", "num_bits": 8}),
            "fp8_e4m3",
        ),
        (
            checkpoint(quant_method="modelopt", quant_algo="NVFP4", kv_cache_scheme={"type": "float", "num_bits": 8}),
            "fp8_e4m3",
        ),
        (checkpoint(quant_algo="NVFP4", kv_cache_quant_algo="FP8"), "fp8_e4m3"),
        (checkpoint(quant_method="fp8", kv_cache_quant_algo="fp8"), "fp8_e4m3"),
        (checkpoint(quant_method="fp8"), "bfloat16"),
        (
            checkpoint(quant_method="compressed-tensors", kv_cache_scheme={"type": "float", "num_bits": 8}),
            "bfloat16",  # its scheme does not count
        ),
        (
            checkpoint(quant_method="modelopt", quant_algo="FP8", kv_cache_scheme={"type": "int", "num_bits": 8}),
            "bfloat16",
        ),
    ],
)
def test_kv_type_of_a_checkpoint(config: dict[str, Any], expected: str) -> None:
    settled = answer(config).settled.get("kv_cache_dtype")
    assert settled is not None
    assert settled.gets == expected


def test_a_class_without_quantisation_ignores_the_checkpoint() -> None:
    scheme = {"quant_method": "modelopt", "quant_algo": "FP8", "kv_cache_scheme": {"type": "float", "num_bits": 8}}
    config = {**DENSE, "architectures": ["Glm4vForConditionalGeneration"], "quantization_config": scheme}
    assert answer(config).settled["kv_cache_dtype"].gets == "bfloat16"


@pytest.mark.parametrize(
    ("given", "gpu", "expected"),
    [
        ({"kv_cache_dtype": "nvfp4"}, "sm100", "HC605"),
        ({"kv_cache_dtype": "fp4_mx_block16"}, "sm90", "HC605"),
        ({"kv_cache_dtype": "mxfp8"}, "sm90", "HC606"),
        ({"kv_cache_dtype": "mxfp8"}, "sm100", "HC608"),  # pages of 64 by trtllm_mha
        ({}, "sm95", "HC604"),
        ({}, "hopper", "HC604"),
    ],
)
def test_refused_values(given: dict[str, Any], gpu: str, expected: str) -> None:
    assert code(answer(DENSE, gpu, **given)) == expected


def test_mxfp8_has_a_scale_byte_for_32_values() -> None:
    fp8 = answer(DENSE, "sm100", attention_backend="fa4", kv_cache_dtype="fp8_e4m3")
    mxfp8 = answer(DENSE, "sm100", attention_backend="fa4", kv_cache_dtype="mxfp8")
    assert mxfp8.stages[0].pools[0].bytes_per_slot == (fp8.stages[0].pools[0].bytes_per_slot or 0) * 33 // 32


def test_sparse_attention_refuses_other_kv_types() -> None:
    assert code(answer(SPARSE, kv_cache_dtype="fp8_e5m2")) == "HC607"


def test_a_sliding_pool_that_is_given_up() -> None:
    gemma = {**DENSE, "architectures": ["Gemma2ForCausalLM"], "model_type": "gemma2", "sliding_window": 4096}
    pipeline = answer(gemma)
    assert pipeline.family == "dense"
    assert pipeline.settled["disable_hybrid_swa_memory"].gets is True
    step = {
        **DENSE,
        "architectures": ["Step3p5ForCausalLM"],
        "num_attention_groups": 8,
        "layer_types": ["full_attention", "sliding_attention"] * 16,
    }
    assert answer(step).family == "dense"
    assert answer(step).settled["swa_full_tokens_ratio"].gets == 1.0
    assert answer(step, enable_hierarchical_cache=False, max_total_tokens=100_000).family == "swa"


def test_gpu_names_are_read_as_people_write_them() -> None:
    assert page(answer(DENSE, "SM_100")) == page(answer(DENSE, "sm100a")) == 64
