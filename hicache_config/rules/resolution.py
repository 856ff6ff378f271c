"""What SGLang makes of the HiCache arguments and their neighbours before anything is built, as data.

`resolve_arguments` follows the order of SGLang's own (0.5.23, arg_groups/pipeline.py:run_resolution_pipeline) and,
where a release differs, that release's wheel. It refuses nothing: what is wrong is for the rules to say.
Must not import anything above this floor.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ..arguments.hicache import HiCacheArgs, in_force
from ..arguments.releases import table
from ..core.capacity import Capacity
from ..core.releases import Release

if TYPE_CHECKING:
    from ..arguments import ServerArgs
    from ..geometry.pipeline import Pipeline
    from .traits import Traits

HICACHE_FIELDS = tuple(HiCacheArgs.model_fields)


@dataclass(frozen=True)
class Rewrite:
    """One value that SGLang writes over, or fills in: `rules` are the numbers of our notes that say so.

    `asked` is the value before (the default where nothing was given), `gets` the value after.
    """

    argument: str
    asked: Any
    gets: Any
    why: str
    rules: tuple[int | str, ...] = ()


@dataclass(frozen=True)
class Resolution:
    """The arguments after SGLang's own rewriting. `rewrites` are in the order in which SGLang makes them.

    `host_pools` tells whether SGLang looks at the HiCache arguments at all: HiCache is on, a decode server offloads, or
    its retraction may use a host pool.
    """

    args: ServerArgs
    release: Release
    values: Mapping[str, Any] = field(default_factory=dict)
    rewrites: tuple[Rewrite, ...] = ()
    host_pools: bool = False

    def value(self, argument: str) -> Any:
        """The value in the end: of an argument that nobody gave its default, and of None what it stands for."""
        value = self.values.get(argument)
        if argument not in self.values:
            value = raw_value(self.args, argument, self.release.name)
        known = table(self.release.name).get(argument)
        return known.fallback if value is None and known is not None else value

    def of(self, argument: str) -> tuple[Rewrite, ...]:
        """The rewrites of one argument, in order."""
        return tuple(each for each in self.rewrites if each.argument == argument)

    def capacity(self) -> Capacity:
        """What decides the sizes in the end: a size, a ratio, or a share of free memory (0.5.21+) up to a ratio.

        A decode server settles its ratio only when its pools are built: 2.0 with HiCache.
        """
        ratio = self.value("hicache_ratio")
        fraction = self.value("hicache_host_memory_fraction") if self.release.has_fraction else None
        return in_force(self.value("hicache_size"), 2.0 if ratio is None else ratio, fraction)

    def final(self) -> dict[str, Any]:
        """What was given and every HiCache argument of the release, with their values in the end, sorted by name."""
        known = table(self.release.name)
        names = {*self.args.written, *self.args.others, *(name for name in HICACHE_FIELDS if name in known)}
        return {name: self.value(name) for name in sorted(names)}


def raw_value(args: ServerArgs, argument: str, release: str) -> Any:
    """The value as given, else the release's default; also for SGLang arguments that sizing does not read."""
    if argument in type(args).model_fields:
        return getattr(args, argument)
    if argument in args.others:
        return args.others[argument]
    known = table(release).get(argument)
    return None if known is None else known.default


def resolve_arguments(
    args: ServerArgs,
    release: Release | str,
    gpu: str = "sm90",
    pipeline: Pipeline | None = None,
    traits: Traits | None = None,
) -> Resolution:
    """The values of the HiCache arguments and their neighbours after SGLang's resolution.

    `pipeline` gives what the model and the GPU decide (page size, KV type, sliding-window memory), `traits` what rules
    need of the model; without them those values stay as asked. `gpu` is the one that `pipeline` was asked for.
    """
    del gpu  # decides nothing here that `pipeline` does not already say
    release = Release.of(release) if isinstance(release, str) else release
    work = _Work(args, release)
    _attention_groups(work)
    _ratio_and_fraction(work)
    _disaggregation(work)
    _ascend(work, traits)
    _model(work, pipeline, traits)
    _deterministic_inference(work)
    host_pools = _has_host_pools(work)
    if host_pools:
        _host_pools(work)
    _other_rewrites(work)
    return Resolution(args, release, dict(work.values), tuple(work.rewrites), host_pools)


class _Work:
    """The values on their way, each change noted."""

    def __init__(self, args: ServerArgs, release: Release) -> None:
        self.args, self.release = args, release
        self.values: dict[str, Any] = {}
        self.rewrites: list[Rewrite] = []

    def __getitem__(self, argument: str) -> Any:
        if argument in self.values:
            return self.values[argument]
        return raw_value(self.args, argument, self.release.name)

    def since(self, release: str) -> bool:
        return self.release.at_least(release)

    def set(self, argument: str, value: Any, why: str, *rules: int | str) -> None:
        """Write a value; nothing is noted where it already is the value, or where the release has no such argument."""
        before = self[argument]
        if argument not in table(self.release.name) or (before == value and type(before) is type(value)):
            return
        self.values[argument] = value
        self.rewrites.append(Rewrite(argument, before, value, why, rules))


# --- in SGLang's order --------------------------------------------------------------------------------------------


def _attention_groups(work: _Work) -> None:
    """`--dp-size N --enable-dp-attention`, an older spelling since 0.5.22, the only one before (parallel_hook.py)."""
    if not work["enable_dp_attention"]:
        return
    if not work.since("0.5.22"):
        if work["dp_size"] == 1:
            work.set("enable_dp_attention", False, "--dp-size is 1")
        return
    if work["attn_dp_size"] == 1:
        why = "--enable-dp-attention is the older spelling of --attn-dp-size"
        work.set("attn_dp_size", work["dp_size"], why)
        work.set("dp_size", 1, why)
    work.set("enable_dp_attention", False, "--attn-dp-size says it")


def _ratio_and_fraction(work: _Work) -> None:
    """The ratio's default and when free memory is not looked at (hicache_hook.py:handle_hicache_ratio_default)."""
    asked = work["hicache_ratio"]
    if asked is None and work["disaggregation_mode"] != "decode":
        buffer_only = work["hicache_host_memory_mode"] == "buffer_only" and work.since("0.5.19")
        work.set("hicache_ratio", 1.2 if buffer_only else 2.0, "the default", 2)
    if work["hicache_size"] > 0:
        work.set("hicache_host_memory_fraction", None, "--hicache-size is given", 3)
    elif asked is not None and work.since("0.5.18"):
        work.set("hicache_host_memory_fraction", None, "--hicache-ratio is given", 3)


def _disaggregation(work: _Work) -> None:
    """The prefix cache of a decode server and its host pool (pd_disaggregation_hook.py)."""
    mode = work["disaggregation_mode"]
    if (
        work["disaggregation_decode_allocation_policy"] == "prefill_complete"
        and mode == "prefill"
        and work["optimistic_prefill_attempts"] == 0
        and work.since("0.5.22")
    ):
        work.set("optimistic_prefill_attempts", 1, "prefill_complete needs optimistic prefill", 32)
    if receives_on_host(work["disaggregation_decode_host_receive_threshold"], work.release):
        why = "receiving KV into host memory needs the host pool"
        work.set("disaggregation_decode_retraction_backup", "host_pool", why, 62)
    if mode == "decode":
        keeps = work["disaggregation_decode_enable_radix_cache"] and work.since("0.5.11")
        flag = "--disaggregation-decode-enable-radix-cache"
        why = f"{flag} is set" if keeps else f"a decode server has no prefix cache without {flag}"
        work.set("disable_radix_cache", not keeps, why, 13)


def receives_on_host(threshold: float, release: Release) -> bool:
    """Whether a decode server receives KV into host memory: below 1, in 0.5.21 above 0 (it was turned round)."""
    if not release.at_least("0.5.21"):
        return False
    return threshold < 1 if release.at_least("0.5.22") else threshold > 0


def _ascend(work: _Work, traits: Traits | None) -> None:
    """What an Ascend NPU gets whatever is asked (hardware_backend/npu/utils.py:set_default_server_args)."""
    if str(work["device"] or "").split(":")[0] != "npu":
        return
    if work["page_size"] is None:
        work.set("page_size", 128, "the default on an NPU", "page size")
    if not _has_host_pools(work):
        return
    work.set("hicache_io_backend", "kernel_ascend", "an NPU has its own copies", 40)
    if traits is not None and traits.latent:
        work.set("hicache_mem_layout", "page_first_kv_split", "latent attention on an NPU stores its parts apart", 40)
    elif traits is not None:
        work.set("hicache_mem_layout", "page_first_direct", "the layout of an NPU's copies", 40)


#: Which of our notes say that SGLang settles an argument because of the model or the GPU.
_SETTLED_BY: Mapping[str, int | str] = {
    "page_size": "page size",
    "kv_cache_dtype": "kv type",
    "swa_full_tokens_ratio": 27,
    "disable_hybrid_swa_memory": 28,
}


def _model(work: _Work, pipeline: Pipeline | None, traits: Traits | None) -> None:
    """What the model and the GPU settle (model_overrides/, overrides.py)."""
    if traits is not None and traits.lightning:
        work.set("disable_radix_cache", True, f"{traits.architecture} has no prefix cache", 26)
    kept = traits is not None and not (traits.linear and work["disable_radix_cache"])  # Inkling sets it in any case
    if traits is not None and traits.keeps_states and kept and work.since("0.5.20"):
        work.set("mamba_radix_cache_strategy", traits.strategy, f"what auto is for {traits.architecture}")
    known = {**(traits.settled if traits is not None else {}), **(pipeline.settled if pipeline is not None else {})}
    for settled in known.values():
        if settled.argument in table(work.release.name):
            number: int | str | None = _SETTLED_BY.get(settled.argument)
            rules: tuple[int | str, ...] = () if number is None else (number,)
            if number == 28 and traits is not None and traits.is_step:
                rules = (27,)
            work.set(settled.argument, settled.gets, settled.why, *rules)


#: Kernels of deterministic inference with which SGLang keeps the prefix cache.
_DETERMINISTIC_WITH_PREFIX_CACHE = ("ascend", "fa3", "fa4", "triton")


def _deterministic_inference(work: _Work) -> None:
    """The prefix cache goes where the kernels cannot follow (attention_hook.py:handle_deterministic_inference)."""
    kernels = work["attention_backend"]
    asked = work["enable_deterministic_inference"] or work["rl_on_policy_target"]
    if asked and kernels is not None and kernels not in _DETERMINISTIC_WITH_PREFIX_CACHE:
        why = f"deterministic inference with {kernels} kernels has no prefix cache"
        work.set("disable_radix_cache", True, why, "deterministic")


def _has_host_pools(work: _Work) -> bool:
    """Whether the HiCache arguments are looked at at all (hicache_hook.py:handle_hicache)."""
    if work["enable_unified_cache_external_linker"]:
        return False
    backup = work["disaggregation_decode_retraction_backup"]
    return bool(
        work["enable_hierarchical_cache"]
        or work["disaggregation_decode_enable_offload_kvcache"]
        or (work["disaggregation_mode"] == "decode" and backup in (None, "host_pool") and work.since("0.5.18"))
    )


def _host_pools(work: _Work) -> None:
    """Layout, copies and policy of host pools (hicache_hook.py)."""
    buffer_only = work["hicache_host_memory_mode"] == "buffer_only"
    if buffer_only and work["hicache_write_policy"] == "write_back" and work.since("0.5.22"):
        work.set("hicache_write_policy", "write_through", "buffer_only keeps nothing on the host to write back", 18)
    if receives_on_host(work["disaggregation_decode_host_receive_threshold"], work.release):
        work.set("hicache_mem_layout", "layer_first", "received KV comes layer by layer", 39)
    _layout_and_copies(work)
    _layout_of_storage(work)
    if work["enable_unified_memory"] and work["hicache_mem_layout"] == "page_first_direct" and work.since("0.5.23"):
        why = "direct copies cannot read the strided rows of unified memory"
        work.set("hicache_mem_layout", "page_first", why, 38)
        work.set("hicache_io_backend", "kernel", why, 38)
    # Without an explicit decode backend those releases change the attention backend instead.
    fa3 = work["decode_attention_backend"] == "fa3" and not work.since("0.5.14")
    if fa3 and work["hicache_io_backend"] == "kernel":
        work.set("hicache_io_backend", "direct", "fa3 decoding and kernel copies disturb each other", "fa3")
        _layout_and_copies(work)


def _layout_and_copies(work: _Work) -> None:
    if work["hicache_mem_layout"] == "page_first_direct" and work["hicache_io_backend"] == "kernel":
        work.set("hicache_io_backend", "direct", "kernel copies cannot move the layout page_first_direct", 34)
    if work["hicache_mem_layout"] == "page_first" and work["hicache_io_backend"] == "direct":
        why = "direct copies cannot move the layout page_first"
        work.set("hicache_mem_layout", "page_first_direct", why, 35)


def _layout_of_storage(work: _Work) -> None:
    backend = work["hicache_storage_backend"]
    if backend == "mooncake" and work["dcp_size"] > 1 and work.since("0.5.23"):
        return
    if backend not in ("mooncake", "npu_memcache") or work["hicache_mem_layout"] != "layer_first":
        return
    layout = {"direct": "page_first_direct", "kernel": "page_first"}.get(work["hicache_io_backend"], "layer_first")
    work.set("hicache_mem_layout", layout, f"{backend} cannot store the layout layer_first", 36)


def _other_rewrites(work: _Work) -> None:
    """Rewrites of neighbours that come after the HiCache arguments."""
    if work["pp_size"] > 1:
        work.set("disable_overlap_schedule", True, "pipeline stages and overlap exclude each other", "51b")
    if work["enable_unified_memory"]:
        work.set("enable_page_major_kv_layout", True, "unified memory stores pages as wholes")
    if work["dllm_algorithm"] is not None:
        _diffusion(work)
    _optimistic_prefill(work)


def _diffusion(work: _Work) -> None:
    """A diffusion model has no prefix cache tiers (dllm_hook.py)."""
    if not work["disable_radix_cache"]:
        for name in ("enable_hierarchical_cache", "enable_lmcache", "enable_flexkv"):
            work.set(name, False, "a diffusion model runs without it", 24)
    work.set("pp_size", 1, "a diffusion model runs in one stage", 24)
    if work["disaggregation_mode"] != "null":
        work.set("disaggregation_mode", "null", "a diffusion model is served by one server", 24)


def _optimistic_prefill(work: _Work) -> None:
    """Optimistic prefill is turned off where a tier cannot follow it (serving_hook.py:handle_other_validations)."""
    if work["disaggregation_mode"] != "prefill" or not (work["optimistic_prefill_attempts"] or 0) > 0:
        return
    if work["pp_size"] > 1:
        work.set("optimistic_prefill_attempts", 0, "optimistic prefill does not run with pipeline stages", 31)
    elif work["enable_hierarchical_cache"] and not (work.since("0.5.21") and _follows_optimistic_prefill(work)):
        work.set("optimistic_prefill_attempts", 0, "this HiCache set-up does not support optimistic prefill", 31)


def _follows_optimistic_prefill(work: _Work) -> bool:
    policy: str = work["hicache_write_policy"]
    if work["hicache_storage_backend"] is None:
        return policy in ("write_back", "write_through")
    return bool(policy == "write_through" and work["hicache_host_memory_mode"] == "buffer_only")
