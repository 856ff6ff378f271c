"""The shape of a pools file: device pools of each pipeline stage, for any engine.

Must not import anything above this floor.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, Strict

from ..core.pools import DevicePool

_LARGEST = 2**63 - 1
Count = Annotated[int, Strict(), Field(ge=1, le=_LARGEST)]
Amount = Annotated[int, Strict(), Field(ge=0, le=_LARGEST)]


class PoolEntry(BaseModel):
    """One device pool of a stage, as one rank holds it."""

    model_config = ConfigDict(extra="forbid", title="device pool")

    name: Annotated[str, Strict()] = Field(min_length=1, description="SGLang's name of the pool.", examples=["kv"])
    slots: Count | None = Field(None, description="Device slots without padding; null where not known. Per rank.")
    bytes_per_slot: Amount | None = Field(None, description="Bytes of one slot over all layers of the stage. Per rank.")
    page_size: Count = Field(1, description="Slots of a host page.")
    follows: Annotated[str, Strict()] | None = Field(None, description="The pool whose pages this one takes.")
    extra_pages: Amount = Field(0, description="Pages allocated beyond those of the leader.")
    device_bytes: Amount | None = Field(
        None, description="Weight in a split; default slots * bytes_per_slot. Per rank."
    )
    page_bytes: Amount | None = Field(None, description="Bytes of one page where a pool is made of pages. Per rank.")
    page_rule: Literal["added", "whole"] = Field("added", description="How the constructor counts pages of a ratio.")
    carved: Annotated[bool, Strict()] = Field(False, description="Whether its bytes come out of its leader's share.")
    follow_rule: Literal["pages", "ratio"] = Field("pages", description="How a follower takes its leader's size.")
    packed_bytes: tuple[Amount, ...] = Field((), description="Device bytes of each draft packed into it. Per rank.")
    fraction_bytes: Amount | None = Field(None, description="What counts of it in a share of host memory. Per rank.")
    stack: Amount = Field(0, description="Pools of another stack do not share a size: each stack gets all of it.")

    def pool(self) -> DevicePool:
        """The entry as a device pool."""
        return DevicePool(**self.model_dump())


class StageEntry(BaseModel):
    """The pools of one pipeline stage."""

    model_config = ConfigDict(extra="forbid", title="pipeline stage")

    pools: list[PoolEntry] = Field(description="In the order of construction.")
    layers: Amount | None = Field(None, description="Layers that the pools cover; shown only.")


class PoolsFile(BaseModel):
    """Device pools by stage, in the order of the stages; a single stage stands for each."""

    model_config = ConfigDict(extra="forbid", title="hicache-config pools")

    stages: list[StageEntry] = Field(min_length=1)
