"""The one step in which all ranks settle on the same sizes, or fail with the same findings.

One gather of a message of fixed length, whatever the number of pools; all that follows is computed by every rank from
the same messages, so every rank comes to the same end. Only where an error is known already, a second gather fetches
the words for it. A rank that failed takes part too. Nothing is kept between calls. Must not import torch, nor anything
of the project but core.

What it can't do: a transport that breaks while messages travel may have delivered all of them to one rank and not to
another. Then the first goes on with the right sizes, the second raises; no rank ever has wrong ones.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, TypeVar

from hicache_config.core.agree import Agreement, agree, worst_only
from hicache_config.core.capacity import TotalSize
from hicache_config.core.findings import ConfigurationError, Finding, has_errors
from hicache_config.core.resolve import Offer
from hicache_config.core.terms import Terms

from . import problems
from .group import RankGroup, as_group
from .message import (
    AbsurdError,
    ForeignError,
    Message,
    UnsendableError,
    check_origin,
    contradiction,
    decode,
    encode,
)
from .words import LIMIT, decode_words, digest_of, encode_words, facts_of

Item = TypeVar("Item")


@dataclass(frozen=True)
class Exchange:
    """What the ranks came to: the offers of all stages, in order, and the agreement that follows from them."""

    offers: tuple[Offer, ...]
    agreement: Agreement


def agree_over(
    group: object,
    offer: Offer | Exception | Sequence[Finding],
    terms: Terms | None,
    *,
    stage: int | None = None,
    stage_count: int | None = None,
    must_equal: Mapping[str, Any] | None = None,
) -> Agreement:
    """The agreement of all ranks; see `exchange`, which gives the offers too."""
    return exchange(group, offer, terms, stage=stage, stage_count=stage_count, must_equal=must_equal).agreement


def exchange(
    group: object,
    offer: Offer | Exception | Sequence[Finding],
    terms: Terms | None,
    *,
    stage: int | None = None,
    stage_count: int | None = None,
    must_equal: Mapping[str, Any] | None = None,
) -> Exchange:
    """Settle with all ranks of the group, on every rank at the same point of its program.

    `offer` is this rank's own, or what went wrong on it: an exception or findings (`terms` may be None then).
    `stage` is this rank's pipeline stage (default: its rank, as in the pipeline group); with the world as the group
    the tensor ranks of a stage must offer the same. `stage_count`: the stages that there must be (`pp_size`).
    `must_equal`: further arguments, by SGLang's field name, that must be the same on all ranks.

    Raises ConfigurationError with the same findings on every rank that could take part (HC4xx of the agreement, or
    the failing ranks' own), and HC411 on those that could not exchange messages, within the timeout of the group.
    """
    group = as_group(group)
    local = _Local.of(group, offer, terms, stage=stage, stage_count=stage_count, must_equal=must_equal)
    messages = _first_gather(group, local)
    failed = [message for message in messages if message.failure is not None]
    digests = {message.rank: message.digest for message in messages if message.digest}
    if failed or len(set(digests.values())) > 1:
        raise ConfigurationError(_why(group, local, messages, failed, digests)) from local.cause
    assert terms is not None  # a rank without terms has failed
    return _agree(messages, terms, stage_count)


# --- this rank's own part -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Local:
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
    ) -> _Local:
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
    ) -> _Local:
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


# --- what the others sent -----------------------------------------------------------------------------------------


def _first_gather(group: RankGroup, local: _Local) -> list[Message]:
    """All ranks' messages; raises where one is from another program or can't be."""
    raw = _gather(group, local.message)
    foreign = _refused(raw, lambda _, answer: check_origin(answer, package_version()), ForeignError)
    if foreign:
        raise ConfigurationError(problems.protocol_mismatch(rank, what) for rank, what in foreign)
    messages: list[Message] = []
    absurd = _refused(raw, lambda rank, answer: messages.append(_decode(rank, group.size, answer)), AbsurdError)
    if absurd:
        raise ConfigurationError(problems.absurd_offer(rank, what) for rank, what in absurd)
    return messages


def _refused(
    items: Sequence[Item], look: Callable[[int, Item], object], error_type: type[Exception]
) -> list[tuple[int, str]]:
    """Which ranks' items make `look` raise, with its words."""
    found = []
    for rank, item in enumerate(items):
        try:
            look(rank, item)
        except error_type as error:
            found.append((rank, str(error)))
    return found


def _decode(rank: int, size: int, raw: bytes) -> Message:
    message = decode(raw)
    if (message.rank, message.size) != (rank, size):
        raise AbsurdError(f"it says that it is rank {message.rank} of {message.size}; the group has {size}")
    if message.words > LIMIT:
        raise AbsurdError(f"it has {message.words:,} bytes to say; {LIMIT:,} are the most")
    if message.failure is None and not message.digest:
        raise AbsurdError("it has no terms")
    return message


def _gather(group: RankGroup, message: bytes) -> Sequence[bytes]:
    """The group's gather. Whatever its transport raises becomes HC411: there is no one left to agree with."""
    try:
        answers = group.gather(message)
        if len(answers) != group.size:
            raise RuntimeError(f"the group gave {len(answers)} messages for {group.size} ranks")
        return answers
    except Exception as error:
        missing, help_ = getattr(error, "missing", ()), getattr(error, "help", "")
        finding = problems.rank_missing(group.rank, group.size, f"{error}", missing, help_)
        raise ConfigurationError([finding]) from error


# --- errors -------------------------------------------------------------------------------------------------------


def _why(
    group: RankGroup,
    local: _Local,
    messages: Sequence[Message],
    failed: Sequence[Message],
    digests: Mapping[int, bytes],
) -> list[Finding]:
    """The findings for failed ranks and differing facts, in the ranks' own words (the second exchange)."""
    length = max(message.words for message in messages)
    length += -length % 8
    try:
        raw = _gather(group, local.words.ljust(length, b"\0"))
    except ConfigurationError as error:
        unheard = [problems.rank_failed_unheard(message.rank, message.failure or 0) for message in failed]
        if len(set(digests.values())) > 1:
            unheard.append(problems.ranks_disagree_unheard(digests))
        return [*unheard, *error.findings]
    words = {}
    unreadable = _refused(raw, lambda rank, answer: words.update({rank: decode_words(answer)}), ValueError)
    views = {rank: words[rank].facts for rank in digests if rank in words}
    named = problems.differences(views, "not given")
    return [
        *_merged({message.rank: words[message.rank].findings for message in failed if message.rank in words}, group),
        *(problems.ranks_disagree(name, who) for name, who in named.items()),
        *(problems.absurd_offer(rank, what) for rank, what in unreadable),
    ]


def _merged(by_rank: Mapping[int, Sequence[Finding]], group: RankGroup) -> list[Finding]:
    """The failed ranks' findings, each once with the ranks that have it; of HC301 the one that asks for most."""
    ranks_of: dict[str, list[int]] = {}
    first: dict[str, Finding] = {}
    for rank in sorted(by_rank):
        for finding in by_rank[rank]:
            key = problems.key_of(finding)
            first.setdefault(key, finding)
            ranks_of.setdefault(key, []).append(rank)
    return worst_only([problems.of_ranks(finding, ranks_of[key], group.size) for key, finding in first.items()])


# --- the agreement ------------------------------------------------------------------------------------------------


def _agree(messages: Sequence[Message], terms: Terms, stage_count: int | None) -> Exchange:
    offers = {message.rank: message.offer for message in messages if message.offer is not None}
    impossible = [(rank, text) for rank, offer in offers.items() if (text := contradiction(offer, terms)) is not None]
    if impossible:
        raise ConfigurationError(problems.absurd_offer(rank, text) for rank, text in impossible)
    stages: dict[int, dict[int, Offer]] = {}
    for message in messages:
        stages.setdefault(message.stage, {})[message.rank] = offers[message.rank]
    count = max(stages) + 1 if stage_count is None else stage_count
    if missing := [number for number in range(count) if number not in stages]:
        raise ConfigurationError([problems.stage_missing(missing, count)])
    if too_high := [message.rank for message in messages if message.stage >= count]:
        raise ConfigurationError(
            problems.absurd_offer(rank, f"its stage is {messages[rank].stage} of {count}") for rank in too_high
        )
    per_stage = tuple(_of_stage(stages[number], terms) for number in range(count))
    differing = [
        problems.tensor_ranks_differ(number, found)
        for number in range(count)
        if (found := problems.differences(_views(stages[number], terms), "none"))
    ]
    agreement = agree(per_stage, terms) if not differing else Agreement(findings=tuple(differing))
    if has_errors(agreement.findings):
        raise ConfigurationError(agreement.findings)
    return Exchange(per_stage, agreement)


def _of_stage(offers: Mapping[int, Offer], terms: Terms) -> Offer:
    """The offer of a stage: that of its ranks, with the smallest ratio (their hosts may have different memory)."""
    first = offers[min(offers)]
    if isinstance(terms.capacity, TotalSize):
        return first
    return replace(first, ratio=min(offer.ratio for offer in offers.values() if offer.ratio is not None))


def _views(offers: Mapping[int, Offer], terms: Terms) -> dict[int, dict[str, str]]:
    """What must be equal on the ranks of a stage, by name, as text. With a ratio the pages follow from it later."""
    has_size = isinstance(terms.capacity, TotalSize)
    views: dict[int, dict[str, str]] = {}
    for rank, offer in offers.items():
        view = {"pools": ", ".join(pool.name for pool in offer.pools) or "none"}
        for pool in offer.pools:
            numbers = {"device slots": pool.device_slots, "page size": pool.page_size}
            if has_size:
                numbers |= {"host slots": pool.raw_slots, "host pages": pool.own_pages}
            view |= {
                f"{what} of {pool.name}": "not known" if value is None else f"{value:,}"
                for what, value in numbers.items()
            }
            view[f"page rule of {pool.name}"] = pool.page_rule
            view[f"bytes of {pool.name}"] = "none" if pool.is_empty else "some"
        if offer.scale is not None:
            view["scale"] = f"{offer.scale.numerator:,} / {offer.scale.denominator:,}"
        views[rank] = view
    return views
