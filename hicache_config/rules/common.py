"""Words and questions that many rules share. Must not import anything above this floor."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..arguments.reading import flag_of
from .case import Case
from .registry import Seen

#: The HiCache arguments that say something only when there are host pools.
HICACHE_VALUES = (
    "hicache_size",
    "hicache_ratio",
    "hicache_host_memory_fraction",
    "hicache_host_memory_mode",
    "hicache_write_policy",
    "hicache_io_backend",
    "hicache_mem_layout",
    "hicache_storage_backend",
    "hicache_storage_prefetch_policy",
    "hicache_storage_backend_extra_config",
    "hicache_storage_prefetch_retry_poll_interval",
    "hicache_storage_prefetch_retry_max_attempts",
)


def flag(case: Case, argument: str, value: Any = None) -> str:
    """The flag of an argument in the case's release, with a value where one is given."""
    text = flag_of(argument, case.release.name)
    return text if value is None or value is True else f"{text} {value}"


def hicache(case: Case) -> bool:
    """Whether HiCache is asked for."""
    return bool(case.raw("enable_hierarchical_cache"))


def mode(case: Case) -> str:
    """null, prefill or decode."""
    return str(case.raw("disaggregation_mode"))


def words(items: Iterable[str], last: str = "or") -> str:
    """`a, b or c`."""
    listed = list(items)
    return f" {last} ".join([", ".join(listed[:-1]), listed[-1]]) if len(listed) > 1 else "".join(listed)


def excluded(case: Case, argument: str, other: str, why: str, help_: str) -> Seen:
    """Two arguments that SGLang refuses together, seen at the first."""
    return Seen(
        argument,
        f"{flag(case, argument)} and {flag(case, other)} exclude each other: {why}",
        help_,
        asked=case.raw(argument),
    )
