"""The configuration that rules look at: typed arguments, what was written, and what is known of model and host.

Must not import anything above this floor.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ..core.releases import Release
from .resolution import raw_value

if TYPE_CHECKING:
    from ..arguments import ServerArgs
    from ..core.plan import Plan
    from ..geometry.pipeline import Pipeline
    from .resolution import Resolution
    from .traits import Traits


@dataclass(frozen=True)
class HostMemory:
    """What a rule about host memory needs: bytes available on a node and the ranks on it."""

    available_bytes: int
    ranks_per_node: int


@dataclass(frozen=True)
class Case:
    """One engine's configuration.

    `args` are the typed arguments as written, `written` the fields that were given, `invalid` those whose value could
    not be read (rules leave them alone). `resolution` holds the values after SGLang's own rewriting. `pipeline` is
    None where no model is known, `plan` where nothing can be planned, `host` where no memory is given; `traits` are
    what rules ask of the model, `files` the contents of files that arguments name (`@path`), by path.
    """

    args: ServerArgs
    release: Release
    resolution: Resolution
    written: Collection[str] = ()
    invalid: Collection[str] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    gpu: str = "sm90"
    model_name: str | None = None
    pipeline: Pipeline | None = None
    plan: Plan | None = None
    host: HostMemory | None = None
    traits: Traits | None = None
    files: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def gave(self, argument: str) -> bool:
        """Whether the person wrote this argument, with a value that could be read."""
        return argument in self.written and argument not in self.invalid

    def resolved(self, argument: str) -> Any:
        """The value that SGLang uses in the end."""
        return self.resolution.value(argument)

    def raw(self, argument: str) -> Any:
        """The value as written, else the release's default; None for an argument that the release does not have."""
        return raw_value(self.args, argument, self.release.name)

    def has(self, need: str) -> bool:
        """Whether an input that a rule needs is there: "model", "plan" or "host"."""
        return {"model": self.traits, "plan": self.plan, "host": self.host}[need] is not None

    def why_missing(self, need: str) -> str:
        """Why a rule that needs it is skipped."""
        return {
            "model": "no model is given (--model, or a model_path that is a local folder or a catalogue name)",
            "plan": "no sizes are known (no model or pools are given, or they are refused)",
            "host": "no host memory is given (--host-memory)",
        }[need]
