"""What a rank has to say when the ranks can't agree: its facts and its findings, as JSON of limited length.

Must not import torch, nor anything of the project but core.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ..core.capacity import DeviceRatio, TotalSize
from ..core.findings import Finding, Fix
from ..core.releases import release_key
from ..core.terms import Terms

#: The most bytes that a rank may have to say.
LIMIT = 8192

_LONGEST_FACT = 120
_LONGEST_TEXT = 400
_PLAIN = ("code", "name", "severity", "message", "help", "argument", "pointer", "asked", "gets", "stage", "pool")
_TEXTS = ("code", "name", "message", "help")


def facts_of(terms: Terms, must_equal: Mapping[str, Any]) -> dict[str, str]:
    """All that must be equal on every rank, by name, as text that can be compared and printed.

    `must_equal` are further arguments by SGLang's field name. A release counts by its numbers: a build suffix makes
    no other sizes.
    """
    capacity = terms.capacity
    given: dict[str, Any] = dict(must_equal)
    if isinstance(capacity, TotalSize):
        given["hicache_size"] = capacity.size_gb
    elif isinstance(capacity, DeviceRatio):
        given["hicache_ratio"] = capacity.ratio
    else:
        given["hicache_ratio"] = capacity.ratio
        given["hicache_host_memory_fraction"] = capacity.fraction
    facts = {name: _short(json.dumps(value, sort_keys=True, default=str)) for name, value in sorted(given.items())}
    facts["accounting"] = terms.accounting
    facts["sglang"] = ".".join(map(str, release_key(terms.release.asked)))
    return facts


def digest_of(facts: Mapping[str, str]) -> bytes:
    """16 bytes that are equal where the facts are."""
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).digest()[:16]


@dataclass(frozen=True)
class Words:
    """What one rank says: `facts` that must be equal, and the findings for which it failed."""

    facts: Mapping[str, str]
    findings: tuple[Finding, ...]


def encode_words(facts: Mapping[str, str], findings: Sequence[Finding]) -> bytes:
    """The words in at most LIMIT bytes: findings that do not fit are counted, a single long one is cut."""
    kept = list(findings)
    while True:
        left_out = len(findings) - len(kept)
        raw = _dump(facts, kept, left_out)
        if len(raw) <= LIMIT:
            return raw
        if len(kept) > 1:
            kept.pop()
        elif kept and kept[0] is findings[0]:
            kept[0] = _cut(kept[0])
        else:
            raise ValueError(f"the facts that must be equal on all ranks take more than {LIMIT:,} bytes")


def decode_words(raw: bytes) -> Words:
    """The words in bytes (padding allowed). Raises ValueError where they are none."""
    try:
        data = json.loads(raw.rstrip(b"\0").decode())
        facts = {str(name): str(value) for name, value in data["facts"].items()}
        findings = [_finding(entry) for entry in data["findings"]]
        left_out = int(data["left_out"])
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise ValueError(f"its words can't be read ({type(error).__name__})") from None
    if left_out and findings:
        more = f"({left_out} more on this rank.)"
        findings[-1] = replace(findings[-1], help=f"{findings[-1].help} {more}".strip())
    return Words(facts, tuple(findings))


def _dump(facts: Mapping[str, str], findings: Sequence[Finding], left_out: int) -> bytes:
    entries = [
        {
            **{name: getattr(finding, name) for name in _PLAIN if getattr(finding, name) is not None},
            **({"detail": dict(finding.detail)} if finding.detail else {}),
            **({"fix": {"set": dict(finding.fix.set), "safe": finding.fix.safe}} if finding.fix else {}),
        }
        for finding in findings
    ]
    data = {"facts": facts, "findings": entries, "left_out": left_out}
    return json.dumps(data, default=str, ensure_ascii=False, separators=(",", ":")).encode(errors="replace")


def _finding(entry: Mapping[str, Any]) -> Finding:
    given = dict(entry)
    fix = given.pop("fix", None)
    finding = Finding(**given, fix=None if fix is None else Fix(dict(fix["set"]), bool(fix["safe"])))
    if finding.severity not in ("error", "warning", "note"):
        raise ValueError(finding.severity)
    if not all(isinstance(getattr(finding, name), str) for name in _TEXTS):
        raise TypeError
    return finding


def _cut(finding: Finding) -> Finding:
    return Finding(
        finding.code,
        finding.name,
        finding.severity,
        _short(finding.message, _LONGEST_TEXT),
        _short(finding.help, _LONGEST_TEXT),
        argument=finding.argument,
        stage=finding.stage,
        pool=finding.pool,
    )


def _short(text: str, longest: int = _LONGEST_FACT) -> str:
    """The text, or its beginning with a mark that differs where the texts differ."""
    if len(text) <= longest:
        return text
    return f"{text[:longest]}… (sha256 {hashlib.sha256(text.encode(errors='replace')).hexdigest()[:12]})"
