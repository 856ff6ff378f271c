"""The list of whole-model cases that models.py runs: every configuration in tests/models/ over a spread of arguments.

    python tests/oracle/model_cases.py [TEXT]        the cases as JSON lines, those whose id holds TEXT

Each model gets the same questions (parallel sizes, pages, KV dtypes, GPUs, sizes and ratios, uneven stages, attention
data parallelism, layouts), its family some of its own (states, drafts, DeepSeek V4 by ratio), and a few seeded draws.
Uses the standard library alone; neither SGLang nor torch.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from random import Random
from typing import Any

SEED = 20261130
MODELS = Path(__file__).resolve().parent.parent / "models"
Case = dict[str, Any]

STATES = {"qwen3_5", "qwen3_5_moe", "qwen3_next", "nemotron_h", "kimi_k3", "kimi_linear", "falcon_h1", "lfm2"}
SLIDING = {"gpt_oss", "llama4", "gemma4", "mimo_v2_flash"}
V4 = {"deepseek_v4", "deepseek_ref"}
LATENT = {"deepseek_v3", "kimi_k2", "kimi_k25"}
SPARSE = {"deepseek_v32", "glm_moe_dsa"}
PACKED = SPARSE | V4 | {"deepseek_v3", "mimo_v2_flash", "qwen3_5", "qwen3_5_moe", "qwen3_next", "step3p7", "mimo"}
EAGLE = {
    "speculative_algorithm": "EAGLE",
    "speculative_num_steps": 3,
    "speculative_eagle_topk": 1,
    "speculative_num_draft_tokens": 4,
    "max_running_requests": 64,
}
# A draft of its own geometry, and the models that it stands beside.
SIDECARS = {
    "made--eagle3-8b": ("EAGLE3", ["meta-llama--Meta-Llama-3.1-8B", "Qwen--Qwen3-8B", "Qwen--Qwen3-32B"]),
    "made--eagle3-70b": ("EAGLE3", ["meta-llama--Meta-Llama-3.1-70B", "openai--gpt-oss-120b"]),
    "Qwen--Qwen3-0.6B": ("STANDALONE", ["Qwen--Qwen3-8B", "Qwen--Qwen3-32B", "Qwen--Qwen3-235B-A22B"]),
    "meta-llama--Meta-Llama-3.1-8B": ("STANDALONE", ["meta-llama--Meta-Llama-3.1-70B"]),
}


def configuration(name: str) -> dict[str, Any]:
    return json.loads((MODELS / f"{name}.json").read_text(encoding="utf-8"))


def layer_count(config: dict[str, Any]) -> int:
    text = config.get("text_config", config)
    return int(text.get("num_hidden_layers") or len(text.get("layers_block_type", ())) or 1)


def uneven(layers: int, stages: int) -> str:
    """A partition of the layers that no even split gives: the first stage gets a third of its share."""
    base = layers // stages
    first = max(base // 3, 1)
    counts = [first] + [base] * (stages - 2)
    return ",".join(map(str, [*counts, layers - sum(counts)]))


def questions(config: dict[str, Any]) -> list[Case]:
    """What every model is asked: arguments, and where it differs the GPU and the environment."""
    layers = layer_count(config)
    three = {"SGLANG_PP_LAYER_PARTITION": uneven(layers, 3)}
    return [
        {"args": {"tp_size": 8, "hicache_size": 100}},
        {"args": {"tp_size": 4, "page_size": 64, "kv_cache_dtype": "fp8_e4m3", "hicache_size": 100}},
        {"args": {"tp_size": 8, "page_size": 64, "hicache_ratio": 2.0, "max_total_tokens": 1_000_000}},
        {"args": {"tp_size": 4, "pp_size": 2, "page_size": 64, "hicache_size": 100}},
        {"args": {"tp_size": 8, "pp_size": 4, "page_size": 64, "hicache_size": 50}},
        {"args": {"tp_size": 2, "pp_size": 3, "page_size": 64, "hicache_size": 217}, "env": three},
        {"args": {"tp_size": 8, "hicache_size": 270}, "gpu": "sm100"},
        {"args": {"tp_size": 8, "attn_dp_size": 4, "page_size": 64, "hicache_size": 100}},
        {
            "args": {
                "tp_size": 16,
                "hicache_size": 7,
                "hicache_mem_layout": "page_first_direct",
                "hicache_io_backend": "direct",
            }
        },
        {"args": {"tp_size": 1, "page_size": 32, "hicache_size": 1, "hicache_mem_layout": "layer_first"}},
        {"args": {"tp_size": 8, "max_total_tokens": 123_457, "hicache_ratio": 1.1, "kv_cache_dtype": "fp8_e5m2"}},
    ]


def family_questions(config: dict[str, Any]) -> list[Case]:
    """What only some families are asked."""
    kind = config["model_type"]
    asked: list[Case] = []
    if kind in PACKED:
        asked += [
            {"args": {"tp_size": 8, "page_size": 64, "hicache_size": 100, **EAGLE}},
            {"args": {"tp_size": 8, "hicache_ratio": 1.5, "max_total_tokens": 400_000, **EAGLE}, "gpu": "sm100"},
            {
                "args": {
                    "tp_size": 4,
                    "page_size": 64,
                    "hicache_size": 64,
                    **EAGLE,
                    "speculative_num_steps": 1,
                    "speculative_num_draft_tokens": 2,
                }
            },
        ]
    if kind in SPARSE:
        fp8 = {"kv_cache_dtype": "fp8_e4m3"}
        asked += [
            {"args": {"tp_size": 8, "pp_size": 4, "hicache_size": 100, **fp8}},
            {"args": {"tp_size": 4, "pp_size": 8, "hicache_size": 200, **fp8}},
            {"args": {"tp_size": 8, "pp_size": 2, "hicache_ratio": 1.5, "max_total_tokens": 400_000, **fp8}},
            {"args": {"tp_size": 8, "hicache_size": 100, "kv_cache_dtype": "bf16"}, "gpu": "sm100"},
            {"args": {"tp_size": 8, "hicache_size": 100, "dcp_size": 2}},
        ]
    if kind in LATENT:
        asked += [
            {"args": {"tp_size": 8, "dcp_size": 2, "page_size": 64, "hicache_size": 100}},
            {"args": {"tp_size": 8, "attention_backend": "flashmla", "hicache_size": 100}},
        ]
    if kind in STATES:
        asked += [
            {"args": {"tp_size": 4, "hicache_size": 100, "mamba_ssm_dtype": "bfloat16", "page_size": 64}},
            {
                "args": {
                    "tp_size": 8,
                    "hicache_size": 100,
                    "mamba_radix_cache_strategy": "no_buffer",
                    "disable_overlap_schedule": True,
                }
            },
            {"args": {"tp_size": 2, "pp_size": 8, "page_size": 64, "hicache_size": 100}},
            {"args": {"tp_size": 8, "hicache_size": 0, "hicache_ratio": 0.5, "max_mamba_cache_size": 63}},
        ]
    if kind in SLIDING:
        asked += [
            {"args": {"tp_size": 8, "hicache_size": 100, "swa_full_tokens_ratio": 0.25, "page_size": 64}},
            {"args": {"tp_size": 8, "hicache_size": 100, "disable_hybrid_swa_memory": True}},
        ]
    if kind in V4:
        asked += [
            {"args": {"tp_size": 8, "pp_size": 2, "hicache_ratio": 2.0, "max_total_tokens": 1_000_000}},
            {"args": {"tp_size": 8, "pp_size": 4, "hicache_ratio": 1.3, "max_total_tokens": 777_777}},
            {"args": {"tp_size": 8, "hicache_ratio": 3.7, "swa_full_tokens_ratio": 0.3, "max_total_tokens": 500_000}},
            {"args": {"tp_size": 8, "hicache_ratio": 2.0, "kv_cache_dtype": "bf16", "max_total_tokens": 1_000_000}},
        ]
    return asked


def drawn(rng: Random, config: dict[str, Any]) -> Case:
    """One draw of everything at once."""
    args: Case = {"tp_size": rng.choice([1, 2, 4, 8, 8, 16])}
    if rng.random() < 0.35:
        args["pp_size"] = rng.choice([2, 2, 3, 4])
    if rng.random() < 0.7:
        args["page_size"] = rng.choice([1, 16, 32, 64, 64, 128])
    if rng.random() < 0.5:
        args["kv_cache_dtype"] = rng.choice(["fp8_e4m3", "fp8_e5m2", "bf16"])
    if rng.random() < 0.7:
        args["hicache_size"] = rng.choice([1, 3, 10, 33, 64, 100, 250, 500, 1500])
    else:
        args["hicache_ratio"] = rng.choice([0.3, 1.0, 1.05, 1.5, 2.0, 2.7, 4.0, 10.0])
    args["max_total_tokens"] = rng.choice(
        [65_536, 262_144, 500_000, 1_000_000, 1_234_567, rng.randint(20_000, 3_000_000)]
    )
    if rng.random() < 0.3:
        args["hicache_mem_layout"] = rng.choice(["layer_first", "page_first_direct", "page_head"])
    return {"args": args, "gpu": rng.choice(["sm80", "sm90", "sm90", "sm100"])}


def completed(config: dict[str, Any], asked: Case) -> Case:
    """The case with what its family needs for a device size: tokens for several pools, states for linear layers."""
    args = dict(asked["args"])
    kind = config["model_type"]
    if kind in STATES | SLIDING | V4:
        args.setdefault("max_total_tokens", 1_000_000)
    if kind in STATES:
        args.setdefault("max_mamba_cache_size", 500)
    if kind == "llama4":
        args.setdefault("context_length", 131_072)  # the published one is more than most device pools
    if kind in V4:
        args.setdefault("hicache_ratio", 2.0)
    case = {"args": args, "gpu": asked.get("gpu", "sm90")}
    return {**case, "env": asked["env"]} if "env" in asked else case


def cases() -> list[Case]:
    """All cases as `{"id": …, "case": …}`, the same every time."""
    listed = []
    names = sorted(path.stem for path in MODELS.glob("*.json"))
    for name in names:
        config = configuration(name)
        if config.get("made_for") == "draft":
            continue
        rng = Random(f"{SEED}:{name}")
        asked = questions(config) + family_questions(config) + [drawn(rng, config) for _ in range(3)]
        for number, one in enumerate(asked):
            listed.append({"id": f"{name}/{number:02d}", "case": {"model": name, **completed(config, one)}})
    for draft, (algorithm, targets) in SIDECARS.items():
        for target in targets:
            args = {"tp_size": 8, "hicache_size": 100, "page_size": 64, **EAGLE, "speculative_algorithm": algorithm}
            one = {"args": {**args, "speculative_draft_model_path": draft}}
            case = {"model": target, **completed(configuration(target), one)}
            listed.append({"id": f"{target}/beside-{draft}", "case": case})
    return listed


def main() -> None:
    text = sys.argv[1] if len(sys.argv) > 1 else ""
    for entry in cases():
        if text in entry["id"]:
            print(json.dumps(entry))


if __name__ == "__main__":
    main()
