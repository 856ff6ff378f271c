"""Kinds of GPU, as far as SGLang's defaults differ by them. Must not import anything above this floor."""

from __future__ import annotations

import re
from dataclasses import dataclass

from .model import refuse

#: Compute capabilities that SGLang 0.5.23 tells apart or runs on, oldest first.
KNOWN = (
    "sm75", "sm80", "sm86", "sm87", "sm89", "sm90", "sm100", "sm101", "sm103", "sm107", "sm110", "sm120", "sm121",
)  # fmt: skip
_NAME = re.compile(r"sm_?(\d+)a?", re.IGNORECASE | re.ASCII)


@dataclass(frozen=True)
class Gpu:
    """A compute capability. SGLang's predicates look at its major number (0.5.23, utils/common.py)."""

    name: str
    major: int

    @classmethod
    def of(cls, text: str) -> Gpu:
        """The GPU named `text`, such as sm90 (also sm_90, sm90a); an unknown one is a refusal."""
        match = _NAME.fullmatch(text.strip())
        name = f"sm{match[1]}" if match else ""
        if match is None or name not in KNOWN:
            raise refuse(
                "HC604",
                "gpu-unknown",
                f"--gpu {text} is not a GPU whose defaults in SGLang are known",
                f"Write one of {', '.join(KNOWN)} (sm90 is Hopper, sm100 Blackwell).",
                argument="gpu",
                asked=text,
            )
        return cls(name, int(match[1]) // 10)

    @property
    def is_hopper(self) -> bool:
        """Capability 9.x."""
        return self.major == 9

    @property
    def is_sm100(self) -> bool:
        """Data-centre Blackwell, 10.x."""
        return self.major == 10

    @property
    def is_blackwell(self) -> bool:
        """10.x, 11.x and 12.x."""
        return self.major in {10, 11, 12}
