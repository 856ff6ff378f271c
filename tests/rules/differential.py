"""Ours beside the recorded resolution of the real SGLang: one case judged, and where the two differ.

Used by the replay test and by tools/differential.py.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from hicache_config.arguments import Given
from hicache_config.arguments.reading import read_arguments
from hicache_config.arguments.releases import table
from hicache_config.core.findings import Finding
from hicache_config.core.releases import Release
from hicache_config.geometry import load_model, pipeline_of
from hicache_config.geometry.model import Model
from hicache_config.geometry.pipeline import Question
from hicache_config.rules.case import Case
from hicache_config.rules.registry import Rule, all_rules, run
from hicache_config.rules.resolution import Resolution, resolve_arguments
from hicache_config.rules.traits import traits_of
from tests.rules.judging import MODELS
from tests.rules.reasons import codes_for

RELEASE = Release.of("0.5.23")
RULES: dict[str, Rule] = {rule.code: rule for rule in all_rules()}

#: Fields whose final value must be the recorded one.
COMPARED = (
    "enable_hierarchical_cache", "hicache_host_memory_mode", "hicache_ratio", "hicache_size",
    "hicache_host_memory_fraction", "hicache_write_policy", "hicache_io_backend", "hicache_mem_layout",
    "hicache_storage_backend", "hicache_storage_prefetch_policy", "hicache_storage_backend_extra_config",
    "hicache_storage_prefetch_retry_poll_interval", "hicache_storage_prefetch_retry_max_attempts",
    "disable_radix_cache", "enable_page_major_kv_layout", "enable_lmcache", "enable_flexkv", "page_size",
    "kv_cache_dtype", "swa_full_tokens_ratio", "disable_hybrid_swa_memory", "pp_size", "dp_size", "attn_dp_size",
    "enable_dp_attention", "disaggregation_mode", "disaggregation_decode_retraction_backup",
    "optimistic_prefill_attempts",
)  # fmt: skip


@dataclass(frozen=True)
class Difference:
    """What differs in one case: "missed" (SGLang refuses, we do not), "refused" (the other way round), or a field."""

    kind: str
    detail: str


def write_models(folder: Path) -> None:
    """Every kind of model as a folder with its config.json."""
    for name, config in MODELS.items():
        (folder / name).mkdir()
        (folder / name / "config.json").write_text(json.dumps(config), encoding="utf-8")


@cache
def _model(path: str) -> Model:
    model, problems = load_model(path)
    assert model is not None, problems
    return model


@dataclass(frozen=True)
class Judged:
    """Our own answer to a case."""

    resolution: Resolution
    errors: tuple[Finding, ...]


def judge(case: Mapping[str, Any], folder: Path) -> Judged:
    """Our own examination of a recorded case, as app.examining does it, without sizes."""
    model = _model(str(folder / case["model"]))
    arguments = {"model_path": model.name, "load_format": "dummy", "device": "cuda", **case["args"]}
    reading = read_arguments([Given(key, value) for key, value in arguments.items()], RELEASE.name)
    args = reading.args
    pipeline = pipeline_of(model, args, Question(RELEASE.name, case["gpu"]))
    traits = traits_of(model, args, case["gpu"])
    resolution = resolve_arguments(args, RELEASE, gpu=case["gpu"], pipeline=pipeline, traits=traits)
    asked = Case(
        args=args,
        release=RELEASE,
        resolution=resolution,
        written=frozenset(reading.given),
        invalid=reading.invalid,
        gpu=case["gpu"],
        model_name=model.name,
        pipeline=pipeline,
        traits=traits,
    )
    judged, _ = run(asked)
    every = (*reading.findings, *pipeline.findings, *judged)
    return Judged(resolution, tuple(finding for finding in every if finding.severity == "error"))


def differences(case: Mapping[str, Any], result: Mapping[str, Any], folder: Path) -> list[Difference]:
    """Where our verdict or our values differ from the recorded ones; empty where they agree."""
    found = judge(case, folder)
    errors = found.errors
    if "refused" in result:
        told = result["refused"]
        wanted = codes_for(told["where"], told["message"])
        ours = {finding.code for finding in errors}
        met = bool(ours & wanted) if wanted is not None else bool(ours)
        return [] if met else [Difference("missed", f"{told['where']}: {told['message'][:70]} {sorted(ours)}")]
    early = sorted({finding.code for finding in errors if _is_early(finding)})
    if early:
        return [Difference("refused", " ".join(early))]
    return [*_values(case, result["changed"], found)]


def is_late(result: Mapping[str, Any], errors: tuple[Finding, ...]) -> bool:
    """Whether SGLang accepts what we refuse, for a failure that comes late."""
    return "changed" in result and bool(errors)


def _is_early(finding: Finding) -> bool:
    rule = RULES.get(finding.code)
    return rule is None or rule.late is None


def _values(case: Mapping[str, Any], changed: Mapping[str, Any], found: Judged) -> list[Difference]:
    out = []
    for name in COMPARED:
        ours = found.resolution.value(name)
        # A field that nobody sets stands for its fallback in SGLang's answer.
        theirs = changed[name] if name in changed else case["args"].get(name, _raw(name))
        if name == "kv_cache_dtype" and theirs == "auto":
            continue  # SGLang leaves it there and asks the checkpoint later
        if ours != theirs:
            out.append(Difference(name, f"ours {ours!r}, SGLang's {theirs!r}"))
    return out


def _raw(name: str) -> Any:
    return table(RELEASE.name)[name].default


#: Differences that stay, by their kind and place, each with the reason.
EXPLAINED: dict[tuple[str, str], str] = {
    (
        "missed",
        "arg_groups/kv_shard_hook.py",
    ): "page sharding's own requirements of attention kernels and sharding axes",
    (
        "missed",
        "arg_groups/model_hook.py:handle_model_specific_adjustments",
    ): "the layer split of DSA caches and context parallelism for prefill, whatever HiCache does",
    (
        "missed",
        "arg_groups/parallel_hook.py:handle_context_parallelism",
    ): "context parallelism for prefill needs a strategy",
    (
        "missed",
        "arg_groups/deepseek_v4_hook.py:validate_deepseek_v4_cp",
    ): "context parallelism for prefill needs a strategy",
    (
        "refused",
        "HC668",
    ): "SGLang runs it; this program does not plan the arena that unified memory shares, and says so",
    (
        "missed",
        "arg_groups/kv_cache_hook.py:handle_page_major_kv_layout",
    ): "unified memory's own list of attention kernels",
    (
        "missed",
        "arg_groups/deepseek_v4_hook.py:apply_deepseek_v4_defaults",
    ): "DeepSeek V4's own choice of drafts, whatever HiCache does",
}


def explanation(difference: Difference) -> str | None:
    """Why a difference stays, None for one that must not be."""
    for (kind, start), why in EXPLAINED.items():
        if difference.kind == kind and difference.detail.startswith(start):
            return why
    return None
