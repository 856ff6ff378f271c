"""How a rule is declared, and the list of all of them.

    @rule("HC120", "both-size-and-ratio", "warning", covers=(7,), why="…", bad={…}, good={…})
    def both_size_and_ratio(case: Case) -> Iterator[Seen]:
        if case.gave("hicache_size") and case.gave("hicache_ratio"):
            yield Seen("hicache_ratio", message="…", help="…", fix=Fix({"hicache_ratio": None}, safe=True))

Must not import anything above this floor.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from ..core.findings import Finding, Fix, Severity
from ..core.releases import release_key

if TYPE_CHECKING:
    from .case import Case

#: What a rule needs besides the arguments; where it is not given the rule is skipped with a reason.
Need = Literal["model", "plan", "host"]


@dataclass(frozen=True)
class Seen:
    """What a rule saw; the runner adds code, name and severity. `argument` is SGLang's field name."""

    argument: str | None
    message: str
    help: str = ""
    asked: Any = None
    gets: Any = None
    fix: Fix | None = None
    pointer: str | None = None
    severity: Severity | None = None


Check = Callable[["Case"], Iterator[Seen]]


@dataclass(frozen=True)
class Rule:
    """A rule with all that its page shows.

    `since` and `until` are the first and last release it holds for (None: all supported). `covers` are the numbers of
    the rules in our notes on SGLang. `bad` and `good` are arguments that fail and pass, `settings` what the examples
    need besides (`model` or `architecture` with `patch`, `gpu`, `host_memory`, `environment`, `pools`, …; `through` is
    who is asked instead of the command line). `late` names the place in SGLang 0.5.23
    ("file:function") where it finds out only after arguments were accepted: when weights or pools exist, or while
    serving. `said_by` are codes by which geometry says the same of a known model; then this rule is silent.
    `check` is None for findings that another floor makes.

    `files` lie beside both examples, by name, and `bad_files` and `good_files` beside one of them; without arguments
    the first file is the source, and text None means that it is not there. `good_settings` replace `settings` for the
    example that passes. `unshown` is the reason of a rule that has no examples.
    """

    code: str
    name: str
    severity: Severity
    why: str
    bad: Mapping[str, Any]
    good: Mapping[str, Any]
    covers: tuple[int | str, ...] = ()
    since: str | None = None
    until: str | None = None
    needs: tuple[Need, ...] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)
    good_settings: Mapping[str, Any] | None = None
    files: Mapping[str, str | None] = field(default_factory=dict)
    bad_files: Mapping[str, str | None] = field(default_factory=dict)
    good_files: Mapping[str, str | None] = field(default_factory=dict)
    unshown: str | None = None
    late: str | None = None
    said_by: tuple[str, ...] = ()
    check: Check | None = None

    def holds_for(self, release: str) -> bool:
        """Whether the rule holds for a release."""
        key = release_key(release)
        return (self.since is None or key >= release_key(self.since)) and (
            self.until is None or key <= release_key(self.until)
        )


_RULES: dict[str, Rule] = {}
_NAMES: set[str] = set()


def declare(rule: Rule) -> Rule:
    """Put a rule into the registry; a code or a name that is there already is a fault of the program."""
    if rule.code in _RULES or rule.name in _NAMES:
        raise ValueError(f"rule {rule.code} {rule.name} is declared twice")
    _RULES[rule.code] = rule
    _NAMES.add(rule.name)
    return rule


def rule(code: str, name: str, severity: Severity, **metadata: Any) -> Callable[[Check], Check]:
    """Declare the decorated check as a rule; `metadata` are the other fields of Rule."""

    def register(check: Check) -> Check:
        declare(Rule(code, name, severity, check=check, **metadata))
        return check

    return register


def all_rules() -> tuple[Rule, ...]:
    """Every rule by code, those included whose findings another floor makes. Importing the topics declares them."""
    from . import load_all

    load_all()
    return tuple(_RULES[code] for code in sorted(_RULES))


def checks() -> tuple[Rule, ...]:
    """The rules that look at a case, by code; no example of another floor's finding is loaded for them."""
    from . import load_checks

    load_checks()
    return tuple(_RULES[code] for code in sorted(_RULES) if _RULES[code].check is not None)


@dataclass(frozen=True)
class Skipped:
    """A rule that could not be asked, and why."""

    code: str
    why: str


def run(case: Case, rules: Iterable[Rule] | None = None) -> tuple[list[Finding], list[Skipped]]:
    """All findings of the rules that hold for the case's release, and the rules that lacked their input."""
    found: list[Finding] = []
    skipped: list[Skipped] = []
    already = {
        finding.code
        for finding in (case.pipeline.findings if case.pipeline is not None else ())
        if case.resolution.host_pools or not needs_host_pools(finding.code)
    }
    for each in checks() if rules is None else rules:
        if each.check is None or not each.holds_for(case.release.name) or already & set(each.said_by):
            continue
        missing = [need for need in each.needs if not case.has(need)]
        if missing:
            skipped.append(Skipped(each.code, case.why_missing(missing[0])))
            continue
        found += [_stamp(each, seen) for seen in each.check(case)]
    return found, skipped


def _stamp(rule_: Rule, seen: Seen) -> Finding:
    return Finding(
        code=rule_.code,
        name=rule_.name,
        severity=seen.severity or rule_.severity,
        message=seen.message,
        help=seen.help,
        argument=seen.argument,
        pointer=seen.pointer,
        asked=seen.asked,
        gets=seen.gets,
        fix=seen.fix,
    )


#: Where SGLang builds host pools: what fails there fails only where there are some.
_HOST_POOLS = (
    "mem_cache/pool_host/",
    "mem_cache/hybrid_cache/",
    "mem_cache/hicache_auto_size.py",
    "disaggregation/decode_kv",
)


#: What comes about with HiCache alone, though not where host pools are built: HC417 when the arguments are read, HC420
#: in the scheduler's first step, HC668 in our plan.
_WITH_HICACHE = frozenset({"HC417", "HC420", "HC668"})


def needs_host_pools(code: str) -> bool:
    """Whether what a code says comes about only where SGLang builds host pools."""
    all_rules()
    known = _RULES.get(code)
    late = None if known is None else known.late
    return code in _WITH_HICACHE or (late is not None and late.startswith(_HOST_POOLS))
