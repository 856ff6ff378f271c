"""What the arithmetic has to know of an SGLang release. Facts from the wheels; must not import the project.

A release is named by its three numbers ("0.5.23"); a `.postN` counts as its release.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

#: Releases whose sizing has been read from their wheels, oldest first.
OLDEST = "0.5.10"
NEWEST = "0.5.23"

_VERSION = re.compile(r"v?(\d{1,9})\.(\d{1,9})\.(\d{1,9})(?:[.-]?(?:post|rc|dev|a|b)\d*)*(?:\+.*)?", re.ASCII)


class ReleaseError(ValueError):
    """The text does not name a release, or one that is too old; the message says which are known."""


def release_key(text: str) -> tuple[int, int, int]:
    """The three numbers of a version; raises ReleaseError when there are none."""
    match = _VERSION.fullmatch(text.strip())
    if match is None:
        raise ReleaseError(f"{text!r} is not an SGLang version; write one such as {NEWEST}")
    return int(match[1]), int(match[2]), int(match[3])


@dataclass(frozen=True)
class Release:
    """The sizing behaviour of one release.

    `name` is the release that the numbers hold for, `asked` what was named (a newer, unknown one is taken as the
    newest known). Sources by wheel: the split of a size since 0.5.17 (`_split_hicache_size`), the minimum over
    the stages since 0.5.15 (`sync_fixed_hicache_size`), the fraction since 0.5.21, the division of free memory by
    the ranks of a host since 0.5.19, a host pool no larger than the device pool refused until 0.5.14.
    """

    name: str
    asked: str

    @classmethod
    def of(cls, text: str) -> Release:
        """The release that `text` names; raises ReleaseError for one before 0.5.10 and for no version at all."""
        key = release_key(text)
        if key < release_key(OLDEST):
            raise ReleaseError(f"SGLang {text} is older than {OLDEST}, the first release that is supported")
        if key > release_key(NEWEST):
            return cls(NEWEST, text)
        return cls(".".join(map(str, key)), text)

    @property
    def is_unknown(self) -> bool:
        """Whether a release newer than all known ones was asked for."""
        return release_key(self.asked) > release_key(NEWEST)

    def at_least(self, text: str) -> bool:
        """Whether this release is `text` or newer."""
        return release_key(self.name) >= release_key(text)

    @property
    def splits_a_size(self) -> bool:
        """A size is one total, shared by device bytes; before, every independent pool got the whole of it."""
        return self.at_least("0.5.17")

    @property
    def takes_the_minimum(self) -> bool:
        """The stages of a pipeline take the minimum of their slots, pool by pool; before, each kept its own."""
        return self.at_least("0.5.15")

    @property
    def has_fraction(self) -> bool:
        """Without size and ratio the ratio is lowered until the pools fit into a share of the host's memory."""
        return self.at_least("0.5.21")

    @property
    def divides_host_memory(self) -> bool:
        """The memory check divides what the host has by the ranks on it."""
        return self.at_least("0.5.19")

    @property
    def refuses_small_host_pools(self) -> bool:
        """A host pool that is not larger than the device pool is an assertion instead of a warning."""
        return not self.at_least("0.5.15")
