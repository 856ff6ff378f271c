"""Loads the SGLang of this environment with its plugins and says, as JSON, which of our hooks are in place.

Run as a process of its own (`python -m hicache_config.engines.sglang.probe`): importing SGLang takes seconds and may
fail. The last line of its output is the answer.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

from .modes import VARIABLE, Mode


def main() -> None:
    """Print the answer as one line of JSON."""
    os.environ[VARIABLE] = Mode.CHECK.value  # whatever the mode, the question is whether the hooks could work
    sys.stdout.write("\n" + json.dumps(probe()) + "\n")


def probe() -> dict[str, Any]:
    """`error` says why SGLang does not load; else `loaded` whether it loads this plugin, `problems` of the hooks."""
    try:
        import sglang
        from sglang.srt.plugins import load_plugins
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}", "loaded": False, "problems": []}
    load_plugins()
    from . import hooks, is_active

    problems: list[str] = []
    if is_active():
        hooks.apply_build_hooks()
        problems = hooks.hook_problems()
    return {"error": None, "file": sglang.__file__, "loaded": is_active(), "problems": problems}


if __name__ == "__main__":
    main()
