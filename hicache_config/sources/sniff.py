"""Which format a source is in, from its name and its first characters.

Must not import anything above this floor.
"""

from __future__ import annotations

import re
from pathlib import PurePath
from typing import Literal, get_args

from .launch import mentions_launch

Format = Literal[
    "json",
    "yaml",
    "toml",
    "command",
    "shell",
    "dockerfile",
    "kubernetes",
    "compose",
    "systemd",
    "python",
    "markdown",
    "log",
    "server-info",
]
FORMATS: tuple[str, ...] = get_args(Format)

_SUFFIXES: dict[str, Format] = {
    ".json": "json", ".yaml": "yaml", ".yml": "yaml", ".toml": "toml", ".log": "log", ".sh": "shell", ".bash": "shell",
    ".zsh": "shell", ".slurm": "shell", ".sbatch": "shell", ".dockerfile": "dockerfile", ".py": "python",
    ".md": "markdown", ".mdx": "markdown", ".markdown": "markdown",
    ".service": "systemd", ".container": "systemd",
}  # fmt: skip
#: Names that blocks of code in Markdown have, where the block's format can be told from it.
BLOCKS: dict[str, Format] = {
    **dict.fromkeys(("bash", "sh", "shell", "zsh", "console", "shell-session", "shellscript", "cmd"), "shell"),
    **dict.fromkeys(("yaml", "yml"), "yaml"), **dict.fromkeys(("py", "python", "python3"), "python"),
    **dict.fromkeys(("dockerfile", "docker"), "dockerfile"), "json": "json", "toml": "toml",
}  # fmt: skip
_DOCKERFILE = re.compile(r"(?:Dockerfile|Containerfile)(?:\..+)?|.+\.Dockerfile")
_LOG = re.compile(r"server_args=(?:ServerArgs\(|\{)")
_DOCKERFILE_TEXT = re.compile(r"\A(?:\s*#[^\n]*\n|\s*ARG [^\n]*\n|\s*\n)*\s*FROM\s+\S", re.IGNORECASE)
_TOML_TEXT = re.compile(
    r"\A(?:\s*#[^\n]*\n|\s*\n)*(?:\[\[?[A-Za-z_][\w.\"-]*\]\]?\s*(?:#|$)|[\w\"'.-]+\s*=\s*(?:[\"'\[{\d+-]|true|false))",
    re.MULTILINE,
)
_YAML_KEY = re.compile(
    r"\A(?:\s*#[^\n]*\n|\s*\n|---[^\n]*\n|%[^\n]*\n)*\s*(?:-\s+)?[\"']?[\w./-]+[\"']?\s*:(?:\s|$)", re.MULTILINE
)
_UNIT = re.compile(r"^[ \t]*\[(?:Service|Container)\][ \t]*$", re.MULTILINE)
_PYTHON_TEXT = re.compile(
    r"\A(?:\s*#[^\n]*\n|\s*\n)*(?:import [\w.]+(?:, ?[\w.]+| as \w+)*[ \t]*$|from [\w.]+ import )", re.MULTILINE
)
_FLAGS_ONLY = re.compile(r"\A\s*--[a-z]")
#: As much of a text is looked at.
_HEAD = 200_000


def sniff(name: str, text: str) -> Format:
    """The format of a source. YAML that turns out to be a manifest is told apart later, by its tree."""
    head = text[:_HEAD]
    path = PurePath(name)
    if _DOCKERFILE.fullmatch(path.name):
        return "dockerfile"
    suffix = _SUFFIXES.get(path.suffix.lower())
    if suffix == "json" and _LOG.search(head) is not None:
        return "log"
    if suffix is not None:
        return suffix
    return _by_content(head)


def _by_content(head: str) -> Format:
    start = head.lstrip()
    if _LOG.search(head):
        return "log"
    if start.startswith(("{", "[")) and not _TOML_TEXT.match(head):
        return "json"
    if start.startswith("#!") and "sh" in start[:40]:
        return "shell"
    if (start.startswith("#!") and "python" in start[:60]) or _PYTHON_TEXT.match(head):
        return "python"
    if _DOCKERFILE_TEXT.match(head):
        return "dockerfile"
    if "Exec" in head and _UNIT.search(head):
        return "systemd"
    if _YAML_KEY.match(head):
        return "yaml"
    if mentions_launch(head):
        return "shell"
    if _TOML_TEXT.match(head):
        return "toml"
    if _FLAGS_ONLY.match(head):
        return "command"
    return "yaml" if re.search(r"^\s*(?:- )?[\w-]+:(?:\s|$)", head, re.MULTILINE) else "shell"
