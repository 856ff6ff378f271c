"""The plugin that SGLang loads in each of its processes (entry point group `sglang.srt.plugins`).

`activate` registers hooks and does no more: it is called in the launcher, in every scheduler and in the detokenizer,
possibly more than once, so it imports neither torch nor the rest of the project. Imports sglang only inside functions.
"""

from __future__ import annotations

import logging
import os

from .modes import VARIABLE, Mode, ModeError, read_mode

#: A child of SGLang's own logger, so that its level and its rank prefix hold.
logger = logging.getLogger("sglang.hicache_config")

_active = False


def activate() -> None:
    """Called by SGLang's load_plugins(). Never raises for a bad HICACHE_CONFIG: the arguments are refused instead."""
    global _active  # noqa: PLW0603 - loading twice must not hook twice
    if _active:
        return
    try:
        mode: Mode | None = read_mode(os.environ)
    except ModeError:
        mode = None  # load_plugins would swallow it; the resolution hook refuses the start
    if mode is Mode.OFF:
        return
    try:
        from sglang.srt.arg_groups.resolution_hooks import register_resolution_hook
    except ImportError:
        logger.warning(
            "hicache-config: this SGLang has no resolution hooks (they came with 0.5.20), so nothing is checked and "
            "no size is changed; run `hicache-config validate` on the command instead"
        )
        return
    from .hooks import builds_pools_here, register_build_hooks
    from .starting import on_arguments
    from .versions import RESOLUTION_STEP, installed_sglang, is_enforced

    register_resolution_hook(RESOLUTION_STEP)(on_arguments)
    if mode is not None and is_enforced(installed_sglang()) and builds_pools_here():
        register_build_hooks()
    _active = True


def is_active() -> bool:
    """Whether SGLang has loaded the plugin in this process, and it is not off."""
    return _active


__all__ = ["VARIABLE", "Mode", "ModeError", "activate", "is_active", "logger", "read_mode"]
