"""The numbers of our notes on SGLang that have no rule, each with the reason.

A test holds that every number is covered by a rule or stands here. Must not import anything of the project.
"""

from __future__ import annotations

from collections.abc import Mapping

#: All numbers of the notes: rules 1 to 81, two that came later, the page-size rewrites and the matrices.
NUMBERS: tuple[int | str, ...] = (
    *range(1, 82), "51b", "51c", "page size", "matrix 2.6", "2.7 layouts", "2.7 keys", "2.7 models",
)  # fmt: skip

WITHOUT_A_RULE: Mapping[int | str, str] = {
    5: "SGLang's own guard against a failure of its defaults; no arguments reach it",
    21: "needs the sizes of staging pools against two transfers of a window while buffers are bound; not computed here",
    37: "nothing is changed and nothing goes wrong: Mooncake with decode context parallelism keeps the layout",
    52: "about device pools alone: the layer split of a DSA cache with stages is refused whatever HiCache does",
    79: "a request to a running server (PUT /hicache/storage-backend), not an argument",
}
