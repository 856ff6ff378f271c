"""What people ran into, each case with the verdict or the number that they needed (cases/*.json).

A file names `arguments` with `settings`, or a source's `text` with its `form`; `codes` must be found and `absent` must
not, `words` stand in the messages, `resolved` and `pools` are values and sizes of the plan (accounting sglang).
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hicache_config.app.examining import Examined, examine
from hicache_config.app.options import Options
from hicache_config.core.findings import Finding
from hicache_config.sources.read import read
from tests.rules.judging import examined

CASES = {
    path.stem: json.loads(path.read_text("utf-8")) for path in sorted((Path(__file__).parent / "cases").glob("*.json"))
}

#: Cases of which no program that reads a configuration can say more, each with the reason.
SKIPPED = {
    "B21": "a wish for a ratio of Mamba states of its own; the plan prints the bytes of each pool",
    "B22": "a wish for a ratio of sliding-window slots of its own; the plan prints the slots of each pool",
    "B30": "a tier that is filled and never read: behaviour while serving, and no wheel that was read shows it",
    "B36": "another engine's memory while it runs",
    "B38": "another engine's default size",
    "B39": "another engine's temporary managers",
    "B42": "limits of a network card's memory regions",
    "B46": "a driver's limit on pinned memory",
    "B47": "the order in which libraries pin memory",
    "B48": "how long pinning takes against a readiness probe",
    "B49": "memory of single NUMA nodes",
    "B50": "a container that is slow for no known reason",
    "B51": "the working set of the process itself",
    "B52": "a leak up to 0.5.9; support begins with 0.5.10",
    "B62": "rows that a copy kernel of some releases rejects; no wheel that was read shows which",
    "B63": "draft states that some releases do not restore; only threads tell of it",
    "B64": "one release's trouble with a separate Mooncake client and drafts; only a thread tells of it",
    "B65": "drafts and hybrids of single releases; only threads tell of it",
    "B67": "a hang in 0.4.7; support begins with 0.5.10",
    "B69": "sparse attention before its own host pool; support begins with 0.5.10",
    "B73": "ROCm's registered addresses; no ROCm GPU is known here",
    "B74": "a backend class that could not be made in single builds",
    "B75": "a request to a running server",
    "B77": "a compiler that does not fit the run time",
    "B90": "whether storage is read depends on the prompts",
    "B91": "what documentation should say",
}


def ask(case: dict[str, Any], folder: Path) -> tuple[Examined, tuple[Finding, ...]]:
    if "text" in case:
        document = read(f"case.{case['form']}", text=case["text"], form=case["form"])
        found = examine(document.engines[0], document.format, Options(sglang="0.5.23"))
        noted = (*document.notes, *found.notes)
    else:
        found = examined(case["arguments"], case.get("settings"), folder)
        noted = found.notes
    plan = found.plans.get("sglang")
    return found, (*found.findings, *(plan.findings if plan else ()), *(note.finding for note in noted))


@pytest.mark.parametrize("name", sorted(CASES))
def test_case(name: str, tmp_path: Path) -> None:
    case = CASES[name]
    found, findings = ask(case, tmp_path)
    codes = {finding.code: finding for finding in findings}
    assert [code for code in case.get("codes", ()) if code not in codes] == []
    assert [code for code in case.get("absent", ()) if code in codes] == []
    told = "\n".join(
        f"{finding.message} {finding.help}" for finding in findings if finding.code in case.get("codes", ())
    )
    for words in case.get("words", ()):
        assert words in told
    for code, severity in case.get("severity", {}).items():
        assert codes[code].severity == severity
    if case.get("no_errors"):
        assert [finding for finding in findings if finding.severity == "error"] == []
    for argument, value in case.get("resolved", {}).items():
        assert found.resolution.value(argument) == value
    for wanted in case.get("pools", ()):
        pool = found.plans["sglang"].stages[wanted["stage"]][wanted["name"]]
        assert {key: getattr(pool, key) for key in wanted if key not in ("stage", "name")} == {
            key: value for key, value in wanted.items() if key not in ("stage", "name")
        }


def test_no_case_is_both_kept_and_skipped() -> None:
    assert {name[:3] for name in CASES} & set(SKIPPED) == set()
