"""What the plugin says before the engine loads anything: of its mode, and of a size that it is to enforce."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_SIZE: Mapping[str, Any] = {"enable_hierarchical_cache": True, "hicache_size": 100}


def _mode(mode: str, **environment: str) -> dict[str, Any]:
    return {"through": "the plugin", "environment": {"HICACHE_CONFIG": mode, **environment}}


ENGINES: Mapping[str, Mapping[str, Any]] = {
    "HC450": {"bad": _SIZE, "good": _SIZE, "settings": _mode("enforced"), "good_settings": _mode("enforce")},
    "HC451": {"bad": {**_SIZE, "use_ray": True}, "good": _SIZE, "settings": _mode("enforce")},
    "HC452": {
        "bad": _SIZE,
        "good": _SIZE,
        "settings": _mode("enforce", SGLANG_HUGEPAGE_SIZE="2MB"),
        "good_settings": _mode("enforce"),
    },
}
