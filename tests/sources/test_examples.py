"""For each finding of the readers a source that has it and one that has not: the name of a file and its text."""

from __future__ import annotations

import pytest

from hicache_config.rules.registry import all_rules
from hicache_config.sources import read
from hicache_config.sources.notes import KINDS

_SIZE = {"args.json": '{"enable_hierarchical_cache": true, "hicache_size": 100}'}
_LAUNCH = {"launch.sh": "sglang serve --model-path /models/m --enable-hierarchical-cache \\\n  --hicache-size 100\n"}

EXAMPLES: dict[str, tuple[dict[str, str], dict[str, str]]] = {
    "HC001": ({"missing.json": ""}, _SIZE),
    "HC002": ({"args.json": '{"hicache_size": 100,}'}, _SIZE),
    "HC003": ({"args.json": '{"hicache_size": 100, "hicache_size": 200}'}, _SIZE),
    "HC004": ({"args.json": '{"hicache_ratio": NaN}'}, {"args.json": '{"hicache_ratio": 2.0}'}),
    "HC005": ({"args.json": "[" * 200 + "]" * 200}, _SIZE),
    "HC006": ({"args.json": "\0\1\2"}, _SIZE),
    "HC007": ({"answer.json": '{"detail": "Not Found"}'}, _SIZE),
    "HC008": (
        {"launch.sh": 'sglang serve --model-path /models/m --hicache-size "$SIZE"\n'},
        {"launch.sh": 'sglang serve --model-path /models/m --hicache-size "${SIZE:-100}"\n'},
    ),
    "HC009": ({"launch.sh": "sglang serve --model-path /models/m --hicache-size $((RAM / 8))\n"}, _LAUNCH),
    "HC011": (
        {"launch.sh": "sglang serve --model-path /models/m --enable-hierarchical-cache\n  --hicache-size 100\n"},
        _LAUNCH,
    ),
    "HC012": ({"launch.sh": "sglang serve --model-path /models/m \u2014hicache-size 100\n"}, _LAUNCH),
    "HC013": ({"server.yaml": "page-size: [64, 128]\n"}, {"server.yaml": "page-size: 64\n"}),
    "HC014": (
        {"launch.sh": "python3 -m dynamo.sglang --model-path /models/m --migration-limit 3\n"},
        {"launch.sh": "python3 -m dynamo.sglang --model-path /models/m\n"},
    ),
    "HC015": ({"launch.sh": "sglang serve --model-path /models/m --hicache-size --hicache-ratio 2\n"}, _LAUNCH),
    "HC016": ({"launch.sh": "sglang serve --model-path /models/m --hicache-size 100 GB\n"}, _LAUNCH),
    "HC017": ({"launch.sh": "$ sglang serve --model-path /models/m --hicache-size 100\n"}, _LAUNCH),
    "HC018": (
        {"pod.yaml": 'args: ["--model-path=/models/m", "--hicache-size 100"]\n'},
        {"pod.yaml": 'args: ["--model-path=/models/m", "--hicache-size=100"]\n'},
    ),
    "HC019": (
        {"server.log": "server_args=ServerArgs(model_path='/models/m', hicache_size=100, hicache_ra"},
        {"server.log": "server_args=ServerArgs(model_path='/models/m', hicache_size=100, hicache_ratio=2.0)"},
    ),
}


def found(example: dict[str, str]) -> list[str]:
    ((name, text),) = example.items()
    document = read(name) if not text else read(name, text=text)
    notes = [*document.notes, *(noted for engine in document.engines for noted in engine.notes)]
    return [noted.finding.code for noted in notes]


@pytest.mark.parametrize("code", KINDS)
def test_an_example_has_its_finding_and_its_repair_has_none(code: str) -> None:
    bad, good = EXAMPLES[code]
    assert code in found(bad)
    assert found(good) == []


def test_every_finding_has_its_page() -> None:
    pages = {rule.code: (rule.name, rule.severity) for rule in all_rules()}
    assert {code: pages.get(code) for code in KINDS} == dict(KINDS)
