"""A startup plugin of SGLang that lets a server with HiCache start where there is no GPU.

Found by SGLang through the entry point in the folder beside it, when this folder is on PYTHONPATH (server.py puts it
there). Host pools are allocated without being registered with a GPU driver; when they are there, their sizes are
printed as one line of JSON that begins with `ORACLE_POOLS`. It changes no size.
"""

from __future__ import annotations

import json
import sys
from typing import Any

TARGET = "sglang.srt.mem_cache.hybrid_cache.hybrid_pool_assembler.attach_hybrid_pool_to_unified_cache"
MARK = "ORACLE_POOLS "


def _allocate(dims, dtype, device, pin_memory, allocator, **options):
    return allocator.allocate(dims, dtype=dtype, device=device)


def _unpin() -> None:
    for name, module in list(sys.modules.items()):
        if name.startswith("sglang") and "ALLOC_MEMORY_FUNCS" in vars(module):
            module.ALLOC_MEMORY_FUNCS["cpu"] = _allocate


def _sizes(group: Any) -> list[dict[str, Any]]:
    return [
        {
            "name": name.value,
            "slots": entry.host_pool.size,
            "pages": entry.host_pool.page_num,
            "page_size": entry.host_pool.page_size,
            "bytes_per_slot": entry.host_pool.size_per_token,
        }
        for name, entry in group.entry_map.items()
    ]


def _around(original: Any, *args: Any, **kwargs: Any) -> Any:
    from sglang.srt.runtime_context import get_parallel

    _unpin()
    result = original(*args, **kwargs)
    cache = args[0] if args else kwargs["cache"]
    group = getattr(cache, "host_pool_group", None) or cache.cache_controller.mem_pool_host
    print(MARK + json.dumps({"pp_rank": get_parallel().pp_rank, "pools": _sizes(group)}), flush=True)
    return result


def activate() -> None:
    """Called by SGLang in every process of the server."""
    from sglang.srt.plugins.hook_registry import HookRegistry, HookType

    HookRegistry.register(TARGET, _around, HookType.AROUND)
