"""Inputs that nobody means well with, and what must hold of a document whatever it was read from.

`HICACHE_HOSTILE_INPUTS=100000 pytest tests/sources/test_hostile.py` looks long; four hundred a test is the default.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from hicache_config.arguments.given import Place
from hicache_config.sources import Document, Noted
from hicache_config.sources.notes import KINDS

#: Inputs in one example: drawing is dearer than reading.
BATCH = 20
LONGEST = 30
long_look = settings(
    max_examples=int(os.environ.get("HICACHE_HOSTILE_INPUTS", "400")) // BATCH,
    deadline=None,
    derandomize="HICACHE_HOSTILE_INPUTS" not in os.environ,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    database=None,
)

_COMMON = (
    "hicache_size",
    "hicache-size",
    "--hicache-size",
    "100",
    "-1",
    "\n",
    " ",
    "\t",
    "\0",
    "\ufeff",
    "\r\n",
    "ä",
    "😀",
    "\u2028",
)
_SHELL = (
    "sglang serve ", "python3 -m sglang.launch_server ", "--tp ", "--hicache-size=", "$A", "${A:-", "}", "$(", ")", "`", "'",
    '"', "\\\n", "\\ \n", "A=", "A+=(", "export ", "if ", "; then ", "else ", "fi", "for i in 1 2; do ", "; done", "case x in ",
    "*) ", ";;", "esac", "&&", "||", "|", "&", ">", "2>&1", "<<EOF\n", "EOF\n", "# ", "{ ", "}", "f() ", "bash -c ",
    "docker run -m 1g ", "$((", "))", "${A[@]}", "$@", "$1", "—hicache-ratio ", "> ", "$ ", "\n", " ", "=", "--", "-",
    "source a.sh\n", ". b.env\n", "source \"$(dirname \"$0\")/a.sh\"\n", "--config c.yaml ", "#SBATCH --mem=5G\n", "srun --mem=1T ",
    "while [ $# -gt 0 ]; do ", "cat <<EOF\nkind: Pod\nargs: [sglang, serve, $A]\nEOF\n", "A=\"$A --tp 2\"\n",
)  # fmt: skip
_YAML = (
    "a: ", "- ", "&x ", "*x", "<<: ", "{", "}", "[", "]", ",", ": ", "|\n", ">-\n", "'", '"', "#", "---\n", "...\n", "%YAML 1.1\n",
    "!!str ", "!!binary ", "? ", "\n", "\n  ", "\n    ", "~", ".nan", ".inf", "0x1F", "1_000", "services:", "command: ", "args:",
    "environment:", "containers:", "env:", "resources:", "limits:", "memory: ", "64Gi", "op: add", "path: /a/containers/0/args/-",
    "value: ", "sglang serve --hicache-size 1", "--hicache-size 48", "extraArgs:", "${A}", "$$", "$(A)", "patch: |\n", "mem_limit: ",
    "\\x41", "\\u", "\t", "@", "`",
    "env_file: b.env", "extends: ", "{file: c.yaml, service: a}", "service: a", "kind: ConfigMap\nmetadata: {name: a}\ndata:\n  c.yaml: |\n    tp: 2\n",
    "envFrom: [{configMapRef: {name: a}}]", "--config c.yaml", "${A:-${B}}", "prefill:", "prefill_environment:", "tp-size: 2", "bash a.sh",
    "{{ .Values.x }}", "{{- if x }}", "{{", "}}", "{{/* a", "*/}}", '{{ "',
)  # fmt: skip

FRAGMENTS: dict[str, Sequence[str]] = {
    "json": (
        "{", "}", "[", "]", ",", ":", '"', "'", "\\", "\\u", "\\ud83d", '"a"', '"server_args"', '"info"', '"internal_states"',
        "null", "true", "NaN", "-Infinity", "1e999", "0", "-", "1.", ".5", "9" * 50, "//", "/*", "*/", "None", '"detail"', '"env"',
    ),
    "yaml": _YAML,
    "kubernetes": _YAML,
    "compose": _YAML,
    "toml": (
        "a", "=", ".", "[", "]", "[[", "]]", "{", "}", ",", '"', "'", '"""', "'''", "\\", "\\u00e4", "#", "\n", "nan", "inf", "true",
        "0x1", "1_0", "1979-05-27", "07:32:00", "hicache_size = 1\n", "[prefill]\n", " ",
    ),
    "command": (*_SHELL, "--page-size 64"),
    "shell": _SHELL,
    "dockerfile": (
        "FROM x\n", "ENV ", "ARG ", "CMD ", "ENTRYPOINT ", "[", "]", '"sglang"', '"serve"', ",", "\\\n", "# c\n", "RUN ", "A=b ",
        *_SHELL[:20],
    ),
    "systemd": (
        "[Service]\n", "[Container]\n", "ExecStart=", "Exec=", "Environment=", "EnvironmentFile=b.env\n", "EnvironmentFile=-", "MemoryMax=",
        "MemoryHigh=", "5G", "80%", "infinity", "\\\n", "# c\n", ";", "%i", "%%", "$A", "${A}", "$$", "A=b", "'", '"', "@-", "/bin/sh -c ",
        "sglang serve ", "--tp 2 ", "--config c.yaml ", "\n",
    ),
    "python": (
        "import sglang\n", "x = ", "x += ", "[", "]", "(", ")", "{", "}", ",", ":", '"', "'", '"""', 'f"', "{x}", "{{", "\\", "\\N{BULLET}", "\\x4",
        "\n", "\n    ", "if x:", "else:", "for y in z:", "while 1:", "def f(a=1):", "class C:", "return ", "x.append(", "x.extend(", "*x", "**x",
        '"sglang.launch_server"', '"-m"', '"--hicache-size"', "100", "-1", "1e999", "None", "True", "os.environ.get(", "shlex.split(", "json.dumps(",
        "sgl.Engine(model_path=", "hicache_size=", "dict(", "str(", "subprocess.run(", "' '.join(", "lambda: ", "not ", "+ ", "or ", "x[", "# c\n",
        "'sglang serve --tp 2'", "match x:\n case 1:", "with x as y:", "try:", "except E:", "0x1F", "1_0", "...", ";", "@", "async ",
    ),
    "markdown": (
        "```", "```bash\n", "```yaml\n", "~~~\n", "````\n", "```python\n", "\n", "> ", "  ", "# sglang\n", "sglang serve --tp 2\n", "hicache-size: 1\n",
        "import sglang\n", "hicache", "- ", "kind: Pod\n", "args: [--hicache-size, 1]\n", "`", "~",
    ),
    "log": (
        "server_args=ServerArgs(", "server_args={", "a=", "'a': ", "hicache_size=1, ", "(", ")", "[", "]", "{", "}", ",", "'", '"',
        "\\", "inf", "nan", "None", "X(", "<A.B: 'c'>", "<", ">", "\n", "[2026-01-01 00:00:00 TP0] ", "llm-1 | ", "b'",
        "max_total_num_tokens=5, ", "Allocating 1.00 GB host memory for hierarchical KV cache.", "\\N{x}", "\\x4", "rb'", "9" * 30,
    ),
    "server-info": ('{"hicache_size": ', "1", "}", '"internal_states": ', "[", "]", "{", '"memory_usage":', ",", '"token_capacity":'),
}  # fmt: skip


def batches(form: str) -> st.SearchStrategy[list[str]]:
    """Texts made of what a format is made of, in any order, and of anything else. Each drawn byte names a fragment."""
    pieces = (*FRAGMENTS[form], *_COMMON, *"aZ09_./:=,#~%^;!?@")

    def text(data: bytes) -> str:
        return "".join(pieces[byte % len(pieces)] for byte in data)

    return byte_batches().map(lambda batch: list(map(text, batch)))


def byte_batches() -> st.SearchStrategy[list[bytes]]:
    """Batches of byte strings; the first byte of each stretch says how much of it is taken."""
    whole = st.binary(min_size=BATCH * LONGEST, max_size=BATCH * LONGEST)
    return whole.map(lambda data: [data[at + 1 : at + 1 + data[at] % LONGEST] for at in range(0, len(data), LONGEST)])


def check(document: Document) -> None:
    """What holds of every document."""
    assert document.engines or document.notes
    assert document.text.encode("utf-8") is not None
    texts = {"": document.text, **document.included}
    for noted in _notes(document):
        name, _ = KINDS[noted.finding.code]
        assert noted.finding.name == name
        assert noted.finding.message.isprintable()
        assert noted.finding.help.isprintable()
        assert len(noted.finding.message) <= 400
    for place in _places(document):
        lines = texts[place.file].split("\n")
        assert 1 <= place.line <= place.end_line <= len(lines)
        assert 1 <= place.column <= len(lines[place.line - 1]) + 1
        assert 1 <= place.end_column <= len(lines[place.end_line - 1]) + 1
        assert (place.line, place.column) <= (place.end_line, place.end_column)


def _notes(document: Document) -> Iterator[Noted]:
    yield from document.notes
    for engine in document.engines:
        yield from engine.notes


def _places(document: Document) -> Iterator[Place]:
    places: list[Place | None] = [noted.place for noted in _notes(document)]
    for engine in document.engines:
        places.append(engine.memory_limit_place)
        for given in engine.given:
            places += [given.place, given.key_place, given.value_place, *given.inner.values()]
    yield from (place for place in places if place is not None)
