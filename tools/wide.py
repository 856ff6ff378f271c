"""The wider argument sets of tests/recorded/wide-resolution.jsonl anew, each through its own release of SGLang.

    python tools/wide.py

Which sets there are stays as it is (tests/oracle/resolution_wide.py makes them, by seeds). Needs the oracle's
environments of these releases, as tools/oracle.py does.
"""

from __future__ import annotations

import oracle
import recordings  # oracle.py puts its folder on the path

PATH = recordings.FOLDER / "wide-resolution.jsonl"


def main() -> None:
    header, entries = recordings.read(PATH)
    for release in sorted({entry["case"]["sglang"] for entry in entries}):
        asked = {entry["id"]: entry for entry in entries if entry["case"]["sglang"] == release}
        left = set(asked)
        for answer in oracle.ask("resolution.py", list(asked.values()), release):
            asked[answer["id"]]["result"] = answer["result"]
            left.discard(answer["id"])
        if left:
            raise SystemExit(f"{release}: no answer for {', '.join(sorted(left))}")
        print(f"{release}: {len(asked)} argument sets recorded", flush=True)
    recordings.write(PATH, {key: header[key] for key in header if key not in ("kind", "version", "cases")}, entries)


if __name__ == "__main__":
    main()
