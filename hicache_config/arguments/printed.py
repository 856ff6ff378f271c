"""What a running server prints of its arguments: all of them, as resolved. Which of them did somebody ask for?

A server's log and its `/server_info` name every argument of its release, most at their defaults, and since 0.5.18 a
ratio that nobody gave. Source: SGLang 0.5.23, engine.py:_server_args_for_logging
and utils/common.py:build_server_info.

Must not import anything above this floor.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .given import Given
from .hicache import default_ratio
from .releases import known, table


def asked_for(given: Sequence[Given], release: str) -> list[Given]:
    """Those of the printed arguments whose value SGLang would not have by itself.

    A default that was written out can't be told from one that was not; both mean the same. What only other releases
    have counts where it is not at its default there.
    """
    values = {each.key: each.value for each in given}
    filled = _filled_in(values)
    return [each for each in given if not _by_itself(each, release, filled)]


def _filled_in(values: Mapping[str, Any]) -> Mapping[str, Any]:
    """Values that SGLang fills in for None. A ratio that decides alone counts as given, whoever wrote it."""
    decides = (
        bool(values.get("enable_hierarchical_cache"))
        and not values.get("hicache_size")
        and values.get("hicache_host_memory_fraction") is None
    )
    if decides or values.get("disaggregation_mode") == "decode":
        return {}
    return {"hicache_ratio": default_ratio(str(values.get("hicache_host_memory_mode")))}


def _by_itself(each: Given, release: str, filled: Mapping[str, Any]) -> bool:
    if each.key in filled and _same(each.value, filled[each.key]):
        return True
    if _is_field(each.key, release):
        return _is_default(each, release)
    return each.value is None or any(_is_default(each, name) for name in known() if _is_field(each.key, name))


def _is_field(name: str, release: str) -> bool:
    """Whether a release has the field; a deprecated option of another field may have had a field of its own before."""
    argument = table(release).get(name)
    return argument is not None and argument.field == name


def _is_default(each: Given, release: str) -> bool:
    argument = table(release)[each.key]
    if "default" in argument.unknown:
        return False
    return _same(each.value, argument.default) or (
        argument.fallback is not None and _same(each.value, argument.fallback)
    )


def _same(printed: Any, default: Any) -> bool:
    if isinstance(printed, bool) or isinstance(default, bool):
        return printed is default
    return bool((tuple(printed) if isinstance(printed, list) else printed) == default)
