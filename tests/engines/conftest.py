"""Where the tests marked `live` find the real SGLang: an environment that tools/oracle.py has built."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]


def _oracle() -> ModuleType:
    spec = importlib.util.spec_from_file_location("hicache_oracle_tool", ROOT / "tools" / "oracle.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def sglang_python() -> Callable[[str], Path]:
    """The interpreter of a release's server environment; skips where it is not built."""
    oracle = _oracle()

    def find(release: str) -> Path:
        python = Path(oracle.environment_folder(release, True)) / "bin" / "python"
        if not python.exists():
            pytest.skip(f"no environment: python tools/oracle.py build --server --sglang {release}")
        return python

    return find
