"""What this rank sends into the agreement: its offer, or why it has none, and the words for an error.

Whatever goes wrong here becomes a message that says so: a rank that raises instead of sending lets all others wait.
Must not import torch, nor anything of the project but core.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from ..core.findings import ConfigurationError, Finding, has_errors
from ..core.offers import Offer
from ..core.terms import Terms
from . import problems
from .group import RankGroup
from .message import Message, UnsendableError, encode
from .words import digest_of, encode_words, facts_of


@dataclass(frozen=True)
class Local:
    """What this rank sends: its message and its words, and the exception behind them, if there is one."""

    message: bytes
    words: bytes
    cause: BaseException | None

    @classmethod
    def of(
        cls,
        group: RankGroup,
        offer: Offer | Exception | Sequence[Finding],
        terms: Terms | None,
        *,
        stage: int | None,
        stage_count: int | None,
        must_equal: Mapping[str, Any] | None,
    ) -> Local:
        own_stage = group.rank if stage is None else stage
        facts: dict[str, str] = {}
        try:
            if own_stage not in range(group.size):
                raise ValueError(f"stage {own_stage!r} is not a stage of a group of {group.size} ranks")
            if terms is not None:
                count = {} if stage_count is None else {"pp_size": stage_count}
                facts = facts_of(terms, {**count, **(must_equal or {})})
            findings, cause = _failure(offer, terms)
            base = Message(group.rank, group.size, own_stage, digest=digest_of(facts) if facts else b"")
            if not findings and isinstance(offer, Offer):
                words = encode_words(facts, ())
                return cls(encode(replace(base, words=len(words), offer=offer), package_version()), words, None)
            return cls._failed(base, facts, findings, cause)
        except UnsendableError as error:
            finding = problems.absurd_offer(None, str(error))
            return cls._failed(base, facts, (finding,), error)
        except Exception as error:  # whatever it is, the others must hear of it instead of waiting
            return cls._failed(Message(group.rank, group.size, group.rank), {}, (problems.rank_failed(error),), error)

    @classmethod
    def _failed(
        cls, base: Message, facts: Mapping[str, str], findings: Sequence[Finding], cause: BaseException | None
    ) -> Local:
        words = encode_words(facts, findings)
        number = int(findings[0].code.removeprefix("HC"))
        return cls(encode(replace(base, words=len(words), failure=number), package_version()), words, cause)


def _failure(
    offer: Offer | Exception | Sequence[Finding], terms: Terms | None
) -> tuple[tuple[Finding, ...], BaseException | None]:
    """The findings for which this rank can't agree; empty for a usable offer."""
    if isinstance(offer, ConfigurationError):
        return offer.findings, offer
    if isinstance(offer, Exception):
        return (problems.rank_failed(offer),), offer
    findings = tuple(offer.findings if isinstance(offer, Offer) else offer)
    if not isinstance(offer, Offer) or has_errors(findings):
        return findings or (problems.rank_failed(ValueError("no reason is given")),), None
    if terms is None:
        return (problems.rank_failed(ValueError("an offer was made without terms")),), None
    return (), None


@lru_cache(maxsize=1)
def package_version() -> str:
    """The version of this package, which must be the same on all ranks."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("hicache-config")
    except PackageNotFoundError:
        return "not installed"
