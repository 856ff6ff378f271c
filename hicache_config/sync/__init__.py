"""The distributed step: every rank's offer in, one agreement out, the same on every rank, or the same error.

A rank group needs one operation, a gather of messages of equal length. One gather settles the sizes of all pools;
a second one happens only to fetch the words of an error. After `resolve_with` a rank's plan is final, and nothing is
exchanged while its pools are built. Must not import anything of the project but core; torch is imported only by
`torch_group`, when a torch process group is used.
"""

from .group import GroupError, RankGroup, SingleRank, as_group
from .resolving import resolve_with
from .step import Exchange, agree_over, exchange, report_failure
from .threads import ThreadGroup, run_on_threads

__all__ = [
    "Exchange",
    "GroupError",
    "RankGroup",
    "SingleRank",
    "ThreadGroup",
    "agree_over",
    "as_group",
    "exchange",
    "report_failure",
    "resolve_with",
    "run_on_threads",
]
