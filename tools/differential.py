"""How the rules agree with the real SGLang, counted: python tools/differential.py (in the project's environment).

Reads the recorded argument sets (tests/recorded/resolution.jsonl, made by tests/oracle/resolution.py) and judges each
anew. Exit status 1 where a difference has no explanation. With RESULTS.jsonl as an argument those are read instead.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tests.rules.differential import (  # noqa: E402 - the checkout's
    RULES,
    differences,
    errors_of,
    explanation,
    judge,
    write_models,
)
from tests.rules.judging import recordings  # noqa: E402


def main(arguments: list[str]) -> int:
    if arguments:
        lines = Path(arguments[0]).read_text("utf-8").splitlines()
        entries = [entry for entry in map(json.loads, lines) if "result" in entry]
    else:
        _, entries = recordings.read(recordings.FOLDER / "resolution.jsonl")
    counts: Counter[str] = Counter()
    reasons: Counter[str] = Counter()
    late: Counter[str] = Counter()
    unexplained = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_models(folder)
        for entry in entries:
            case, result = entry["case"], entry["result"]
            counts["refused by SGLang" if "refused" in result else "accepted by SGLang"] += 1
            if "changed" in result:
                codes = {finding.code for finding in errors_of(judge(case, folder))}
                places = {code: RULES[code].late for code in codes if code in RULES and RULES[code].late}
                if places:
                    counts["accepted by SGLang, which fails later: refused here"] += 1
                    late.update(f"{code} {place}" for code, place in places.items())
            for difference in differences(case, result, folder):
                why = explanation(difference)
                if why is None:
                    unexplained.append(f"{entry['id']} {case}: {difference.kind} {difference.detail}")
                else:
                    reasons[why] += 1
    print(f"{len(entries)} argument sets")
    for what, count in sorted(counts.items()):
        print(f"  {count:5} {what}")
    print(f"{sum(reasons.values())} differences with an explanation")
    for why, count in reasons.most_common():
        print(f"  {count:5} {why}")
    print(f"late failures found at once, by rule and place in SGLang 0.5.23 ({sum(late.values())})")
    for place, count in late.most_common():
        print(f"  {count:5} {place}")
    print(f"{len(unexplained)} differences without an explanation")
    for line in unexplained:
        print(f"  {line}")
    return 1 if unexplained else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
