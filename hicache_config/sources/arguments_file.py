"""Mappings of arguments (JSON, YAML, TOML) to engines: one, lists, wrappers, sections per role, /server_info.

Must not import anything above this floor.
"""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Mapping as Map
from dataclasses import dataclass, field
from typing import Any

from ..arguments.given import Given
from ..arguments.names import find
from .document import Engine, Noted
from .json_tree import inside_text
from .nested import environment_of, is_arguments, nested
from .notes import note, shortened
from .text import Lines
from .tree import MISSING, Entry, Mapping, Node, Scalar, Sequence, parts, plain

#: Keys that hold the arguments inside something that somebody collected.
_WRAPPERS = ("server_args", "info", "args", "arguments", "server_info", "engine_args")
#: Engines of one source; who collects the answers of a cluster has some hundred.
MOST_ENGINES = 1_000
_NAMES = ("name", "url", "worker", "host", "role")
_ENVIRONMENTS = ("env", "environment")
#: Keys of a server's answer that are no arguments. Source: SGLang 0.5.10 to 0.5.23, http_server.py, utils/common.py.
RUN_TIME = frozenset(
    {
        "max_total_num_tokens",
        "max_req_input_len",
        "internal_states",
        "version",
        "startup_time",
        "launch_command",
        "kv_events",
        "frontend",
        "status",
        "memory_usage",
        "last_gen_throughput",
        "avg_spec_accept_length",
    }
)
_ERROR_BODY = frozenset(
    {
        "detail",
        "error",
        "message",
        "object",
        "code",
        "status",
        "type",
        "param",
        "statusCode",
        "title",
        "instance",
        "errors",
    }
)


@dataclass
class Collected:
    """The engines of a document with their names, and whether any of them is a running server's answer."""

    engines: list[tuple[str | None, Engine]] = field(default_factory=list)
    notes: list[Noted] = field(default_factory=list)
    is_server_info: bool = False


class ArgumentsReader:
    """Reads engines from the tree of a document."""

    def __init__(self, text: str, lines: Lines, release: str, *, for_config: bool = False) -> None:
        """`for_config`: the file may be meant for SGLang's own `--config`, so what that breaks is noted."""
        self.text, self.lines, self.release, self.for_config = text, lines, release, for_config
        self.out = Collected()

    def read(self, node: Node, name: str | None = None) -> Collected:
        """The engines of one document."""
        if isinstance(node, Sequence):
            for item in node.items:
                self.read(item, name)
            if not node.items:
                self._nothing(node, "an empty list")
        elif isinstance(node, Mapping):
            self._mapping(node, name)
        else:
            self._nothing(node, "a single value")
        return self.out

    def _mapping(self, node: Mapping, name: str | None) -> None:
        wrapper = next((key for key in _WRAPPERS if isinstance(node.get(key), Mapping | Sequence)), None)
        inner = node.get(wrapper) if wrapper is not None else None
        sections = self._sections(node)
        if isinstance(inner, Mapping) and not self._has_arguments(node):
            self.out.is_server_info = self.out.is_server_info or wrapper in ("info", "server_info")
            self._engine(inner, name_of(node) or name, node)
        elif isinstance(inner, Sequence) and not self._has_arguments(node):
            self.read(inner, name_of(node) or name)
        elif sections:
            if self.for_config:
                from . import merger

                self.out.notes.append(merger.sections(sections, self.lines))
            for entry in sections:
                self.read(entry.value, entry.key)
        elif node.entries and all(entry.key in _ERROR_BODY for entry in node.entries):
            said = shortened(str(plain(node.entries[0].value)))
            message = f'this is the error of a web server ("{said}"), not its arguments'
            place = self.lines.place(node.start, node.end)
            self.out.notes.append(
                note(
                    "HC007", message, "Ask again for /server_info (before 0.5.7 /get_server_info) of the server.", place
                )
            )
        elif not is_arguments(node, self.release) and (found := nested(node, self.release)):
            for each in found:
                self._engine(each.node, each.name, None, each.environment, in_part=True)
        else:
            self._engine(node, name, None)

    def _sections(self, node: Mapping) -> list[Entry]:
        """Sections per role: a mapping of nothing but mappings, none of whose keys is an argument."""
        if not node.entries or not all(isinstance(entry.value, Mapping | Sequence) for entry in node.entries):
            return []
        if any(find(entry.key, self.release) for entry in node.entries):
            return []
        return [entry for entry in node.entries if self._has_arguments(entry.value)]

    def _has_arguments(self, node: Node) -> bool:
        if isinstance(node, Sequence):
            return any(self._has_arguments(item) for item in node.items)
        return isinstance(node, Mapping) and any(
            "hicache" in entry.key or find(entry.key, self.release) is not None for entry in node.entries
        )

    def _nothing(self, node: Node, what: str) -> None:
        help = "Write a mapping of arguments, such as hicache_size: 100."
        self.out.notes.append(note("HC007", f"{what} holds no arguments", help, self.lines.place(node.start, node.end)))

    # --- one engine -----------------------------------------------------------------------------------------------

    def _engine(
        self,
        node: Mapping,
        name: str | None,
        around: Mapping | None,
        beside: Map[str, str] | None = None,
        *,
        in_part: bool = False,
    ) -> None:
        if len(self.out.engines) >= MOST_ENGINES:
            if not any(each.finding.code == "HC005" for each in self.out.notes):
                message = f"only the first {MOST_ENGINES:,} engines of this source are read"
                place = self.lines.place(node.start, node.start + 1)
                self.out.notes.append(note("HC005", message, "Split it.", place))
            return
        reported = {
            entry.key: plain(entry.value)
            for each in (around, node)
            for entry in (each.entries if each is not None else ())
            if entry.key in RUN_TIME and not (isinstance(entry.value, Scalar) and entry.value.value is MISSING)
        }
        self.out.is_server_info = self.out.is_server_info or bool(reported)
        environment: dict[str, str] = dict(beside or {})
        given = []
        not_known = []
        for entry in _last_of_each(node):
            if entry.key in RUN_TIME:
                continue
            if isinstance(entry.value, Scalar) and entry.value.value is MISSING:
                not_known.append(entry.key)
            elif entry.key in _ENVIRONMENTS and isinstance(entry.value, Mapping):
                environment |= environment_of(entry.value)
            else:
                given.append(given_of(entry, self.text, self.lines))
        of_wrapper = around.get("env") or around.get("environment") if around is not None else None
        if isinstance(of_wrapper, Mapping):
            environment |= environment_of(of_wrapper)
        notes: list[Noted] = []
        if self.for_config and not in_part:
            from . import merger

            notes = [
                *merger.broken_values(_last_of_each(node), given, self.text, self.release),
                *merger.underscores(given),
            ]
        engine = Engine(
            given=tuple(given),
            environment=environment,
            reported=summarized(reported),
            notes=tuple(notes),
            not_known=tuple(not_known),
        )
        self.out.engines.append((name, engine))


def given_of(entry: Entry, text: str, lines: Lines) -> Given:
    """An argument of a mapping; a key in flag spelling carries what a command line would."""
    value = entry.value
    key_place, value_place = lines.place(entry.key_start, entry.key_end), lines.place(value.start, value.end)
    inner = dict(parts(value, lines))
    if isinstance(value, Scalar) and isinstance(value.value, str):
        inner = inside_text(value.traced(text), lines)
    return Given(
        entry.key,
        plain(value),
        as_text=entry.key.startswith("-") or "-" in entry.key,
        # An alias may hold a value that was written earlier than its key.
        place=lines.place(entry.key_start, value.end) if value.end >= entry.key_end else key_place,
        key_place=key_place,
        value_place=value_place,
        inner=inner,
    )


def name_of(node: Mapping) -> str | None:
    """What somebody called the server that a wrapper is about."""
    found = (node.get(key) for key in _NAMES)
    return next((str(each.value) for each in found if isinstance(each, Scalar) and isinstance(each.value, str)), None)


def summarized(reported: Map[str, Any]) -> dict[str, object]:
    """What a server reports, with `max_total_num_tokens` from its internal states where it is not there itself.

    The states are one per data parallel rank; the smallest pool of them counts.
    """
    out: dict[str, object] = dict(reported)
    states = reported.get("internal_states")
    capacities = list(_capacities(states if isinstance(states, list) else []))
    if "max_total_num_tokens" not in out and capacities:
        out["max_total_num_tokens"] = min(capacities)
    return out


def _capacities(states: list[Any]) -> Iterator[int]:
    for state in states:
        usage = state.get("memory_usage") if isinstance(state, dict) else None
        capacity = usage.get("token_capacity") if isinstance(usage, dict) else None
        if isinstance(capacity, int) and not isinstance(capacity, bool):
            yield capacity


def _last_of_each(node: Mapping) -> list[Entry]:
    """The entries without those that a later one of the same key replaces, which a note has named."""
    last = {entry.key: entry for entry in node.entries}
    return [entry for entry in node.entries if last[entry.key] is entry]
