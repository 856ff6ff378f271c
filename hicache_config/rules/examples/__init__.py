"""Examples of findings that other floors make, and the reasons of those that no file can show.

Each entry holds fields of `Rule` by code: arguments or files that fail and pass, and what they need besides.
Data alone; must not import anything of the project.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .deepseek import DEEPSEEK_V4
from .drafts import DRAFTS
from .engines import ENGINES
from .models import MODELS
from .pools import POOLS
from .sources import SOURCES
from .stages import STAGES
from .without import WITHOUT_EXAMPLES

EXAMPLES: Mapping[str, Mapping[str, Any]] = {**SOURCES, **POOLS, **STAGES, **MODELS, **DEEPSEEK_V4, **DRAFTS, **ENGINES}

__all__ = ["EXAMPLES", "WITHOUT_EXAMPLES"]
