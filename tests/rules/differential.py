"""Ours beside the recorded resolution of the real SGLang: one case judged, and where the two differ.

Used by the replay test and by tools/differential.py.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hicache_config.app.examining import Examined, examine
from hicache_config.app.options import Options
from hicache_config.arguments import Given
from hicache_config.arguments.releases import table
from hicache_config.core.findings import Finding
from hicache_config.rules.registry import Rule, all_rules
from hicache_config.sources.document import Engine
from tests.rules.judging import configurations
from tests.rules.reasons import codes_for

NEWEST = "0.5.23"
RULES: dict[str, Rule] = {rule.code: rule for rule in all_rules()}

#: Fields whose final value must be the recorded one.
COMPARED = (
    "enable_hierarchical_cache", "hicache_host_memory_mode", "hicache_ratio", "hicache_size",
    "hicache_host_memory_fraction", "hicache_write_policy", "hicache_io_backend", "hicache_mem_layout",
    "hicache_storage_backend", "hicache_storage_prefetch_policy", "hicache_storage_backend_extra_config",
    "hicache_storage_prefetch_retry_poll_interval", "hicache_storage_prefetch_retry_max_attempts",
    "disable_radix_cache", "enable_page_major_kv_layout", "enable_lmcache", "enable_flexkv", "page_size",
    "kv_cache_dtype", "swa_full_tokens_ratio", "disable_hybrid_swa_memory", "mamba_radix_cache_strategy", "pp_size", "dp_size", "attn_dp_size",
    "enable_dp_attention", "disaggregation_mode", "disaggregation_decode_retraction_backup",
    "optimistic_prefill_attempts",
)  # fmt: skip


#: Codes of KV types that only host pools cannot have.
FP4 = frozenset({"HC244", "HC605", "HC607", "HC619", "HC245", "HC606"})


@dataclass(frozen=True)
class Difference:
    """What differs in one case: "missed" (SGLang refuses, we do not), "refused" (the other way round), "no host
    pools" (SGLang refuses what only host pools concern us for, and there are none), or a field."""

    kind: str
    detail: str


def write_models(folder: Path) -> None:
    """Every model as a folder with its config.json."""
    for name, config in configurations().items():
        (folder / name).mkdir()
        (folder / name / "config.json").write_text(json.dumps(config), encoding="utf-8")


def judge(case: Mapping[str, Any], folder: Path) -> Examined:
    """Our own examination of a recorded case. What a plan says is left out: SGLang's resolution knows no sizes."""
    arguments = {"load_format": "dummy", "device": "cuda", **case["args"]}
    if "speculative_draft_model_path" in arguments:
        arguments["speculative_draft_model_path"] = str(folder / arguments["speculative_draft_model_path"])
    options = Options(
        sglang=case.get("sglang", NEWEST),
        model=str(folder / case["model"]),
        gpu=case["gpu"],
        environment=case.get("env", {}),
    )
    return examine(Engine(given=tuple(Given(key, value) for key, value in arguments.items())), "json", options)


def errors_of(found: Examined) -> tuple[Finding, ...]:
    return tuple(finding for finding in found.findings if finding.severity == "error")


def differences(case: Mapping[str, Any], result: Mapping[str, Any], folder: Path) -> list[Difference]:
    """Where our verdict or our values differ from the recorded ones; empty where they agree."""
    found = judge(case, folder)
    errors = errors_of(found)
    if "refused" in result:
        told = result["refused"]
        wanted = codes_for(told["where"], told["message"])
        ours = {finding.code for finding in errors}
        met = bool(ours & wanted) if wanted is not None else bool(ours)
        kind = "missed" if found.resolution.host_pools or not (wanted and wanted <= FP4) else "no host pools"
        return [] if met else [Difference(kind, f"{told['where']}: {told['message'][:70]} {sorted(ours)}")]
    early = sorted({finding.code for finding in errors if _is_early(finding)})
    if early:
        return [Difference("refused", " ".join(early))]
    if any(finding.code in ("HC601", "HC614") for finding in found.findings):
        return []  # what SGLang settles for a class that is not known, or that the release has no pools for
    return [*_values(case, result["changed"], found)]


def is_late(result: Mapping[str, Any], errors: tuple[Finding, ...]) -> bool:
    """Whether SGLang accepts what we refuse, for a failure that comes late."""
    return "changed" in result and bool(errors)


def _is_early(finding: Finding) -> bool:
    rule = RULES.get(finding.code)
    return rule is None or rule.late is None


def _values(case: Mapping[str, Any], changed: Mapping[str, Any], found: Examined) -> list[Difference]:
    out = []
    known = table(found.release.name)
    for name in (each for each in COMPARED if each in known):
        ours = found.resolution.value(name)
        # A field that nobody sets stands for its fallback in SGLang's answer.
        theirs = changed[name] if name in changed else case["args"].get(name, known[name].default)
        if name == "kv_cache_dtype" and theirs == "auto":
            continue  # SGLang leaves it there and asks the checkpoint later
        if ours != theirs:
            out.append(Difference(name, f"ours {ours!r}, SGLang's {theirs!r}"))
    return out


#: Differences that stay, by their kind and how their detail begins, each with the reason.
EXPLAINED: dict[tuple[str, str], str] = {
    ("missed", "arg_groups/kv_shard_hook.py"): "page sharding's own requirements of kernels and sharding axes",
    ("missed", "arg_groups/model_hook.py:handle_model_specific_adjustments"): (
        "the layer split of DSA caches, context parallelism for prefill, and kernels that a class does not take"
    ),
    ("missed", "arg_groups/model_hook.py:_validate_dsa_tbo_index_sharing"): "two-batch overlap, whatever HiCache does",
    ("missed", "arg_groups/parallel_hook.py:handle_context_parallelism"): "context parallelism for prefill by itself",
    ("missed", "arg_groups/parallel_hook.py:_boundary_parallelism_overrides"): "context parallelism of a class",
    ("missed", "arg_groups/parallel_hook.py:handle_decode_context_parallelism: --dcp-comm"): "how ranks exchange",
    ("missed", "arg_groups/deepseek_v4_hook.py:validate_deepseek_v4_cp"): "context parallelism for prefill by itself",
    ("missed", "arg_groups/kv_cache_hook.py:handle_page_major_kv_layout"): "unified memory's own list of kernels",
    ("missed", "arg_groups/kv_cache_hook.py:validate_prefill_only_disable_kv_cache_args"): "a server without KV cache",
    ("missed", "arg_groups/attention_hook.py"): "attention kernels that a GPU or a setting does not take",
    ("missed", "arg_groups/overrides.py:_cutedsl_prefill_backend_fill"): "attention kernels that a GPU does not take",
    ("missed", "arg_groups/overrides.py:_deterministic_attention_backend"): "kernels of deterministic inference",
    ("missed", "arg_groups/overrides.py:_mla_kv_cache_dtype_checks: TRTLLM MLA backend is"): (
        "attention kernels that a GPU does not take"
    ),
    ("missed", "arg_groups/overrides.py:_mla_kv_cache_dtype_checks: tokenspeed_mla"): (
        "attention kernels that a GPU does not take"
    ),
    (
        "missed",
        "arg_groups/kv_cache_hook.py:handle_unified_memory_pool: --enable-unified-memory does not yet support d",
    ): ("unified memory's own list of kernels"),
    (
        "missed",
        "arg_groups/parallel_hook.py:handle_decode_context_parallelism: --dcp-size > 1 does not support --enab",
    ): ("context parallelism for prefill by itself"),
    ("missed", "arg_groups/pd_disaggregation_hook.py:handle_pd_disaggregation: Prefill server"): "pairs of servers",
    ("missed", "arg_groups/pd_disaggregation_hook.py:handle_pd_disaggregation: --enable-pd-role"): "pairs of servers",
    ("missed", "arg_groups/memory_hook.py:handle_offload_compatibility"): "offloaded weights, whatever HiCache does",
    ("missed", "arg_groups/lora_hook.py"): "adapters, whatever HiCache does",
    ("missed", "arg_groups/moe_hook.py"): "experts, whatever HiCache does",
    ("missed", "arg_groups/mega_moe_hook.py"): "experts, whatever HiCache does",
    ("missed", "arg_groups/speculative_hook.py:_handle_eagle_family"): "numbers of a draft, whatever HiCache does",
    ("missed", "arg_groups/validation_hook.py:check_two_batch_overlap"): "two-batch overlap, whatever HiCache does",
    ("missed", "arg_groups/pd_disaggregation_hook.py:handle_encoder_disaggregation"): "servers of encoders",
    ("missed", "dllm/config.py"): "models that are no diffusion models",
    ("missed", "arg_groups/mamba_hook.py:handle_mamba_backend"): "kernels that the environment has not",
    ("missed", "configs/model_config.py:_verify_quantization"): "quantisation that the environment has not",
    ("missed", "utils/hf_transformers/"): "classes that the environment's transformers has not",
    (
        "refused",
        "HC668",
    ): "SGLang runs it; this program does not plan the arena that unified memory shares, and says so",
    ("missed", "arg_groups/model_overrides/minimax_m3.py:_minimax_m3_overrides: M3.1 NVFP4 only supports DS"): (
        "MiniMax M3.1's own drafts, whatever HiCache does"
    ),
    ("refused", "HC657"): "SGLang looks for the draft when it loads it; without it nothing can be planned",
    ("no host pools", ""): "FP4 rows without host pools: kernels and GPUs, whatever HiCache does",
}


def explanation(difference: Difference) -> str | None:
    """Why a difference stays, None for one that must not be."""
    for (kind, start), why in EXPLAINED.items():
        if difference.kind == kind and difference.detail.startswith(start):
            return why
    return None
