"""The ways by which earlier releases of SGLang come to host pools, under the names of the newest one.

From 0.5.19 on the unified tree asks a stack strategy. Before, a model with one attention pool had HiRadixCache (for
sparse attention until 0.5.15), a linear hybrid HiMambaRadixCache until 0.5.12, and the others a strategy (0.5.12:
attach_hybrid_pool_to_unified_cache). The trees' own constructors run here, without the radix tree itself and without
threads. Drafts go through the function that the release registers them with.

Importing this module puts them in place, after older_layout.py. Runs in the environment of tools/oracle.py.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import logging
import sys
import textwrap
from types import SimpleNamespace
from typing import Any

import torch
from older_layout import ROOT, SETTINGS, since

# -- the trees that came before ---------------------------------------------------------------------------------------


class Tree:
    """What a builder asks of the tree that it attaches host pools to."""

    def __init__(self, params: Any, components: set) -> None:
        self.page_size = params.page_size
        self.components = {component: SimpleNamespace() for component in components}
        self.sidecars: list[Any] = []
        self.evict_host = self.evict = None

    def register_sidecar_pool(self, spec: Any, entry: Any = None) -> None:
        self.sidecars.append(spec)


class Name(str):
    """A pool's name, as SGLang's PoolName is one."""

    @property
    def value(self) -> str:
        return str(self)


def _entry(name: str, host: Any, device: Any) -> Any:
    """A pool that is not in a group."""
    return SimpleNamespace(name=Name(name), host_pool=host, device_pool=device)


def _followed(sidecars: list[Any], entries: list[Any]) -> list[Any]:
    """The sidecars of a stack, those of index keys added where a release does not tell them apart from its pools."""
    told = {spec.pool_name: spec for spec in sidecars}
    for entry in entries:
        if entry.name.value == "indexer" and entry.name not in told:
            kv = next(other.name for other in entries if other.name.value == "kv")
            told[entry.name] = SimpleNamespace(pool_name=entry.name, indices_from_pool=kv)
    return list(told.values())


def _params(params: Any, kvcache: Any) -> Any:
    """The parameters of a tree with what earlier releases ask for; of a whole model they are all there."""
    if not isinstance(params.req_to_token_pool, SimpleNamespace):
        return params
    states, nothing = params.req_to_token_pool.mamba_pool, params.req_to_token_pool.mamba_allocator
    taken = set(getattr(kvcache, "full_attention_layer_id_mapping", ())) | set(getattr(kvcache, "layers_mapping", ()))
    free = (layer for layer in range(10_000) if layer not in taken)
    layers = {} if states is None else {next(free): place for place in range(states.num_mamba_layers)}
    pools = importlib.import_module("sglang.srt.mem_cache.memory_pool")
    requests = object.__new__(pools.HybridReqToTokenPool)
    vars(requests).update(mamba_pool=states, mamba_map=layers, mamba_allocator=nothing)
    allocator = SimpleNamespace(get_kvcache=lambda: kvcache, swa_attn_allocator=nothing)
    ranks = {"pp_rank": 0, "pp_size": 1, "attn_cp_rank": 0, "attn_cp_size": 1, "enable_metrics": False}
    given = {**vars(params), "req_to_token_pool": requests, "token_to_kv_pool_allocator": allocator}
    return SimpleNamespace(**{**ranks, **given})


def _tree_without_nodes(tree: type, **replaced: Any) -> type:
    """A radix tree whose own constructor runs as far as the host pools go: no tree, no hook at exit, one rank."""
    module = sys.modules[tree.__module__]
    base = tree.__mro__[1]
    base.__init__ = lambda self, params=None, **options: None
    module.atexit = SimpleNamespace(register=lambda function: None)
    torch.distributed.get_world_size = lambda group=None: 1
    for name, value in replaced.items():
        setattr(module, name, value)
    return tree


class _OwnTree:
    """The way of a release that does not ask a strategy: its tree's constructor builds the host pools."""

    def __init__(self, module: str, name: str) -> None:
        self.tree = getattr(importlib.import_module(f"sglang.srt.mem_cache.{module}"), name)

    def build(self, *, cache, kvcache, params, server_args, load_cache_event) -> Any:
        assembler = importlib.import_module("sglang.srt.mem_cache.hybrid_cache.hybrid_pool_assembler")
        controller = assembler.HybridCacheController  # harness.py has put its own there
        tree = _tree_without_nodes(self.tree, HiCacheController=controller, HybridCacheController=controller)(
            params=params, server_args=server_args
        )
        host = getattr(tree, "host_pool_group", None) or tree.token_to_kv_pool_host
        entries = list(host.entry_map.values()) if hasattr(host, "entry_map") else [_entry("kv", host, kvcache)]
        group = SimpleNamespace(entry_map={entry.name.value: entry for entry in entries})
        return SimpleNamespace(sidecars=[], host_pool_group=group, cache_controller=tree.cache_controller)


class _Attached:
    """0.5.12: one function attaches every stack to the unified tree (it needs SGLANG_ENABLE_UNIFIED_RADIX_TREE)."""

    def build(self, *, cache, kvcache, params, server_args, load_cache_event) -> Any:
        assembler = importlib.import_module("sglang.srt.mem_cache.hybrid_cache.hybrid_pool_assembler")
        tree = Tree(params, set(cache.components))
        assembler.attach_hybrid_pool_to_unified_cache(tree, params, server_args, load_cache_event=None)
        return SimpleNamespace(
            sidecars=tree.sidecars, host_pool_group=tree.host_pool_group, cache_controller=tree.cache_controller
        )


class _Way:
    """A strategy, given what this release wants to know beside."""

    def __init__(self, strategy: Any) -> None:
        self.strategy = strategy

    def build(self, *, cache, kvcache, params, server_args, load_cache_event) -> Any:
        _label(kvcache)
        built = self.strategy.build(
            cache=cache,
            kvcache=kvcache,
            params=_params(params, kvcache),
            server_args=server_args if since("0.5.21") else SETTINGS[-1],
            load_cache_event=load_cache_event,
        )
        entries = list(built.host_pool_group.entry_map.values())
        return SimpleNamespace(
            sidecars=_followed(list(getattr(built, "sidecars", ())), entries),
            host_pool_group=built.host_pool_group,
            cache_controller=built.cache_controller,
        )


_labels: dict[int, str] = {}


def _label(kvcache: Any) -> None:
    """Which pool a host pool mirrors, for releases whose host pools do not know their own name."""
    _labels.clear()
    if hasattr(kvcache, "swa_kv_pool"):
        _labels[id(kvcache.swa_kv_pool)] = "swa"


def _name_host_pools() -> None:
    base = importlib.import_module("sglang.srt.mem_cache.pool_host.base").HostKVCache
    real = base.__init__
    if "pool_label" in inspect.signature(real).parameters:
        return

    def construct(self: Any, device_pool: Any, *args: Any, **options: Any) -> None:
        self.pool_label = _labels.get(id(device_pool), "kv")
        real(self, device_pool, *args, **options)

    base.__init__ = construct


def _alias_strategies() -> None:
    if since("0.5.23"):
        return
    assembler = importlib.import_module("sglang.srt.mem_cache.hybrid_cache.hybrid_pool_assembler")
    real = getattr(assembler, "_select_strategy", None)
    pools = importlib.import_module("sglang.srt.mem_cache.memory_pool")

    def select(kvcache: Any, components: set) -> _Way:
        names = {component.name for component in components}
        hybrid = names != {"FULL"}
        sparse = isinstance(kvcache, pools.DSATokenToKVPool)
        if since("0.5.19") or (since("0.5.13") and hybrid) or (since("0.5.16") and sparse):
            strategy = real(kvcache, components)
            return type(type(strategy).__name__, (_Way,), {})(strategy)
        if "MAMBA" in names:
            return _Way(_OwnTree("hi_mamba_radix_cache", "HiMambaRadixCache"))
        if hybrid and since("0.5.12"):
            return _Way(_Attached())
        return _Way(_OwnTree("hiradix_cache", "HiRadixCache"))

    assembler._select_strategy = select


# -- drafts -----------------------------------------------------------------------------------------------------------


def _cut_out(path: str, name: str) -> Any:
    """A method of a module that cannot be imported here, as a function of what it calls self."""
    source = (ROOT / path).read_text("utf-8")
    lines = source.splitlines()
    node = next(node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.FunctionDef) and node.name == name)
    space: dict[str, Any] = {"logger": logging.getLogger(path)}
    exec(textwrap.dedent("\n".join(lines[node.lineno - 1 : node.end_lineno])), space)
    return space[name]


def _alias_drafts() -> None:
    """build_hicache_draft_sidecars of earlier releases: what each registers a draft with."""
    if since("0.5.19"):
        return
    assembler = importlib.import_module("sglang.srt.mem_cache.hybrid_cache.hybrid_pool_assembler")
    real = getattr(assembler, "build_hicache_draft_sidecars", None)

    def build(*, draft_device_pools: tuple[Any, ...], tree_cache: Any) -> tuple[list[Any], list[Any]]:
        controller = tree_cache.cache_controller
        args, pool = SETTINGS[-1], draft_device_pools[0]
        kept: list[Any] = []
        controller.set_draft_kv_pool = lambda device, host: kept.append(_entry("draft", host, device))
        if since("0.5.18") and hasattr(controller.mem_pool_host, "entry_map"):
            return real(draft_device_pools=draft_device_pools, tree_cache=tree_cache, server_args=args)
        if since("0.5.18"):
            builder = importlib.import_module("sglang.srt.mem_cache.kv_cache_builder")
            builder._register_legacy_hicache_draft(
                tree_cache=tree_cache, draft_pool=pool, server_args=args, page_size=controller.page_size
            )
        elif since("0.5.13"):
            runner = SimpleNamespace(token_to_kv_pool=pool, model_config=None)
            worker = SimpleNamespace(draft_worker=SimpleNamespace(draft_runner=runner))
            args._changed["enable_multi_layer_eagle"] = False
            importlib.import_module("sglang.srt.mem_cache.kv_cache_builder").maybe_register_hicache_draft(
                tree_cache=tree_cache,
                draft_worker=worker,
                spec_algorithm=SimpleNamespace(is_ngram=lambda: False, supports_spec_v2=lambda: True),
                server_args=args,
                enable_hierarchical_cache=True,
                page_size=controller.page_size,
            )
        elif since("0.5.11"):
            scheduler = SimpleNamespace(
                enable_hierarchical_cache=True,
                _get_draft_kv_pool=lambda: (pool, None),
                tree_cache=tree_cache,
                page_size=controller.page_size,
                server_args=args,
            )
            _cut_out("managers/scheduler.py", "_maybe_register_hicache_draft")(scheduler)
        return [SimpleNamespace(pool_name=entry.name, indices_from_pool=Name("kv")) for entry in kept], kept

    assembler.build_hicache_draft_sidecars = build


if not since("0.5.23"):
    _name_host_pools()
    _alias_strategies()
    _alias_drafts()
