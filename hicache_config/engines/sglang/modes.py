"""What the plugin may do, chosen by the environment variable HICACHE_CONFIG. Must not import sglang nor the project."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

VARIABLE = "HICACHE_CONFIG"


class Mode(Enum):
    """`check` refuses and reports but changes no size; `enforce` makes the size a total; `off` does nothing."""

    CHECK = "check"
    ENFORCE = "enforce"
    OFF = "off"


class ModeError(ValueError):
    """HICACHE_CONFIG holds something else than a mode; the message names the choices."""


def read_mode(environment: Mapping[str, str]) -> Mode:
    """The mode that the environment asks for; `check` where the variable is absent or empty. Raises ModeError."""
    text = environment.get(VARIABLE, "").strip().lower()
    if not text:
        return Mode.CHECK
    try:
        return Mode(text)
    except ValueError:
        choices = ", ".join(mode.value for mode in Mode)
        raise ModeError(
            f"{VARIABLE}={environment[VARIABLE]!r} is not a mode of hicache-config; write one of {choices} "
            f"(unset it for {Mode.CHECK.value})"
        ) from None
