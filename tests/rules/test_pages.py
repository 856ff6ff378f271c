"""Every code that the program can emit has one name, and a page under that name."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from itertools import pairwise
from pathlib import Path

import hicache_config
from hicache_config.rules.registry import all_rules

ROOT = Path(hicache_config.__file__).parent
CODE, NAME = re.compile(r"HC\d{3}"), re.compile(r"[a-z0-9]+(-[a-z0-9]+)+")
PAGES = {rule.code: rule for rule in all_rules()}


def emitted() -> dict[str, set[str]]:
    """Codes with the names beside them: two neighbouring texts of a call, a tuple or a mapping."""
    found: defaultdict[str, set[str]] = defaultdict(set)
    for path in ROOT.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Call):
                _pairs(found, list(node.args))
            elif isinstance(node, ast.Dict):
                for key, value in zip(node.keys, node.values, strict=True):
                    inner = value.elts[0] if isinstance(value, ast.Tuple) and value.elts else value
                    _pairs(found, [key, inner])
    return dict(found)


def _pairs(found: defaultdict[str, set[str]], nodes: list[ast.expr | None]) -> None:
    texts = [node.value if isinstance(node, ast.Constant) else None for node in nodes]
    for code, name in pairwise(texts):
        if isinstance(code, str) and isinstance(name, str) and CODE.fullmatch(code) and NAME.fullmatch(name):
            found[code].add(name)


def test_codes_are_found() -> None:
    found = emitted()
    assert {"HC001", "HC101", "HC301", "HC401", "HC501"} <= set(found)


def test_every_emitted_code_has_one_name_and_its_page() -> None:
    wrong = {
        code: (sorted(names), PAGES[code].name if code in PAGES else None)
        for code, names in emitted().items()
        if names != {PAGES[code].name if code in PAGES else None}
    }
    assert wrong == {}
