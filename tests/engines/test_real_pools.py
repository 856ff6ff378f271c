"""Real host pools of each family on 1, 2 and 4 gloo ranks: within the size under enforce, SGLang's own under check.

As recorded, and built again where the tests marked `live` are chosen. `python -m tests.engines.test_real_pools` records
them anew.
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from .live.servers import ROOT, python_of

RECORDS = Path(__file__).parent / "recorded" / "pools.json"
SIZE_GB = 0.02
Answers = dict[str, list[dict[str, Any]]]


def stages(*layers: dict[str, Any]) -> list[dict[str, Any]]:
    return list(layers)


def draft(mode: str, kind: str = "mha", **more: Any) -> dict[str, Any]:
    return {"draft": {"mode": mode, "kind": kind, "layers": 1, **more}}


#: Name: family, page, stages.
FAMILIES: dict[str, tuple[str, int, list[dict[str, Any]]]] = {
    "mha": ("mha", 16, stages({"kv": 4})),
    "mha-2": ("mha", 16, stages({"kv": 3}, {"kv": 1})),
    "mha-4": ("mha", 16, stages({"kv": 4}, {"kv": 3}, {"kv": 5}, {"kv": 2})),
    "mha-page-1": ("mha", 1, stages({"kv": 3}, {"kv": 1})),
    "mla-2": ("mla", 16, stages({"kv": 3}, {"kv": 1})),
    "dsa": ("dsa", 64, stages({"kv": 4})),
    "dsa-4": (
        "dsa", 64,
        stages({"kv": 2, "owners": [0]}, {"kv": 3, "owners": [0, 2]}, {"kv": 1, "owners": [0]}, {"kv": 2}),
    ),
    "dsa-shared-2": ("dsa", 64, stages({"kv": 3}, {"kv": 1, "owners": []})),
    "swa-2": ("swa", 16, stages({"kv": 2, "swa": 1}, {"kv": 1, "swa": 2})),
    "swa-4": ("swa", 16, stages(*[{"kv": 1, "swa": sliding} for sliding in (1, 2, 3, 4)])),
    "linear": ("linear", 16, stages({"kv": 1, "mamba": 3})),
    "linear-2": ("linear", 16, stages({"kv": 2, "mamba": 3}, {"kv": 1, "mamba": 4})),
    "mamba-swa-2": ("mamba_swa", 16, stages({"kv": 2, "swa": 2, "mamba": 2}, {"kv": 1, "swa": 1, "mamba": 3})),
    "packed-2": ("mha", 16, stages({"kv": 2}, {"kv": 2, **draft("packed", layers=2)})),
    "packed-mla": ("mla", 16, stages({"kv": 2, **draft("packed")})),
    "packed-dsa": ("dsa", 64, stages({"kv": 2, **draft("packed")})),
    "packed-swa": ("swa", 16, stages({"kv": 2, "swa": 2, **draft("packed")})),
    "sidecar-mha-2": ("mha", 16, stages({"kv": 2, **draft("sidecar")}, {"kv": 2, **draft("sidecar")})),
    "sidecar-other-slots": ("mha", 16, stages({"kv": 2, **draft("sidecar", slots=700)})),
    "sidecar-dsa": ("dsa", 64, stages({"kv": 2, **draft("sidecar", "dsa")})),
    "sidecar-swa-2": (
        "swa", 16, stages({"kv": 2, "swa": 2, **draft("sidecar", "swa")}, {"kv": 1, "swa": 1, **draft("sidecar", "swa")}),
    ),
}  # fmt: skip
MODES = ("enforce", "check", "off")
#: Stages whose pools differ: right sizes where SGLang can build them, else the same error on every rank.
UNEQUAL: dict[str, tuple[str, int, list[dict[str, Any]]]] = {
    "no-states": ("linear", 16, stages({"kv": 2, "mamba": 3}, {"kv": 3, "mamba": 0})),
    "no-attention": ("linear", 16, stages({"kv": 2, "mamba": 3}, {"kv": 0, "mamba": 4})),
    "no-window": ("swa", 16, stages({"kv": 2, "swa": 2}, {"kv": 2, "swa": 0})),
}


def case(name: str, family: str, page: int, layers: list[dict[str, Any]], mode: str, **more: Any) -> dict[str, Any]:
    return {"id": name, "family": family, "page": page, "stages": layers, "mode": mode, "size": SIZE_GB,
            "layout": "page_first", **more}  # fmt: skip


def run(python: Path, folder: Path, cases: list[dict[str, Any]]) -> Answers:
    """All cases in one process of the driver, which forks the ranks of each."""
    (folder / "cases.json").write_text(json.dumps(cases), encoding="utf-8")
    driver = Path(__file__).parent / "live" / "pools_driver.py"
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "SGLANG_PLUGINS": "none"}
    done = subprocess.run(
        [str(python), "-W", "ignore", str(driver), str(folder / "cases.json")], capture_output=True, text=True,
        env=environment, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    answers = map(json.loads, done.stdout.splitlines())
    return {answer["id"]: answer["ranks"] for answer in answers}


def all_cases() -> list[dict[str, Any]]:
    cases = [
        case(f"{name}:{mode}", family, page, layers, mode)
        for name, (family, page, layers) in FAMILIES.items()
        for mode in MODES
    ]
    cases += [
        case(f"{name}:{mode}", family, page, layers, mode)
        for name, (family, page, layers) in UNEQUAL.items()
        for mode in ("enforce", "check")
    ]
    return [*cases, case("fault", "mha", 16, stages({"kv": 2}, {"kv": 2}), "enforce", fail=1)]


@pytest.fixture(scope="module", params=["recorded", pytest.param("live", marks=pytest.mark.live)])
def answers(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Answers:
    if request.param == "recorded":
        recorded: Answers = json.loads(RECORDS.read_text("utf-8"))
        return recorded
    find: Callable[[str], Path] = request.getfixturevalue("sglang_python")
    return run(find("0.5.23"), tmp_path_factory.mktemp("pools"), all_cases())


def pools_of(rank: dict[str, Any]) -> dict[str, list[int]]:
    assert "error" not in rank, rank
    return dict(rank["pools"])


@pytest.mark.parametrize("name", FAMILIES)
def test_under_enforce_all_pools_of_every_rank_stay_within_the_size(answers: Answers, name: str) -> None:
    ranks = [pools_of(rank) for rank in answers[f"{name}:enforce"]]
    totals = [sum(size for _, size in pools.values()) for pools in ranks]
    assert all(total <= SIZE_GB * 1e9 for total in totals)
    # The rank that decides leaves less than a page of each pool unused.
    pages = [sum(size // count for count, size in pools.values()) for pools in ranks]
    assert any(SIZE_GB * 1e9 - total < 2 * page for total, page in zip(totals, pages, strict=True))


@pytest.mark.parametrize("name", FAMILIES)
def test_under_enforce_a_pool_has_the_same_pages_on_every_rank(answers: Answers, name: str) -> None:
    ranks = [pools_of(rank) for rank in answers[f"{name}:enforce"]]
    for pool in ("kv", "swa", "mamba", "indexer"):
        assert len({pools[pool][0] for pools in ranks if pool in pools}) <= 1


@pytest.mark.parametrize("name", FAMILIES)
def test_under_check_pools_are_sglangs_own(answers: Answers, name: str) -> None:
    checked, stock = answers[f"{name}:check"], answers[f"{name}:off"]
    assert [pools_of(rank) for rank in checked] == [pools_of(rank) for rank in stock]
    assert not [line for rank in checked for line in rank["warned"] if "HC455" in line]


@pytest.mark.parametrize("name", FAMILIES)
def test_check_tells_each_rank_what_is_taken_beyond_the_size(answers: Answers, name: str) -> None:
    for rank in answers[f"{name}:check"]:
        over = sum(size for _, size in pools_of(rank).values()) - round(SIZE_GB * 1e9)
        told = [line for line in rank["warned"] if "more than" in line]
        assert len(told) == (over > 0)
        assert all(f"{over:,} bytes" in line for line in told)


def test_a_stage_without_states_gets_right_sizes(answers: Answers) -> None:
    with_states, without = (pools_of(rank) for rank in answers["no-states:enforce"])
    assert with_states["kv"][0] == without["kv"][0]
    assert without.get("mamba", [0, 0])[1] == 0


@pytest.mark.parametrize(
    "name", ["no-states:check", "no-attention:enforce", "no-attention:check", "no-window:enforce", "no-window:check"]
)
def test_stages_that_would_hang_or_fail_end_by_one_error_on_every_rank(answers: Answers, name: str) -> None:
    ranks = answers[name]
    assert all(set(rank["codes"]) <= {"HC303", "HC401"} and rank["codes"] for rank in ranks), ranks
    assert len({rank["error"] for rank in ranks}) == 1
    assert "stage 1" in ranks[0]["error"]


def test_a_rank_that_fails_ends_all_with_its_message(answers: Answers) -> None:
    assert all("a fault on stage 1" in rank["error"] for rank in answers["fault"])


def main() -> None:
    """Record them, with the oracle's environment."""
    with tempfile.TemporaryDirectory() as folder:
        found = run(python_of("0.5.23"), Path(folder), all_cases())
    for ranks in found.values():
        for rank in ranks:
            rank.pop("where", None)
    lines = ",\n".join(f" {json.dumps(name)}: {json.dumps(ranks)}" for name, ranks in found.items())
    RECORDS.parent.mkdir(exist_ok=True)
    RECORDS.write_text(f"{{\n{lines}\n}}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
