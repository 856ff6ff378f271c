"""Settings of the storage backends, a model each, and their part of host memory.

Nothing here opens a file: text that names one (@path) is read by the caller. May import what rules import.
"""

from __future__ import annotations

from .fields import BackendSettings
from .kinds import MODELS, model_of
from .memory import host_bytes_per_rank
from .reading import Problem, Settings, read_settings

__all__ = ["MODELS", "BackendSettings", "Problem", "Settings", "host_bytes_per_rank", "model_of", "read_settings"]
