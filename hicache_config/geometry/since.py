"""What older releases do otherwise: models and host pools they do not have, index keys and drafts placed elsewhere.

The formulas of the families are SGLang 0.5.23's; older_pools.py has what older releases build otherwise.
Must not import anything above this floor.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ..core.pools import DevicePool, Stage
from ..core.releases import NEWEST
from .attention import heads, is_latent, latent
from .classes import class_since
from .drafts import own_draft_row
from .family import Case
from .minimax_settings import is_four_bit
from .model import refuse
from .older_pools import COMPARED, DRAFT_PAGES, DRAFTS, KEYS_APART, PACKED, RUN_WHOLE, WHOLE_MODELS, as_built
from .pieces import latent_row
from .swa import row_shapes

#: Families whose host pools came later than the oldest release (mem_cache/hybrid_cache/hybrid_pool_assembler.py).
_FAMILIES = {
    "swa": "0.5.13",
    "deepseek_v4": "0.5.13",
    "minimax_sparse": "0.5.15",
    "mamba_swa": "0.5.16",
    "qsa": "0.5.22",
}
#: With this variable two of them have host pools in 0.5.12 already: its unified tree (managers/scheduler.py).
_UNIFIED, _WITH_UNIFIED = "SGLANG_ENABLE_UNIFIED_RADIX_TREE", frozenset({"swa", "deepseek_v4"})
#: Host pools with different widths of keys and values (AsymmetricMHATokenToKVPoolHost), and of mxfp8 rows.
_WIDTHS, _MXFP8 = "0.5.14", "0.5.21"
#: The stack of MiniMax M3's 4-bit checkpoints (model_overrides/minimax_m3.py).
_FOUR_BIT = "0.5.23"


def check_release(case: Case, family: str) -> None:
    """Refuse a model that the asked release does not have, or that it has no host pools for."""
    name = case.model_class.name
    first = class_since(name)
    if first is not None and not case.release.at_least(first):
        raise refuse(
            "HC613",
            "release-too-old",
            f"SGLang {case.release.name} has no model class {name}; {first} is the first that does",
            f"Run SGLang {first} or later.",
            argument="model_path",
        )
    is_unified = family in _WITH_UNIFIED and case.is_on(_UNIFIED)
    _check(case, "0.5.12" if is_unified else _FAMILIES.get(family), f"has no host pools for {name}")
    if is_four_bit(case.model, case.args):
        _check(case, _FOUR_BIT, f"has no host pools for 4-bit checkpoints of {name}")
    if is_latent(case.model) or family not in {"dense", "swa", "linear", "mamba_swa"}:
        return
    shapes = row_shapes(case) if family == "swa" else (heads(case.model),)
    if case.settings.kv_type == "mxfp8":
        _check(case, _MXFP8, "has no host pool for mxfp8 rows")
    elif any(shape.key != shape.value for shape in shapes):
        _check(case, _WIDTHS, f"has no host pool for keys and values of different widths ({name})")


def _check(case: Case, since: str | None, what: str) -> None:
    if since is not None and not case.release.at_least(since):
        raise refuse(
            "HC614",
            "host-pool-of-a-later-release",
            f"SGLang {case.release.name} {what}; {since} is the first that does",
            f"Run SGLang {since} or later, or take --enable-hierarchical-cache out.",
            argument="model_path",
        )


def as_of(case: Case, family: str, pools: list[DevicePool]) -> list[DevicePool]:
    """The pools of a stage as the asked release has them.

    Up to 0.5.17 the draft, whatever it was, had a pool beside kv, unless it had sliding windows
    (kv_cache_builder.py:maybe_register_hicache_draft); older_pools.py has the rest.
    """
    row, bare = _latent_rows(case)
    is_beside = not case.release.at_least(PACKED) and family in {"dense", "mla", "dsa", "linear"}
    draft = own_draft_row(case) if is_beside else 0
    if draft and "draft" not in {pool.name for pool in pools}:
        # the draft's host pool has no scales in its rows (MLATokenToKVPoolHost without override_kv_cache_dim)
        held = bare if draft == row else draft
        pools = [*pools, DevicePool("draft", case.slots.get("kv"), held, case.page_size, follows="kv")]
    return as_built(case.release, pools, row, bare)


def _latent_rows(case: Case) -> tuple[int, int]:
    """Bytes of a row of latents with its scales, and without; zeros for a model whose rows have none."""
    store = case.settings.store
    if not store.scaled_row:
        return 0, 0
    return latent_row(latent(case.model), store), latent_row(latent(case.model), replace(store, scaled_row=False))


def release_assumptions(case: Case, family: str, stages: Sequence[Stage]) -> tuple[str, ...]:
    """What is taken for granted about a release other than the one whose formulas these are."""
    name = case.release.name
    if name == NEWEST:
        return ()
    held = "compared with pools that its constructors built" if family in COMPARED else "read in its wheel"
    whole = f"whole models were compared with {NEWEST}"
    if case.release.at_least(WHOLE_MODELS) and family in RUN_WHOLE:
        whole += f" and, fewer of them, with {name}"
    texts = [f"rows are computed as SGLang {NEWEST} does, with what {name} builds otherwise ({held}); {whole}"]
    pools = [pool for stage in stages for pool in stage.pools]
    is_unsure = case.release.at_least(DRAFTS) and not case.release.at_least(DRAFT_PAGES)
    if is_unsure and any(pool.name == "draft" and pool.follow_rule == "pages" for pool in pools):
        texts.append(
            f"SGLang {name} gives the draft a page more than kv for most device slots, which are not known here"
        )
    if family == "dsa" and not case.release.at_least(KEYS_APART):
        texts.append(f"SGLang {name} allocates one page of index keys beyond what is counted here")
    return tuple(texts)
