"""One configuration for each model class of SGLang: what its configuration class holds by default, cut down.

    python tools/oracle.py run tests/oracle/reduce_classes.py        writes tests/models/made/classes.json

Most classes that transformers or SGLang has a configuration of are there; sizes are those of no public model. What no
public config.json was at hand for is compared with SGLang by them (class_cases.py).
"""

# ruff: noqa: E402 - the path and the platform have to be set before SGLang is imported

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tools")]

import harness  # noqa: F401 - it sets the platform
from catalogue import fields
from sglang.srt.models.registry import ModelRegistry
from sglang.srt.utils.hf_transformers.common import _CONFIG_REGISTRY
from transformers.models.auto import modeling_auto
from transformers.models.auto.configuration_auto import CONFIG_MAPPING

TARGET = ROOT / "tests" / "models" / "made" / "classes.json"
#: Classes that transformers' own tables do not lead to, and the type whose configuration they are given here.
TYPES = {
    "BaichuanForCausalLM": "llama",
    "BailingMM2NativeForConditionalGeneration": "bailingmm_moe_v2_lite",
    "BailingMoEForCausalLM": "qwen3_moe",
    "BailingMoeForCausalLM": "qwen3_moe",
    "BailingMoeV2ForCausalLM": "qwen3_moe",
    "BailingMoeV2_5ForCausalLM": "bailing_hybrid",
    "BailingMoeV3ForCausalLM": "bailing_hybrid",
    "BailingMoeV3VLForConditionalGeneration": "bailing_moe_v3_vl",
    "BeamForCausalLM": "beam",
    "ChatGLMModel": "chatglm",
    "DbrxForCausalLM": "dbrx",
    "DeepseekForCausalLM": "deepseek_v2",
    "DeepseekOCRForCausalLM": "deepseek-ocr",
    "DeepseekVL2ForCausalLM": "deepseek_vl_v2",
    "Dots3NoteForCausalLM": "dots3_note",
    "DotsOCRForCausalLM": "dots_ocr",
    "DotsVLMForCausalLM": "dots_vlm",
    "Ernie4_5_ForCausalLM": "ernie4_5",
    "ExaoneForCausalLM": "exaone",
    "ExaoneMoEForCausalLM": "exaone_moe",
    "GigaChat35ForCausalLM": "gigachat3_5",
    "Glm5NextForConditionalGeneration": "glm5_next",
    "GlmImageForConditionalGeneration": "glm_image",
    "Grok1ForCausalLM": "mixtral",
    "HYV4ForCausalLM": "hy_v4",
    "IQuestCoderForCausalLM": "llama",
    "IQuestLoopCoderForCausalLM": "llama",
    "IQuestQ1ForCausalLM": "iquest_q1",
    "InternLM2ForCausalLM": "llama",
    "InternLM3ForCausalLM": "llama",
    "InternS1ForConditionalGeneration": "interns1",
    "InternS2MobiusForConditionalGeneration": "interns2_mobius",
    "InternS2PreviewForConditionalGeneration": "intern_s2_preview",
    "InternVLChatModel": "internvl_chat",
    "JetNemotronForCausalLM": "jet_nemotron",
    "JetVLMForConditionalGeneration": "jet_vlm",
    "K2HorizonForCausalLM": "k2_horizon",
    "KimiK25ForConditionalGeneration": "kimi_k25",
    "KimiK3ForConditionalGeneration": "kimi_k3",
    "KimiK3LinearForCausalLM": "kimi_linear",
    "KimiLinearForCausalLM": "kimi_linear",
    "KimiVLForConditionalGeneration": "kimi_vl",
    "LLaDA2MoeModelLM": "qwen3_moe",
    "LagunaForCausalLM": "laguna",
    "LightOnOCRForConditionalGeneration": "lighton_ocr",
    "LlamaForClassification": "llama",
    "LlavaLlamaForCausalLM": "llava",
    "LlavaMistralForCausalLM": "llava",
    "LocateAnythingForConditionalGeneration": "locateanything",
    "LongcatFlashForCausalLM": "longcat_flash",
    "Mamba2ForCausalLM": "mamba2",
    "MiMoForCausalLM": "qwen2",
    "MiMoV2ForCausalLM": "mimo_v2",
    "MiniCPMForCausalLM": "llama",
    "MiniCPMSALAForCausalLM": "minicpm_sala",
    "MiniCPMV4_6ForConditionalGeneration": "minicpmv4_6",
    "MiniCPMV4_7ForConditionalGeneration": "minicpmv4_7",
    "MistralLarge3ForCausalLM": "deepseek_v3",
    "MultiModalityCausalLM": "multi_modality",
    "MuseGlimmerForCausalLM": "muse_glimmer",
    "MuseGlimmerForConditionalGeneration": "muse_glimmer",
    "NanbeigeForCausalLM": "nanbeige",
    "NemotronHForCausalLM": "nemotron_h",
    "NemotronHPuzzleForCausalLM": "nemotron_h_puzzle",
    "NemotronH_Nano_Omni_Reasoning_V3": "NemotronH_Nano_Omni_Reasoning_V3",
    "NemotronH_Nano_VL_V2": "NemotronH_Nano_VL_V2",
    "NemotronH_Omni_Reasoning_V3": "nemotron_h_omni",
    "OrionForCausalLM": "llama",
    "PhiMoEForCausalLM": "phimoe",
    "PixtralForConditionalGeneration": "llava",
    "QWenLMHeadModel": "llama",
    "QuantMixtralForCausalLM": "mixtral",
    "Qwen3_5ForCausalLM": "qwen3_5_text",
    "Qwen3_5MoeForCausalLM": "qwen3_5_moe_text",
    "SDARForCausalLM": "qwen3",
    "SDARMoeForCausalLM": "qwen3_moe",
    "SarvamMLAForCausalLM": "deepseek_v3",
    "SarvamMoEForCausalLM": "qwen3_moe",
    "SolarForCausalLM": "llama",
    "Spark2_5ForCausalLM": "spark2_5",
    "Step3VLForConditionalGeneration": "step3_vl",
    "Step3p5ForCausalLM": "step3p5",
    "Step3p7ForConditionalGeneration": "step3p7",
    "TeleFLMForCausalLM": "llama",
    "UnlimitedOCRForCausalLM": "deepseek-ocr",
    "XllmForCausalLM": "xllm",
    "XverseForCausalLM": "llama",
    "XverseMoeForCausalLM": "mixtral",
    "YiVLForCausalLM": "llava",
}
#: Names that are no model of their own: drafts, and whatever transformers runs.
NOT_ALONE = ("MTP", "NextN", "Eagle", "Draft", "DSpark", "Transformers", "TorchNative", "Assistant")
#: Classes whose configuration has no sizes by default.
WITHOUT_SIZES = frozenset({"BailingMM2NativeForConditionalGeneration", "K2HorizonForCausalLM", "XllmForCausalLM"})
#: Keys beyond sizing's that SGLang's configuration classes or its resolution ask for.
ALSO = ("block_configs", "canvas_length", "intermediate_size", "qk_nope_head_dim", "vocab_size")


def types_of_classes() -> dict[str, str]:
    """The model type of each class of SGLang's registry, as far as there is one."""
    found: dict[str, str] = {}
    for name, table in vars(modeling_auto).items():
        if name.startswith("MODEL_") and name.endswith("_MAPPING_NAMES"):
            for kind, classes in table.items():
                for each in [classes] if isinstance(classes, str) else classes:
                    found.setdefault(each, kind)
    return {name: kind for name, kind in {**found, **TYPES}.items() if name in ModelRegistry.models}


def reduced(name: str, kind: str) -> dict[str, Any] | None:
    """The default configuration of a type for this class; None where it can't be made without arguments."""
    known = kind in CONFIG_MAPPING  # whose get() does not load lazily
    config_class = _CONFIG_REGISTRY.get(kind) or (CONFIG_MAPPING[kind] if known else None)
    try:
        whole = json.loads(json.dumps(config_class().to_dict(), default=str))
    except (TypeError, ValueError, AttributeError):
        return None
    kept = {**fields({**whole, "model_type": kind}), **{key: whole[key] for key in ALSO if whole.get(key) is not None}}
    return {**kept, "architectures": [name], "dtype": "bfloat16"}


def main() -> None:
    made = {
        name: reduced(name, kind)
        for name, kind in types_of_classes().items()
        if name not in WITHOUT_SIZES and not any(part in name for part in NOT_ALONE)
    }
    lines = [f"{json.dumps(name)}: {json.dumps(made[name], sort_keys=True)}" for name in sorted(made) if made[name]]
    TARGET.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
