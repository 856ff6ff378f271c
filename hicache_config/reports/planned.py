"""What `plan` answers, as plain values: the plan with the machine around it.

Must not import anything above this floor.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from ..core.plan import Plan
from ..core.units import RESERVE_BYTES
from ..geometry.parallel import NodeRanks
from .report import Placed, failing


@dataclass(frozen=True)
class PlanReport:
    """A plan and where it runs. `other` is the plan under the other accounting, `text` the source's text.

    `allowance_bytes` is what SGLang lets a rank claim; None where no host is given."""

    plan: Plan
    other: Plan | None
    gpu: str
    model: str | None
    family: str | None
    nodes: tuple[NodeRanks, ...]
    available_bytes: int | None = None
    allowance_bytes: int | None = None
    assumptions: tuple[str, ...] = ()
    findings: tuple[Placed, ...] = ()
    source: str = ""
    text: str = ""

    @property
    def node_bytes(self) -> list[int] | None:
        """Host bytes of all ranks on each node; None where a stage's bytes are not known."""
        if not self.plan.stages or any(stage.bytes is None for stage in self.plan.stages):
            return None
        return [
            sum((self.plan.stage(stage).bytes or 0) * ranks for stage, ranks in node.ranks_by_stage.items())
            for node in self.nodes
        ]

    @property
    def fits(self) -> bool | None:
        """Whether every node has room for its ranks, and each rank stays within SGLang's allowance.

        None where no host is given or the bytes are not known.
        """
        node_bytes = self.node_bytes
        if self.available_bytes is None or self.allowance_bytes is None or node_bytes is None:
            return None
        room = self.available_bytes - RESERVE_BYTES
        ranks = all((stage.bytes or 0) <= self.allowance_bytes for stage in self.plan.stages)
        return ranks and all(bytes_ <= room for bytes_ in node_bytes)

    def fails(self, *, strict: bool = False) -> bool:
        """Whether the plan is refused, does not fit, or has a finding at or above the failing level."""
        return bool(failing(self.findings, strict=strict)) or self.is_refused or self.fits is False

    def only_failing(self, *, strict: bool = False) -> PlanReport:
        """The same report without the findings below the failing level."""
        return replace(self, findings=failing(self.findings, strict=strict))

    @property
    def is_refused(self) -> bool:
        """Whether there is no plan because of an error."""
        return not self.plan.stages

    def as_dict(self) -> dict[str, Any]:
        """The plan as JSON files hold it."""
        plan, node_bytes = self.plan, self.node_bytes
        return {
            "kind": "hicache-plan",
            "version": 1,
            "sglang": plan.terms.release.name,
            "accounting": plan.terms.accounting,
            "gpu": self.gpu,
            "model": self.model,
            "capacity": plan.terms.capacity.as_dict(),
            "stock_size_gb": plan.stock_size_gb,
            "stages": [stage.as_dict() for stage in plan.stages],
            "ratio": plan.ratio,
            "ranks_per_node": max((node.ranks for node in self.nodes), default=0),
            "node_bytes": [] if self.is_refused else node_bytes,
            "cluster_bytes": None if node_bytes is None else sum(node_bytes),
            "host": {
                "available_bytes": self.available_bytes,
                "reserve_bytes": RESERVE_BYTES,
                "allowance_bytes_per_rank": self.allowance_bytes,
            },
            "fits": self.fits,
            "assumptions": list(self.assumptions),
            "findings": [placed.as_dict() for placed in self.findings],
        }
