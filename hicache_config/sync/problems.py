"""The findings of the agreement itself, each naming the ranks, and the helpers that name them.

Must not import torch, nor anything of the project but core.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from ..core.findings import Finding, describe

_MOST_VALUES = 8


def ranks_text(ranks: Iterable[int]) -> str:
    """`rank 2`, `ranks 0, 1 and 3`, `ranks 0-7`: runs of three and more are drawn together."""
    ordered = sorted(ranks)
    parts: list[str] = []
    start = 0
    for index in range(1, len(ordered) + 1):
        if index < len(ordered) and ordered[index] == ordered[index - 1] + 1:
            continue
        run = ordered[start:index]
        parts += [f"{run[0]}-{run[-1]}"] if len(run) > 2 else [str(rank) for rank in run]
        start = index
    listed = parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"
    return f"{'rank' if len(ordered) == 1 else 'ranks'} {listed}"


def by_value(values: Mapping[int, str]) -> str:
    """`100 on ranks 0 and 1; 90 on rank 2`, most frequent first, the lower rank first among equals."""
    ranks_of: dict[str, list[int]] = {}
    for rank in sorted(values):
        ranks_of.setdefault(values[rank], []).append(rank)
    parts = sorted(ranks_of.items(), key=lambda item: (-len(item[1]), item[1]))
    shown = [f"{value} on {ranks_text(ranks)}" for value, ranks in parts[:_MOST_VALUES]]
    more = [f"{len(parts) - _MOST_VALUES} other values on the rest"] if len(parts) > _MOST_VALUES else []
    return "; ".join([*shown, *more])


def differences(views: Mapping[int, Mapping[str, str]], absent: str) -> dict[str, str]:
    """Where the ranks' views differ: the name of what differs to who has what."""
    names = dict.fromkeys(name for rank in sorted(views) for name in views[rank])
    found = {}
    for name in names:
        values = {rank: view.get(name, absent) for rank, view in views.items()}
        if len(set(values.values())) > 1:
            found[name] = by_value(values)
    return found


def ranks_disagree(name: str, who: str) -> Finding:
    """HC405: something that must be equal on all ranks is not."""
    argument = None if name in ("accounting", "sglang") else name
    what = {"accounting": "the accounting", "sglang": "the SGLang release"}.get(name, name)
    return Finding(
        "HC405",
        "ranks-disagree",
        "error",
        f"the ranks were not started alike: {what} is {who}",
        "Start every rank with the same arguments and the same SGLang.",
        argument=argument,
    )


def ranks_disagree_unheard(digests: Mapping[int, bytes]) -> Finding:
    """HC405 where the ranks' words could not be fetched."""
    who = by_value({rank: f"one set ({digest.hex()[:8]})" for rank, digest in digests.items()})
    return Finding(
        "HC405",
        "ranks-disagree",
        "error",
        f"the ranks were not started alike: {who}; in what they differ could not be fetched",
        "Start every rank with the same arguments and the same SGLang.",
    )


def rank_failed(error: BaseException) -> Finding:
    """HC406: an exception on this rank that is no finding of its own."""
    return Finding(
        "HC406",
        "rank-failed",
        "error",
        f"the host pools could not be planned: {type(error).__name__}: {error}",
        "Look in the log of that rank.",
    )


def rank_failed_unheard(rank: int, code: int) -> Finding:
    """HC406 where the failing rank's words could not be fetched."""
    return Finding(
        "HC406",
        "rank-failed",
        "error",
        f"rank {rank} failed with HC{code:03}; its words could not be fetched",
        "Look in the log of that rank.",
        detail={"ranks": [rank]},
    )


def protocol_mismatch(origins: Mapping[int, str]) -> Finding:
    """HC407: ranks that run something else; `origins` says what each rank sent."""
    return Finding(
        "HC407",
        "protocol-mismatch",
        "error",
        f"the ranks do not run the same version of hicache-config, or meet in different collectives: "
        f"{by_value(origins)}",
        "Install the same version of hicache-config on every node; every rank must make the collective calls of a "
        "group in the same order.",
    )


def absurd_offer(rank: int | None, what: str) -> Finding:
    """HC408: numbers that can't be; rank is None on the rank that finds them in its own offer."""
    who = "" if rank is None else f"rank {rank} sent an offer that can't be: "
    return Finding(
        "HC408",
        "absurd-offer",
        "error",
        f"{who}{what}",
        "Check the pools that are read on that rank (slots, page size, bytes per slot).",
        detail={} if rank is None else {"ranks": [rank]},
    )


def tensor_ranks_differ(stage: int, found: Mapping[str, str]) -> Finding:
    """HC409: ranks of one stage with different pools."""
    listed = "; ".join(f"{name}: {who}" for name, who in found.items())
    return Finding(
        "HC409",
        "tensor-ranks-differ",
        "error",
        f"the tensor-parallel ranks of stage {stage} do not have the same pools ({listed})",
        "All ranks of a stage must hold the same sizes: check --tp-size, the heads of the model and the GPUs' memory.",
        stage=stage,
    )


def stage_missing(missing: Sequence[int], count: int) -> Finding:
    """HC411: no rank of a stage is in the group."""
    stages = f"stage{'s' if len(missing) > 1 else ''} {', '.join(map(str, missing))}"
    return Finding(
        "HC411",
        "rank-missing",
        "error",
        f"no rank of {stages} is in the group, which must hold {count} pipeline stages",
        "Give the pipeline group or the world, and each rank's own stage number.",
    )


def rank_missing(rank: int, size: int, words: str, missing: Sequence[int], help_: str) -> Finding:
    """HC411: the ranks could not exchange their messages."""
    who = ranks_text(missing) if missing else f"one of the {size} ranks"
    return Finding(
        "HC411",
        "rank-missing",
        "error",
        f"{who} did not take part in the agreement on host pools (died, late or never came), says rank {rank}: {words}",
        help_ or "Look in the logs of the other ranks for the first error.",
        detail={"ranks": list(missing)},
    )


def of_ranks(finding: Finding, ranks: Sequence[int], size: int) -> Finding:
    """A finding of some ranks, with these ranks named (not when all of several ranks have it)."""
    message = finding.message
    if len(ranks) < size:
        message = f"{ranks_text(ranks)}: {message}"
    return replace(finding, message=message, detail={**finding.detail, "ranks": list(ranks)})


def key_of(finding: Finding) -> str:
    """What makes two ranks' findings the same one."""
    return f"{describe(finding)}|{finding.stage}|{finding.pool}|{finding.detail}"
