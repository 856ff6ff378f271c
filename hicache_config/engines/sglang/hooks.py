"""The functions that SGLang calls, and the proof that it will call them.

SGLang logs a hook that it could not apply and starts all the same, so after loading each hook is looked for in the
function that stands at its name now. Imports sglang only inside functions.
"""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Callable, Iterator
from typing import Any

from .versions import BUILD, CREATE, TARGETS, Target

#: What the plugin reads of SGLang's own records (0.5.20 to 0.5.23): class path, then field names.
RECORDS = {
    "sglang.srt.mem_cache.registry.TreeCacheBuildContext": (
        "params", "enable_hierarchical_cache", "is_hybrid_swa", "is_hybrid_ssm", "full_tokens_per_layer",
        "disable_radix_cache",
    ),
    "sglang.srt.mem_cache.cache_init_params.CacheInitParams": (
        "token_to_kv_pool_allocator", "req_to_token_pool", "page_size", "mtp_draft_device_pools",
    ),
}  # fmt: skip


def around_build_kv_cache(original: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Wraps build_kv_cache: keeps the draft plan for `around_create_tree_cache` and verifies what was built."""
    from .building import build

    return build(original, args, kwargs)


def around_create_tree_cache(original: Callable[..., Any], ctx: Any, *args: Any, **kwargs: Any) -> Any:
    """Wraps create_tree_cache: plans, agrees with all ranks and, under enforce, sets the ratio."""
    from .building import create

    return create(original, ctx, args, kwargs)


HOOKS: dict[Target, Callable[..., Any]] = {BUILD: around_build_kv_cache, CREATE: around_create_tree_cache}

_registered = False


def builds_pools_here() -> bool:
    """Whether this process builds pools, or has loaded what does: then hooking its functions imports nothing more.

    The launcher's hooks are registered when its arguments are resolved, and a detokenizer needs none.
    """
    if BUILD.module in sys.modules:
        return True
    frame = inspect.currentframe()
    while frame is not None:
        if frame.f_globals.get("__name__") == "sglang.srt.managers.scheduler":
            return True
        frame = frame.f_back
    return False


def register_build_hooks() -> None:
    """Hand the hooks to SGLang's registry, once a process. SGLang applies them after all plugins are loaded."""
    global _registered  # noqa: PLW0603 - loading a plugin twice must not hook twice
    if _registered:
        return
    from sglang.srt.plugins.hook_registry import HookRegistry, HookType

    for target, hook in HOOKS.items():
        HookRegistry.register(target.path, hook, HookType.AROUND)
    _registered = True


def apply_build_hooks() -> None:
    """Register and apply now: for a launcher, whose plugins were loaded before the hooked modules were needed."""
    from sglang.srt.plugins.hook_registry import HookRegistry

    register_build_hooks()
    HookRegistry.apply_hooks()


def hook_problems() -> list[str]:
    """Why the hooks would not work in this process, each in words; empty when all of them are in place."""
    found = []
    for target in TARGETS:
        found += _target_problems(target, HOOKS[target])
    for path, names in RECORDS.items():
        found += _record_problems(path, names)
    return found


def _target_problems(target: Target, hook: Callable[..., Any]) -> list[str]:
    function, why = _resolve(target.path)
    if function is None:
        return [why]
    if not any(hook in _closure(layer) for layer in _layers(function)):
        return [f"{target.path} is not hooked"]
    innermost = list(_layers(function))[-1]
    names = list(inspect.signature(innermost).parameters)
    missing = sorted(target.parameters - set(names))
    if missing:
        return [f"{target.path} has no parameter {', '.join(missing)}"]
    if tuple(names[: len(target.positional)]) != target.positional:
        return [f"{target.path} takes {', '.join(names)} instead of {', '.join(target.positional)} first"]
    return []


def _record_problems(path: str, names: tuple[str, ...]) -> list[str]:
    record, why = _resolve(path)
    if record is None:
        return [why]
    known = getattr(record, "__dataclass_fields__", {})
    missing = [name for name in names if name not in known]
    return [f"{path} has no field {', '.join(missing)}"] if missing else []


def _resolve(path: str) -> tuple[Any, str]:
    """What stands at a dotted name now, or None and why not."""
    module, _, name = path.rpartition(".")
    try:
        found = getattr(importlib.import_module(module), name, None)
    except Exception as error:
        return None, f"{module} can't be imported ({type(error).__name__}: {error})"
    return found, "" if found is not None else f"{path} does not exist"


def _layers(function: Any) -> Iterator[Any]:
    """The function and all that it wraps, outermost first."""
    seen: set[int] = set()
    while function is not None and id(function) not in seen:
        seen.add(id(function))
        yield function
        function = getattr(function, "__wrapped__", None)


def _closure(function: Any) -> list[Any]:
    """What a wrapper holds."""
    cells = getattr(function, "__closure__", None) or ()
    held = []
    for cell in cells:
        try:
            held.append(cell.cell_contents)
        except ValueError:  # a cell that is not filled yet
            continue
    return held
