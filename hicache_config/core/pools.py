"""Pools as a small algebra: a pool buys its own slots or follows another; a stage is a checked set of them.

Must not import anything of the project but findings.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from numbers import Integral
from typing import Any, Literal

from .findings import Finding

#: How a constructor turns device slots `D`, a page of `P` slots and a ratio `r` into host pages:
#: "added": `int(D * r) // P + 1`, nearly every pool; "whole": `int(ceil(D / P) * r)`, DeepSeek V4.
PageRule = Literal["added", "whole"]

#: How a follower takes the size of its leader: "pages": the leader's pages; "ratio": `int(D * (T / D)) // P + 1` in
#: floats, with its own device slots `D` and the leader's host slots `T`, so the leader's pages or one more (drafts
#: with a sliding window, hybrid_pool_assembler.py:build_swa_draft_pools and build_hybrid_swa_group; up to 0.5.22 every
#: draft beside the model). `T` is counted in pages of the follower's own width.
FollowRule = Literal["pages", "ratio"]

#: Amounts beyond this are refused: SGLang's collectives carry 64-bit integers.
LARGEST = 2**63 - 1


@dataclass(frozen=True)
class DevicePool:
    """What the accelerator holds of one kind, on one rank of one pipeline stage, and what its host mirror costs.

    `slots` is SGLang's `pool.size` (token rows, or request states for Mamba), without padding; None where it is not
    known. `bytes_per_slot` counts all layers of the stage on one rank, packed drafts included; it may be None where
    `page_bytes` (bytes of one page of `page_size` slots) is given instead. A pool with `follows` takes the pages of
    that pool. `extra_pages` are allocated beyond them (the DSA indexer has one). `device_bytes` is the weight in a
    split of the size (default `slots * bytes_per_slot`; SGLang's own counts a padding page or state).
    `carved` marks a follower whose bytes SGLang takes out of its leader's share (QSA's compressed index).
    `page_rule` says how its constructor counts pages, `follow_rule` how a follower takes its leader's.
    `packed_bytes` are the device bytes of each draft whose layers are packed into this pool: `bytes_per_slot` counts
    those layers, `device_bytes` does not. `fraction_bytes` is what counts of the pool when the size is a share of the
    host's memory, where that is neither its weight nor its packed drafts. Pools of another `stack` do not share a size:
    each stack gets the whole of it (what a decode server offloads, beside its cache).
    Source: SGLang 0.5.23, mem_cache/pool_host/base.py.
    """

    name: str
    slots: int | None = None
    bytes_per_slot: int | None = None
    page_size: int = 1
    follows: str | None = None
    extra_pages: int = 0
    device_bytes: int | None = None
    page_bytes: int | None = None
    page_rule: PageRule = "added"
    carved: bool = False
    follow_rule: FollowRule = "pages"
    packed_bytes: tuple[int, ...] = ()
    fraction_bytes: int | None = None
    stack: int = 0

    @property
    def bytes_per_page(self) -> int:
        """Host bytes of one page, on one rank."""
        if self.page_bytes is not None:
            return self.page_bytes
        return (self.bytes_per_slot or 0) * self.page_size

    @property
    def weight(self) -> int | None:
        """Device bytes that count in a split of the size; None where slots are needed and not known."""
        if self.device_bytes is not None:
            return self.device_bytes
        if self.bytes_per_page == 0:
            return 0
        if self.slots is None:
            return None
        if self.bytes_per_slot is not None:
            return self.slots * self.bytes_per_slot
        return -(-self.slots // self.page_size) * self.bytes_per_page

    def pages_following(self, leader_pages: int, leader: DevicePool) -> int:
        """Host pages of this follower beside a leader with `leader_pages`, in SGLang's order of float operations."""
        if self.follow_rule == "pages":
            return leader_pages
        slots = self.slots or leader.slots
        if slots is None:
            raise ValueError(f"device slots of {self.name!r} and its leader are not known")
        return int(slots * (leader_pages * self.page_size / slots)) // self.page_size + 1

    def problems(self) -> list[Finding]:
        """What is impossible in this pool alone, each a finding; empty for a sound pool."""
        found: list[Finding] = []

        def wrong(what: str, help_: str) -> None:
            found.append(
                Finding("HC310", "pool-impossible", "error", f"pool {self.name!r}: {what}", help_, pool=self.name)
            )

        if not self.name:
            wrong("the name is empty", "Name it as SGLang does: kv, swa, mamba, indexer, draft, …")
        least = {
            "slots": 1, "bytes_per_slot": 0, "page_size": 1, "extra_pages": 0, "device_bytes": 0, "page_bytes": 0,
            "fraction_bytes": 0, "stack": 0,
        }  # fmt: skip
        for name, low in least.items():
            value = getattr(self, name)
            if value is None and name not in ("page_size", "extra_pages", "stack"):
                continue
            if not isinstance(value, Integral) or not low <= int(value) <= LARGEST:
                shown = f"{value:,}" if isinstance(value, Integral) else repr(value)
                wrong(f"{name} is {shown}", f"Write a whole number from {low} to 2**63 - 1.")
        if self.bytes_per_slot is None and self.page_bytes is None:
            wrong(
                "neither bytes_per_slot nor page_bytes is given",
                "Give bytes_per_slot, the bytes of one slot on one rank.",
            )
        if not found and self.device_bytes == 0 and self.bytes_per_page and self.follows is None:
            # SGLang would give it no share of the size and size it by the ratio, out of step with the other stages.
            wrong("device_bytes is 0, and its slots hold bytes", "Give its bytes on the device, or leave it out.")
        if any(not 0 <= amount <= LARGEST for amount in self.packed_bytes):
            wrong("packed_bytes has an amount out of range", "Write whole numbers from 0 to 2**63 - 1.")
        return found


@dataclass(frozen=True)
class Group:
    """An independent pool with all that follows it: they have the same number of pages.

    `page_bytes` is what one more page costs over all of them, `fixed_bytes` what their extra pages cost at most: a
    follower by ratio has the leader's pages or one more, and the one more is counted.
    """

    leader: DevicePool
    members: tuple[DevicePool, ...]

    @cached_property
    def page_bytes(self) -> int:
        """Bytes of one page of every member, on one rank."""
        return sum(pool.bytes_per_page for pool in self.members)

    @cached_property
    def fixed_bytes(self) -> int:
        """Bytes of the members' extra pages, on one rank, at most."""
        return sum((pool.extra_pages + (pool.follow_rule == "ratio")) * pool.bytes_per_page for pool in self.members)

    @property
    def is_empty(self) -> bool:
        """Whether it costs nothing: a stage that owns no layer of this kind. It counts as absent."""
        return self.page_bytes == 0

    def cost(self, pages: int) -> int:
        """Bytes of all members at `pages` pages of the leader, extra pages included, on one rank, at most."""
        return pages * self.page_bytes + self.fixed_bytes

    def scale_for(self, pages: int) -> Fraction:
        """The smallest scale (host slots per device slot) that makes `pages` pages. Needs known slots."""
        slots = self.known_slots
        if self.leader.page_rule == "whole":
            return Fraction(pages, -(-slots // self.leader.page_size))
        return Fraction((pages - 1) * self.leader.page_size, slots)

    def pages_below(self, bound: Fraction) -> int:
        """The most pages at a scale just below `bound`; 0 for a pool of whole pages that does not reach one."""
        slots = self.known_slots
        if self.leader.page_rule == "whole":
            return _ceil(-(-slots // self.leader.page_size) * bound) - 1
        return _ceil(slots * bound / self.leader.page_size)

    def pages_at_ratio(self, ratio: float) -> int:
        """Pages that SGLang's constructor makes of a float ratio, in its own order of operations."""
        slots = self.known_slots
        if self.leader.page_rule == "whole":
            return int(-(-slots // self.leader.page_size) * ratio)
        return int(slots * ratio) // self.leader.page_size + 1

    @property
    def known_slots(self) -> int:
        """Device slots; calling it where they are not known is a fault of the program."""
        if self.leader.slots is None:
            raise ValueError(f"device slots of {self.leader.name!r} are not known")
        return self.leader.slots


@dataclass(frozen=True)
class Stage:
    """The device pools of one pipeline stage, as one rank of it sees them, in the order of construction.

    Build it with `Stage.of`, which checks the set; `layers` is how many layers the stage's pools cover (shown only).
    """

    pools: tuple[DevicePool, ...]
    layers: int | None = None

    @classmethod
    def of(cls, pools: Iterable[DevicePool], layers: int | None = None) -> tuple[Stage, list[Finding]]:
        """The stage and what is wrong with its set of pools; with errors the stage must not be used further."""
        stage = cls(tuple(pools), layers)
        return stage, check(stage.pools)

    @cached_property
    def groups(self) -> tuple[Group, ...]:
        """Independent pools with their followers, in order of construction."""
        leaders = {pool.name: self._leader(pool) for pool in self.pools}
        return tuple(
            Group(pool, tuple(member for member in self.pools if leaders[member.name] == pool.name))
            for pool in self.pools
            if pool.follows is None
        )

    def group_of(self, name: str) -> Group:
        """The group that a pool belongs to."""
        leader = self._leader(self.by_name[name])
        return next(group for group in self.groups if group.leader.name == leader)

    @cached_property
    def by_name(self) -> Mapping[str, DevicePool]:
        """The pools by name."""
        return {pool.name: pool for pool in self.pools}

    @property
    def owned(self) -> tuple[Group, ...]:
        """The groups that cost bytes on this stage."""
        return tuple(group for group in self.groups if not group.is_empty)

    def _leader(self, pool: DevicePool) -> str:
        while pool.follows is not None:
            pool = self.by_name[pool.follows]
        return pool.name


def check(pools: Sequence[DevicePool]) -> list[Finding]:
    """What is wrong with a set of pools: impossible ones, names twice, leaders that are missing, circles."""
    found = [problem for pool in pools for problem in pool.problems()]
    by_name: dict[str, DevicePool] = {}
    for pool in pools:
        if pool.name in by_name:
            found.append(
                _set_problem(f"pool {pool.name!r} is there twice", "Give each pool of a stage its own name.", pool)
            )
        by_name[pool.name] = pool
    for pool in pools:
        seen = {pool.name}
        leader = pool.follows
        while leader is not None:
            if leader not in by_name:
                known = ", ".join(name for name in by_name if name != pool.name) or "none"
                text = f"pool {pool.name!r} follows {leader!r}, which this stage does not have"
                found.append(_set_problem(text, f"The other pools of the stage: {known}.", pool))
                break
            if leader in seen:
                text = f"pool {pool.name!r} follows itself through {leader!r}"
                found.append(_set_problem(text, "Let one of them be independent (no follows).", pool))
                break
            seen.add(leader)
            leader = by_name[leader].follows
    return found


def _set_problem(message: str, help_: str, pool: DevicePool) -> Finding:
    return Finding("HC311", "pools-inconsistent", "error", message, help_, pool=pool.name)


def _ceil(value: Fraction) -> int:
    return -(-value.numerator // value.denominator)


_WRITTEN = (
    "follows", "slots", "bytes_per_slot", "page_size", "page_bytes", "extra_pages", "device_bytes",
    "page_rule", "carved", "follow_rule", "packed_bytes", "fraction_bytes", "stack",
)  # fmt: skip


def pool_as_dict(pool: DevicePool) -> dict[str, Any]:
    """The pool as pools files write it; fields at their default are left out."""
    defaults = DevicePool(pool.name)
    written = {name: getattr(pool, name) for name in _WRITTEN}
    written["packed_bytes"] = list(pool.packed_bytes) or defaults.packed_bytes
    return {
        "name": pool.name,
        **{name: value for name, value in written.items() if name == "page_size" or value != getattr(defaults, name)},
    }
