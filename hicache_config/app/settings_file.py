"""The file that `--hicache-storage-backend-extra-config @PATH` names, read for the rules. Nothing else opens it.

Must not import anything above this floor.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..arguments import ServerArgs
from ..core.findings import Finding
from ..sources.document import Noted
from ..sources.files import Unreadable, load
from ..sources.json_tree import JsonScanner
from ..sources.notes import note
from ..sources.text import Lines
from ..sources.toml_tree import read_toml
from ..sources.tree import Node, plain
from ..sources.yaml_tree import read_yaml

_CONFIG = "hicache_storage_backend_extra_config"
_SUFFIXES = (".json", ".toml", ".yaml", ".yml")


def settings_files(args: ServerArgs, source: str) -> tuple[dict[str, Mapping[str, Any]], list[Finding]]:
    """The content of the settings file by its path as written, and why it could not be had.

    It is looked for where this program runs, as SGLang would, and beside the source that names it.
    """
    config = args.hicache_storage_backend_extra_config
    if not isinstance(config, str) or not config.startswith("@"):
        return {}, []
    path = config[1:]
    if Path(path).suffix.lower() not in _SUFFIXES:
        return {}, []  # the rules refuse the suffix
    found = next((place for place in (Path(path), Path(source).parent / path) if place.is_file()), None)
    if found is None:
        text = f"{path} is not on this machine, so the storage settings in it are not checked"
        return {}, [note("HC009", text, "Check it where it lies.", argument=_CONFIG, severity="note").finding]
    value, problem = _value(str(found))
    if isinstance(value, Mapping):
        return {path: value}, []
    why = problem or "it holds no mapping of settings"
    text = f"{path} can't be read as storage settings: {why}"
    return {}, [note("HC002", text, "Write a mapping of settings.", argument=_CONFIG).finding]


def _value(path: str) -> tuple[Any, str | None]:
    """What the file holds, or None and the first thing that is wrong with it."""
    try:
        text, notes = load(path)
    except Unreadable as error:
        return None, error.noted.finding.message
    node, found = _parsed(text, Path(path).suffix.lower())
    wrong = [each.finding.message for each in (*notes, *found) if each.finding.severity == "error"]
    if wrong or node is None:
        return None, wrong[0] if wrong else None
    return plain(node), None


def _parsed(text: str, suffix: str) -> tuple[Node | None, list[Noted]]:
    lines = Lines(text)
    if suffix == ".json":
        scanner = JsonScanner(text, lines)
        return scanner.read(), scanner.notes
    if suffix == ".toml":
        return read_toml(text, lines)
    nodes, notes = read_yaml(text, lines)
    return (nodes[0] if nodes else None), notes
