"""Golden figures, refusals, what is not known, building, and everything a plan carries."""

from __future__ import annotations

import pytest

from hicache_config.core.agree import Agreement, agree
from hicache_config.core.capacity import Capacity, DeviceRatio, HostFraction, TotalSize
from hicache_config.core.findings import ConfigurationError, Finding, describe
from hicache_config.core.plan import Plan, plan
from hicache_config.core.pools import DevicePool, Stage
from hicache_config.core.ratios import mirrored_device_bytes
from hicache_config.core.releases import NEWEST, OLDEST, Release, ReleaseError, release_key
from hicache_config.core.resolve import resolve
from hicache_config.core.sizes import HostPoolSize
from hicache_config.core.terms import Accounting, Terms

LAYERS = (19, 19, 20, 20)
INDEX_OWNERS = (7, 4, 5, 5)


def stage_of(*pools: DevicePool) -> Stage:
    stage, problems = Stage.of(pools)
    assert problems == []
    return stage


def glm(*, indexer: bool) -> list[Stage]:
    """78 layers over 4 stages, 656 bytes per token and layer, with or without the indexer of GLM-5.2."""
    stages = []
    for layers, owners in zip(LAYERS, INDEX_OWNERS, strict=True):
        pools = [DevicePool("kv", None, 656 * layers, 64)]
        if indexer:
            pools.append(DevicePool("indexer", follows="kv", bytes_per_slot=132 * owners, page_size=64, extra_pages=1))
        stages.append(stage_of(*pools))
    return stages


def made(stages: list[Stage], capacity: Capacity, accounting: Accounting, version: str = NEWEST) -> Plan:
    return plan(stages, Terms(capacity, accounting, Release.of(version)))


def test_four_uneven_stages_of_78_layers_under_sglang() -> None:
    result = made(glm(indexer=True), TotalSize(100), "sglang")
    assert [stage["kv"].own_slots for stage in result.stages] == [8_023_168, 8_023_168, 7_621_952, 7_621_952]
    assert [stage["kv"].slots for stage in result.stages] == [7_621_952] * 4
    assert result.decided_by == (2, 3)
    assert [stage["indexer"].inside_size for stage in result.stages] == [False] * 4
    assert result.stage(0)["indexer"].bytes == (119_093 + 1) * 64 * 924
    assert result.stock_size_gb == 95


def test_four_uneven_stages_of_78_layers_under_total() -> None:
    assert [stage["kv"].slots for stage in made(glm(indexer=False), TotalSize(100), "total").stages] == [7_621_888] * 4
    with_indexer = made(glm(indexer=True), TotalSize(100), "total")
    assert [stage["kv"].slots for stage in with_indexer.stages] == [7_256_832] * 4
    assert all(stage.bytes is not None and stage.bytes <= 100 * 10**9 for stage in with_indexer.stages)
    assert with_indexer.stage(0)["kv"].host_size_gb == (7_256_832 - 32) * 12_464 / 1e9


def test_a_release_without_a_minimum_leaves_each_stage_its_own() -> None:
    result = made(glm(indexer=False), TotalSize(100), "sglang", "0.5.14")
    assert [stage["kv"].slots for stage in result.stages] == [8_023_168, 8_023_168, 7_621_952, 7_621_952]


def test_a_size_within_270_gb_needs_217() -> None:
    """44,928 bytes of KV, 10,296 of index and 576 of draft per token: write 217 to stay within 270."""
    stage = stage_of(
        DevicePool("kv", None, 44_928, 64),
        DevicePool("indexer", follows="kv", bytes_per_slot=10_296, page_size=64, extra_pages=1),
        DevicePool("draft", follows="kv", bytes_per_slot=576, page_size=64),
    )
    assert made([stage], TotalSize(270), "sglang").stock_size_gb == 217


def mamba_pair() -> list[Stage]:
    """Stage 0 owns no attention layer."""
    mamba = DevicePool("mamba", 600, 38_633_472, 1)
    return [stage_of(mamba), stage_of(DevicePool("kv", 2_000_000, 12_288, 64), mamba)]


@pytest.mark.parametrize("absent", [False, True])
def test_stages_with_different_pools_agree_under_total(absent: bool) -> None:
    stages = mamba_pair()
    if not absent:
        stages[0] = stage_of(DevicePool("kv", 2_000_000, 0, 64), DevicePool("mamba", 600, 38_633_472, 1))
    result = made(stages, TotalSize(100), "total")
    assert [stage["mamba"].slots for stage in result.stages] == [1_256, 1_256]
    assert result.stage(1)["kv"].slots == 4_186_688
    if not absent:
        assert (result.stage(0)["kv"].slots, result.stage(0)["kv"].bytes) == (4_186_688, 0)


@pytest.mark.parametrize(("version", "word"), [("0.5.23", "hangs"), ("0.5.14", "break apart")])
def test_stages_with_different_pools_are_an_error_under_sglang(version: str, word: str) -> None:
    result = made(mamba_pair(), TotalSize(100), "sglang", version)
    assert result.stages == ()
    (finding,) = result.findings
    assert finding.code == "HC401"
    assert "stage 0: mamba; stage 1: kv, mamba" in finding.message
    assert word in finding.message


def test_a_pool_of_zero_bytes_ends_sglang() -> None:
    stage = stage_of(DevicePool("kv", 2_000_000, 0, 64), DevicePool("mamba", 600, 1000, 1))
    for capacity in (TotalSize(1), DeviceRatio(2.0)):
        assert [finding.code for finding in made([stage], capacity, "sglang").findings] == ["HC303"]


@pytest.mark.parametrize(
    ("version", "capacity", "is_built"),
    [
        ("0.5.23", TotalSize(1), True),
        ("0.5.17", TotalSize(1), True),
        ("0.5.16", TotalSize(1), False),
        ("0.5.23", DeviceRatio(2.0), True),
        ("0.5.15", DeviceRatio(2.0), True),
        ("0.5.14", DeviceRatio(2.0), False),
    ],
)
def test_states_of_zero_bytes_are_built_alone(version: str, capacity: TotalSize | DeviceRatio, is_built: bool) -> None:
    """SGLang maps nothing for them; by a ratio they have their slots, of a size they get nothing."""
    result = made(
        [stage_of(DevicePool("kv", 2000, 1000, 64), DevicePool("mamba", 60, 0, 1))], capacity, "sglang", version
    )
    assert [finding.code for finding in result.findings] == ([] if is_built else ["HC303"])
    if is_built:
        assert result["mamba"].bytes == 0
        assert result["mamba"].slots == (121 if isinstance(capacity, DeviceRatio) else None)
        assert result.stage(0).bytes == result["kv"].bytes


def test_pools_of_zero_bytes_alone_are_an_error() -> None:
    empty = stage_of(DevicePool("kv", 10, 0))
    assert [finding.code for finding in made([empty], TotalSize(1), "total").findings] == ["HC302"]
    assert [finding.code for finding in made([empty, empty], TotalSize(1), "sglang").findings] == ["HC302", "HC302"]
    nothing, _ = Stage.of([])
    assert [finding.code for finding in made([nothing], TotalSize(1), "total").findings] == ["HC302"]


def test_a_stage_without_any_pool_takes_part() -> None:
    result = made([stage_of(), stage_of(DevicePool("kv", 100, 1000))], TotalSize(1), "total")
    assert result.stage(0).bytes == 0
    assert result.stage(1)["kv"].slots == 1_000_000


def test_a_size_below_a_page_of_each_pool_names_the_least_size() -> None:
    stages = [stage_of(DevicePool("kv", None, 10**9, 3)), stage_of(DevicePool("kv", None, 10**9 + 1, 3))]
    (finding,) = made(stages, TotalSize(2), "total").findings
    assert finding.code == "HC301"
    assert finding.stage == 1
    assert "The least size is 4" in finding.help
    assert made(stages, TotalSize(4), "total").stages
    (alone,) = made(stages[:1], TotalSize(2), "total").findings
    assert "stage" not in alone.message


def test_with_several_pools_unknown_slots_make_numbers_null() -> None:
    stage = stage_of(DevicePool("kv", None, 100, 64), DevicePool("mamba", 600, 1000))
    for accounting in ("sglang", "total"):
        result = made([stage], TotalSize(1), accounting)  # type: ignore[arg-type]
        assert result["kv"].slots is None
        assert result["mamba"].bytes is None
        assert result.stage(0).bytes is None
        assert result.stage(0).unused_bytes is None
        assert any("kv" in text for text in result.assumptions)
        assert result.findings == ()
        assert result.stock_size_gb is None
        assert result.ratio is None


def test_unknown_slots_on_one_stage_of_several_kinds() -> None:
    result = made([stage_of(DevicePool("kv", None, 100)), stage_of(DevicePool("mamba", 5, 100))], TotalSize(1), "total")
    assert result.stage(0)["kv"].pages is None
    assert result.stage(1)["mamba"].pages is None


def test_an_empty_pool_without_slots_beside_a_known_one() -> None:
    stage = stage_of(DevicePool("kv", None, 0, 64), DevicePool("mamba", 600, 1000))
    result = made([stage], TotalSize(1), "total")
    assert result["kv"].pages is None
    assert result["mamba"].pages == 1_000_000


def test_with_a_ratio_unknown_slots_make_numbers_null() -> None:
    result = made([stage_of(DevicePool("kv", None, 100, 64))], DeviceRatio(2.0), "sglang")
    assert result["kv"].slots is None
    assert result["kv"].bytes_per_slot == 100
    assert result.stage(0).size_bytes is None


@pytest.mark.parametrize(
    ("second", "code"),
    [
        (DevicePool("kv", 101, 1000, 4), "HC402"),
        (DevicePool("kv", 100, 1000, 8), "HC403"),
        (DevicePool("kv", 100, 1000, 4, page_rule="whole"), "HC404"),
    ],
)
def test_what_differs_between_the_stages_is_an_error(second: DevicePool, code: str) -> None:
    stages = [stage_of(DevicePool("kv", 100, 1000, 4)), stage_of(second)]
    result = made(stages, TotalSize(1), "total")
    assert [finding.code for finding in result.findings] == [code]
    assert result.stages == ()
    assert "stage 0" in result.findings[0].message


def test_deepseek_v4_refuses_a_size_under_sglang_and_takes_it_as_a_ratio_under_total() -> None:
    stage = stage_of(
        DevicePool("kv", 999_936, 0, 256, page_rule="whole"),
        DevicePool("c4", follows="kv", page_size=256, page_bytes=786_240),
        DevicePool("swa", 99_840, None, 256, page_bytes=6_439_680, page_rule="whole"),
    )
    assert [finding.code for finding in made([stage], TotalSize(10), "sglang").findings] == ["HC304"]
    result = made([stage], TotalSize(10), "total")
    assert result.stage(0).bytes is not None
    assert result.stage(0).bytes <= 10**10
    assert result.ratio is not None
    assert int(3906 * result.ratio) == result["kv"].pages
    assert int(390 * result.ratio) == result["swa"].pages
    assert result["swa"].host_size_gb is None
    by_ratio = made([stage], DeviceRatio(2.0), "sglang")
    assert (by_ratio["kv"].pages, by_ratio["swa"].pages) == (7812, 780)


def test_a_fraction_lowers_the_ratio_until_it_fits() -> None:
    stage = stage_of(DevicePool("kv", 10_000_000, 1000))
    terms = Terms(HostFraction(0.8, 2.0), "sglang", Release.of(NEWEST))
    roomy = plan([stage], terms, allowance_bytes=100 * 10**9)
    assert roomy.ratio == 2.0
    tight = plan([stage, stage], terms, allowance_bytes=[10 * 10**9, 5 * 10**9])
    assert tight.ratio == int(5 * 10**9 * 0.8) * (1 - 0.05) / 10**10
    assert tight.decided_by == (1,)
    unknown = plan([stage], terms)
    assert unknown.ratio == 2.0
    assert any("memory is not given" in text for text in unknown.assumptions)
    (finding,) = plan([stage], terms, allowance_bytes=-1).findings
    assert finding.code == "HC305"
    no_slots = plan([stage_of(DevicePool("kv", None, 1000))], terms, allowance_bytes=10**9)
    assert any("not known" in text for text in no_slots.assumptions)
    assert plan([stage_of()], terms, allowance_bytes=10**9).ratio == 2.0


def test_mirrored_bytes_count_followers_once() -> None:
    counted = stage_of(DevicePool("kv", 100, 10, 4), DevicePool("indexer", follows="kv", bytes_per_slot=1, page_size=4))
    assert mirrored_device_bytes(counted) == 1000 + 100
    inside = stage_of(
        DevicePool("kv", 100, 10, 4, device_bytes=1144),
        DevicePool("indexer", follows="kv", bytes_per_slot=1, page_size=4),
        DevicePool("draft", follows="kv", bytes_per_slot=1, page_size=4, device_bytes=7),
    )
    assert mirrored_device_bytes(inside) == 1144 + 7


def test_building_calls_each_constructor_with_its_size() -> None:
    stage = stage_of(
        DevicePool("indexer", follows="kv", bytes_per_slot=1, page_size=4, extra_pages=1), DevicePool("kv", 100, 10, 4)
    )
    result = made([stage], TotalSize(1), "total")
    order: list[str] = []

    def make(size: HostPoolSize) -> int:
        order.append(size.name)
        return size.bytes or 0

    hosts = result.build({"kv": make, "indexer": make})
    assert order == ["kv", "indexer"]
    assert list(hosts) == ["indexer", "kv"]
    assert sum(hosts.values()) == result.stage(0).bytes
    assert [pool.name for pool in result] == ["indexer", "kv"]


def test_nothing_is_built_when_a_constructor_or_a_size_is_missing() -> None:
    result = made([stage_of(DevicePool("kv", 100, 10))], TotalSize(1), "total")
    with pytest.raises(KeyError, match="kv"):
        result.build({})
    with pytest.raises(KeyError, match="swa"):
        result.build({"kv": print, "swa": print})
    unknown = made([stage_of(DevicePool("kv", None, 10))], DeviceRatio(1.0), "total")
    with pytest.raises(ValueError, match="device slots"):
        unknown.build({"kv": print})
    with pytest.raises(KeyError):
        result["swa"]
    with pytest.raises(KeyError):
        result.stage(7)


def test_a_plan_can_be_written_down() -> None:
    result = made(glm(indexer=True), TotalSize(100), "sglang")
    written = result.stage(0).as_dict()
    assert written["pools"][0]["name"] == "kv"
    assert written["bytes"] == written["size_bytes"] + written["over_size_bytes"] - written["unused_bytes"]
    assert all(text for pool in written["pools"] for text in pool["trace"])
    assert TotalSize(100).as_dict() == {"kind": "size", "size_gb": 100}
    assert DeviceRatio(2.0).as_dict() == {"kind": "ratio", "ratio": 2.0}
    assert HostFraction(0.8, 2.0).as_dict() == {"kind": "fraction", "fraction": 0.8, "ratio": 2.0}


def test_states_of_zero_bytes_that_others_follow_are_refused() -> None:
    """Their followers would hold bytes, and nothing would say how many."""
    stage = stage_of(DevicePool("mamba", 10, 0), DevicePool("index", None, 100, follows="mamba"))
    for capacity in (TotalSize(10), DeviceRatio(2.0)):
        assert [finding.code for finding in made([stage], capacity, "sglang").findings] == ["HC303"]


def test_no_whole_size_stays_within_a_budget_below_one() -> None:
    assert made(glm(indexer=True)[:1], TotalSize(0.5), "sglang").stock_size_gb is None
    large = stage_of(DevicePool("kv", None, 10**9, 64))
    assert made([large], TotalSize(100), "total").stock_size_gb is not None
    assert made([stage_of(DevicePool("kv", None, 10**9, 1))], TotalSize(1), "total").stock_size_gb is None


def test_a_minimum_over_the_stages_lets_a_size_above_the_budget_stay_within_it() -> None:
    """One stage gives nearly all to kv and the other nearly all to mamba: the minimum cuts both on each."""
    stages = [
        stage_of(
            DevicePool("kv", None, 90_000, 1, device_bytes=90), DevicePool("mamba", None, 10_000, device_bytes=10)
        ),
        stage_of(
            DevicePool("kv", None, 90_000, 1, device_bytes=10), DevicePool("mamba", None, 10_000, device_bytes=90)
        ),
    ]
    stock = made(stages, TotalSize(100), "sglang").stock_size_gb
    assert stock == 499  # a fifth of a size is used
    assert made(stages, TotalSize(500), "sglang").stages[0].bytes == 100_000_050_000


def test_no_size_is_the_largest_where_all_stay_within_the_budget() -> None:
    stages = [
        stage_of(
            DevicePool("kv", None, 1_000, 1, device_bytes=1), DevicePool("mamba", None, 1_000, device_bytes=2**62)
        ),
        stage_of(
            DevicePool("kv", None, 1_000, 1, device_bytes=2**62), DevicePool("mamba", None, 1_000, device_bytes=1)
        ),
    ]
    assert made(stages, TotalSize(1), "sglang").stock_size_gb is None


def test_agreeing_twice_changes_nothing() -> None:
    terms = Terms(TotalSize(100), "total", Release.of(NEWEST))
    offers = [resolve(stage, terms) for stage in mamba_pair()]
    once: Agreement = agree(offers, terms)
    assert agree(offers, terms) == once


def test_releases_are_read_by_their_three_numbers() -> None:
    assert Release.of("0.5.15.post1").name == "0.5.15"
    assert Release.of("v0.5.20rc1").name == "0.5.20"
    assert Release.of("0.5.23+cu130").name == "0.5.23"
    newer = Release.of("0.6.0")
    assert (newer.name, newer.is_unknown) == (NEWEST, True)
    assert not Release.of(OLDEST).is_unknown
    for text in ("0.5.9", "0.4.7", "latest", "", "1.2"):
        with pytest.raises(ReleaseError):
            Release.of(text)
    assert release_key("0.5.10") > release_key("0.5.9")
    old = Release.of("0.5.14")
    assert old.refuses_small_host_pools
    assert not any((old.splits_a_size, old.takes_the_minimum, old.has_fraction, old.divides_host_memory))


def test_an_error_carries_all_findings() -> None:
    findings = [Finding("HC301", "one", "error", "first", "Do this."), Finding("HC302", "two", "error", "second")]
    error = ConfigurationError(findings)
    assert error.findings == tuple(findings)
    assert str(error) == "HC301 one: first. Do this.\nHC302 two: second"
    assert describe(findings[1]) == "HC302 two: second"


def test_a_stage_where_the_only_pool_is_empty_takes_the_pages_of_the_others() -> None:
    result = made(
        [stage_of(DevicePool("kv", None, 0, 4)), stage_of(DevicePool("kv", None, 100, 4))], TotalSize(1), "total"
    )
    assert result.stage(0)["kv"].pages == result.stage(1)["kv"].pages == 2_500_000
    assert result.stage(0).bytes == 0


def test_a_follower_by_ratio_beside_pools_of_unknown_slots() -> None:
    stage = stage_of(
        DevicePool("kv", None, 100, 4),
        DevicePool("swa", 600, 100, 4),
        DevicePool("draft_swa", 600, 1, 4, follows="swa", follow_rule="ratio"),
    )
    result = made([stage], TotalSize(1), "total")
    assert result["draft_swa"].pages is None
    assert result["draft_swa"].trace
