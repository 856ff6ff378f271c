"""Note in the table of model classes the SGLang release that brought each class.

    python tools/class_releases.py hicache_config/geometry/classes-0.5.23.json WHEEL...

Wheels come from `pip download --no-deps sglang==VERSION`. A class belongs to a release when a module of its
sglang/srt/models names it as EntryClass; nothing is imported. Classes of the oldest wheel are not noted.
"""

from __future__ import annotations

import ast
import json
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path


def classes_of(wheel: Path) -> set[str]:
    """The classes that a wheel's model registry takes up."""
    with zipfile.ZipFile(wheel) as archive:
        modules = [
            name for name in archive.namelist() if name.startswith("sglang/srt/models/") and name.endswith(".py")
        ]
        return {name for module in modules for name in entries(archive.read(module).decode("utf-8-sig"))}


def entries(source: str) -> Iterator[str]:
    """The classes that a module names as EntryClass."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Assign) and any(ast.unparse(target) == "EntryClass" for target in node.targets):
            listed = node.value.elts if isinstance(node.value, ast.List | ast.Tuple) else [node.value]
            yield from (each.id for each in listed if isinstance(each, ast.Name))


def release_of(wheel: Path) -> tuple[int, ...]:
    """The release in a wheel's file name; a `.postN` counts as its release."""
    version = wheel.name.split("-")[1].partition(".post")[0]
    return tuple(int(part) for part in version.split("."))


def main(table: Path, wheels: list[Path]) -> None:
    found: dict[tuple[int, ...], set[str]] = {}
    for wheel in wheels:
        found.setdefault(release_of(wheel), set()).update(classes_of(wheel))
    content = json.loads(table.read_text(encoding="utf-8"))
    since: dict[str, list[str]] = {}
    for name in content["classes"]:
        first = next((release for release in sorted(found) if name in found[release]), None)
        if first is not None and first != min(found):
            since.setdefault(".".join(map(str, first)), []).append(name)
    order = sorted(since, key=lambda text: tuple(map(int, text.split("."))))
    content["since"] = {release: since[release] for release in order}
    rows = ",\n  ".join(f"{json.dumps(name)}: {json.dumps(letters)}" for name, letters in content["classes"].items())
    dates = ",\n  ".join(f"{json.dumps(release)}: {json.dumps(names)}" for release, names in content["since"].items())
    head = ",\n ".join(f"{json.dumps(key)}: {json.dumps(content[key])}" for key in ("sglang", "made"))
    text = f'{{{head},\n "classes": {{\n  {rows}}},\n "since": {{\n  {dates}}}}}\n'
    table.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]), [Path(name) for name in sys.argv[2:]])
