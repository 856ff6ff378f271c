"""Hand-written strategies: pools, stages and pipelines as they are found and as they could be at worst."""

from __future__ import annotations

from hypothesis import strategies as st

from hicache_config.core.capacity import TotalSize
from hicache_config.core.pools import DevicePool, Stage

PAGE_SIZES = st.sampled_from([1, 2, 16, 32, 64, 128, 256])
LEADERS = ("kv", "swa", "mamba", "other")


@st.composite
def followers(draw: st.DrawFn, leader: str, page_size: int) -> list[DevicePool]:
    """None to two pools that follow `leader`, with or without extra pages, of zero bytes too."""
    made = []
    for number in range(draw(st.integers(0, 2))):
        made.append(
            DevicePool(
                f"{leader}_follower_{number}",
                bytes_per_slot=draw(st.integers(0, 5_000)),
                page_size=page_size,
                follows=leader,
                extra_pages=draw(st.integers(0, 2)),
            )
        )
    return made


@st.composite
def facts(draw: st.DrawFn) -> dict[str, tuple[int, int, str]]:
    """What all stages share of each independent pool: device slots, page size, page rule."""
    names = draw(st.lists(st.sampled_from(LEADERS), min_size=1, max_size=4, unique=True))
    return {
        name: (
            draw(st.integers(1, 5_000_000)),
            draw(PAGE_SIZES),
            draw(st.sampled_from(["added", "added", "added", "whole"])),
        )
        for name in sorted(names, key=LEADERS.index)
    }


@st.composite
def stages(draw: st.DrawFn, shared: dict[str, tuple[int, int, str]]) -> Stage:
    """One stage: some of the shared pools, each with this stage's own bytes per slot (0 included) and followers."""
    pools: list[DevicePool] = []
    for name, (slots, page_size, rule) in shared.items():
        if draw(st.integers(0, 9)) == 0:
            continue
        bytes_per_slot = draw(st.one_of(st.integers(0, 200_000), st.sampled_from([0, 1, 656, 12_464, 38_633_472])))
        pools.append(DevicePool(name, slots, bytes_per_slot, page_size, page_rule=rule))  # type: ignore[arg-type]
        pools += draw(followers(name, page_size))
    stage, problems = Stage.of(pools)
    assert problems == []
    return stage


@st.composite
def pipelines(draw: st.DrawFn, max_stages: int = 5) -> list[Stage]:
    """Stages that agree on what SGLang makes equal, and differ in everything else."""
    shared = draw(facts())
    return draw(st.lists(stages(shared), min_size=1, max_size=max_stages))


sizes = st.one_of(
    st.integers(1, 2_000),
    st.sampled_from([0.001, 0.01, 0.29, 1.5, 99.999999999]),
).map(TotalSize)
