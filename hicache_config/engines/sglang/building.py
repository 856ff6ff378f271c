"""While host pools are built: read the device pools, agree with all ranks in one step, set the ratio, look after.

Runs in SGLang's scheduler processes. Whatever fails here before the agreement goes into it, so that every rank hears
of it; nothing is exchanged after it. Imports sglang only inside functions.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Any

from ...core.capacity import TotalSize
from ...core.findings import ConfigurationError, Finding, describe
from ...core.plan import Plan
from ...core.pools import Stage
from ...core.releases import Release
from ...core.terms import Accounting, Terms
from . import logger
from .device_pools import unreadable
from .families import Situation, read
from .host_pools import BuiltPool, built_pools, differ, differences
from .modes import VARIABLE, Mode, read_mode
from .texts import beyond_size, built_line, planned_line
from .versions import installed_sglang
from .world import world_group

#: Findings that a size is no total here, not that the start must end: all ranks go on with SGLang's own sizes. A rank
#: whose pools could not be read (HC406) is one too under check: it changes nothing, so no fault of ours ends a server.
FALLBACK = {Mode.ENFORCE: frozenset({"HC453"}), Mode.CHECK: frozenset({"HC453", "HC406"})}


@dataclass
class _Build:
    """What is known of the build that is going on in this process."""

    draft_plan: Any = None
    plan: Plan | None = None


#: Set by `build` around `create`: the inner hook has no other way to learn of the draft plan.
_current: ContextVar[_Build | None] = ContextVar("hicache_config_build", default=None)


def build(original: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    """Around SGLang's build_kv_cache: the whole cache of this rank. Verifies and reports what came of it."""
    mode = read_mode(os.environ)
    now = _Build(draft_plan=kwargs.get("hicache_draft_plan"))
    token = _current.set(now)
    try:
        with _memory_snapshot(mode):
            result = original(*args, **kwargs)
    finally:
        _current.reset(token)
    try:
        pools = built_pools(getattr(result, "tree_cache", None))
        if pools is not None:
            _look_after(pools, now, mode)
    except Exception as error:
        if mode is Mode.ENFORCE:
            raise
        logger.error(
            "hicache-config: the host pools could not be looked at (%s: %s); this is a fault of hicache-config, please "
            "report it", type(error).__name__, error, exc_info=logger.isEnabledFor(logging.DEBUG),
        )  # fmt: skip
    return result


def create(original: Callable[..., Any], ctx: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    """Around SGLang's create_tree_cache: the plan is made, agreed and set just before the host pools are built."""
    mode = read_mode(os.environ)
    now = _current.get() or _Build()
    if mode is not Mode.OFF and _is_sized(ctx):
        now.plan = _agree(ctx, mode, now.draft_plan)
        if now.plan is not None and mode is Mode.ENFORCE:
            _set_ratio(now.plan)
    return original(ctx, *args, **kwargs)


def _is_sized(ctx: Any) -> bool:
    """Whether host pools will be built by a size. Without one SGLang's own ratio stands, whatever the mode."""
    from sglang.srt.runtime_context import get_disagg, get_memory

    mirrored = ctx.enable_hierarchical_cache or get_disagg().disaggregation_decode_retraction_backup == "host_pool"
    return bool(mirrored) and get_memory().hicache_size > 0


def _agree(ctx: Any, mode: Mode, draft_plan: Any) -> Plan | None:
    """The agreed plan of this rank; None where all ranks leave the sizes to SGLang."""
    from sglang.srt.runtime_context import get_memory, get_parallel

    from ...sync import resolve_with

    parallel = get_parallel()
    release = Release.of(installed_sglang() or "")
    accounting: Accounting = "total" if mode is Mode.ENFORCE else "sglang"
    terms = Terms(TotalSize(get_memory().hicache_size), accounting, release)

    def stage() -> Stage:
        return Stage(read(_situation(ctx, draft_plan, release)))

    try:
        plan = resolve_with(
            world_group(parallel),
            stage,
            terms,
            stage_index=parallel.pp_rank,
            stage_count=parallel.pp_size,
            must_equal={VARIABLE: mode.value},
        )
        _must_have_ratio(plan, mode)
    except ConfigurationError as error:
        if all(finding.code in FALLBACK[mode] for finding in error.findings):
            for finding in error.findings:
                logger.warning("hicache-config: %s", describe(finding))
            return None
        logger.error("hicache-config: %s", error)
        raise
    logger.info("%s", planned_line(plan, mode))
    return plan


def _must_have_ratio(plan: Plan, mode: Mode) -> None:
    """Under enforce a plan is a ratio; every rank computes the same from the same offers, so all raise or none."""
    if mode is Mode.ENFORCE and plan.ratio is None:
        raise ConfigurationError(
            [
                Finding(
                    "HC456",
                    "no-ratio-for-plan",
                    "error",
                    "no ratio makes SGLang's constructors build the planned pages "
                    f"({', '.join(f'{pool.name}: {pool.pages}' for pool in plan.pools)})",
                    f"Change --hicache-size a little, or start with {VARIABLE}={Mode.CHECK.value}.",
                    argument="hicache_size",
                )
            ]
        )


def _rank() -> int:
    """This process's place among all ranks of the replica."""
    from sglang.srt.runtime_context import get_parallel

    world = world_group(get_parallel())
    return 0 if world is None else world.rank()


def _situation(ctx: Any, draft_plan: Any, release: Release) -> Situation:
    """What SGLang is about to mirror, out of its own records."""
    from sglang.srt.runtime_context import get_memory, get_parallel

    params, parallel = ctx.params, get_parallel()
    _refuse_other_trees(ctx, get_memory())
    draft_mode = "none" if draft_plan is None else str(draft_plan.mode.value)
    if draft_mode not in ("none", "packed", "sidecar"):
        raise unreadable(f"the draft is {draft_mode} into the target's pools")
    sidecar = tuple(draft_plan.device_pools) if draft_mode == "sidecar" else ()
    return Situation(
        kvcache=params.token_to_kv_pool_allocator.get_kvcache(),
        req_to_token_pool=params.req_to_token_pool,
        allocator=params.token_to_kv_pool_allocator,
        page_size=int(params.page_size),
        release=release,
        has_swa=bool(ctx.is_hybrid_swa),
        has_state=bool(ctx.is_hybrid_ssm),
        dcp_size=int(parallel.attn_dcp_size) if parallel.dcp_enabled else 1,
        packed=tuple(params.mtp_draft_device_pools or ()),
        packed_states=tuple(getattr(params, "mtp_draft_mamba_pools", ()) or ()),
        sidecar=sidecar,
        stage=int(parallel.pp_rank),
    )


def _refuse_other_trees(ctx: Any, memory: Any) -> None:
    """Trees that build no host pools, or in their own way (0.5.23, mem_cache/registry.py)."""
    if ctx.is_hybrid_swa and ctx.full_tokens_per_layer == 0:
        raise ConfigurationError(
            [
                Finding(
                    "HC454",
                    "stage-builds-no-host-pool",
                    "error",
                    "a pipeline stage owns sliding-window layers only; SGLang builds no host pool there and fails at "
                    "the first step of that stage",
                    "Give every stage a full-attention layer (--pp-size, SGLANG_PP_LAYER_PARTITION), or leave out "
                    "--enable-hierarchical-cache.",
                    argument="pp_size",
                )
            ]
        )
    if memory.radix_cache_backend:
        raise unreadable(f"the radix cache is {memory.radix_cache_backend!r}")
    if memory.enable_unified_memory:
        raise unreadable("the device pools share one buffer (--enable-unified-memory)")


def _set_ratio(plan: Plan) -> None:
    """A size of 0 and the plan's ratio: SGLang's own constructors then build the planned pages."""
    from sglang.srt.runtime_context import get_context

    get_context().override("hicache-config", hicache_size=0, hicache_ratio=plan.ratio)


def _memory_snapshot(mode: Mode) -> AbstractContextManager[Any]:
    """Under enforce, SGLang's memory check counts all pools of a rank against one reading (0.5.21 and later).

    It is taken before any pool is built, so a rank that is late does not divide what its peers have left.
    """
    if mode is not Mode.ENFORCE or not _mirrors_by_size():
        return nullcontext()
    try:
        from sglang.srt.mem_cache.pool_host.base import host_memory_budget_bytes, host_memory_budget_scope
    except ImportError:  # 0.5.20 has no such scope
        return nullcontext()
    try:
        scope: AbstractContextManager[Any] = host_memory_budget_scope(host_memory_budget_bytes())
    except Exception as error:  # SGLang's own check reads the memory again, pool by pool, and has its own words
        logger.info("hicache-config: SGLang checks the host's memory pool by pool (%s)", error)
        return nullcontext()
    return scope


def _mirrors_by_size() -> bool:
    from sglang.srt.runtime_context import get_memory

    return bool(get_memory().hicache_size > 0)


def _look_after(built: tuple[BuiltPool, ...], current: _Build, mode: Mode) -> None:
    """One line a rank about the real pools; an error where they are not the planned ones under enforce."""
    rank = _rank()
    logger.info("%s", built_line(built, current.plan, mode))
    if current.plan is None:
        return
    found = differences(current.plan.pools, built)
    if found and mode is Mode.ENFORCE:
        error = ConfigurationError([differ(rank, found)])
        logger.error("hicache-config: %s", error)
        raise error
    if found:
        finding = replace(differ(rank, found), severity="warning", help="Its report may be off; please report it.")
        logger.warning("hicache-config: %s", describe(finding))
    if mode is Mode.CHECK and (text := beyond_size(built, current.plan)):
        logger.warning("%s", text)
