"""Exact host sizes for SGLang's HiCache: a total budget or a ratio in, concrete slots and bytes for every pool out.

    from hicache_config import DevicePool, ServerArgs, resolve

Names load when they are used: importing the package loads neither torch, sglang, pydantic, click nor jsonschema.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .app.checking import validate as validate
    from .app.planning import plan as plan
    from .app.resolving import resolve as resolve
    from .arguments import ServerArgs as ServerArgs
    from .core.capacity import DeviceRatio as DeviceRatio
    from .core.capacity import HostFraction as HostFraction
    from .core.capacity import TotalSize as TotalSize
    from .core.findings import ConfigurationError as ConfigurationError
    from .core.findings import Finding as Finding
    from .core.plan import Plan as Plan
    from .core.pools import DevicePool as DevicePool
    from .core.sizes import HostPoolSize as HostPoolSize

#: Public names and the module that each comes from.
_HOMES = {
    "ConfigurationError": "core.findings",
    "DevicePool": "core.pools",
    "DeviceRatio": "core.capacity",
    "Finding": "core.findings",
    "HostFraction": "core.capacity",
    "HostPoolSize": "core.plan",
    "Plan": "core.plan",
    "ServerArgs": "arguments",
    "TotalSize": "core.capacity",
    "plan": "app.planning",
    "resolve": "app.resolving",
    "validate": "app.checking",
}

__all__ = ["__version__", *_HOMES]  # noqa: PLE0604, the names load lazily


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name == "__version__":
        from importlib.metadata import version

        return version("hicache-config")
    if name in _HOMES:
        value = getattr(import_module(f".{_HOMES[name]}", __name__), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
