"""`ServerArgs`: SGLang's server arguments as far as host sizes depend on them, typed strictly.

Values come in as SGLang's field names with typed values, or in flag spelling (`--tp`, `hicache-size`, an alias) with
what a command line carries. What is not a server argument is kept aside in `unknown`, never lost.
Must not import anything above this floor.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import ConfigDict, ModelWrapValidatorHandler, PrivateAttr, ValidationInfo, model_validator

from ..core.capacity import Capacity
from ..core.releases import NEWEST, Release
from .hicache import HiCacheArgs, default_ratio, in_force
from .names import sort_out
from .neighbours import CacheArgs, DisaggregationArgs, ModelArgs, ParallelArgs, SpeculativeArgs


@dataclass(frozen=True)
class CapacityChoice:
    """Which of size, ratio and fraction is in force, and which were written but are ignored, each with the reason."""

    capacity: Capacity
    ignored: Mapping[str, str]


class ServerArgs(HiCacheArgs, CacheArgs, ParallelArgs, ModelArgs, SpeculativeArgs, DisaggregationArgs):
    """SGLang's server arguments that matter for host sizes, with SGLang's names, defaults and units.

    `written` are the fields that were given, `others` further SGLang arguments that sizing does not read, `unknown`
    what no release table knows. Pass `context={"release": "0.5.20"}` to `model_validate` for another release's
    defaults, flags and choices. Raises pydantic.ValidationError with all problems at once.
    """

    model_config = ConfigDict(
        extra="forbid", frozen=True, title="SGLang server arguments", protected_namespaces=(), defer_build=False
    )

    _written: frozenset[str] = PrivateAttr(default=frozenset())
    _others: dict[str, Any] = PrivateAttr(default_factory=dict)
    _unknown: dict[str, Any] = PrivateAttr(default_factory=dict)

    @model_validator(mode="wrap")
    @classmethod
    def _read(cls, data: Any, handler: ModelWrapValidatorHandler[ServerArgs], info: ValidationInfo) -> ServerArgs:
        if not isinstance(data, Mapping):
            return handler(data)
        release = (info.context or {}).get("release", NEWEST)
        sorted_ = sort_out(data, frozenset(cls.model_fields), release)
        made = handler({**sorted_.defaults, **sorted_.fields})
        made._written = frozenset(sorted_.fields)
        made._others = dict(sorted_.others)
        made._unknown = dict(sorted_.unknown)
        return made

    @property
    def written(self) -> frozenset[str]:
        """Names of the fields that were given."""
        return self._written

    @property
    def others(self) -> Mapping[str, Any]:
        """SGLang arguments that were given and that sizing does not read, by field name."""
        return self._others

    @property
    def unknown(self) -> Mapping[str, Any]:
        """What was given and is no argument of the release, as spelled."""
        return self._unknown

    def capacity(self, release: str = NEWEST) -> CapacityChoice:
        """Which of size, ratio and fraction is in force under `release`, and what of them is ignored.

        A positive size wins over a ratio; the fraction counts only without both and since 0.5.21 (before, the ratio's
        default of 2.0 is in force). Source: 0.5.23, arg_groups/hicache_hook.py:handle_hicache_ratio_default.
        """
        has_fraction = Release.of(release).has_fraction
        size, ratio, fraction = self.hicache_size, self.hicache_ratio, self.hicache_host_memory_fraction
        is_ratio_given = ratio is not None and "hicache_ratio" in self.written
        decides = is_ratio_given or (ratio is not None and not has_fraction)
        winner = f"--hicache-size {size} is set" if size > 0 else f"--hicache-ratio {ratio} is set" if decides else ""
        ignored = {}
        if size > 0 and is_ratio_given:
            ignored["hicache_ratio"] = winner
        if winner and fraction is not None and "hicache_host_memory_fraction" in self.written:
            ignored["hicache_host_memory_fraction"] = winner
        wanted = ratio if decides and ratio is not None else default_ratio(self.hicache_host_memory_mode)
        return CapacityChoice(in_force(size, wanted, fraction if has_fraction and not decides else None), ignored)
