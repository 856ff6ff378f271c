"""What older releases do otherwise: models and host pools they do not have, index keys and drafts placed elsewhere.

The formulas of the families are SGLang 0.5.23's. Read in the wheels of 0.5.10 to 0.5.22, and not run with them.
Must not import anything above this floor.
"""

from __future__ import annotations

from dataclasses import replace

from ..core.pools import DevicePool, FollowRule
from ..core.releases import NEWEST
from .attention import heads, is_latent
from .classes import class_since
from .drafts import own_draft_row
from .family import Case
from .model import RefusedError, refuse
from .swa import row_shapes

#: Families whose host pools came later than the oldest release (mem_cache/hybrid_cache/hybrid_pool_assembler.py).
_FAMILIES = {
    "swa": "0.5.12",
    "deepseek_v4": "0.5.12",
    "minimax_sparse": "0.5.15",
    "mamba_swa": "0.5.16",
    "qsa": "0.5.22",
}
#: Host pools with different widths of keys and values (AsymmetricMHATokenToKVPoolHost), and of mxfp8 rows.
_WIDTHS, _MXFP8 = "0.5.14", "0.5.21"
#: The first release that packs drafts into the model's rows, and the first with host pools of drafts at all.
_PACKED, _DRAFTS = "0.5.18", "0.5.11"


def check_release(case: Case, family: str) -> None:
    """Refuse a model that the asked release does not have, or that it has no host pools for."""
    name = case.model_class.name
    _check(case, class_since(name), f"has no model class {name}")
    _check(case, _FAMILIES.get(family), f"has no host pools for {name}")
    if is_latent(case.model) or family not in {"dense", "swa", "linear", "mamba_swa"}:
        return
    shapes = row_shapes(case) if family == "swa" else (heads(case.model),)
    if case.settings.kv_type == "mxfp8":
        _check(case, _MXFP8, "has no host pool for mxfp8 rows")
    elif any(shape.key != shape.value for shape in shapes):
        _check(case, _WIDTHS, f"has no host pool for keys and values of different widths ({name})")


def _check(case: Case, since: str | None, what: str) -> None:
    if since is not None and not case.release.at_least(since):
        raise _too_old(case.release.name, since, what)


def _too_old(release: str, since: str, what: str) -> RefusedError:
    return refuse(
        "HC613",
        "release-too-old",
        f"SGLang {release} {what}; {since} is the first that does",
        f"Run SGLang {since} or later, or take --enable-hierarchical-cache out.",
        argument="model_path",
    )


def as_of(case: Case, family: str, pools: list[DevicePool]) -> list[DevicePool]:
    """The pools of a stage as the asked release has them.

    Up to 0.5.10 a slot of kv held its index keys too. Up to 0.5.17 the draft, whatever it was, had a pool beside kv
    with as many slots, unless it had sliding windows (memory_pool_host.py:NSATokenToKVPoolHost,
    kv_cache_builder.py:maybe_register_hicache_draft).
    """
    if not case.release.at_least("0.5.11"):
        pools = _with_keys_inside(pools)
    if case.release.at_least(_PACKED):
        return pools
    kept = [pool for pool in pools if pool.name not in {"draft_swa", "draft_indexer"}]
    row = own_draft_row(case) if family in {"dense", "mla", "dsa", "linear"} else 0
    if row and "draft" not in {pool.name for pool in kept}:
        kept.append(DevicePool("draft", bytes_per_slot=row, page_size=case.page_size, follows="kv"))
    if not case.release.at_least(_DRAFTS):
        return [pool for pool in kept if pool.name != "draft"]
    rule: FollowRule = "ratio" if case.slots.get("kv") else "pages"
    return [replace(pool, follow_rule=rule) if pool.name == "draft" else pool for pool in kept]


def _with_keys_inside(pools: list[DevicePool]) -> list[DevicePool]:
    keys = {pool.follows: pool.bytes_per_slot or 0 for pool in pools if pool.name == "indexer"}
    return [
        replace(pool, bytes_per_slot=(pool.bytes_per_slot or 0) + keys.get(pool.name, 0))
        for pool in pools
        if pool.name != "indexer"
    ]


def release_assumptions(case: Case) -> tuple[str, ...]:
    """What is taken for granted about a release other than the one whose formulas these are."""
    if case.release.name == NEWEST:
        return ()
    return (
        f"rows are computed as SGLang {NEWEST} does, with the differences that were read in {case.release.name}; "
        f"whole models were compared with {NEWEST} alone",
    )
