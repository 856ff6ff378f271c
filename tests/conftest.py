"""Settings for all tests: hypothesis profiles ("quick" is the default, "thorough" for a long look)."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

_QUIET = [HealthCheck.too_slow, HealthCheck.data_too_large]
settings.register_profile("quick", deadline=None, derandomize=True, max_examples=50, suppress_health_check=_QUIET)
settings.register_profile("thorough", deadline=None, max_examples=5_000, suppress_health_check=_QUIET)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "quick"))
