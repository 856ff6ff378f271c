"""What a checkpoint says about types: that of the weights, and the KV type that its quantisation asks for.

Sources: SGLang 0.5.23, configs/model_config.py:_get_and_verify_dtype and _parse_quant_hf_config,
layers/quantization/modelopt_quant.py and fp8.py. Must not import anything above this floor.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .model import Model

_DTYPES = {
    "half": "float16",
    "float16": "float16",
    "bfloat16": "bfloat16",
    "float": "float32",
    "float32": "float32",
}
#: Classes that run in bfloat16 whatever is asked (arg_groups/model_override_base.py:MODEL_OVERRIDES).
_BFLOAT16_ALONE = frozenset({"MistralLarge3ForCausalLM", "PixtralForConditionalGeneration"})


def weights_dtype(model: Model, asked: str) -> str:
    """The type of weights and activations: bfloat16, float16 or float32; the KV type where nothing else is said.

    A checkpoint of float32, or one that names none, runs in float16 (Gemma in bfloat16).
    """
    mxfp4 = model.architecture == "GptOssForCausalLM" and _method(_section(model)) == "mxfp4"
    if mxfp4 or model.architecture in _BFLOAT16_ALONE:
        return "bfloat16"
    if asked != "auto":
        return _DTYPES.get(asked.lower(), "bfloat16")
    for part in (model.text, model.whole):
        written = part.get("dtype") or part.get("torch_dtype")
        if isinstance(written, str):
            name = _DTYPES.get(written.removeprefix("torch."))
            if name is not None:
                break
    else:
        name = None
    if name in {None, "float32"}:
        kind = model.text.get("model_type")
        return "bfloat16" if isinstance(kind, str) and kind.startswith("gemma") else "float16"
    return str(name)


def checkpoint_kv_type(model: Model) -> str | None:
    """The KV type that the checkpoint's quantisation asks for, in capitals ("FP8", "NVFP4"), or None.

    The value counts only where the model class has a quantisation (see `classes`).
    """
    section = _section(model)
    method = _method(section)
    if method in {"fp8", "mxfp8"}:
        algorithm = section.get("kv_cache_quant_algo")
        if algorithm is None and section.get("quant_algo") == "MXFP8":
            algorithm = _of_scheme(section.get("kv_cache_scheme"))
        return _capitals(algorithm)
    if method not in {"modelopt_fp8", "modelopt_fp4", "modelopt_mixed"}:
        return None
    if method == "modelopt_mixed" and _is_incomplete(section):
        section = model.quantisation or section
    if "quant_algo" not in section and isinstance(section.get("quantization"), Mapping):
        return _capitals(section["quantization"].get("kv_cache_quant_algo"))
    scheme = section.get("kv_cache_scheme")
    if isinstance(scheme, Mapping):
        return _capitals(_of_scheme(scheme))
    if isinstance(scheme, str) and method == "modelopt_fp4":
        name = scheme.strip().upper()
        return "FP8" if name in {"FP8", "FLOAT8"} else "NVFP4" if name in {"FP4", "FLOAT4", "NVFP4"} else None
    return _capitals(section.get("kv_cache_quant_algo"))


def is_quantised(model: Model) -> bool:
    """Whether the checkpoint says that its weights are quantised."""
    return bool(_section(model))


def _section(model: Model) -> Mapping[str, Any]:
    """The quantisation in config.json, or else that of hf_quant_config.json."""
    for part in (model.whole, model.text):
        for key in ("quantization_config", "compression_config"):
            if isinstance(part.get(key), Mapping):
                return part[key]  # type: ignore[no-any-return]
    return model.quantisation


def _method(section: Mapping[str, Any]) -> str:
    """SGLang's name of the quantisation method; empty without one."""
    written = section.get("quant_method")
    if isinstance(written, str) and written != "modelopt":
        return written.lower()
    inner = section.get("quantization")
    algorithm = (inner if isinstance(inner, Mapping) else section).get("quant_algo")
    if not isinstance(algorithm, str):
        return ""
    if algorithm == "MIXED_PRECISION":
        layers = (inner if isinstance(inner, Mapping) else section).get("quantized_layers")
        values = layers.values() if isinstance(layers, Mapping) else ()
        kinds = {str(value.get("quant_algo", "")).upper() for value in values if isinstance(value, Mapping)}
        return "modelopt_mixed" if kinds & {"NVFP4", "W4A16_NVFP4"} else "w4afp8"
    if "FP4" in algorithm:
        return "modelopt_fp4"
    return {"FP8": "modelopt_fp8", "MXFP8": "mxfp8"}.get(algorithm, "")


def _is_incomplete(section: Mapping[str, Any]) -> bool:
    return "quantized_layers" not in section or not {"kv_cache_quant_algo", "kv_cache_scheme"} & set(section)


def _of_scheme(scheme: object) -> str | None:
    bits = scheme.get("num_bits") if isinstance(scheme, Mapping) and scheme.get("type") == "float" else None
    return {8: "FP8", 4: "NVFP4"}.get(bits) if isinstance(bits, int) else None


def _capitals(value: object) -> str | None:
    return value.upper() if isinstance(value, str) and value else None
