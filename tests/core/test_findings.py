"""What is wrong with many stages, said in few words."""

from __future__ import annotations

import pytest

from hicache_config.core.capacity import Capacity, DeviceRatio, HostFraction, TotalSize
from hicache_config.core.findings import stage_numbers
from hicache_config.core.pools import DevicePool

from .test_plan import made, stage_of


@pytest.mark.parametrize("capacity", [TotalSize(100), DeviceRatio(2.0)])
def test_a_pool_without_bytes_on_many_stages_is_said_once(capacity: Capacity) -> None:
    empty = stage_of(DevicePool("kv", 1_000, 0, 1), DevicePool("mamba", 10, 1_000, 1))
    whole = stage_of(DevicePool("kv", 1_000, 100, 1), DevicePool("mamba", 10, 1_000, 1))
    found = [each for each in made([empty, empty, empty, whole, empty], capacity, "sglang").findings if each.pool]
    assert [(each.code, each.pool, each.stage) for each in found] == [("HC303", "kv", None)]
    assert found[0].message.startswith("stages 0 to 2, 4: host pool 'kv' would hold no bytes")


@pytest.mark.parametrize(
    ("stages", "text"),
    [
        ([3], "stage 3"),
        ([0, 1], "stages 0, 1"),
        ([0, 1, 2], "stages 0 to 2"),
        ([0, 2, 3, 4, 5, 9], "stages 0, 2 to 5, 9"),
    ],
)
def test_numbers_of_stages_in_words(stages: list[int], text: str) -> None:
    assert stage_numbers(stages) == text


@pytest.mark.parametrize("capacity", [TotalSize(100), HostFraction(0.8, 2.0)])
def test_what_is_wrong_with_the_whole_model_is_said_once(capacity: Capacity) -> None:
    pages = stage_of(DevicePool("kv", 1_000, page_bytes=64, page_size=256, page_rule="whole"))
    assert len(made([pages, pages, pages], capacity, "sglang").findings) == 1
