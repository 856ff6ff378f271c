"""The cases that pools.py builds in older releases: a part of generate.py's lists, as far as a release has them.

    python tests/oracle/older_cases.py 0.5.17 [FAMILY…]    the cases of a release as JSON lines

A case that a release does not have is left out, and drafts that it does not pack into the model's rows become drafts
beside them. Layouts change no size, so a release that has no other for states gets `page_first_direct`. Uses the
standard library alone.
"""

from __future__ import annotations

import json
import math
import sys
from typing import Any

import generate
import model_cases

#: Every release before the newest that has sizes of its own.
RELEASES = tuple(f"0.5.{minor}" for minor in range(10, 23))
#: Those of them in which models.py runs: SGLang told its runners their ranks in another way before.
MODEL_RELEASES = ("0.5.21", "0.5.22")
#: Cases of a family and release.
COUNT = 40
#: The families, and the first release that builds their pools.
FAMILIES = {
    "mha": "0.5.10",
    "mha_asymmetric": "0.5.14",
    "mxfp8": "0.5.21",
    "mla": "0.5.10",
    "dsa": "0.5.10",
    "swa": "0.5.12",
    "swa_two_shapes": "0.5.12",
    "linear": "0.5.10",
    "mamba_swa": "0.5.16",
    "packed": "0.5.11",
    "sidecar": "0.5.11",
    "hazard": "0.5.10",
}


def key(release: str) -> tuple[int, ...]:
    return tuple(map(int, release.split(".")))


def has(release: str, since: str) -> bool:
    """Whether a release is that one or newer."""
    return key(release) >= key(since)


def exists(case: dict[str, Any], release: str) -> bool:
    """Whether a release builds such pools at all, and would be asked to."""
    index = case.get("index") or case.get("draft", {}).get("index")
    ratio = float(case["capacity"].get("ratio", 1))
    needs = {
        "0.5.12": "swa" in case["stages"][0],
        "0.5.14": case["kv"].get("head_dim") != case["kv"].get("v_head_dim"),
        "0.5.16": "swa" in case["stages"][0] and "mamba" in case["stages"][0],
        "0.5.17": "dcp_size" in case,
        "0.5.18": "dcp_size" in case and "draft" in case,
        "0.5.20": case.get("mamba", {}).get("kind") == "mamba1" or ("mamba" in case and bool(index)),
        "0.5.21": case["dtype"] == "mxfp8",
        "0.5.22": (bool(index) and case["index"]["kpool"] > 1) or packs_full_layers(case),
    }
    asked = all(has(release, since) for since, needed in needs.items() if needed)
    return asked and math.isfinite(ratio) and ratio >= 0


def packs_full_layers(case: dict[str, Any]) -> bool:
    """Whether a model with sliding windows brings full layers as drafts: none did before 0.5.22."""
    return "swa" in case["stages"][0] and case.get("draft", {}).get("mode") == "packed" and case["draft"]["on"] == "kv"


def as_of(case: dict[str, Any], release: str) -> dict[str, Any]:
    """The case as a release would be asked: drafts beside the model before 0.5.18, layouts of states."""
    if "mamba" in case and not has(release, "0.5.16"):
        case = {**case, "layout": "page_first_direct"}
    if case.get("draft", {}).get("mode") != "packed" or has(release, "0.5.18"):
        return case
    draft: dict[str, Any] = {"mode": "sidecar", "kv": case["kv"]}
    if "swa" in case["stages"][0]:
        draft["swa"] = case.get("swa", case["kv"])
    if "index" in case and "mamba" not in case:
        draft["index"] = True
    stages = [{**stage, "draft_layers": min(stage["draft_layers"], 1)} for stage in case["stages"]]
    return {**case, "draft": draft, "stages": stages}


def cases(release: str, family: str) -> list[dict[str, Any]]:
    """The cases of one family for one release, the same every time."""
    if not has(release, FAMILIES[family]):
        return []
    found = [entry for entry in generate.cases(family) if exists(entry["case"], release)]
    return [{"id": entry["id"], "case": as_of(entry["case"], release)} for entry in found[:COUNT]]


def every_case(release: str) -> list[dict[str, Any]]:
    """The cases of all families."""
    return [entry for family in FAMILIES for entry in cases(release, family)]


def whole_models(release: str) -> list[dict[str, Any]]:
    """Of model_cases.py each model over pipeline stages, and each with its first draft, for the releases that run them."""
    if release not in MODEL_RELEASES:
        return []
    chosen: dict[tuple[str, str], dict[str, Any]] = {}
    for entry in model_cases.cases():
        case = entry["case"]
        if case.get("env") or case.get("patch") or "/" in case["model"]:
            continue
        if case["args"].get("speculative_algorithm"):
            chosen.setdefault((case["model"], "draft"), entry)
        elif case["args"].get("pp_size", 1) > 1:
            chosen.setdefault((case["model"], "stages"), entry)
    return list(chosen.values())


def main() -> None:
    release, *families = sys.argv[1:]
    for family in families or FAMILIES:
        for entry in cases(release, family):
            print(json.dumps(entry))


if __name__ == "__main__":
    main()
