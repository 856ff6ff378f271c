"""What rules load, and when: a check without a storage backend builds neither its models nor any page's examples."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from hicache_config.rules.registry import all_rules, checks

BACKENDS, PAGES = "hicache_config.rules.backends.kinds", "hicache_config.rules.elsewhere"
ON = {"enable_hierarchical_cache": True, "hicache_size": 100}


@pytest.mark.parametrize(
    ("arguments", "loaded"),
    [
        (ON, set()),
        ({**ON, "hicache_storage_backend": "file"}, {BACKENDS}),
        (
            {"hicache_size": 100, "model_path": "openai/gpt-oss-120b", "pp_size": 40},
            {PAGES},
        ),  # refused, and HiCache is off
    ],
)
def test_examining_loads_what_the_case_needs(arguments: dict[str, Any], loaded: set[str]) -> None:
    probe = (
        "import sys\n"
        "from hicache_config.app.examining import examine\n"
        "from hicache_config.app.options import Options\n"
        "from hicache_config.arguments import Given\n"
        "from hicache_config.sources.document import Engine\n"
        f"given = tuple(Given(key, value) for key, value in {arguments!r}.items())\n"
        "examine(Engine(given=given), 'json', Options())\n"
        f"print(*[name for name in {(BACKENDS, PAGES)!r} if name in sys.modules])"
    )
    run = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True)
    assert set(run.stdout.split()) == loaded


def test_checks_are_the_rules_that_look_at_a_case() -> None:
    assert {rule.code for rule in checks()} == {rule.code for rule in all_rules() if rule.check is not None}
