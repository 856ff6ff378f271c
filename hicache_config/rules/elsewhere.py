"""Findings that other floors make, declared so that each has its page; many have their examples in `examples/`.

Must not import anything above this floor.
"""

# ruff: noqa: E501, PLR0917 - a table: one page a line

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..core.findings import Severity
from .examples import EXAMPLES, WITHOUT_EXAMPLES
from .registry import Rule, declare

ON: Mapping[str, Any] = {"enable_hierarchical_cache": True}
SIZE: Mapping[str, Any] = {**ON, "hicache_size": 100}


def _page(
    code: str,
    name: str,
    severity: Severity,
    why: str,
    bad: Mapping[str, Any] | None = None,
    good: Mapping[str, Any] | None = None,
    **more: Any,
) -> None:
    shown = {"bad": bad or {}, "good": good or {}, **more, **EXAMPLES.get(code, {})}
    declare(Rule(code, name, severity, why, unshown=WITHOUT_EXAMPLES.get(code), **shown))


# --- reading ------------------------------------------------------------------------------------------------------

_page("HC001", "unreadable-source", "error", "A source that is not there, is a folder, or may not be read.")
_page("HC002", "syntax-error", "error", "Text that breaks the rules of its format; the place is where reading stopped.")
_page("HC003", "duplicate-key", "error", "A key twice in one mapping: readers differ in which one they keep.")
_page("HC004", "not-a-number", "error", "NaN and infinity: JSON has neither, and no size or ratio can be one.")
_page("HC005", "too-deep-or-too-large", "error", "A source beyond what is read, so that no file can exhaust memory.")
_page("HC006", "not-text", "error", "Bytes that are no UTF-8 text.")
_page("HC007", "no-engine-found", "error", "A source in which no SGLang server is started and no arguments stand.")
_page(
    "HC008",
    "unset-variable",
    "warning",
    "A shell variable with no value in the source: what depends on it is not checked.",
)
_page(
    "HC009", "not-followed", "warning", "Something that only running the source could tell, such as a command's output."
)
_page("HC010", "unknown-argument", "error", "A key or flag that no SGLang release has: its own command line stops "
"at it.",
      {**ON, "hicache_sise": 100}, SIZE)  # fmt: skip
_page("HC011", "broken-continuation", "error", "A backslash with a space behind it ends a shell command early.")
_page(
    "HC012",
    "typographic-dash",
    "error",
    "A dash that a web page or editor made of two hyphens: SGLang takes it for a value.",
)
_page(
    "HC013",
    "yaml-value-that-sglang-breaks",
    "warning",
    "A value that SGLang's own --config reader does not hand on as written.",
)
_page("HC014", "flag-of-another-program", "note", "A flag of the router or of another launcher, left alone here.")
_page("HC015", "missing-value", "error", "A flag that takes a value and has none.")
_page("HC016", "stray-word", "error", "A word of a command line that belongs to no flag.")
_page("HC017", "prompt-in-command", "error", "A shell prompt that was copied with the command.")
_page("HC018", "several-words-in-one", "error", "A flag and its value in one word, where the program gets it as one.")
_page("HC019", "cut-off", "warning", "A source that ends in the middle: what is missing is not checked.")
_page("HC020", "config-file-refused", "error", "A --config, or a key in its file, that SGLang's own reader stops at or "
"does not see.")  # fmt: skip

# --- values -------------------------------------------------------------------------------------------------------

_page(
    "HC021",
    "unused-suppression",
    "warning",
    "A comment `hicache: ignore` that answers no finding: it would hide a later one.",
)
_page("HC022", "suppression-without-reason", "warning", "A comment `hicache: ignore` that does not say why.")
_page("HC101", "wrong-type", "error", "A value of another type. SGLang's command line refuses it; handed to its "
"Python class it is "
      "taken as it is and fails later, or counts as something else.", {**ON, "hicache_size": "lots"}, SIZE, covers=(6,))  # fmt: skip
_page("HC102", "not-a-choice", "error", "A value that is not one of the argument's choices in this release.",
      {**ON, "hicache_write_policy": "write-through"}, {**ON, "hicache_write_policy": "write_through"}, covers=(4,))  # fmt: skip
_page("HC103", "out-of-range", "error", "A number that SGLang takes without a word and then misreads: a negative "
"size counts as not "
      "set, a ratio of 0 gives one page, a negative one ends in the allocator. A fraction outside 0 to 1 it refuses.",
      {**ON, "hicache_ratio": -1.0}, {**ON, "hicache_ratio": 2.0}, covers=(1, 6))  # fmt: skip
_page("HC104", "number-too-large", "error", "A number beyond 64 bits, which SGLang's collectives cannot carry.",
      {**ON, "hicache_size": 2**63}, SIZE, covers=(6,))  # fmt: skip
_page("HC105", "fractional-size", "error", "--hicache-size takes whole GB (10**9 bytes) per rank on the command line.",
      {**ON, "hicache_size": 1.5}, {**ON, "hicache_size": 2}, covers=(6,))  # fmt: skip
_page("HC106", "abbreviated-flag", "note", "argparse completes the beginning of a flag; a later release may make "
"it ambiguous.",
      {"--hicache-siz": "100", "--enable-hicache": ""}, {"--hicache-size": "100", "--enable-hicache": ""})  # fmt: skip
_page("HC107", "not-in-this-release", "error", "An argument of other SGLang releases than this one.",
      {**ON, "hicache_host_memory_fraction": 0.5}, ON, settings={"sglang": "0.5.20"})  # fmt: skip
_page("HC108", "given-twice", "warning", "The last of two spellings counts, as in argparse.",
      {**ON, "--hicache-size": "50", "hicache_size": 100}, SIZE)  # fmt: skip
_page("HC110", "differs-between-releases", "note", "With --compare: what another SGLang release does otherwise with the same "
      "arguments: other defaults, choices, values in the end, findings and sizes.")  # fmt: skip
_page("HC109", "release-not-known", "warning", "A release newer than the newest known one is taken as that one.",
      settings={"sglang": "0.9.0"})  # fmt: skip
_page("HC111", "another-release-ran", "warning", "A server's own answer names its release, and sizes and rules differ "
"between releases; without --sglang it is checked as the installed or the newest one.")  # fmt: skip

_page("HC506", "engines-exceed-the-machine", "warning", "Each server looks at the machine for itself. Engines of one "
"Compose file run on one machine: where each of them fits, but not all, the later ones are refused or the machine is "
"killed. Engines that never run at the same time are told apart by nothing in the file.")  # fmt: skip

# --- sizes --------------------------------------------------------------------------------------------------------

_page(
    "HC301",
    "size-too-small",
    "error",
    "A size that does not hold one page of each pool; the message names the least size.",
)
_page("HC302", "all-pools-empty", "error", "No stage has a host pool that holds bytes.")
_page("HC303", "pool-of-zero-bytes", "error", "A stage whose pool has no layers: SGLang maps zero bytes and stops "
"(EINVAL), while "
      "the other stages wait.", covers=("H1",))  # fmt: skip
_page("HC304", "size-refused-for-pages", "error", "DeepSeek V4's host pools are counted in pages and take no "
"--hicache-size; SGLang says "
      "so after the weights are loaded. Source: SGLang 0.5.23, hybrid_pool_assembler.py:_deepseek_v4_num_host_pages.",
      SIZE, {**ON, "hicache_ratio": 2.0}, covers=(9,), settings={"architecture": "DeepseekV4ForCausalLM"},
      late="mem_cache/hybrid_cache/hybrid_pool_assembler.py:_deepseek_v4_num_host_pages")  # fmt: skip
_page("HC305", "no-host-memory-left", "error", "Nothing is left of the host's memory after the reserve of 10 GiB.")
_page("HC306", "fraction-refused-for-pages", "error", "Without size and ratio SGLang measures the pools, and does "
"not know DeepSeek "
      "V4's; its message proposes a size, which is refused as well: only a ratio works. Source: SGLang 0.5.23, "
      "hicache_auto_size.py:_estimate_hicache_bytes.", ON, {**ON, "hicache_ratio": 2.0}, covers=(10,), since="0.5.21",
      settings={"architecture": "DeepseekV4ForCausalLM"}, late="mem_cache/hicache_auto_size.py:_estimate_hicache_bytes")  # fmt: skip
_page("HC310", "pool-impossible", "error", "A pool with impossible numbers in a pools file.")
_page(
    "HC311",
    "pools-inconsistent",
    "error",
    "Pools of a stage that do not belong together: names twice, a follower without its leader.",
)
_page("HC312", "pools-file-wrong", "error", "A pools file that has another shape than its schema.")
_page("HC313", "log-differs-from-plan", "warning", "Host pools that a server's log tells came out other than the plan of "
      "its arguments says: another release, GPU or model than named, or a fault here.")  # fmt: skip
_page("HC314", "log-as-planned", "note", "The host pools that a server's log tells are those of the plan.")

# --- parallelism and agreement ------------------------------------------------------------------------------------

_page(
    "HC401",
    "stages-with-different-pools",
    "error",
    "Stages with different independent pools pair the wrong collectives and hang.",
)
_page("HC402", "device-slots-differ", "error", "A pool's device slots differ between the stages that have it.")
_page("HC403", "page-sizes-differ", "error", "A pool's page sizes differ between the stages that have it.")
_page("HC404", "page-rules-differ", "error", "A pool's way of counting pages differs between the stages that have it.")
_page("HC405", "ranks-disagree", "error", "Ranks of one engine that were started with different arguments or releases.")
_page("HC406", "rank-failed", "error", "A rank that failed on its way to the agreement; every rank stops and names it.")
_page("HC407", "protocol-mismatch", "error", "Ranks with different versions of hicache-config.")
_page("HC408", "absurd-offer", "error", "Numbers in a rank's offer that no stage can have.")
_page("HC409", "tensor-ranks-differ", "error", "Tensor ranks of one stage that offer different pools.")
_page("HC411", "rank-missing", "error", "A rank that took no part in the agreement.")
_page("HC412", "tensor-ranks-indivisible", "error", "Tensor ranks that the attention groups do not divide.",
      {"tp_size": 3, "attn_dp_size": 2}, {"tp_size": 4, "attn_dp_size": 2}, settings={"architecture": "LlamaForCausalLM"})  # fmt: skip
_page("HC413", "decode-context-ranks-indivisible", "error", "Attention ranks that decode context parallelism does "
"not divide.",
      covers=(47,), late="mem_cache/pool_host/base.py:HostKVCache.__init__")  # fmt: skip
_page("HC438", "group-missing", "error", "One stage of a pipeline is to be sized without a group to agree with the others.",
      {"pp_size": 2}, {"pp_size": 1})  # fmt: skip
_page(
    "HC439",
    "stage-count-differs",
    "error",
    "Pools of another number of stages than --pp-size.",
    {"pp_size": 3},
    {"pp_size": 4},
)
_page("HC416", "state-indivisible", "error", "Heads of the linear layers that the tensor ranks do not divide.",
      late="configs/mamba_utils.py:Mamba2StateShape.create")  # fmt: skip
_page("HC414", "layer-partition-wrong", "error", "SGLANG_PP_LAYER_PARTITION with another number of stages or layers.",
      late="distributed/utils.py:get_pp_indices")  # fmt: skip
_page("HC415", "model-refuses-stages", "error", "A model class whose forward takes no tensors from another stage: "
"SGLang says so after "
      "the weights are loaded. Source: SGLang 0.5.23, model_executor/model_runner.py.", {"pp_size": 2}, {}, covers=(80,),
      settings={"architecture": "Qwen3NextForCausalLM"}, late="model_executor/model_runner.py:load_model")  # fmt: skip
_page("HC417", "sparse-decode-context", "error", "Sparse attention with HiCache under decode context parallelism."
,
      covers=(45,))  # fmt: skip
_page("HC418", "stage-without-sliding-layers", "error", "A pipeline stage that owns no sliding-window layer "
"asserts alone while device "
      "pools are sized, and the others wait.", covers=(54, "H3"), late="model_executor/pool_configurator.py:__init__")  # fmt: skip
_page("HC419", "stage-without-full-attention", "error", "A pipeline stage that owns no full-attention layer: with "
"pages above 1 its "
      "device pool asserts, and its prefix tree is another one than that of its peers.", covers=(29, 81),
      late="mem_cache/allocator/swa.py:PureSWATokenToKVPoolAllocator")  # fmt: skip
_page("HC420", "only-sliding-layers", "error", "A model of sliding-window layers alone gets a prefix tree without "
"a host tier: no host pool "
      "is built, and the scheduler's first step with HiCache raises. Source: SGLang 0.5.23, mem_cache/registry.py; "
      "read, not run.",
      covers=(29, 81), late="managers/scheduler.py:_process_hicache_events")  # fmt: skip
_page("HC450", "unknown-mode", "error", "A mode of the plugin that there is not.")
_page("HC451", "size-can-not-be-enforced", "error", "A set-up in which the plugin cannot hold the engine to a size.")
_page("HC453", "pools-not-readable", "error", "Device pools of the running engine that the plugin does not know.")
_page(
    "HC454",
    "stage-builds-no-host-pool",
    "error",
    "A stage of the running engine that builds no host pool while others do.",
)
_page(
    "HC455",
    "host-pools-differ-from-plan",
    "error",
    "Host pools of the running engine that came out other than planned.",
)
_page("HC456", "no-ratio-for-plan", "error", "A plan that no ratio makes SGLang's constructors build.")

# --- models -------------------------------------------------------------------------------------------------------

_page("HC600", "model-not-given", "error", "A plan needs a model or its pools.")
_page(
    "HC601",
    "architecture-unknown",
    "error",
    "A model class that SGLang 0.5.23 does not have, or a family that is not known here.",
    late="model_loader/utils.py:resolve_transformers_arch",
)
_page("HC602", "model-key-missing", "error", "A key of config.json that sizing needs and that is not there.")
_page("HC603", "model-key-wrong", "error", "A key of config.json with an impossible value.")
_page("HC604", "gpu-unknown", "error", "A GPU that --gpu does not know.")
_page("HC605", "kv-type-without-host-pool", "error", "A KV type whose rows no host pool keeps.", covers=(56,),
      late="mem_cache/pool_host/mha.py:__init__")  # fmt: skip
_page("HC606", "mxfp8-needs-blackwell", "error", "mxfp8 rows on a GPU before Blackwell.", covers=(57,))
_page("HC607", "sparse-kv-type", "error", "Sparse attention with another KV type than bfloat16 and fp8_e4m3.")
_page("HC608", "mxfp8-host-pool", "error", "A page, layout or draft that the host pool of mxfp8 rows refuses.", covers=(58,),
      late="mem_cache/pool_host/mha_mxfp8.py:__init__")  # fmt: skip
_page("HC609", "model-unreadable", "error", "A config.json that can't be read.")
_page("HC610", "model-unknown", "error", "A name that is neither a file nor in the catalogue.")
_page("HC611", "sparse-rows-mixed", "error", "tilelang's raw fp8 rows of sparse attention beside rows with scales.")
_page("HC612", "sliding-pool-too-small", "error", "A sliding-window pool that does not hold one request.",
      late="model_executor/pool_configurator.py:validate_swa_pool_size")  # fmt: skip
_page("HC613", "release-too-old", "error", "A model class that the SGLang release does not have.")
_page("HC614", "host-pool-of-a-later-release", "error", "A model that the SGLang release serves, but has no host pools "
      "for: it stops when it builds them, or mirrors rows wrongly.", late="mem_cache/hybrid_cache/hybrid_pool_assembler.py:_select_strategy")  # fmt: skip
_page("HC619", "v4-kv-type", "error", "A KV type that DeepSeek V4's pools do not have.")
_page("HC620", "v4-layout-refused", "error", "A cache layout of DeepSeek V4 that there is not, or not on this GPU.",
      late="mem_cache/deepseek_v4_memory_pool.py:resolve_compressed_kv_layout")  # fmt: skip
_page("HC621", "v4-state-type", "error", "A type of DeepSeek V4's compression states that is not known.",
      late="model_executor/pool_configurator.py:_get_dsv4_compress_state_dtype_sizes")  # fmt: skip
_page("HC622", "v4-direct-window-pages", "error", "Window pages of DeepSeek V4 under its direct layout.")
_page("HC623", "v4-encoder-replay", "error", "DeepSeek V4 with an encoder's replay.")
_page("HC624", "v4-needs-gpu", "error", "DeepSeek V4 on a GPU that it does not run on.")
_page("HC625", "v4-draft-algorithm", "error", "A speculative algorithm that DeepSeek V4 does not have.")
_page("HC626", "v4-draft-tokens", "error", "Draft tokens beyond DeepSeek V4's ring.",
      late="model_executor/pool_configurator.py:_assert_ring_serves_draft_tokens")  # fmt: skip
_page("HC627", "v4-draft-not-bundled", "error", "A draft of DeepSeek V4 that its checkpoint does not have.")
_ASSEMBLER = "mem_cache/hybrid_cache/hybrid_pool_assembler.py:build_minimax_sparse_hicache_stack"
_DRAFTS = "mem_cache/hybrid_cache/host_pool_config.py:prepare_host_pool_config"
_page("HC650", "index-values-without-host-pool", "error", "Sparse layers of MiniMax M3 that keep index values: its host pools hold index "
      "keys alone. Source: SGLang 0.5.23, hybrid_pool_assembler.py.", covers=(50,), late=_ASSEMBLER)  # fmt: skip
_page("HC651", "sparse-blocks-refuse-stages", "error", "HiCache for MiniMax M3's sparse attention runs in one pipeline stage; SGLang finds "
      "out when the host pools are built. Source: SGLang 0.5.23, hybrid_pool_assembler.py.", {**ON, "pp_size": 2}, ON,
      covers=(49,), settings={"architecture": "MiniMaxM3SparseForCausalLM"}, late=_ASSEMBLER)  # fmt: skip
_page("HC652", "four-bit-needs-sparse-layers", "error", "MiniMax M3 as NVFP4 without sparse layers.", late=_ASSEMBLER)
_page("HC653", "four-bit-page", "error", "The NVFP4 pools of MiniMax M3.1 have pages of 128; QSA, sparse attention and DeepSeek V4 need "
      "certain pages as well, which SGLang writes itself. Source: SGLang 0.5.23, model_overrides/minimax_m3.py.", covers=(74,))  # fmt: skip
_page("HC654", "four-bit-kv-type", "error", "MiniMax M3 as NVFP4 with another KV type than fp8_e4m3.")
_page(
    "HC655",
    "stage-without-index-keys",
    "error",
    "A pipeline stage without a layer that owns compressed index keys.",
    late=_ASSEMBLER,
)
_page("HC656", "index-type-refused", "error", "A type of compressed index keys that there is not.")
_page("HC657", "draft-model-missing", "error", "A separate draft model that is not known, so that its pools are not.")
_page("HC658", "draft-model-unknown", "warning", "A draft model whose config.json is not at hand: its host pools are left "
      "out of the plan, which is then too small.")  # fmt: skip
_page("HC659", "draft-refuses-stages", "error", "A draft that does not run in pipeline stages.",
      late="model_executor/model_runner.py:load_model")  # fmt: skip
_page("HC660", "packed-draft-of-several-layers", "error", "A packed draft pool holds one layer. Source: SGLang 0.5.23, "
      "hybrid_cache/host_pool_config.py.", covers=(69,), late=_DRAFTS)  # fmt: skip
_page("HC661", "draft-index-without-target", "error", "A draft with index keys beside a target without.", late=_DRAFTS)
_page(
    "HC662",
    "packed-draft-differs",
    "error",
    "A packed draft whose rows differ from those of its target.",
    covers=(69,),
    late=_DRAFTS,
)
_page("HC663", "draft-longer-than-model", "error", "A sidecar draft with more layers than its target. Source: SGLang 0.5.23, "
      "hybrid_pool_assembler.py:build_full_draft_pools.", covers=(70,),
      late="mem_cache/hybrid_cache/hybrid_pool_assembler.py:build_full_draft_pools")  # fmt: skip
_page(
    "HC664",
    "sliding-draft-without-target",
    "error",
    "A draft with sliding windows beside a target without.",
    late=_DRAFTS,
)
_page(
    "HC665",
    "four-bit-needs-plain-draft",
    "error",
    "MiniMax M3 as NVFP4 with a draft that is not plain.",
    late=_ASSEMBLER,
)
_page("HC666", "inkling-needs-a-layer-a-step", "error", "Drafts of Inkling without --enable-multi-layer-eagle, which gives each "
      "step a layer with states of its own.", late=_DRAFTS)  # fmt: skip
_page("HC667", "offload-without-host-pool", "error", "Decode offload of a model whose pools it has no host pools for.",
      late="disaggregation/decode_kvcache_offload_manager.py:__init__")  # fmt: skip
_page(
    "HC668",
    "shared-arena-not-planned",
    "error",
    "Unified memory of a model with sliding windows shares one arena, which is not planned.",
)
_page("HC628", "v41-refuses", "error", "A set-up that DeepSeek V4.1 does not run in.")
_page(
    "HC452",
    "huge-pages-round-up",
    "warning",
    "Huge pages round each buffer of the running engine up, beyond what was planned.",
)
