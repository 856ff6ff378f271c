"""What starting costs, as ratios in one run: `python -m pytest benchmarks/test_startup.py -s`.

Nothing is asserted about times. Each command runs in fresh interpreters by turns with `python -c pass`; what counts is
the processor time of the child, the least of some rounds, so that other work on the machine disturbs little.
"""

from __future__ import annotations

import resource
import subprocess
import sys
from pathlib import Path

EXAMPLE = Path(__file__).resolve().parents[1] / "examples" / "dense-tp8.json"
ROUNDS = 9
IMPORTS = {
    "pydantic": "import pydantic; pydantic.BaseModel",
    "arguments": "import hicache_config.arguments.server_args",
    "arguments and rules that look at a case": "from hicache_config.rules import load_checks; load_checks()",
    "arguments and every rule": "from hicache_config.rules import load_all; load_all()",
}
COMMANDS = {
    **{name: ["-c", code] for name, code in IMPORTS.items()},
    "hicache-config --help": ["-m", "hicache_config", "--help"],
    "hicache-config validate": ["-m", "hicache_config", "validate", str(EXAMPLE)],
    "hicache-config plan": ["-m", "hicache_config", "plan", str(EXAMPLE)],
}


def processor_seconds(words: list[str]) -> float:
    """Processor time of one child."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, *words], capture_output=True, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def test_what_starting_costs() -> None:
    bare: list[float] = []
    spent: dict[str, list[float]] = {name: [] for name in COMMANDS}
    for _ in range(ROUNDS):
        bare.append(processor_seconds(["-c", "pass"]))
        for name, words in COMMANDS.items():
            spent[name].append(processor_seconds(words))
    for name, seconds in spent.items():
        sys.stdout.write(f"\n{min(seconds) / min(bare):6.1f} times `python -c pass`: {name}")
