"""What was recorded of the real SGLang in this checkout against what is committed: cases and differences by file.

    python tools/recorded.py [REVISION]      (default HEAD)

A difference that is there again when a recording is made again is a fault, of a driver or of what was taken for true;
one that is not is chance, which the driver has to leave out. The standard library and git alone. Exit status 1 where
a case differs, is gone or is new.
"""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests" / "oracle"))

from recordings import differences  # noqa: E402 - lies beside the drivers

FILES = (
    "tests/recorded/*.json*",
    "tests/engines/recorded/*.json",
    "hicache_config/arguments/releases/*.json",
    "hicache_config/geometry/classes-*.json",
)
SHOWN = 4


def cases_of(path: str, text: str) -> dict[str, Any]:
    """A recording's cases by name: its lines or entries by their id, or whatever its tables hold, by key."""
    if not text:
        return {}
    if path.endswith((".jsonl", ".jsonl.gz")):
        header, *entries = map(json.loads, text.splitlines())
        header.pop("cases", None)
        return {"header": header, **{entry.get("id", f"line {n}"): entry for n, entry in enumerate(entries, 2)}}
    content = json.loads(text)
    if isinstance(content, list):
        return {entry["id"]: entry for entry in content}
    found: dict[str, Any] = {}
    for key, value in content.items():
        if isinstance(value, dict):
            found |= {f"{key} {name}": inner for name, inner in value.items()}
        elif key == "releases":  # groups of releases with the same answers (tests/oracle/older_resolution.py)
            found |= {
                f"{name} {n}": it for one in value for name in one["releases"] for n, it in enumerate(one["answers"])
            }
        else:
            found[key] = value
    return found


def compare(before: dict[str, Any], now: dict[str, Any]) -> list[str]:
    """The cases that are not the same, each in a line."""
    found = [f"{name} is gone" for name in before if name not in now]
    for name, case in now.items():
        if name not in before:
            found.append(f"{name} is new")
        elif before[name] != case:
            found.append(f"{name}: {'; '.join(differences(before[name], case)[:SHOWN])}")
    return found


def committed(revision: str) -> dict[str, str]:
    """The recordings of a revision: path to text."""
    paths = _git("ls-tree", "-r", "--name-only", revision).decode().splitlines()
    return {
        path: text_of(path, _git("show", f"{revision}:{path}"))
        for path in paths
        if any(fnmatch(path, one) for one in FILES)
    }


def text_of(path: str, content: bytes) -> str:
    """The text of a recording, which may be compressed."""
    return (gzip.decompress(content) if path.endswith(".gz") else content).decode()


def _git(*words: str) -> bytes:
    return subprocess.run(["git", *words], cwd=ROOT, capture_output=True, check=True).stdout


def main(revision: str = "HEAD") -> int:
    before = committed(revision)
    now = {
        str(path.relative_to(ROOT)): text_of(path.name, path.read_bytes()) for one in FILES for path in ROOT.glob(one)
    }
    total = wrong = 0
    for path in sorted({*before, *now}):
        cases = cases_of(path, now.get(path, ""))
        found = compare(cases_of(path, before.get(path, "")), cases)
        count = len(cases) - ("header" in cases)
        total, wrong = total + count, wrong + len(found)
        print(f"{path}: {count} recorded, {len(found)} differ from {revision}")
        for line in found[:SHOWN]:
            print(f"  {line}")
    print(f"{total} cases, {wrong} differences")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:2]))
