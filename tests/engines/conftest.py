"""Where the tests marked `live` find the real SGLang: an environment that tools/oracle.py has built."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from .live.servers import ROOT, python_of

__all__ = ["ROOT", "sglang_python"]


@pytest.fixture(scope="session")
def sglang_python() -> Callable[[str], Path]:
    """The interpreter of a release's server environment; skips where it is not built."""

    def find(release: str) -> Path:
        python = python_of(release)
        if not python.exists():
            pytest.skip(f"no environment: python tools/oracle.py build --server --sglang {release}")
        return python

    return find
