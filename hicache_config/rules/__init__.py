"""What is wrong with a configuration: a registry of small checks, each complete with why, examples and versions.

A rule sees typed arguments, never text; it yields what it saw and the runner stamps code, name and severity.
May import sources and everything below, nothing above.
"""

from __future__ import annotations

from importlib import import_module

#: The files that declare rules which look at a case, by topic. `elsewhere` declares the pages of all other findings.
TOPICS = (
    "advisories",
    "capacity",
    "decode",
    "host",
    "layouts",
    "memory_pools",
    "models",
    "other_caches",
    "parallel",
    "retraction",
    "settled",
    "storage",
    "storage_settings",
    "tiers",
    "unserved",
)


def load_checks() -> None:
    """Import the files of rules that look at a case, which declares them."""
    for topic in TOPICS:
        import_module(f"{__name__}.{topic}")


def load_all() -> None:
    """Import every file of rules."""
    load_checks()
    import_module(f"{__name__}.elsewhere")
