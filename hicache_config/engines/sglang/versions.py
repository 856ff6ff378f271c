"""Which SGLang releases the plugin enforces on, and what it hooks there. Must not import sglang.

Sources: the wheels of 0.5.20 to 0.5.23, srt/plugins/hook_registry.py, srt/arg_groups/resolution_hooks.py,
srt/mem_cache/kv_cache_builder.py and registry.py; each was run (tests/engines/README.md).
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version

from ...core.releases import ReleaseError, release_key

#: Releases whose start was run under the plugin. On another one it checks, and changes nothing.
ENFORCED = ("0.5.20", "0.5.21", "0.5.22", "0.5.23")

#: The step of argument resolution that runs first for every model, and so sees the arguments as they were written.
RESOLUTION_STEP = "handle_hicache_ratio_default"


@dataclass(frozen=True)
class Target:
    """A function of SGLang that the plugin wraps, and the parameters that it relies on.

    `parameters` must all be there; `positional` are the leading ones that are passed by position.
    """

    path: str
    parameters: frozenset[str]
    positional: tuple[str, ...] = ()

    @property
    def module(self) -> str:
        """The module that defines it."""
        return self.path.rpartition(".")[0]


#: Builds the whole cache of a rank, sidecar drafts included: verified after it.
BUILD = Target(
    "sglang.srt.mem_cache.kv_cache_builder.build_kv_cache",
    frozenset({"server_args", "tp_worker", "page_size", "enable_hierarchical_cache", "hicache_draft_plan"}),
)
#: Builds the tree and the host pools: the plan is made just before it.
CREATE = Target("sglang.srt.mem_cache.registry.create_tree_cache", frozenset({"ctx"}), ("ctx",))
TARGETS = (BUILD, CREATE)


def installed_sglang() -> str | None:
    """The version of the SGLang that is installed beside this package, or None.

    app.options has the like for the command line; activation in an engine must not load app for it.
    """
    try:
        return version("sglang")
    except PackageNotFoundError:
        return None


def is_enforced(installed: str | None) -> bool:
    """Whether the plugin enforces on that version; a `.postN` counts as its release, anything unreadable does not."""
    if installed is None:
        return False
    try:
        key = release_key(installed)
    except ReleaseError:
        return False
    return ".".join(map(str, key)) in ENFORCED
