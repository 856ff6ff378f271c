"""Replay what the real SGLang came to, and print how many cases of each family agree.

    python tools/replay.py [-v]

All sources are in this repository: tests/geometry/truth-*.json, tests/recorded/models.jsonl, special.jsonl and
classes.jsonl (whole models), whole-*.jsonl.gz (whole models of older releases), pools-*.jsonl and older-*.jsonl.gz
(pools of generated geometries, the latter of older releases). Whole models go the whole way from config.json and
arguments; generated geometries go through the functions that make pools, so both the formulas and the split are
compared: slots, pages, bytes, own slots, shares, refusals. Exit status 1 where a case differs.
"""

from __future__ import annotations

import json
import math
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "oracle")]

import recordings  # noqa: E402 - lies beside the drivers

from hicache_config.arguments import ServerArgs  # noqa: E402
from hicache_config.core.agree import agree  # noqa: E402
from hicache_config.core.capacity import Capacity, DeviceRatio, TotalSize  # noqa: E402
from hicache_config.core.findings import has_errors  # noqa: E402
from hicache_config.core.finish import finish  # noqa: E402
from hicache_config.core.plan import Plan  # noqa: E402
from hicache_config.core.pools import Stage  # noqa: E402
from hicache_config.core.releases import NEWEST, Release  # noqa: E402
from hicache_config.core.resolve import resolve  # noqa: E402
from hicache_config.core.terms import Terms  # noqa: E402
from hicache_config.geometry import Model, Question, load_model, pipeline_of  # noqa: E402
from hicache_config.geometry.pieces import IndexKeys  # noqa: E402
from tools.replay_geometries import stages_of  # noqa: E402

Case = dict[str, Any]
#: Errors of a recording that come from the machine without a GPU that it was made on, not from SGLang's rules.
OF_THE_MACHINE = {
    "Transformers does not recognize this architecture": "configuration class that comes with the model's own code",
    "contains custom code which must be executed": "configuration class that comes with the model's own code",
    "needs the staged JIT write-back kernel": "a kernel that a CPU does not have",
    "Unsupported layout": "layout of the host pools, which is for the rules",
}
COMPARED = ("name", "follows", "page_size", "slots", "pages", "bytes", "own_slots")


@dataclass
class Tally:
    """Counts of one family: cases, those that agree, those left out with the reason, and the differences in words."""

    cases: int = 0
    skipped: Counter[str] = field(default_factory=Counter)
    differences: list[str] = field(default_factory=list)


def replay() -> dict[str, Tally]:
    """All recorded cases, by family."""
    tallies: dict[str, Tally] = {}
    for family, name, outcome in [*whole_models(), *generated()]:
        tally = tallies.setdefault(family, Tally())
        tally.cases += 1
        if outcome.startswith("skip: "):
            tally.skipped[outcome.removeprefix("skip: ")] += 1
        elif outcome:
            tally.differences.append(f"{name}: {outcome}")
    return tallies


# --- whole models -------------------------------------------------------------------------------------------------


def whole_models() -> Iterator[tuple[str, str, str]]:
    """Family, name and outcome ("" agrees) of each recorded whole model."""
    for path in sorted((ROOT / "tests/geometry").glob("truth-*.json")):
        for number, case in enumerate(json.loads(path.read_text(encoding="utf-8"))["cases"]):
            model, _ = load_model(case["model"])
            assert model is not None, case["model"]
            expected = {"error": case["refused"]} if case.get("refused") else case
            family, outcome = whole_model(model, case["args"], case["gpu"], {}, expected)
            yield family, f"{path.name} {number} {case['model']}", outcome
    yield from settings_models()
    recorded = [ROOT / f"tests/recorded/{name}.jsonl" for name in ("models", "special", "classes")]
    for entry in (entry for path in recorded for entry in recorded_lines(path)):
        case = entry["case"]
        model = Model(case["model"], {**config_of(case["model"]), **(case.get("patch") or {})})
        family, outcome = whole_model(model, case["args"], case["gpu"], case.get("env") or {}, entry["result"])
        yield family, entry["id"], outcome
    yield from older_models()


def older_models() -> Iterator[tuple[str, str, str]]:
    """The same of older releases."""
    for path in recordings.files("whole"):
        header, entries = recordings.read(path)
        release = header["sglang"]
        for entry in entries:
            case = entry["case"]
            model = Model(case["model"], config_of(case["model"]))
            family, outcome = whole_model(model, case["args"], case["gpu"], {}, entry["result"], release=release)
            yield f"{release} {family}", f"{release} {entry['id']}", outcome


def settings_models() -> Iterator[tuple[str, str, str]]:
    """The same of the cases that have their configurations beside them: settings, GPUs, environment, odd shapes."""
    path = ROOT / "tests/geometry/settings-0.5.23.json"
    content = json.loads(path.read_text(encoding="utf-8"))
    for number, case in enumerate(content["cases"]):
        model = Model(case["model"], content["configs"][case["model"]], case.get("beside") or {})
        family, outcome = whole_model(model, case["args"], case["gpu"], case.get("env") or {}, case)
        yield family, f"{path.name} {number} {case['model']}", outcome


@cache
def config_of(name: str) -> Case:
    """A config.json of tests/models/, or one of the many in made/classes.json ("classes/NAME")."""
    kind, _, inner = name.partition("/")
    path = ROOT / f"tests/models/{'made/classes' if kind == 'classes' else name}.json"
    content: Case = json.loads(path.read_text(encoding="utf-8"))
    return dict(content[inner]) if kind == "classes" else content


def whole_model(
    model: Model, args: Case, gpu: str, env: dict[str, str], expected: Case, *, release: str = NEWEST
) -> tuple[str, str]:
    """The family that answers a model, and how the answer differs from what SGLang came to."""
    typed = ServerArgs.model_validate({"enable_hierarchical_cache": True, **args})
    draft = args.get("speculative_draft_model_path")
    draft_config = None if draft in {None, args.get("model_path")} else config_of(draft)
    answer = pipeline_of(model, typed, Question(release, gpu, env, draft_config=draft_config))
    capacity = explicit(answer.capacity or typed.capacity().capacity)
    family = f"model: {answer.family or 'refused'}"
    if "error" in expected or expected.get("hazards"):
        if not answer.stages or not made_plan(answer.stages, capacity, release).stages:
            return family, ""
        problem = str(expected.get("error") or expected.get("hazards"))
        machine = next((why for text, why in OF_THE_MACHINE.items() if text in problem), None)
        if machine is None and isinstance(expected.get("error"), dict) and not expected["error"].get("late", True):
            machine = "refused while arguments are resolved, which is for the rules"
        return family, f"skip: {machine}" if machine else f"SGLang refuses it ({problem[:160]}), we do not"
    if not answer.stages:
        return family, f"refused by us: {[finding.message for finding in answer.findings]}"
    layers = [stage.layers for stage in answer.stages]
    if layers != [stage["layers"] for stage in expected["stages"]]:
        return family, f"layers {layers}, SGLang {[stage['layers'] for stage in expected['stages']]}"
    recorded = expected["stages"]
    if any("gives the draft a page more than kv" in text for text in answer.assumptions):
        recorded = [without_spare_drafts(stage) for stage in recorded]
    return family, compare(made_plan(answer.stages, capacity, release), recorded)


def without_spare_drafts(stage: Case) -> Case:
    """A recorded stage without the page that a draft has more than kv where a plan says that it may not know it."""
    return {"pools": [_without_page(pool) if pool["name"] == "draft" else pool for pool in stage["pools"]]}


def _without_page(pool: Case) -> Case:
    page, row = pool["page_size"], pool["bytes_per_slot"]
    fewer = {"pages": 1, "slots": page, "own_slots": page, "bytes": page * row}
    return {**pool, **{key: pool[key] - less for key, less in fewer.items()}}


def explicit(capacity: Capacity) -> TotalSize | DeviceRatio:
    """A capacity that does not ask the machine: a share of host memory is left at its ratio."""
    return capacity if isinstance(capacity, TotalSize | DeviceRatio) else DeviceRatio(capacity.ratio)


def made_plan(stages: Iterable[Stage], capacity: TotalSize | DeviceRatio, release: str = NEWEST) -> Plan:
    """The plan of the stages under accounting `sglang`, without what a replay does not need (`stock_size_gb`)."""
    stages, terms = tuple(stages), Terms(capacity, "sglang", Release.of(release))
    offers = [resolve(stage, terms) for stage in stages]
    agreement = agree(offers, terms)
    if has_errors(agreement.findings):
        return Plan(terms, (), findings=agreement.findings)
    pairs = enumerate(zip(stages, offers, strict=True))
    return Plan(terms, tuple(finish(stage, offer, agreement, terms, index=index) for index, (stage, offer) in pairs))


def compare(made: Plan, stages: list[Case]) -> str:
    """How a plan differs from recorded stages; empty where it agrees."""
    if not made.stages:
        return f"our plan is refused: {[finding.message for finding in made.findings]}"
    for planned, recorded in zip(made.stages, stages, strict=True):
        names = [pool.name for pool in planned.pools]
        if names != [pool["name"] for pool in recorded["pools"]]:
            return f"stage {planned.stage}: pools {names}, SGLang {[pool['name'] for pool in recorded['pools']]}"
        for pool, expected in zip(planned.pools, recorded["pools"], strict=True):
            got = pool.as_dict()
            keys = [key for key in COMPARED if key in expected]
            if (
                got["bytes"] == 0 and got["slots"] is None
            ):  # of a size an empty pool gets nothing, and its slots no name
                keys = [key for key in keys if key not in {"slots", "pages", "own_slots"}]
            if expected.get("bytes_per_slot") is not None:
                keys.append("bytes_per_slot")
            wrong = [f"{key} {got[key]} (SGLang {expected[key]})" for key in keys if got[key] != expected[key]]
            share = expected.get("share_gb")
            if share is not None and got["share_gb"] != share:
                wrong.append(f"share_gb {got['share_gb']!r} (SGLang {share!r})")
            if wrong:
                return f"stage {planned.stage} {pool.name}: {', '.join(wrong)}"
    return ""


# --- generated geometries -----------------------------------------------------------------------------------------


def generated() -> Iterator[tuple[str, str, str]]:
    """Family, id and outcome of each recorded geometry, those of older releases with the release's number."""
    for path in [*recordings.files("pools"), *recordings.files("older")]:
        header, entries = recordings.read(path)
        release = header["sglang"]
        number = "" if release == NEWEST else f"{release} "
        for entry in entries:
            outcome = generated_case(entry["case"], entry["result"], release)
            yield f"{number}pools: {entry['case']['family']}", f"{number}{entry['id']}", outcome


def recorded_lines(path: Path) -> Iterator[Case]:
    """The cases of a recording, without its header."""
    if path.is_file():
        yield from recordings.read(path)[1]


def generated_case(case: Case, result: Case, release: str = NEWEST) -> str:
    capacity = case["capacity"]
    asked = TotalSize(capacity["size"]) if "size" in capacity else DeviceRatio(float(capacity["ratio"]))
    if isinstance(asked, DeviceRatio) and not (math.isfinite(asked.ratio) and asked.ratio >= 0):
        return "skip: ratio that the arguments refuse"
    stages = stages_of(case, Release.of(release))
    made = made_plan(stages, asked, release)
    if "error" in result:
        return refused_case(made, result["error"]["message"])
    if result.get("hazards"):
        return "" if not made.stages else "skip: stages that disagree, which SGLang does not see"
    for stage, recorded in zip(stages, result["stages"], strict=True):
        weights = {pool.name: pool.weight for pool in stage.pools}
        for expected in recorded["pools"]:
            weight = expected.get("device_bytes")
            if weight is not None and weights.get(expected["name"]) != weight:
                return f"weight of {expected['name']} {weights.get(expected['name'])} (SGLang {weight})"
    if Release.of(release).refuses_small_host_pools and is_small(made):
        return "a host pool is no larger than its device pool, which SGLang does not refuse"
    spare = release == "0.5.10" and "index" in case
    return compare(made, [without_spare_keys(case, stage) for stage in result["stages"]] if spare else result["stages"])


def without_spare_keys(case: Case, stage: Case) -> Case:
    """A recorded stage without the page of index keys that 0.5.10 allocates beyond what its rows count.

    Source: 0.5.10, mem_cache/memory_pool_host.py:NSATokenToKVPoolHost (indexer_page_num).
    """
    keys = IndexKeys(case["index"]["head_dim"], case["index"]["kpool"]).page_bytes(case["page_size"])
    return {"pools": [{**pool, "bytes": pool["bytes"] - keys * pool["layers"]} for pool in stage["pools"]]}


def refused_case(made: Plan, message: str) -> str:
    """The outcome of a case that SGLang refuses while it builds pools: what depends on sizes has to be foreseen."""
    if "host memory should be larger than the device memory" in message:
        is_foreseen = is_small(made) or not made.stages
        return "" if is_foreseen else "SGLang refuses a host pool no larger than its device pool, we see none"
    if "division by zero" in message:
        return "" if not made.stages else "SGLang refuses a pool of zero bytes, we do not"
    return "skip: refused by a constructor"


def is_small(made: Plan) -> bool:
    """Whether some host pool with slots of its own is no larger than its device pool."""
    pools = [pool.as_dict() for stage in made.stages for pool in stage.pools if pool.name != "indexer"]
    return any(pool["slots"] is not None and pool["slots"] <= (pool["device_slots"] or 0) for pool in pools)


def main() -> int:
    verbose = "-v" in sys.argv[1:]
    tallies = replay()
    print(f"{'family':<24}{'cases':>8}{'compared':>10}{'differ':>8}")
    for family, tally in sorted(tallies.items()):
        left = sum(tally.skipped.values())
        print(f"{family:<24}{tally.cases:>8}{tally.cases - left:>10}{len(tally.differences):>8}")
        for reason, count in sorted(tally.skipped.items()):
            print(f"    {count} not compared: {reason}")
        for difference in tally.differences if verbose else tally.differences[:3]:
            print(f"    {difference}")
    wrong = sum(len(tally.differences) for tally in tallies.values())
    cases = sum(tally.cases for tally in tallies.values())
    print(f"{cases} cases, {wrong} differences")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
