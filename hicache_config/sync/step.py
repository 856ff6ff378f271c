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
from typing import Any, NoReturn, TypeVar

from ..core.agree import Agreement, agree, worst_only
from ..core.capacity import TotalSize
from ..core.findings import ConfigurationError, Finding, has_errors
from ..core.offers import Offer
from ..core.terms import Terms
from . import problems
from .group import RankGroup, as_group
from .local import Local, package_version
from .message import (
    AbsurdError,
    Message,
    contradiction,
    decode,
    origin,
    own_origin,
)
from .words import LIMIT, Words, decode_words

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
    local = Local.of(group, offer, terms, stage=stage, stage_count=stage_count, must_equal=must_equal)
    messages = _first_gather(group, local)
    if any(message.failure is not None for message in messages) or len(_digests(messages)) > 1:
        raise _refusal(group, local, messages) from local.cause
    assert terms is not None  # a rank without terms has failed
    return _agree(messages, terms, stage_count)


def report_failure(group: object, error: Exception, *, stage: int | None = None) -> NoReturn:
    """Take this rank's part in an agreement when it can't even say what to agree on.

    Every rank of the group then raises ConfigurationError with this rank's error, instead of waiting for it.
    """
    group = as_group(group)
    local = Local.of(group, error, None, stage=stage, stage_count=None, must_equal=None)
    raise _refusal(group, local, _first_gather(group, local)) from error


# --- what the others sent -----------------------------------------------------------------------------------------


def _first_gather(group: RankGroup, local: Local) -> list[Message]:
    """All ranks' messages; raises where one is from another program or can't be."""
    raw = _gather(group, local.message)
    origins = {rank: origin(answer) for rank, answer in enumerate(raw)}
    if set(origins.values()) != {own_origin(package_version())}:
        raise ConfigurationError([problems.protocol_mismatch(origins)])
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


def _refusal(group: RankGroup, local: Local, messages: Sequence[Message]) -> ConfigurationError:
    """The error for failed ranks and differing facts, in the ranks' own words (the second exchange)."""
    failed = [message for message in messages if message.failure is not None]
    length = max(message.words for message in messages)
    length += -length % 8
    try:
        raw = _gather(group, local.words.ljust(length, b"\0"))
    except ConfigurationError as error:
        unheard = [problems.rank_failed_unheard(message.rank, message.failure or 0) for message in failed]
        if len(_digests(messages)) > 1:
            digests = {message.rank: message.digest for message in messages if message.digest}
            unheard.append(problems.ranks_disagree_unheard(digests))
        return ConfigurationError([*unheard, *error.findings])
    words: dict[int, Words] = {}
    unreadable = _refused(raw, lambda rank, answer: words.update({rank: decode_words(answer)}), ValueError)
    views = {
        message.rank: words[message.rank].facts for message in messages if message.digest and message.rank in words
    }
    return ConfigurationError(
        [
            *_merged(
                {message.rank: words[message.rank].findings for message in failed if message.rank in words}, group
            ),
            *(problems.ranks_disagree(name, who) for name, who in problems.differences(views, "not given").items()),
            *(problems.absurd_offer(rank, what) for rank, what in unreadable),
        ]
    )


def _digests(messages: Sequence[Message]) -> set[bytes]:
    """The different digests of what must be equal, over the ranks that have terms."""
    return {message.digest for message in messages if message.digest}


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
