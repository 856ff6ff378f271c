"""What changes for one engine between two SGLang releases, as notes. Must not import anything above this floor."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from ..arguments.releases import differences
from ..core.findings import Finding
from ..core.plan import Plan
from ..core.releases import release_key
from ..sources.document import Document, Engine
from .examining import Examined, examine
from .options import Options


def compare(document: Document, engine: Engine, options: Options, here: Examined, other: str) -> list[Finding]:
    """Notes on what another release does otherwise with the same configuration: arguments, values, findings, sizes."""
    there = examine(engine, document.format, replace(options, sglang=other), document.source)
    if there.release == here.release:
        return []
    return [*_arguments(here, there), *_values(here, there), *_findings(here, there), *_sizes(here, there)]


def _note(message: str, there: Examined, **more: Any) -> Finding:
    return Finding("HC110", "differs-between-releases", "note", f"{there.release.name} {message}", **more)


def _arguments(here: Examined, there: Examined) -> Iterator[Finding]:
    """What the argument tables say of the arguments that were given."""
    names = sorted((here.release.name, there.release.name), key=release_key)
    newer_is_there = names[1] == there.release.name
    for change in differences(names[0], names[1]):
        if change.name not in here.reading.given or change.what in ("added", "removed"):
            continue
        before, after = (change.old, change.new) if newer_is_there else (change.new, change.old)
        words = _change(change.what, change.name, before, after)
        if words:
            yield _note(words, there, argument=change.name)


def _change(what: str, name: str, before: Any, after: Any) -> str:
    """A change of the argument tables in words; nothing for one that no reader notices."""
    if what == "default":
        return f"has another default of {name}: {_shown(after)} instead of {_shown(before)}"
    if what == "kind":
        return f"reads {name} as {after} instead of {before}"
    if what == "deprecated":
        return f"calls {name} deprecated" if after else f"does not call {name} deprecated"
    if what == "refused":
        return f"refuses {name}" if after else f"does not refuse {name}"
    if what != "choices":
        return ""
    if not before or not after:
        return f"takes any value of {name}" if before else f"takes only these values of {name}: {_shown(after)}"
    added, missing = [each for each in after if each not in before], [each for each in before if each not in after]
    parts = [f"with {_shown(tuple(added))}" if added else "", f"without {_shown(tuple(missing))}" if missing else ""]
    return f"has other choices of {name}: {' and '.join(filter(None, parts))}" if any(parts) else ""


def _values(here: Examined, there: Examined) -> Iterator[Finding]:
    """Values that the two releases settle on differently."""
    mine, others = here.resolution.final(), there.resolution.final()
    for name in sorted(mine.keys() | others.keys()):
        if name not in mine or name not in others:
            # That one of them refuses it is a finding of that release.
            if name in here.reading.given and name not in here.reading.invalid | there.reading.invalid:
                has = "does not have" if name not in others else "has"
                yield _note(f"{has} {name}", there, argument=name)
        elif mine[name] != others[name]:
            yield _note(
                f"uses {name} {_shown(others[name])} instead of {_shown(mine[name])}",
                there, argument=name, asked=mine[name], gets=others[name],
            )  # fmt: skip


def _findings(here: Examined, there: Examined) -> Iterator[Finding]:
    """Findings of one release that the other does not make."""
    mine = {finding.code: finding for finding in here.findings}
    others = {finding.code: finding for finding in there.findings}
    for code in sorted(others.keys() - mine.keys()):
        found = others[code]
        yield _note(f"also finds {found.severity} {code} {found.name}: {found.message}", there, argument=found.argument)
    for code in sorted(mine.keys() - others.keys()):
        found = mine[code]
        yield _note(f"does not find {found.severity} {code} {found.name}", there, argument=found.argument)


def _sizes(here: Examined, there: Examined) -> Iterator[Finding]:
    """Pools that come out otherwise."""
    mine, others = here.plans.get("sglang"), there.plans.get("sglang")
    if mine is None or others is None:
        return
    left, right = _slots(mine), _slots(others)
    for key in sorted(left.keys() | right.keys()):
        stage, pool = key
        before, after = left.get(key), right.get(key)
        if key not in left or key not in right:
            has = "has" if key in right else "does not have"
            yield _note(f"{has} a pool {pool} on stage {stage}", there, stage=stage, pool=pool)
        elif before != after:
            yield _note(
                f"makes {_count(after)} of {pool} on stage {stage} instead of {_count(before)}",
                there, asked=before, gets=after, stage=stage, pool=pool,
            )  # fmt: skip


def _slots(plan: Plan) -> dict[tuple[int, str], int | None]:
    return {(stage.stage, pool.name): pool.slots for stage in plan.stages for pool in stage.pools}


def _count(slots: int | None) -> str:
    return "slots that are not known" if slots is None else f"{slots:,} slots"


def _shown(value: Any) -> str:
    plain = _plain(value)
    return "not set" if plain is None else ", ".join(map(str, plain)) if isinstance(plain, list) else str(plain)


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value
