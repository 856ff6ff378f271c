"""What the drivers share: the real SGLang on a CPU, with its memory taken away and its figures kept.

Importing this module imports SGLang and replaces, for this process only: the platform (a CUDA one), the allocator of
host buffers (meta tensors that are counted), the minimum over pipeline stages (recorded, or replayed), the cache
controller (no threads), the free lists of host pools and a Triton warm-up. Everything that decides a size is the
wheel's own. Runs in the environment of tools/oracle.py, never in the project's own. Past 400 lines, since all that is
replaced has to be in place before SGLang is imported, in one order.
"""

# ruff: noqa: E402 - warnings and the platform have to be set before SGLang is imported

from __future__ import annotations

import logging
import math
import mmap
import sys
import traceback
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, ClassVar

warnings.filterwarnings("ignore")
logging.disable(logging.WARNING)

import older_trees  # noqa: F401 - it gives an older wheel the layout of the newest one
import torch
from torch.overrides import TorchFunctionMode

GPU = {
    "sm80": {"is_cuda": True, "device_capability": (8, 0), "device_sm": 80},
    "sm90": {"is_cuda": True, "is_sm90": True, "device_capability": (9, 0), "device_sm": 90},
    "sm100": {
        "is_cuda": True,
        "is_sm100": True,
        "is_blackwell": True,
        "device_capability": (10, 0),
        "device_sm": 100,
    },
    "sm120": {
        "is_cuda": True,
        "is_sm120": True,
        "is_blackwell": True,
        "device_capability": (12, 0),
        "device_sm": 120,
    },
}
_capability: list[int] = [9, 0]
torch.cuda.get_device_capability = lambda *args, **kwargs: tuple(_capability)

import sglang
from sglang.srt import platforms

platforms._current_platform = platforms.CudaSRTPlatform()

from sglang.srt.mem_cache import memory_pool
from sglang.srt.mem_cache.hybrid_cache import hybrid_pool_assembler as assembler
from sglang.srt.mem_cache.pool_host import base as host_base
from sglang.srt.mem_cache.storage.mmap import alloc_mmap
from sglang.srt.runtime_context import get_memory, override_platform

SGLANG_ROOT = str(Path(sglang.__file__).parent / "srt")
UNLIMITED = 1 << 60
PAGE_POOLS = {
    "LogicalHostPool",
    "DeepSeekV4PagedHostPool",
    "DeepSeekV4StateHostPool",
    "QSAIndexerPoolHost",
}  # sized by whole pages
#: Host pools that may hold no bytes: one has none by itself, states without layers are a tensor that maps nothing.
MAPS_NOTHING = {"LogicalHostPool", "MambaPoolHost"}
SMALL_TENSOR = 1 << 14  # elements; larger device buffers become untouched address space


def versions() -> dict[str, str]:
    """What a recording's header says about the environment."""
    return {"sglang": sglang.__version__, "torch": torch.__version__.split("+")[0]}


@contextmanager
def gpu(name: str) -> Iterator[None]:
    """Resolve as on that GPU."""
    _capability[:] = GPU[name]["device_capability"]
    with override_platform(**GPU[name]):
        yield


def _loaded_sglang() -> list[ModuleType]:
    return [module for name, module in list(sys.modules.items()) if name.startswith("sglang") and module]


def _replace_everywhere(name: str, value: Any) -> None:
    """Rebind a name in every loaded module of SGLang that imported it."""
    for module in _loaded_sglang():
        if name in vars(module):
            setattr(module, name, value)


# -- host buffers: counted, not allocated --------------------------------------------------------------------------

_host_buffers: dict[int, torch.Tensor] = {}


def _allocate_host(dims, dtype, device, pin_memory, allocator, registration_granularity_bytes=None):  # noqa: PLR0917
    if math.prod(dims) < 0:
        return alloc_mmap(dims, dtype)  # which refuses in its own words
    buffer = torch.empty(dims, dtype=dtype, device="meta")
    _host_buffers[id(buffer)] = buffer
    return buffer


class _EveryDevice(dict):
    """SGLang looks its allocator up by device: the same one for all."""

    def __getitem__(self, key):
        return _allocate_host

    __missing__ = __getitem__

    def get(self, key, default=None):
        return _allocate_host


_replace_everywhere("ALLOC_MEMORY_FUNCS", _EveryDevice())


def allocated_bytes(host_pool: Any) -> int:
    """The sizes of the buffers that this pool really requested, added up."""
    found: dict[int, int] = {}

    def walk(value: Any, depth: int) -> None:
        if isinstance(value, torch.Tensor):
            if id(value) in _host_buffers:
                found[id(value)] = value.numel() * value.element_size()
        elif isinstance(value, (list, tuple)) and depth < 3:
            for item in value:
                walk(item, depth + 1)
        elif isinstance(value, dict) and depth < 3:
            for item in value.values():
                walk(item, depth + 1)

    for value in vars(host_pool).values():
        walk(value, 0)
    return sum(found.values())


def _forget_free_lists(self) -> None:
    """Ten bytes a slot of bookkeeping, which no size depends on."""
    self.free_slots = torch.empty(0, dtype=torch.int64)
    self.release_slots = []
    self.num_release_slots = 0


host_base.HostKVCache.clear = _forget_free_lists


# -- device buffers: address space that nobody touches --------------------------------------------------------------


class UntouchedDevice(TorchFunctionMode):
    """Makes large torch.zeros and torch.empty on the CPU take address space instead of memory, and zeroing it nothing."""

    _reserved: ClassVar[set[int]] = set()

    def __torch_function__(self, function, types, args=(), kwargs=None):
        kwargs = dict(kwargs or {})
        if function is torch.Tensor.zero_ and args[0].untyped_storage().data_ptr() in self._reserved:
            return args[0]  # it is zero as it comes
        if str(kwargs.get("device")) == "cuda":
            kwargs["device"] = "cpu"  # some states of earlier releases name the GPU themselves
        if function in (torch.zeros, torch.empty) and str(kwargs.get("device", "cpu")) == "cpu":
            size = kwargs.get("size", args[0] if args else ())
            if isinstance(size, int):
                size = args
            elements = math.prod(int(length) for length in size)
            if elements > SMALL_TENSOR:
                return self.reserve(tuple(int(length) for length in size), kwargs.get("dtype"), elements)
        return function(*args, **kwargs)

    @classmethod
    def reserve(cls, size: tuple[int, ...], dtype: torch.dtype | None, elements: int) -> torch.Tensor:
        dtype = dtype or torch.get_default_dtype()
        flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | getattr(mmap, "MAP_NORESERVE", 0x4000)
        memory = mmap.mmap(-1, elements * dtype.itemsize, flags=flags)
        made = torch.frombuffer(memory, dtype=torch.uint8).view(dtype).view(size)
        cls._reserved.add(made.untyped_storage().data_ptr())
        return made


for _class in list(vars(memory_pool).values()):
    if isinstance(_class, type) and "_init_kv_copy_and_warmup" in vars(_class):
        _class._init_kv_copy_and_warmup = lambda self, *args, **kwargs: None


# -- the minimum over the stages, and the split ---------------------------------------------------------------------


@dataclass
class Collectives:
    """The calls of sync_fixed_hicache_size of one stage: alone (each keeps its own) or with given minima."""

    minima: list[int] | None = None
    pools: list[str] = field(default_factory=list)
    raw: list[int] = field(default_factory=list)
    sizes: list[float] = field(default_factory=list)


_stage = Collectives()
_splits: list[dict[str, Any]] = []


def _pool_in(frame) -> str:
    """The name of the pool whose constructor asks for the minimum."""
    pool = frame.f_locals.get("self")
    label = "mamba" if type(pool).__name__ == "MambaPoolHost" else getattr(pool, "pool_label", "kv")
    return {"full": "kv"}.get(label, label)


def _sync(size: int, host_size: float) -> int:
    place = len(_stage.raw)
    _stage.pools.append(_pool_in(sys._getframe(1)))
    _stage.raw.append(size)
    _stage.sizes.append(float(host_size))
    return size if _stage.minima is None else _stage.minima[place]


_replace_everywhere("sync_fixed_hicache_size", _sync)


def pool_weight(pool: Any) -> int:
    """The bytes that SGLang's split counts for a device pool (hybrid_pool_assembler._split_hicache_size)."""
    size = getattr(pool, "host_capacity_bytes", None)
    if size is None:
        size = pool.get_kv_size_bytes()
    return int(sum(size)) if isinstance(size, tuple) else int(size)


_real_split = assembler._split_hicache_size


def _split(size, pools):
    shares = _real_split(size, pools)
    floats = [float(share) for share in shares]
    _splits.append({"size": float(size), "weights": [pool_weight(pool) for pool in pools], "shares": floats})
    return shares


assembler._split_hicache_size = _split


class Controller(assembler.HybridCacheController):
    """The cache controller without its threads: it keeps what the sidecar builders read."""

    def __init__(self, allocator, host_pool_group, page_size, *args, **kwargs):
        self.mem_pool_host = host_pool_group
        self.page_size = page_size
        self.transfer_layer_id_max = kwargs.get("transfer_layer_id_max")
        self.layer_done_counter = None


assembler.HybridCacheController = Controller


# -- one stage ------------------------------------------------------------------------------------------------------


def build_host_pools(kvcache: Any, params: Any, components: set, server_args: Any) -> dict[str, Any]:
    """The host pools of one stage by SGLang's own strategy, and its collectives.

    `kvcache` is the device pool object, `params` whatever SGLang's CacheInitParams offers to the strategy. Returns
    the pools in construction order, as README.md describes them.
    """
    _host_buffers.clear()
    _splits.clear()
    cache = SimpleNamespace(evict_host=None, components=dict.fromkeys(components), page_size=params.page_size)
    strategy = assembler._select_strategy(kvcache, components)
    with host_base.host_memory_budget_scope(UNLIMITED):
        built = strategy.build(
            cache=cache, kvcache=kvcache, params=params, server_args=server_args, load_cache_event=None
        )
        sidecars = list(built.sidecars)
        entries = list(built.host_pool_group.entry_map.values())
        drafts = getattr(params, "sidecar_draft_device_pools", ())
        if drafts:
            tree = SimpleNamespace(cache_controller=built.cache_controller)
            specs, more = assembler.build_hicache_draft_sidecars(draft_device_pools=drafts, tree_cache=tree)
            sidecars += specs
            entries += more
    follows = {spec.pool_name: spec.indices_from_pool.value for spec in sidecars}
    pools = [_describe(entry, follows.get(entry.name)) for entry in entries]
    _add_shares(pools)
    built_stage = {"pools": pools}
    if not _splits_are_told(pools):
        built_stage["splits"] = list(_splits)
    return built_stage


def _splits_are_told(pools: list[dict[str, Any]]) -> bool:
    """Whether the pools' own shares and weights say all that the split did (nothing was carved out of a share)."""
    independent = [pool for pool in pools if pool["follows"] is None]
    shares = [pool["share_gb"] or 0.0 for pool in independent]
    weights = [pool["device_bytes"] for pool in independent]
    return all(split["shares"] == shares and split["weights"] == weights for split in _splits)


def _describe(entry: Any, follows: str | None) -> dict[str, Any]:
    host, device = entry.host_pool, entry.device_pool
    page_size, pages = getattr(host, "page_size", None), getattr(host, "page_num", None)
    bytes_per_slot = getattr(host, "size_per_token", None)
    described = {
        "name": entry.name.value,
        "follows": follows,
        "page_size": page_size,
        "bytes_per_slot": bytes_per_slot,
        "device_slots": getattr(device, "size", None),
        "device_bytes": None if follows else _weight_or_none(device),
        "slots": getattr(host, "size", None),
        "pages": pages,
        "bytes": allocated_bytes(host),
        "host_pool": type(host).__name__,
        "layers": getattr(host, "layer_num", getattr(host, "num_mamba_layers", None)),
    }
    if type(host).__name__ in PAGE_POOLS:
        pages = described["pages"] = getattr(host, "num_host_pages", host.size // host.page_size)
        bytes_per_slot = described["bytes_per_slot"] = described["device_slots"] = None
        described["page_bytes"] = described["bytes"] // pages if pages else None
    page_bytes = bytes_per_slot * page_size if bytes_per_slot and page_size else 0
    described["extra_pages"] = described["bytes"] // page_bytes - pages if page_bytes else 0
    return described


def _weight_or_none(pool: Any) -> int | None:
    return pool_weight(pool) if hasattr(pool, "get_kv_size_bytes") else None


def _add_shares(pools: list[dict[str, Any]]) -> None:
    """Lay what the constructors were given beside the pools that took part in a minimum."""
    asked = {name: (raw, size) for name, raw, size in zip(_stage.pools, _stage.raw, _stage.sizes, strict=True)}
    for pool in pools:
        raw, size = asked.get(pool["name"], (None, None)) if pool["follows"] is None else (None, None)
        pool["raw_slots"], pool["share_gb"] = raw, size


def over_stages(build_stage: Any, count: int) -> dict[str, Any]:
    """All stages alone, then together with the minima that their collectives come to.

    `build_stage(stage)` builds one stage with build_host_pools and returns a dict with `pools` and anything else that
    is kept. Returns `stages`, `collectives`, `agreed` and `hazards` (README.md). Raises what SGLang raises, with the
    attribute `oracle_stage`.
    """
    own = [_one(build_stage, stage, None) for stage in range(count)]
    orders = [list(stage["collectives"].pools) for stage in own]
    hazards: list[dict[str, Any]] = []
    agreed, final = None, own
    if len({len(order) for order in orders}) > 1:
        hazards.append({"kind": "count"})
    elif count > 1 and orders[0]:
        if any(order != orders[0] for order in orders):
            hazards.append({"kind": "order"})
        agreed = [min(stage["collectives"].raw[place] for stage in own) for place in range(len(orders[0]))]
        final = [_one(build_stage, stage, agreed) for stage in range(count)]
    for number, stage in enumerate(final):
        for pool in stage["pools"]:
            if pool["follows"] is None and pool["bytes"] == 0 and pool["host_pool"] not in MAPS_NOTHING:
                hazards.append({"kind": "zero_bytes", "stage": number, "pool": pool["name"]})
    stages = []
    for alone, together in zip(own, final, strict=True):
        pools = [
            {**pool, "own_slots": before["slots"]}
            for before, pool in zip(alone["pools"], together["pools"], strict=True)
        ]
        stages.append({**{key: value for key, value in alone.items() if key != "collectives"}, "pools": pools})
    return {"stages": stages, "collectives": orders, "agreed": agreed, "hazards": hazards}


def _one(build_stage: Any, stage: int, minima: list[int] | None) -> dict[str, Any]:
    global _stage  # noqa: PLW0603 - the one place where a stage begins
    _stage = Collectives(minima)
    try:
        return {**build_stage(stage), "collectives": _stage}
    except BaseException as error:
        error.oracle_stage = stage
        raise


def refusal(error: BaseException) -> dict[str, Any]:
    """An error of SGLang's as a recording keeps it: type, first words, and its places in the wheel."""
    frames = traceback.extract_tb(error.__traceback__)
    where = [
        f"{frame.filename[len(SGLANG_ROOT) + 1 :]}:{frame.name}"
        for frame in frames
        if frame.filename.startswith(SGLANG_ROOT)
    ]
    return {
        "type": type(error).__name__,
        "message": str(error)[:600],
        "where": getattr(error, "oracle_where", where[-3:]),
        "stage": getattr(error, "oracle_stage", None),
    }


__all__ = ["allocated_bytes", "build_host_pools", "get_memory", "gpu", "over_stages", "refusal", "versions"]
