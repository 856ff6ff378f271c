"""Arguments that have no field of their own everywhere: read by name, whether a field holds them or not.

Must not import anything above this floor.
"""

from __future__ import annotations

from typing import Any

from ..arguments import ServerArgs


def given(args: ServerArgs, name: str, default: Any = None) -> Any:
    """The value of an argument by SGLang's name, `default` where nobody wrote it."""
    held = getattr(args, name) if name in type(args).model_fields else args.others.get(name)
    return default if held is None else held
