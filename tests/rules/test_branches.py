"""Sides of the rules that no example shows: further arguments that are refused, releases that differ, models that are odd."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hicache_config.arguments import ServerArgs
from hicache_config.core.releases import Release
from hicache_config.geometry.catalogue import catalogue_names
from hicache_config.geometry.model import Model
from hicache_config.geometry.pipeline import Pipeline, Settled
from hicache_config.rules.backends.memory import host_bytes_per_rank
from hicache_config.rules.backends.reading import read_settings
from hicache_config.rules.case import Case
from hicache_config.rules.host_pools import Pool, best_pair, why_not
from hicache_config.rules.registry import Rule, all_rules, declare, run
from hicache_config.rules.resolution import resolve_arguments
from hicache_config.rules.traits import traits_of
from tests.rules.judging import TINY, findings

ON = {"enable_hierarchical_cache": True}
DECODE = {"disaggregation_mode": "decode"}
RADIX = {**DECODE, "disaggregation_decode_enable_radix_cache": True}
UNIFIED = {"enable_unified_memory": True}
PAIR = {**UNIFIED, "disaggregation_mode": "prefill", "disaggregation_transfer_backend": "mooncake"}
CONFIG = "hicache_storage_backend_extra_config"
DYNAMIC = {"enable_unified_cache_external_linker": True, "unified_cache_external_linker_backend": "dynamic"}
MODELS = {
    "llama": {"architecture": "LlamaForCausalLM"},
    "linear": {"architecture": "Qwen3NextForCausalLM"},
    "mla": {"architecture": "DeepseekV3ForCausalLM"},
}

BLACKWELL = {"gpu": "sm100"}
SAID: list[tuple[dict[str, Any], dict[str, Any], str, str]] = [
    ({**ON, **UNIFIED}, {"sglang": "0.5.20"}, "HC240", "no host pools"),
    ({**UNIFIED, "speculative_algorithm": "DSPARK"}, {"sglang": "0.5.17"}, "HC240", "with nothing"),
    ({**UNIFIED, "speculative_algorithm": "EAGLE"}, {"sglang": "0.5.21"}, "HC240", "with DSPARK"),
    ({**PAIR}, {"sglang": "0.5.17"}, "HC240", "halves of a pair"),
    (
        {**RADIX, **UNIFIED, "disaggregation_transfer_backend": "mooncake",
         "disaggregation_decode_retraction_backup": "host_pool"},
        {**MODELS["llama"], "sglang": "0.5.21"}, "HC240", "supports neither",
    ),
    (
        UNIFIED, {"architecture": "Qwen3NextForCausalLM", "patch": {"architectures": ["Qwen4ExpForConditionalGeneration"]}},
        "HC240", "Qwen4Exp",
    ),
    ({**ON, "enable_deterministic_inference": True}, {**MODELS["llama"], **BLACKWELL}, "HC201", "flashinfer"),
    ({**ON, "rl_on_policy_target": "fsdp", "attention_backend": "flashinfer"}, {}, "HC201", "flashinfer"),
    ({**ON, "kv_cache_dtype": "fp8_e5m2"}, {**MODELS["mla"], **BLACKWELL}, "HC247", "trtllm_mla"),
    ({"kv_cache_dtype": "fp8_e5m2", "decode_attention_backend": "cutedsl_mla"}, MODELS["mla"], "HC247", "cutedsl_mla"),
    ({"page_size": 48}, {}, "HC645", "no chunk that"),
    ({**ON, "page_size": 64, "linear_attn_backend": "flashinfer"}, MODELS["linear"], "HC644", "what auto is"),
    (
        {**ON, "mamba_radix_cache_strategy": "extra_buffer", "linear_attn_backend": "flashinfer"},
        MODELS["linear"], "HC644", "not supported for",
    ),
    (
        {**ON, "mamba_radix_cache_strategy": "extra_buffer_lazy", "disaggregation_mode": "prefill"},
        MODELS["linear"], "HC644", "halves of a pair",
    ),
    ({**ON, "mamba_track_interval": 2, "speculative_num_draft_tokens": 4}, MODELS["linear"], "HC644", "draft tokens"),
    (
        {**ON, "disable_overlap_schedule": True, "attention_backend": "trtllm_mha"}, MODELS["linear"], "HC644",
        "does not go with trtllm_mha",
    ),
    ({"kv_cache_dtype": "nvfp4", "enable_lmcache": True}, MODELS["llama"], "HC244", "no host pool"),
    (
        {**RADIX, "speculative_algorithm": "NGRAM"}, {}, "HC237", "NGRAM",
    ),
    ({**RADIX, "enable_hisparse": True}, {}, "HC237", "HiSparse"),
    ({**ON, **RADIX}, {**MODELS["linear"], "sglang": "0.5.20"}, "HC236", "recurrent states"),
    ({**ON, **RADIX}, {"architecture": "GptOssForCausalLM", "sglang": "0.5.14"}, "HC236", "sliding-window"),
    (
        {**ON, "tp_size": 2, "dcp_size": 2, "enable_hisparse": True, "disable_radix_cache": True, **DECODE},
        {"architecture": "DeepseekV32ForCausalLM"}, "HC417", "sparse attention",
    ),
    ({**RADIX, "disaggregation_transfer_backend": "fake"}, {}, "HC237", "fake"),
    (
        {**DECODE, "disaggregation_decode_host_receive_threshold": 0.5,
         "disaggregation_decode_retraction_backup": "cpu_tensor"},
        {}, "HC225", "host_pool",
    ),
    ({**PAIR, "pp_size": 2}, {}, "HC240", "--pp-size 2"),
    ({**PAIR, "enable_hisparse": True, "disable_radix_cache": True}, {}, "HC240", "--enable-hisparse"),
    (
        {**DECODE, **UNIFIED, "disaggregation_transfer_backend": "mooncake",
         "disaggregation_decode_retraction_backup": "host_pool"},
        MODELS["linear"], "HC240", "Qwen3NextForCausalLM",
    ),
    ({**PAIR, "speculative_algorithm": "EAGLE"}, {}, "HC240", "no drafts"),
    ({"radix_eviction_policy": "tlru", "radix_eviction_policy_config": {"threshold": -1}}, {}, "HC242", "-1"),
    (
        {**ON, **UNIFIED, "speculative_algorithm": "DFLASH"}, MODELS["llama"], "HC643", "sliding windows",
    ),
    ({**ON, "mamba_track_interval": 100, "page_size": 64}, MODELS["linear"], "HC644", "multiple of the page size"),
    ({**ON, "mamba_track_interval": 240, "page_size": 48}, MODELS["linear"], "HC644", "do not divide"),
    ({"pp_size": 2, "speculative_algorithm": "DSPARK"}, {}, "HC647", "DSPARK"),
    ({"pp_size": 2, "speculative_algorithm": "EAGLE"}, {"sglang": "0.5.17"}, "HC647", "EAGLE"),
    (
        {**DYNAMIC, "unified_cache_external_linker_config": {"linker": "a", "linker_module_path": "b", "c": 1}},
        {}, "HC216", "'c'",
    ),
    (
        {**DYNAMIC, "unified_cache_external_linker_config":
         {"linker": "a", "linker_module_path": "b", "linker_extra_config": 1}},
        {}, "HC216", "mapping",
    ),
    (
        {"enable_hisparse": True, "disable_radix_cache": True, "enable_mixed_chunk": True}, {}, "HC221", "--enable-mixed-chunk",
    ),
    (
        {**ON, "enable_kv_cache_sharding": True, "disaggregation_mode": "prefill"}, {"sglang": "0.5.22"}, "HC434",
        "whole pages",
    ),
    ({"tp_size": 2, "dp_size": 2, "nnodes": 2}, {}, "HC435", "replicas"),
    (
        {**DECODE, **UNIFIED, "disaggregation_decode_enable_offload_kvcache": True, "hicache_storage_backend": "file"},
        MODELS["mla"], "HC227", "DeepseekV3ForCausalLM",
    ),
    (
        {**ON, "hicache_storage_backend": "nixl", CONFIG: '{"l3_cleaner_low_watermark": 90}'}, {}, "HC711", "low_watermark",
    ),
    (
        {**ON, "hicache_storage_backend": "mooncake", CONFIG: '{"tp_lcm_size": 8, "master_server_address": "m:1"}'},
        {}, "HC706", "is ignored",
    ),
    (
        {**ON, "hicache_storage_backend": "file", "hicache_host_memory_mode": "buffer_only", "device": "npu"},
        {"architecture": "DeepseekV4ForCausalLM"}, "HC214", "NPU",
    ),
    ({**ON, "hicache_mem_layout": "layer_first"}, {**MODELS["linear"], "sglang": "0.5.15"}, "HC209", "page_first_direct"),
    ({**ON}, {"sglang": "0.5.14", **MODELS["linear"]}, "HC209", "page_first_direct"),
]  # fmt: skip


@pytest.mark.parametrize(("arguments", "settings", "code", "words"), SAID, ids=[each[2] for each in SAID])
def test_said(arguments: dict[str, Any], settings: dict[str, Any], code: str, words: str, tmp_path: Path) -> None:
    told = [f"{each.message} {each.help}" for each in findings(arguments, settings, tmp_path) if each.code == code]
    assert any(words in text for text in told), told


UNSAID: list[tuple[dict[str, Any], dict[str, Any], str]] = [
    ({"pp_size": 2, "speculative_algorithm": "NGRAM"}, {"sglang": "0.5.19"}, "HC647"),
    ({"pp_size": 2, "speculative_algorithm": "EAGLE", "disaggregation_mode": "prefill"}, {}, "HC647"),
    ({**DYNAMIC, "hicache_storage_backend": "file"}, {"sglang": "0.5.22"}, "HC216"),
    ({"kv_cache_dtype": "mxfp8", "page_size": 128}, {"gpu": "sm100"}, "HC245"),
    ({**ON, "tp_size": 2, "pp_size": 2, "disable_overlap_schedule": True}, {}, "HC436"),
    ({**ON, "hicache_mem_layout": "nothing"}, {}, "HC209"),
    ({**ON, "hicache_storage_backend": "mooncake"}, {"environment": {"MOONCAKE_MASTER": "m:1"}}, "HC715"),
]


@pytest.mark.parametrize(("arguments", "settings", "code"), UNSAID, ids=[each[2] for each in UNSAID])
def test_unsaid(arguments: dict[str, Any], settings: dict[str, Any], code: str, tmp_path: Path) -> None:
    assert code not in [each.code for each in findings(arguments, settings, tmp_path)]


def test_a_host_that_is_not_asked_for_says_so() -> None:
    args = ServerArgs.model_validate(ON)
    release = Release.of("0.5.23")
    _, skipped = run(Case(args, release, resolve_arguments(args, release)))
    reasons = {each.code: each.why for each in skipped}
    assert "no sizes" in reasons["HC501"]
    assert "no model" in reasons["HC236"]


def test_what_only_host_pools_refuse_is_a_note_without_them(tmp_path: Path) -> None:
    """FP4 rows run in SGLang as long as HiCache is off."""
    off = {"kv_cache_dtype": "fp4_mx_block16"}
    severities = {each.severity for each in findings(off, MODELS["llama"], tmp_path) if each.code == "HC605"}
    assert severities == {"note"}
    severities = {each.severity for each in findings({**ON, **off}, MODELS["llama"], tmp_path) if each.code == "HC605"}
    assert severities == {"error"}


#: What keeps a server from running though it builds no host pools: its stages, or its device pools.
WITHOUT_HOST_POOLS = {"HC415", "HC418"}


@pytest.mark.parametrize("pp_size", [1, 2, 30])
def test_without_hicache_no_model_is_refused_for_its_host_pools(pp_size: int) -> None:
    """Sizes that would be wrong, pools without bytes, trees without a host tier: nothing of it is built."""
    for name in catalogue_names():
        given = {"model_path": name, "pp_size": pp_size, "max_total_tokens": 1_000_000}
        found = {each.code for each in findings(given, {"model": name}) if each.severity == "error"}
        assert found <= WITHOUT_HOST_POOLS, name


def test_unknown_slots_leave_the_host_out(tmp_path: Path) -> None:
    """With a ratio and no device slots no bytes are known, so nothing is said of the host."""
    arguments = {**ON, "hicache_ratio": 2.0}
    found = {each.code for each in findings(arguments, {**MODELS["llama"], "host_memory": "20GB"}, tmp_path)}
    assert found.isdisjoint({"HC501", "HC502"})


def test_what_a_release_does_not_have_is_not_settled() -> None:
    settled = {"hicache_host_memory_mode": Settled("hicache_host_memory_mode", "cache", "buffer_only", "made up")}
    resolution = resolve_arguments(
        ServerArgs.model_validate({}, context={"release": "0.5.10"}),
        "0.5.10",
        pipeline=Pipeline("made-up", (), settled=settled),
    )
    assert resolution.rewrites == ()


def test_a_rule_is_declared_once() -> None:
    rule = all_rules()[0]
    with pytest.raises(ValueError, match="declared twice"):
        declare(rule)
    with pytest.raises(ValueError, match="declared twice"):
        declare(Rule("HC999", rule.name, "note", why="", bad={}, good={}))


def test_settings_from_a_file_that_the_caller_read() -> None:
    given = {**ON, "hicache_storage_backend": "file", CONFIG: "@settings.json"}
    args = ServerArgs.model_validate(given)
    release = Release.of("0.5.23")
    resolution = resolve_arguments(args, release)
    case = Case(args, release, resolution, written=args.written, files={"settings.json": {"prefetch_treshold": 1}})
    assert "HC703" in {finding.code for finding in run(case)[0]}
    blind = Case(args, release, resolution, written=args.written)
    assert "HC703" not in {finding.code for finding in run(blind)[0]}


def test_an_npu_gets_its_layout_by_the_rows_of_the_model() -> None:
    args = ServerArgs.model_validate({**ON, "device": "npu:0", "page_size": 64})
    for architecture, layout in (
        ("DeepseekV3ForCausalLM", "page_first_kv_split"),
        ("LlamaForCausalLM", "page_first_direct"),
    ):
        traits = traits_of(Model("tiny", TINY[architecture]), args)
        resolution = resolve_arguments(args, "0.5.23", traits=traits)
        assert resolution.value("hicache_io_backend") == "kernel_ascend"
        assert resolution.value("hicache_mem_layout") == layout
        assert resolution.value("page_size") == 64
    off = ServerArgs.model_validate({"device": "npu"})
    assert resolve_arguments(off, "0.5.23").value("page_size") == 128
    assert resolve_arguments(off, "0.5.23").value("hicache_io_backend") == "kernel"


def test_pairs_of_layout_and_copies() -> None:
    newest = Release.of("0.5.23")
    assert why_not(newest, Pool.MAMBA, "page_first_kv_split", "kernel_ascend") is None
    assert why_not(newest, Pool.MLA, "page_first_kv_split", "kernel_ascend") is None
    assert why_not(newest, Pool.MLA, "page_first_kv_split", "kernel") == "build"
    assert best_pair(newest, (Pool.MAMBA, Pool.MXFP8), "direct") == ("page_first", "kernel")
    assert best_pair(Release.of("0.5.15"), (Pool.MAMBA, Pool.MXFP8), "kernel") == ("page_first", "kernel")


@pytest.mark.parametrize(
    "config",
    [
        {},
        {"architectures": ["NoSuchModel"]},
        {"architectures": ["GraniteMoeHybridForCausalLM"], "layer_types": ["mamba", "attention"]},
        {"architectures": ["LlamaForCausalLM"], "num_attention_heads": "many"},
    ],
)
def test_odd_models_do_not_break_the_traits(config: dict[str, Any]) -> None:
    args = ServerArgs.model_validate(ON)
    traits = traits_of(Model("odd", config), args)
    if traits is not None:
        assert traits.linear == ("mamba" in str(config))
        assert traits.in_stages is None or isinstance(traits.in_stages, bool)
    assert traits_of(None, args) is None


def test_fp4_keeps_what_else_is_settled() -> None:
    args = ServerArgs.model_validate({**ON, "kv_cache_dtype": "fp4_mx_block16"})
    traits = traits_of(Model("tiny", TINY["Step3p5ForCausalLM"]), args)
    assert traits is not None
    assert "kv_cache_dtype" not in traits.settled
    assert traits.settled["disable_hybrid_swa_memory"].gets is True


def test_settings_of_kinds_that_are_no_kinds() -> None:
    assert read_settings("own", {"a": 1}).problems == ()
    assert read_settings("mori", {"ssd_enabled": "on"}).problems == ()
    assert read_settings("mori", {"ssd_enabled": 1}).problems == ()
    assert read_settings("file", {"max_size": 1.0e9}).problems == ()
    assert read_settings("mooncake", {"master_server_address": "m", "global_segment_size": 4.0}).problems == ()
    standalone = {"MOONCAKE_STANDALONE_STORAGE": "true"}
    assert host_bytes_per_rank("mooncake", None, ServerArgs.model_validate({}), standalone) == 16 * 2**20


@pytest.mark.parametrize(
    ("release", "groups", "kept"), [("0.5.21", 1, False), ("0.5.21", 2, True), ("0.5.22", 2, False)]
)
def test_the_older_spelling_of_attention_groups(release: str, groups: int, kept: bool) -> None:
    args = ServerArgs(tp_size=2, dp_size=groups, enable_dp_attention=True)
    resolution = resolve_arguments(args, release)
    assert resolution.value("enable_dp_attention") is kept


@pytest.mark.parametrize(("asked", "chosen"), [({}, "0"), (ON, "1")])
def test_the_older_tree_matters_with_hicache_and_without_the_variable(
    asked: dict[str, Any], chosen: str, tmp_path: Path
) -> None:
    settings = {"architecture": "GptOssForCausalLM", "sglang": "0.5.12"}
    settings |= {"environment": {"SGLANG_ENABLE_UNIFIED_RADIX_TREE": chosen}}
    assert "HC683" not in {each.code for each in findings(asked, settings, tmp_path)}
