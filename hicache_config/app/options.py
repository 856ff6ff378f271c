"""What a caller may say besides the source. Must not import anything above this floor."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ..core.releases import NEWEST, Release, ReleaseError
from ..core.terms import Accounting


class OptionsError(ValueError):
    """An option that can't be used; the message names it and says what to write."""


@dataclass(frozen=True)
class Options:
    """Options that several commands share; the defaults are those of the command line.

    `sglang` None means the installed release, else the newest known; `compare` is another release to tell the
    differences to. `model` is a path or a catalogue name, `pools` a pools file. `device_slots` by pool name.
    `host_memory_bytes` is what a node has available when pools are built. `environment` are SGLang's variables; this
    process's own environment does not count.
    """

    sglang: str | None = None
    model: str | None = None
    pools: str | None = None
    device_slots: Mapping[str, int] = field(default_factory=dict)
    gpu: str = "sm90"
    accounting: Accounting = "sglang"
    host_memory_bytes: int | None = None
    ranks_per_node: int | None = None
    environment: Mapping[str, str] = field(default_factory=dict)
    form: str | None = None
    compare: str | None = None
    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()

    def release(self) -> Release:
        """The release that the numbers hold for; raises OptionsError for a version that is none or is too old."""
        for flag, text in (("--compare", self.compare), ("--sglang", self.sglang or installed_sglang() or NEWEST)):
            try:
                release = None if text is None else Release.of(text)
            except ReleaseError as error:
                raise OptionsError(f"{flag}: {error}") from None
        assert release is not None  # the last of the two is never None
        return release

    def wants(self, code: str) -> bool:
        """Whether findings of this code are selected and not ignored; a prefix such as HC1 stands for all of it."""
        selected = not self.select or any(code.startswith(prefix) for prefix in self.select)
        return selected and not any(code.startswith(prefix) for prefix in self.ignore)


def installed_sglang() -> str | None:
    """The version of the installed SGLang, without importing it; None where there is none that is known."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        found = version("sglang")
        Release.of(found)
    except (PackageNotFoundError, ReleaseError):
        return None
    return found
