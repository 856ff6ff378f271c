"""Pipeline stages, context parallelism, sharding and nodes, as far as host pools depend on them.

Source: SGLang 0.5.23, arg_groups/hicache_hook.py, kv_shard_hook.py, validation_hook.py, parallel_hook.py and
entrypoints/engine.py. Must not import anything above this floor.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..core.findings import Fix
from .case import Case
from .common import excluded, flag, hicache, mode
from .registry import Seen, rule

ON = {"enable_hierarchical_cache": True}
DCP = {"dcp_size": 2, "tp_size": 2}
SHARD = {"enable_kv_cache_sharding": True, "disaggregation_mode": "prefill"}


@rule(
    "HC430",
    "decode-context-parallelism",
    "error",
    since="0.5.17",
    covers=(42, 43, 44),
    why="With decode context parallelism HiCache keeps latent rows alone (MLA), takes no draft but DSPARK (none in "
    "0.5.17), and no buffer_only; a storage backend only since 0.5.23. Source: SGLang 0.5.23, "
    "arg_groups/hicache_hook.py:resolve_hicache_dcp_compatibility.",
    bad={**ON, **DCP, "speculative_algorithm": "NGRAM"},
    good={**ON, **DCP},
    settings={"architecture": "DeepseekV3ForCausalLM"},
)
def decode_context_parallelism(case: Case) -> Iterator[Seen]:
    """HiCache with decode context parallelism and what it refuses, all of it at once."""
    size = case.raw("dcp_size")
    if not hicache(case) or size <= 1:
        return
    width = flag(case, "dcp_size", size)
    storage = case.raw("hicache_storage_backend")
    if storage is not None and not case.release.at_least("0.5.23"):
        yield Seen(
            "hicache_storage_backend",
            f"{flag(case, 'hicache_storage_backend', storage)} is refused with {width} before 0.5.23",
            f"Take {flag(case, 'hicache_storage_backend')} out.",
            asked=storage,
        )
    elif storage is not None and case.raw("hicache_host_memory_mode") == "buffer_only":
        yield Seen(
            "hicache_host_memory_mode",
            f"{flag(case, 'hicache_host_memory_mode', 'buffer_only')} is refused with {width}",
            f"Write {flag(case, 'hicache_host_memory_mode', 'cache')}.",
            asked="buffer_only",
            fix=Fix({"hicache_host_memory_mode": "cache"}),
        )
    algorithm = str(case.raw("speculative_algorithm") or "").upper()
    if algorithm and (algorithm != "DSPARK" or not case.release.at_least("0.5.18")):
        yield excluded(
            case, "speculative_algorithm", "dcp_size", f"{algorithm} drafts have no host pool there", "Keep one."
        )
    for other in ("enable_lmcache", "enable_hisparse"):
        if case.raw(other):
            yield excluded(
                case, other, "dcp_size", "its host rows are not spread over the ranks", "Keep one of the two."
            )
    if case.traits is not None and not case.traits.latent:
        yield Seen(
            "dcp_size",
            f"HiCache with {width} keeps latent rows (MLA) alone; {case.traits.architecture} has keys and values",
            f"Write {flag(case, 'dcp_size', 1)}, or take HiCache out.",
            asked=size,
        )


@rule(
    "HC431",
    "context-parallelism-of-sparse-attention",
    "error",
    since="0.5.22",
    covers=(45,),
    why="Sparse attention (DSA) with decode context parallelism is refused with HiCache and HiSparse, on halves of a "
    "pair of servers, and with tree drafts. Source: SGLang 0.5.23, "
    "arg_groups/model_overrides/deepseek_v2.py:_dsa_dcp_overrides.",
    bad={**DCP, "disaggregation_mode": "prefill", "disaggregation_transfer_backend": "nixl"},
    good=DCP,
    needs=("model",),
    settings={"architecture": "DeepseekV32ForCausalLM"},
    said_by=("HC417",),
)
def context_parallelism_of_sparse_attention(case: Case) -> Iterator[Seen]:
    """DSA with decode context parallelism."""
    size = case.raw("dcp_size")
    if case.traits is None or not case.traits.sparse or size <= 1:
        return
    for name in ("enable_hierarchical_cache", "enable_hisparse"):
        if case.raw(name):
            yield excluded(
                case, name, "dcp_size", f"{case.traits.architecture} has sparse attention", "Keep one of the two."
            )
    if mode(case) != "null":
        yield Seen(
            "dcp_size",
            f"{flag(case, 'dcp_size', size)} with sparse attention is refused on half a pair of servers",
            f"Write {flag(case, 'dcp_size', 1)}.",
            asked=size,
        )


@rule(
    "HC432",
    "storage-under-context-parallelism",
    "error",
    since="0.5.23",
    covers=(46,),
    why="Under decode context parallelism a storage backend can be file or mooncake, with latent rows (and recurrent "
    "states) in one of the plain layouts; SGLang checks it when the backend is attached. Source: SGLang 0.5.23, "
    "managers/cache_controller.py:attach_storage_backend.",
    bad={**ON, **DCP, "hicache_storage_backend": "nixl"},
    good={**ON, **DCP, "hicache_storage_backend": "file"},
    settings={"architecture": "DeepseekV3ForCausalLM"},
    late="managers/cache_controller.py:attach_storage_backend",
)
def storage_under_context_parallelism(case: Case) -> Iterator[Seen]:
    """Another backend than file or mooncake."""
    backend = case.raw("hicache_storage_backend")
    if hicache(case) and case.raw("dcp_size") > 1 and backend not in (None, "file", "mooncake"):
        yield Seen(
            "hicache_storage_backend",
            f"{flag(case, 'hicache_storage_backend', backend)} cannot store pages that are spread over "
            f"{flag(case, 'dcp_size', case.raw('dcp_size'))} ranks",
            "Write file or mooncake.",
            asked=backend,
        )


@rule(
    "HC433",
    "page-not-divisible-by-context-ranks",
    "error",
    since="0.5.17",
    covers=(47,),
    why="A host page is spread over the context-parallel ranks, so it must divide; SGLang widens its own page by the "
    "ranks, and asserts it when the pool is built. Source: SGLang 0.5.23, "
    "mem_cache/pool_host/base.py:HostKVCache.__init__.",
    bad={**DCP, "tp_size": 3},
    good=DCP,
    late="mem_cache/pool_host/base.py:HostKVCache.__init__",
    said_by=("HC413",),
)
def page_not_divisible_by_context_ranks(case: Case) -> Iterator[Seen]:
    """Ranks that do not divide the tensor ranks that they are part of."""
    size, ranks = case.raw("dcp_size"), case.raw("tp_size")
    if size > 1 and ranks % size:
        yield Seen(
            "dcp_size",
            f"{flag(case, 'dcp_size', size)} does not divide the {ranks} tensor ranks it is part of",
            f"Write a divisor of {flag(case, 'tp_size', ranks)}.",
            asked=size,
        )


@rule(
    "HC434",
    "sharding-excludes",
    "error",
    since="0.5.22",
    covers=(48,),
    why="Page sharding is for a prefill server and SGLang's own prefix tree; with HiCache it takes no storage "
    "backend (0.5.22 no HiCache at all), and for sparse attention mode cache, kernel copies and layer_first or "
    "page_first. Source: SGLang 0.5.23, arg_groups/kv_shard_hook.py.",
    bad={**ON, **SHARD, "hicache_storage_backend": "file"},
    good={"disaggregation_mode": "prefill"},
)
def sharding_excludes(case: Case) -> Iterator[Seen]:
    """Page sharding with what it refuses."""
    name = "enable_kv_cache_sharding"
    if not case.raw(name):
        return
    if mode(case) != "prefill":
        yield Seen(name, f"{flag(case, name)} is for a prefill server", f"Take {flag(case, name)} out.")
    for other in (
        "radix_cache_backend", "enable_unified_cache_external_linker", "enable_streaming_session",
        "enable_session_radix_cache", "enable_flexkv", "enable_unified_memory", "enable_lmcache", "enable_hisparse",
        "enable_two_batch_overlap",
    ):  # fmt: skip
        if case.raw(other):
            yield excluded(case, other, name, "it needs whole pages on each rank", f"Take {flag(case, other)} out.")
    if case.raw("dcp_size") > 1:
        yield excluded(case, "dcp_size", name, "both widen a page", f"Take {flag(case, name)} out.")
    if hicache(case) and not case.release.at_least("0.5.23"):
        yield excluded(case, "enable_hierarchical_cache", name, "host pools hold whole pages", "Keep one of the two.")
    elif hicache(case) and case.raw("hicache_storage_backend") is not None:
        yield excluded(case, "hicache_storage_backend", name, "it stores whole pages of a rank", "Keep one of the two.")
    if hicache(case) and case.traits is not None and case.traits.sparse:
        plain = case.resolved("hicache_mem_layout") in ("layer_first", "page_first")
        if (
            case.resolved("hicache_host_memory_mode") != "cache"
            or case.resolved("hicache_io_backend") != "kernel"
            or not plain
        ):
            yield Seen(
                name,
                f"{flag(case, name)} with sparse attention needs mode cache, kernel copies and layer_first or "
                "page_first",
                "Write --hicache-host-memory-mode cache --hicache-io-backend kernel --hicache-mem-layout page_first.",
            )


@rule(
    "HC435",
    "ranks-and-nodes",
    "error",
    covers=(51,),
    why="Ranks (tensor times stages) must be the same on every node, and replicas (--dp-size) live on one node. "
    "Source: SGLang 0.5.23, arg_groups/validation_hook.py:check_server_args.",
    bad={"tp_size": 2, "nnodes": 3},
    good={"tp_size": 4, "nnodes": 2},
)
def ranks_and_nodes(case: Case) -> Iterator[Seen]:
    """Ranks that nodes cannot share evenly, or replicas over nodes."""
    nodes, ranks = case.raw("nnodes"), case.raw("tp_size") * case.resolved("pp_size")
    if nodes > 1 and ranks % nodes:
        product = f"tensor {case.raw('tp_size')} x stages {case.resolved('pp_size')}"
        yield Seen(
            "nnodes",
            f"{ranks} rank{'' if ranks == 1 else 's'} ({product}) can't be shared evenly by {nodes} nodes",
            "Choose sizes whose product the nodes divide.",
            asked=nodes,
        )
    replicas, groups = case.resolved("dp_size"), case.resolved("attn_dp_size") or 1
    if replicas > 1 and groups > 1 and case.release.at_least("0.5.22"):
        yield Seen(
            "dp_size",
            f"{flag(case, 'dp_size', replicas)} replicas and {groups} attention groups do not go together",
            "Write one of the two.",
            asked=replicas,
        )
    if nodes > 1 and replicas > 1 and not case.raw("enable_dp_attention"):
        yield Seen(
            "dp_size",
            f"{flag(case, 'dp_size', replicas)} replicas can't be spread over {nodes} nodes",
            "Start one server a replica, or use attention data parallelism.",
            asked=replicas,
        )


@rule(
    "HC436",
    "overlap-turned-off-by-stages",
    "note",
    covers=("51b",),
    why="Pipeline stages and the overlap schedule exclude each other; SGLang turns the overlap off. Source: SGLang "
    "0.5.23, arg_groups/overrides.py:_pipeline_parallel_overlap_disable.",
    bad={"pp_size": 2},
    good={"pp_size": 2, "disable_overlap_schedule": True},
)
def overlap_turned_off_by_stages(case: Case) -> Iterator[Seen]:
    """Stages with the overlap schedule on."""
    for rewrite in case.resolution.of("disable_overlap_schedule"):
        yield Seen(
            "pp_size",
            f"{flag(case, 'pp_size', case.raw('pp_size'))} turns the overlap schedule off",
            f"Write {flag(case, 'disable_overlap_schedule')} to say so.",
            asked=rewrite.asked,
            gets=True,
            fix=Fix({"disable_overlap_schedule": True}, safe=True),
        )


@rule(
    "HC437",
    "stages-do-not-fit-on-nodes",
    "error",
    covers=("51c",),
    why="Each node starts pp_size // nnodes stages, at least one. Where neither divides the other some stage is "
    "started by no node: the check of the product passes, and the other ranks wait. Source: SGLang 0.5.23, "
    "entrypoints/engine.py:_calculate_rank_ranges; read, not run.",
    bad={"tp_size": 2, "pp_size": 3, "nnodes": 2},
    good={"tp_size": 2, "pp_size": 4, "nnodes": 2},
    late="entrypoints/engine.py:_calculate_rank_ranges",
)
def stages_do_not_fit_on_nodes(case: Case) -> Iterator[Seen]:
    """Stages and nodes where neither divides the other."""
    stages, nodes = case.resolved("pp_size"), case.raw("nnodes")
    if stages > 1 and nodes > 1 and stages % nodes and nodes % stages:
        fewer = max(size for size in range(1, stages) if size % nodes == 0 or nodes % size == 0)
        yield Seen(
            "pp_size",
            f"{flag(case, 'pp_size', stages)} on {nodes} nodes: a stage is started by no node, and the others wait "
            "for ever",
            "Write a number of stages that the nodes divide, or that divides them, such as "
            f"{flag(case, 'pp_size', fewer)}.",
            asked=stages,
        )
