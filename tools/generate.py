"""Write everything that is generated and committed: JSON Schemas into schemas/, the reference into docs/reference/.

python tools/generate.py            write
python tools/generate.py --check    write nothing, fail when a committed copy is stale
"""

from __future__ import annotations

import sys
from pathlib import Path

from hicache_config.reference.schemas import schema_files
from hicache_config.reference.site import pages, stale, write

ROOT = Path(__file__).resolve().parent.parent


def main() -> int:
    """Write or check; the exit status is 1 when something is stale."""
    targets = ((dict(schema_files()), ROOT / "schemas"), (pages(), ROOT / "docs" / "reference"))
    if "--check" not in sys.argv[1:]:
        for files, folder in targets:
            write(files, folder)
        return 0
    found = [path for files, folder in targets for path in stale(files, folder)]
    for path in found:
        print(f"{path} is stale: run `python tools/generate.py`", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
