"""What is wrong with a configuration, as data that every floor can make and every report can print.

A finding names a rule (`code`, `name`), says what happens (`message`) and what to write instead (`help`).
It points at an argument or into the document (`pointer`), never at text: the source knows line and column.
Must not import anything of the project.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

Severity = Literal["error", "warning", "note"]

#: How bad a severity is; a higher number is worse.
RANK: Mapping[Severity, int] = {"note": 0, "warning": 1, "error": 2}


@dataclass(frozen=True)
class Fix:
    """A change that answers a finding: argument name to new value, `None` removes the argument.

    `safe` means that the engine behaves the same or as the person wrote it, so a program may write it.
    """

    set: Mapping[str, Any]
    safe: bool = False


@dataclass(frozen=True)
class Finding:
    """One thing that a person should know about a configuration.

    `code` and `name` identify the rule. `argument` is SGLang's field name (`hicache_size`), `pointer` a JSON
    pointer into the arguments (`/hicache_size`) where it differs from the argument. `asked` and `gets` hold the
    value that was written and the one that the engine will use. `stage` and `pool` say where in a plan.
    """

    code: str
    name: str
    severity: Severity
    message: str
    help: str = ""
    argument: str | None = None
    pointer: str | None = None
    asked: Any = None
    gets: Any = None
    fix: Fix | None = None
    stage: int | None = None
    pool: str | None = None
    detail: Mapping[str, Any] = field(default_factory=dict)


def has_errors(findings: Iterable[Finding]) -> bool:
    """Whether one of the findings is an error."""
    return any(finding.severity == "error" for finding in findings)


class ConfigurationError(ValueError):
    """Raised by the public `resolve`: everything that was found at once, in `findings`."""

    def __init__(self, findings: Iterable[Finding]) -> None:
        self.findings = tuple(findings)
        super().__init__("\n".join(describe(finding) for finding in self.findings))

    def __reduce__(self) -> tuple[type[ConfigurationError], tuple[tuple[Finding, ...]]]:
        # An engine hands exceptions from its ranks to the process that started them; by default the text would be
        # given to __init__ there.
        return type(self), (self.findings,)


def describe(finding: Finding) -> str:
    """One finding as a line of text without its place: `HC301 size-too-small: message. help`."""
    text = f"{finding.code} {finding.name}: {finding.message}"
    return f"{text.rstrip('.')}. {finding.help}" if finding.help else text


def stage_numbers(stages: Sequence[int]) -> str:
    """`stage 3`, `stages 0, 2`, `stages 0 to 4, 7`: ascending numbers, three in a row or more as a span."""
    spans: list[list[int]] = []
    for number in stages:
        if spans and number == spans[-1][-1] + 1:
            spans[-1].append(number)
        else:
            spans.append([number])
    texts = [f"{span[0]} to {span[-1]}" if len(span) > 2 else ", ".join(map(str, span)) for span in spans]
    return f"stage{'s' if len(stages) > 1 else ''} {', '.join(texts)}"
