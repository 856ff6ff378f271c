"""Where in the words of a command the SGLang server starts, and what stands before it.

Must not import anything above this floor.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from ..arguments.releases import match_flag
from ..core.releases import NEWEST
from .text import Traced

#: Modules that take SGLang's server arguments; with the value False they have flags of their own besides.
MODULES = {
    "sglang.launch_server": True,
    "sglang_router.launch_server": False,
    "dynamo.sglang": False,
    "dynamo.sglang.worker": False,
    "dynamo.sglang.prefill": False,
    "dynamo.sglang.decode": False,
}
#: Commands that name a server without starting it.
_ONLY_NAMED = frozenset(
    {
        "echo",
        "printf",
        "grep",
        "egrep",
        "pgrep",
        "pkill",
        "kill",
        "killall",
        "pip",
        "pip3",
        "which",
        "type",
        "sleep",
        "curl",
        "wget",
        "cat",
        "sed",
        "awk",
        "git",
        "cd",
        "mkdir",
        "tail",
        "head",
        "ls",
        "rm",
        "cp",
        "mv",
        "test",
        "[",
        "[[",
    }
)
_RUNNERS = frozenset(
    {"bash", "sh", "zsh", "dash", "ash", "eval", "exec", "ssh", "srun", "sudo", "env", "nohup", "setsid", "timeout",
     "tmux", "screen", "docker", "podman", "nerdctl", "kubectl", "mpirun", "parallel", "numactl", "xargs", "su", "pdsh",
     "systemd-run"}
)  # fmt: skip
_CONTAINER_RUNNERS = frozenset({"docker", "podman", "nerdctl"})
_SCRIPT = re.compile(
    r"\bsglang\s+serve\s|\b(?:sglang|sglang_router)\.launch_server\b|\bdynamo\.sglang\b|sglang/launch_server\.py\b"
)
#: `A=b` before a command, and what `docker run` takes for it in one word.
_ENVIRONMENT = re.compile(r"(?:-e|--env=)?([A-Z_][A-Z0-9_]*)=", re.ASCII)
_SERVER_FILE = re.compile(r"(?:.*/)?sglang/launch_server\.py|(?:.*/)?launch_server\.py")
_TELLING = re.compile(
    r"--(?:[a-z-]*hicache[a-z-]*|enable-hierarchical-cache|model-path|tp|tp-size|mem-fraction-static|disaggregation-mode"
    r"|chunked-prefill-size|dp-size|pp-size|enable-dp-attention)"
)


@dataclass(frozen=True)
class Launch:
    """A server's start within a command: `arguments` are the words behind it, `environment` the `A=b` before it."""

    arguments: tuple[Traced, ...]
    before: tuple[Traced, ...]
    launcher: str = "sglang"
    model_first: bool = False

    @property
    def environment(self) -> dict[str, Traced]:
        """Variables set before the command, by name."""
        found = ((_ENVIRONMENT.match(word.text), word) for word in self.before)
        return {match[1]: word.behind(match.end()) for match, word in found if match is not None}


def without_model_type(words: Sequence[Traced]) -> list[Traced]:
    """The words without `--model-type llm`, which `sglang serve` takes for itself.

    Source: SGLang 0.5.10 to 0.5.23, cli/serve.py.
    """
    kept: list[Traced] = []
    for index, word in enumerate(words):
        is_value = index > 0 and words[index - 1].text == "--model-type"
        if not is_value and word.text.partition("=")[0] != "--model-type":
            kept.append(word)
    return kept


def find_launch(words: Sequence[Traced]) -> Launch | None:
    """The start of a server in the words of one command, or None."""
    first = next((word.text for word in words if not _ENVIRONMENT.match(word.text)), "")
    if first.rpartition("/")[2] in _ONLY_NAMED:
        return None
    for index, word in enumerate(words[:-1]):
        following = words[index + 1].text
        if word.text == "-m" and following in MODULES:
            launcher = "sglang" if MODULES[following] else following
            return Launch(tuple(words[index + 2 :]), tuple(words[:index]), launcher)
        if word.text.rpartition("/")[2] == "sglang" and following == "serve":
            return Launch(tuple(words[index + 2 :]), tuple(words[:index]), model_first=True)
        if index and _SERVER_FILE.fullmatch(word.text) and _runs_python(words[index - 1], word):
            return Launch(tuple(words[index + 1 :]), tuple(words[:index]))
    return None


def _runs_python(program: Traced, file: Traced) -> bool:
    """Whether a file is handed to Python: by name, or by a variable where the file can be no other."""
    named = re.search(r"python|torchrun", program.text) is not None
    return named or (not program.is_known and "sglang/launch_server" in file.text)


def image_arguments(words: Sequence[Traced]) -> Launch | None:
    """The flags behind an SGLang image in `docker run IMAGE --flag …`, where the image itself names the command."""
    texts = [word.text for word in words]
    starts = next((i for i, text in enumerate(texts) if text.rpartition("/")[2] in _CONTAINER_RUNNERS), None)
    if starts is None or not {"run", "create"}.intersection(texts[starts + 1 : starts + 4]):
        return None
    for index in range(starts + 2, len(words) - 1):
        if "sglang" in texts[index] and texts[index][0] != "-" and texts[index + 1].startswith("--"):
            arguments = tuple(words[index + 1 :])
            return Launch(arguments, tuple(words[:index])) if are_arguments(arguments) else None
    return None


def inner_scripts(words: Sequence[Traced]) -> list[Traced]:
    """Words of a command that are scripts themselves and start a server (`bash -c '…'`, `ssh host "…"`)."""
    first = next((word.text for word in words), "")
    if first.rpartition("/")[2] in _ONLY_NAMED:
        return []
    return [word for word in words if mentions_launch(word.text) and len(word.text.split()) > 1]


def is_runner(words: Sequence[Traced]) -> bool:
    """Whether a command is known to run the script that it is handed."""
    programs = (word.text.rpartition("/")[2] for word in words if not _ENVIRONMENT.match(word.text))
    return next(programs, "") in _RUNNERS


def mentions_launch(text: str) -> bool:
    """Whether a text names the start of a server somewhere."""
    return _SCRIPT.search(text) is not None


def are_arguments(words: Sequence[Traced], release: str = NEWEST) -> bool:
    """Whether words without a command are a server's arguments: flags first, and one that tells SGLang's apart."""
    if not words or not re.match(r"[-\u2010-\u2015\u2212]", words[0].text):
        return False
    flags = [re.split(r"[=\s]", word.text, maxsplit=1)[0] for word in words]
    return any(_TELLING.fullmatch(flag) or "hicache" in flag for flag in flags if match_or_close(flag, release))


def match_or_close(flag: str, release: str) -> bool:
    """Whether a word looks like a flag of the release, or like one of the HiCache block."""
    return "hicache" in flag or (flag.startswith("--") and match_flag(release, flag[:200]).kind in ("exact", "prefix"))
