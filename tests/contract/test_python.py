"""The Python API as the contract shows it: names, what resolve answers and raises, what an import loads."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

import hicache_config
from hicache_config import ConfigurationError, DevicePool, HostPoolSize, Plan, ServerArgs, resolve
from hicache_config.sync import run_on_threads
from tests.contract.support import INDEXED, LAYERS

KV = DevicePool(name="kv", slots=2_000_000, bytes_per_slot=12464, page_size=64)
INDEXER = DevicePool(name="indexer", follows="kv", bytes_per_slot=792, page_size=64, extra_pages=1)
ONE = ServerArgs.model_validate_json('{"hicache_size": 100}')
FOUR = ServerArgs.model_validate_json('{"hicache_size": 100, "pp_size": 4}')


def stages() -> list[list[DevicePool]]:
    return [
        [
            DevicePool("kv", 2_000_000, 656 * layers, 64),
            DevicePool("indexer", None, 132 * owned, 64, "kv", extra_pages=1),
        ]
        for layers, owned in zip(LAYERS, INDEXED, strict=True)
    ]


def test_a_plan_of_one_stage() -> None:
    plan = resolve(ONE, [KV, INDEXER], group=None, accounting="total", sglang="0.5.23")
    assert [pool.name for pool in plan.pools] == ["kv", "indexer"]
    kv, indexer = plan["kv"], plan["indexer"]
    assert kv.slots == indexer.slots
    assert kv.pages is not None
    assert kv.bytes == kv.pages * 12464 * 64
    assert indexer.bytes == (kv.pages + 1) * 792 * 64
    assert kv.bytes + indexer.bytes <= 100 * 10**9
    assert kv.host_size_gb is not None
    assert int(kv.host_size_gb * 1e9 // 12464) // 64 + 1 == kv.pages
    assert indexer.host_size_gb is None
    with pytest.raises(KeyError, match="swa"):
        plan["swa"]


def test_hosts_are_built_by_any_callable() -> None:
    plan = resolve(ONE, [INDEXER, KV])
    made: list[str] = []

    def make(size: HostPoolSize) -> int | None:
        made.append(size.name)
        return size.pages

    hosts = plan.build({"kv": make, "indexer": make})
    assert list(hosts) == ["indexer", "kv"]
    assert made == ["kv", "indexer"]
    with pytest.raises(KeyError, match="indexer"):
        plan.build({"kv": make})


def test_total_is_the_default() -> None:
    assert resolve(ONE, [KV]).terms.accounting == "total"
    assert resolve(ONE, [KV], accounting="sglang").terms.accounting == "sglang"
    with pytest.raises(ValueError, match="sglang, total"):
        resolve(ONE, [KV], accounting="all")  # type: ignore[arg-type]


def test_all_stages_at_once_or_one_for_each() -> None:
    plan = resolve(FOUR, stages=stages())
    assert [stage["kv"].slots for stage in plan.stages] == [7_256_832] * 4
    assert [stage["kv"].slots for stage in resolve(FOUR, stages=[[KV]]).stages] == [resolve(ONE, [KV])["kv"].slots] * 4


def test_with_a_group_every_rank_gets_its_stage_of_the_same_plan() -> None:
    plans = run_on_threads(4, lambda group: resolve(FOUR, stages()[group.rank], group=group))
    whole = resolve(FOUR, stages=stages())
    for rank, plan in enumerate(plans):
        assert isinstance(plan, Plan)
        assert plan["kv"] == whole.stage(rank)["kv"] or plan["kv"].slots == whole.stage(rank)["kv"].slots
        assert plan["kv"].slots == 7_256_832
        assert plan["indexer"].bytes == whole.stage(rank)["indexer"].bytes


def test_a_fault_of_one_rank_reaches_all() -> None:
    def work(group: Any) -> Plan:
        pools = stages()[group.rank]
        return resolve(FOUR, pools if group.rank != 2 else [*pools, pools[0]], group=group)

    errors = run_on_threads(4, work)
    assert all(isinstance(error, ConfigurationError) for error in errors)
    assert all("2" in str(error) for error in errors)


def test_one_exception_carries_all_findings() -> None:
    wrong = [DevicePool("kv", 0, 1), DevicePool("indexer", follows="none", bytes_per_slot=1)]
    with pytest.raises(ConfigurationError) as caught:
        resolve(ONE, wrong)
    assert [finding.code for finding in caught.value.findings] == ["HC310", "HC311"]
    assert all(finding.message in str(caught.value) for finding in caught.value.findings)
    with pytest.raises(ConfigurationError, match="group"):
        resolve(FOUR, [KV])
    with pytest.raises(ConfigurationError, match="3 stages"):
        resolve(FOUR, stages=stages()[:3])


def test_model_path_is_optional_and_types_are_strict() -> None:
    assert ServerArgs.model_validate({}).model_path is None
    for wrong in ({"hicache_size": "100"}, {"hicache_size": True}, {"hicache_size": 1.5}, {"hicache_ratio": float("nan")},
                  {"tp_size": 0}, {"hicache_size": -1}, {"pp_size": 2**63}):  # fmt: skip
        with pytest.raises(ValueError, match=next(iter(wrong))):
            ServerArgs.model_validate(wrong)
    assert ServerArgs.model_validate({"--tp": "8", "hicache-size": "100"}).tp_size == 8
    assert dict(ServerArgs.model_validate({"hicache_sise": 1}).unknown) == {"hicache_sise": 1}


HEAVY = "{'torch', 'sglang', 'pydantic', 'click', 'jsonschema', 'rich', 'ruamel', 'numpy', 'psutil'}"


@pytest.mark.parametrize(
    ("code", "may_load"),
    [
        ("import hicache_config", "set()"),
        ("from hicache_config import DevicePool, ConfigurationError, TotalSize", "set()"),
        ("from hicache_config.cli.main import group; group.main(['--version'], standalone_mode=False)", "{'click'}"),
        ("from hicache_config.cli.main import group; group.main(['--help'], standalone_mode=False)", "{'click'}"),
        (
            "from hicache_config.cli.main import group; group.main(['validate', '--', 'sglang', 'serve', '--model-path', 'x'], standalone_mode=False)",
            "{'click', 'pydantic'}",
        ),
    ],
)
def test_what_is_loaded(code: str, may_load: str) -> None:
    program = f"import sys\n{code}\nfound = {HEAVY} & set(sys.modules)\nassert found <= {may_load}, found\n"
    subprocess.run([sys.executable, "-c", program], check=True, capture_output=True)


def test_public_names_are_there() -> None:
    for name in hicache_config.__all__:
        assert getattr(hicache_config, name) is not None
    assert set(hicache_config.__all__) <= set(dir(hicache_config))
    with pytest.raises(AttributeError, match="no_such_name"):
        hicache_config.no_such_name  # noqa: B018
