"""What earlier releases of SGLang keep elsewhere, name otherwise or do not have: the one place that knows.

harness.py and pools.py are written for the layout of the newest release. Importing this module puts an older wheel's
own modules, classes and builders under the newer names, in this process only: no size is computed here. What a release
does not have at all refuses to be built (`Absent`), so that no figure can come from a stand-in.

older_trees.py has the ways to the host pools, which differ too.

Runs in the environment of tools/oracle.py. The newest release passes through untouched.
"""

from __future__ import annotations

import contextlib
import importlib
import inspect
import sys
from enum import Enum
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import psutil
import sglang
import torch

RELEASE = tuple(int(part) for part in sglang.__version__.split(".post")[0].split(".")[:3])
ROOT = Path(sglang.__file__).parent / "srt"
PLENTY = 1 << 62


def since(text: str) -> bool:
    """Whether this wheel is that release or newer."""
    return tuple(map(int, text.split("."))) <= RELEASE


class Absent:
    """A class that this release does not have."""

    def __init__(self, *args: Any, **options: Any) -> None:
        raise NotImplementedError(f"SGLang {sglang.__version__} does not have it")


# -- modules and names ----------------------------------------------------------------------------------------------


def _module(*names: str) -> ModuleType | None:
    """The first of these modules below sglang.srt that the wheel has."""
    for name in names:
        if (ROOT / f"{name.replace('.', '/')}.py").is_file() or (
            ROOT / name.replace(".", "/") / "__init__.py"
        ).is_file():
            return importlib.import_module(f"sglang.srt.{name}")
    return None


def _put(name: str, module: ModuleType) -> ModuleType:
    """Make a module importable under its newer name, packages above it included."""
    full = f"sglang.srt.{name}"
    parent, _, last = full.rpartition(".")
    if parent not in sys.modules:
        try:
            importlib.import_module(parent)
        except ModuleNotFoundError:
            package = _put(parent.removeprefix("sglang.srt."), ModuleType(parent))
            package.__path__ = []
    sys.modules[full] = module
    setattr(sys.modules[parent], last, module)
    return module


def _made(name: str, **members: Any) -> ModuleType:
    module = ModuleType(f"sglang.srt.{name}")
    vars(module).update(members)
    return module


def _accept(kind: type, **defaults: Any) -> None:
    """Let a constructor be given options that came later, as long as they ask for what it does anyway."""
    real = kind.__init__
    known = inspect.signature(real).parameters
    added = {name: default for name, default in defaults.items() if name not in known}

    def construct(self: Any, *args: Any, **options: Any) -> None:
        for name, default in added.items():
            given = options.pop(name, default)
            if default is not Ellipsis and given != default:
                raise NotImplementedError(f"SGLang {sglang.__version__} does not have {name}={given}")
        for name in ("enable_kvcache_transpose",):
            if name in known:
                options.setdefault(name, False)
        real(self, *args, **options)

    if added or "enable_kvcache_transpose" in known:
        construct.__wrapped__ = real
        kind.__init__ = construct


def _alias_pools() -> None:
    pools = importlib.import_module("sglang.srt.mem_cache.memory_pool")
    swa = importlib.import_module("sglang.srt.mem_cache.swa_memory_pool")
    if not hasattr(pools, "DSATokenToKVPool"):
        pools.DSATokenToKVPool = pools.NSATokenToKVPool
    if not hasattr(pools, "MHATokenToKVPoolMXFP8"):
        pools.MHATokenToKVPoolMXFP8 = Absent
    # before index keys were shared every layer owned some, so the flag changes nothing that is built
    _accept(pools.DSATokenToKVPool, index_kpool=1, skip_topk_layers=...)
    _accept(pools.HybridLinearKVPool, use_dsa=False, index_head_dim=None, index_kpool=1, kv_cache_dim=None)
    _accept(swa.SWAKVPool)
    shapes = importlib.import_module("sglang.srt.configs.mamba_utils").Mamba2StateShape
    if not hasattr(shapes, "create_full_rank"):
        shapes.create_full_rank = Absent


def _alias_parameters() -> None:
    """Drafts that a tree's parameters name in later releases: kept as attributes, where the builders look for them."""
    kind = importlib.import_module("sglang.srt.mem_cache.cache_init_params").CacheInitParams
    real, later = kind.__init__, ("mtp_draft_device_pools", "mtp_draft_mamba_pools", "sidecar_draft_device_pools")
    known = inspect.signature(real).parameters

    def construct(self: Any, *args: Any, **options: Any) -> None:
        for name in later:
            if name not in known:
                setattr(self, name, options.pop(name, ()))
        real(self, *args, **options)

    kind.__init__ = construct


def _alias_modules() -> None:
    if _module("mem_cache.storage.mmap") is None:
        older = _module("mem_cache.mmap_allocator")
        _put("mem_cache.storage.mmap", older or _made("mem_cache.storage.mmap", alloc_mmap=_refuse_negative))
    if _module("mem_cache.pool_host.base") is None:
        _put("mem_cache.pool_host.base", importlib.import_module("sglang.srt.mem_cache.memory_pool_host"))
    importlib.import_module("sglang.srt.mem_cache.memory_pool_host")
    if not since("0.5.21"):
        host = type("MHATokenToKVPoolMXFP8Host", (Absent,), {"_init_write_back_staging_buffers": None})
        _put("mem_cache.pool_host.mha_mxfp8", _made("mem_cache.pool_host.mha_mxfp8", MHATokenToKVPoolMXFP8Host=host))
    if not since("0.5.17"):
        parts = _module("mem_cache.unified_cache_components.tree_component")
        parts = parts or _made("components", ComponentType=Enum("ComponentType", ["FULL", "SWA", "MAMBA"]))
        _put("mem_cache.unified_cache.component_type", parts)
    platforms = _module("platforms") or _put("platforms", _made("platforms"))
    if not hasattr(platforms, "CudaSRTPlatform"):
        platforms.CudaSRTPlatform = object  # before 0.5.14 nothing that sizes asks a platform object
    assembler = _module("mem_cache.hybrid_cache.hybrid_pool_assembler")
    if assembler is None:
        controller = importlib.import_module("sglang.srt.mem_cache.hybrid_cache.hybrid_cache_controller")
        assembler = _put(
            "mem_cache.hybrid_cache.hybrid_pool_assembler",
            _made("assembler", HybridCacheController=controller.HybridCacheController),
        )
    if not hasattr(assembler, "_split_hicache_size"):
        assembler._split_hicache_size = Absent  # nothing splits, so nothing calls it


def _refuse_negative(dims: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
    return torch.empty(dims, dtype=dtype)


# -- settings of the process, and the host's memory -----------------------------------------------------------------


class Settings:
    """The arguments that the builders read, with those laid over that a case changes."""

    def __init__(self, real: Any) -> None:
        self._real = real
        self._changed: dict[str, Any] = {}

    def __getattr__(self, name: str) -> Any:
        changed = self.__dict__["_changed"]
        return changed[name] if name in changed else getattr(self.__dict__["_real"], name)


SETTINGS: list[Settings] = []


def _alias_context() -> None:
    """publish(), override() and the parallel sizes of runtime_context, as far as a release has them."""
    context = _module("runtime_context") or _put("runtime_context", _made("runtime_context"))
    if not since("0.5.19"):
        context.override_platform = _no_platform
    if not hasattr(context, "get_memory"):
        context.get_memory = lambda: SETTINGS[-1]
    if not hasattr(context, "reset_context"):
        context.reset_context = lambda: None
    real_publish = getattr(context, "publish", None)
    real_context = getattr(context, "get_context", None)

    def publish(server_args: Any, **options: Any) -> None:
        SETTINGS.append(Settings(server_args))
        if real_publish is not None:
            real_publish(server_args, **options)
        else:
            arguments = importlib.import_module("sglang.srt.server_args")
            arguments.set_global_server_args_for_scheduler(server_args)

    class Context:
        """The real context, whose override reaches the arguments too, which older builders read."""

        def override(self, source: str, **fields: Any) -> None:
            SETTINGS[-1]._changed.update(fields)
            if real_publish is not None:
                real_context().override(source, **fields)

        def __getattr__(self, name: str) -> Any:
            return getattr(real_context(), name)

    if not since("0.5.21"):
        context.publish = publish
        context.get_context = Context
    if not hasattr(context, "get_parallel"):
        context.get_parallel = None  # pools.py asks it with --dcp-size alone, which came later
    elif not since("0.5.21"):
        sizes = context.ParallelContext
        sizes.attn_dcp_size = sizes.dcp_size = property(lambda self: SETTINGS[-1].dcp_size)
        sizes.dcp_enabled = property(lambda self: SETTINGS[-1].dcp_size > 1)
        sizes.attn_dcp_rank = sizes.dcp_rank = property(lambda self: 0)
        sizes.override_permanently = lambda self, **widths: None


class _NoPlatform:
    def __enter__(self) -> None:
        raise NotImplementedError(f"SGLang {sglang.__version__} cannot be told another GPU")

    def __exit__(self, *told: Any) -> None:
        """Nothing was changed."""


def _no_platform(**facts: Any) -> _NoPlatform:
    return _NoPlatform()


def _give_memory() -> None:
    """Older pools ask the host for what is free, each by itself."""
    base = importlib.import_module("sglang.srt.mem_cache.pool_host.base")
    if not hasattr(base, "host_memory_budget_scope"):
        base.host_memory_budget_scope = contextlib.nullcontext

    memory = SimpleNamespace(available=PLENTY, total=PLENTY, free=PLENTY)
    psutil.virtual_memory = lambda: memory


if not since("0.5.23"):
    _alias_context()
    _alias_modules()
    _give_memory()
    _alias_parameters()
    _alias_pools()
