"""The reference as files: what `hicache-config docs` writes, and the check that a committed copy is not stale.

Must not import anything above this floor.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from ..arguments import ServerArgs
from ..arguments.releases import table
from ..core.releases import NEWEST, OLDEST
from ..geometry import families
from ..geometry.older_pools import COMPARED, RUN_WHOLE, WHOLE_MODELS
from ..rules.registry import all_rules
from .pages import argument_page, rule_page, versions_of


def pages() -> dict[str, str]:
    """File name and text of every page of the reference."""
    return {
        "index.md": _index(),
        "arguments.md": _arguments(),
        "families.md": _families(),
        **{f"rules/{rule.code}.md": rule_page(rule) + "\n" for rule in all_rules()},
    }


def _index() -> str:
    lines = [
        "# Reference",
        "",
        f"Generated from the models and the rules; SGLang {OLDEST} to {NEWEST}.",
        "",
        "- [Arguments](arguments.md)",
        "- [Families of models](families.md)",
        "",
        "## Rules",
        "",
        "| code | severity | name | holds for |",
        "| --- | --- | --- | --- |",
    ]
    lines += [
        f"| [{rule.code}](rules/{rule.code}.md) | {rule.severity} | {rule.name} | {versions_of(rule)} |"
        for rule in all_rules()
    ]
    return "\n".join(lines) + "\n"


def _arguments() -> str:
    known = table(NEWEST)
    names = [name for name in ServerArgs.model_fields if name in known]
    parts = [
        "# Arguments",
        "",
        f"The server arguments that host sizes depend on, as SGLang {NEWEST} has them. Other releases: "
        "`hicache-config explain ARGUMENT --sglang VERSION`.",
    ]
    for name in sorted(names, key=lambda name: ("hicache" not in name and "hierarchical" not in name, name)):
        parts += ["", "#" + argument_page(known[name], NEWEST)]
    return "\n".join(parts) + "\n"


def _older(family: str) -> str:
    first, whole = COMPARED.get(family), f"whole models of each from {WHOLE_MODELS} on"
    told = [] if first is None else [f"pools of generated geometries, by the constructors of each from {first} on"]
    told += [whole] if family in RUN_WHOLE else []
    return "; ".join(told) or "read in their wheels, not run"


def _families() -> str:
    lines = ["# Families of models", "", "Which pools a family has, what they cost, and how that was checked."]
    for family in families():
        lines += [
            "",
            f"## {family.title}",
            "",
            f"- name: `{family.name}`",
            f"- pools: {', '.join(family.pools)}",
            f"- bytes: {family.formula}",
            f"- checked: {family.checked}",
            f"- older releases: {_older(family.name)}",
            f"- models: {', '.join(family.models)}",
        ]
    return "\n".join(lines) + "\n"


def write(files: Mapping[str, str], folder: Path) -> list[str]:
    """Write the files into a folder and take out those that are no longer made; the paths written, in order."""
    written = []
    for name, text in sorted(files.items()):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        written.append(str(path))
    for path in _extra(files, folder):
        path.unlink()
    return written


def stale(files: Mapping[str, str], folder: Path) -> list[str]:
    """Paths whose content is not what would be written, missing and superfluous ones included."""
    found = []
    for name, text in sorted(files.items()):
        path = folder / name
        if not path.is_file() or path.read_text(encoding="utf-8") != text:
            found.append(str(path))
    return found + [str(path) for path in _extra(files, folder)]


#: Names of generated files by their folder. What else lies there is somebody's own.
_GENERATED = {
    "rules": re.compile(r"HC\d{3}\.md"),
    "": re.compile(r"(args(-[\d.]+)?|pools|plan|report)\.schema\.json"),
}


def _extra(files: Mapping[str, str], folder: Path) -> list[Path]:
    """Generated files in the folder that are no longer made; files of other names are left alone."""
    found = []
    for sub, name in _GENERATED.items():
        made = {each for each in files if name.fullmatch(each.removeprefix("rules/" if sub else ""))}
        there = sorted((folder / sub).iterdir()) if made and (folder / sub).is_dir() else []
        found += [
            each for each in there if name.fullmatch(each.name) and (Path(sub) / each.name).as_posix() not in made
        ]
    return found
