"""The shapes of the files that the program prints, as models from which their JSON Schemas are generated.

The program itself prints plain values (core.plan, reports); tests hold that these validate against the schemas.
Must not import anything above this floor.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

Amount = Annotated[int, Field(ge=0)]
Code = Annotated[str, Field(pattern=r"^HC[0-9]{3}", min_length=5, max_length=5)]
Severity = Literal["error", "warning", "note"]


class Shape(BaseModel):
    """A file shape without further fields."""

    model_config = ConfigDict(extra="forbid")


class FixShape(Shape):
    """A change that answers a finding."""

    safe: bool = Field(description="Whether a program may write it: nothing that runs changes.")
    set: dict[str, Any] = Field(description="New value by argument; null takes the argument out.")


class FindingShape(Shape):
    """One thing that a person should know."""

    code: Code
    name: str = Field(description="The rule in words.")
    severity: Severity
    argument: str | None = Field(description="SGLang's field name.")
    pointer: str | None = Field(description="JSON pointer into the arguments.")
    file: str = Field(
        "", description="The other file that the place lies in, which the source took in; left out for the source."
    )
    line: Amount | None = Field(description="First line, from 1; null where it belongs to no stretch of text.")
    column: Amount | None = Field(description="First column, from 1, in characters.")
    end_line: Amount | None
    end_column: Amount | None = Field(description="Column behind the last character.")
    message: str
    help: str = Field(description="What to write instead.")
    asked: Any = Field(description="The value that was written.")
    gets: Any = Field(description="The value that SGLang uses.")
    fix: FixShape | None


class SkippedShape(Shape):
    """A rule that was not asked."""

    code: Code
    why: str


class SourceShape(Shape):
    """One engine found in a source."""

    source: str
    format: str
    engine: str | None
    resolved: dict[str, Any] = Field(description="What was given, and the final value of every HiCache argument.")
    skipped: list[SkippedShape]
    findings: list[FindingShape] = Field(description="In the order line, column, code.")


class ReportShape(Shape):
    """What `hicache-config validate --format json` prints."""

    kind: Literal["hicache-report"]
    version: Literal[1]
    sglang: str = Field(description="The release that the findings hold for.")
    errors: Amount
    warnings: Amount
    sources: list[SourceShape]


class PoolShape(Shape):
    """One host pool of a rank."""

    name: str
    follows: str | None = Field(description="The pool whose pages it takes.")
    page_size: Annotated[int, Field(ge=1)] = Field(description="Slots of a page.")
    bytes_per_slot: Amount | None = Field(description="Null where a pool is made of pages.")
    page_bytes: Amount = Field(description="Bytes of one page.")
    device_slots: Amount | None = Field(description="Slots on the device, without padding; null where not known.")
    share_gb: float | None = Field(
        description="GB of the size as SGLang shares it, before rounding; independent pools."
    )
    own_slots: Amount | None = Field(description="Slots that the stage would have alone.")
    slots: Amount | None
    pages: Amount | None
    extra_pages: Amount
    bytes: Amount | None = Field(description="(pages + extra_pages) * page_bytes: what is allocated on one rank.")
    inside_size: bool | None = Field(description="Whether the size counts these bytes; null with a ratio.")
    host_size_gb: float | None = Field(
        description="The size with which SGLang's constructor builds exactly these pages."
    )
    trace: list[str] = Field(description="The arithmetic in words.")


class StageShape(Shape):
    """One pipeline stage; amounts are of one rank of it."""

    stage: Amount
    layers: Amount | None
    pools: list[PoolShape]
    bytes: Amount | None
    size_bytes: Amount | None = Field(description="The size asked for; null with a ratio.")
    over_size_bytes: Amount | None = Field(description="max(0, bytes - size_bytes).")
    unused_bytes: Amount | None = Field(description="max(0, size_bytes - bytes).")


class SizeShape(Shape):
    """A size in GB (10**9 bytes) per rank."""

    kind: Literal["size"]
    size_gb: float


class RatioShape(Shape):
    """Host slots per device slot."""

    kind: Literal["ratio"]
    ratio: float


class FractionShape(Shape):
    """A share of the host's memory; `ratio` is the most that it grows to."""

    kind: Literal["fraction"]
    fraction: float
    ratio: float


class HostShape(Shape):
    """The machine, in bytes."""

    available_bytes: Amount | None = Field(description="Of a node, when pools are built; null where not given.")
    reserve_bytes: Amount = Field(description="What SGLang leaves alone.")
    allowance_bytes_per_rank: int | None = Field(
        description="What SGLang lets a rank claim; negative where too little."
    )


class PlanShape(Shape):
    """What `hicache-config plan --format json` prints."""

    kind: Literal["hicache-plan"]
    version: Literal[1]
    sglang: str
    accounting: Literal["sglang", "total"]
    gpu: str
    model: str | None
    capacity: SizeShape | RatioShape | FractionShape
    stock_size_gb: Amount | None = Field(
        description="The largest whole --hicache-size that stays within the budget without the plugin."
    )
    stages: list[StageShape] = Field(description="Empty when the configuration is refused.")
    ratio: float | None = Field(description="With it SGLang's constructors build exactly these pages.")
    ranks_per_node: Amount
    node_bytes: list[Amount] | None = Field(description="Host bytes of all ranks on each node.")
    cluster_bytes: Amount | None
    host: HostShape
    fits: bool | None = Field(description="Null where no host is given or bytes are not known.")
    assumptions: list[str]
    findings: list[FindingShape]
