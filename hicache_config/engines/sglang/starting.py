"""While arguments are resolved, in the launcher: refuse what would fail, say what will differ, prove the hooks.

Nothing is loaded yet. The rules run over the arguments as they were written. Imports sglang and the rest of the
project only inside functions, and only where HiCache is asked for.
"""

from __future__ import annotations

import dataclasses
import logging
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ...core.findings import ConfigurationError, Finding, describe, has_errors
from . import logger
from .modes import VARIABLE, Mode, ModeError, read_mode
from .versions import ENFORCED, installed_sglang, is_enforced

if TYPE_CHECKING:
    from ...core.terms import Accounting

#: Arguments that make SGLang build host pools, or read a hicache argument.
_CONCERNED = frozenset({"enable_hierarchical_cache", "disaggregation_decode_enable_offload_kvcache"})

#: Errors of SGLang alone that enforcing a size removes: DeepSeek V4 takes no size, stages with different pools hang.
_SOLVED = frozenset({"HC304", "HC401"})

#: What can't be wrong in a record of SGLang's own, whose arguments exist in its release, and what SGLang will know by
#: itself when it looks at the memory: the device slots.
_KNOWN_ANYWAY = frozenset({"HC010", "HC107", "HC505"})

#: Variables of the environment that SGLang reads and rules may look at.
_VARIABLES = ("SGLANG_", "MOONCAKE_")


def on_arguments(server_args: Any, previous: Callable[[Any], None]) -> None:
    """A resolution hook of SGLang: checks, then lets SGLang's own step run.

    Raises ConfigurationError (a ValueError) in an embedded Engine, SystemExit with the same text on a command line.
    """
    review(server_args)
    previous(server_args)


def review(server_args: Any) -> None:
    """Everything that can be said before anything is loaded."""
    try:
        mode = read_mode(os.environ)
    except ModeError as error:
        stop([Finding("HC450", "unknown-mode", "error", str(error))])
    given = given_arguments(server_args)
    if mode is Mode.OFF or not concerns_hicache(given):
        return
    version = installed_sglang() or ""
    findings = unenforceable(given, mode)
    try:
        findings = [*rule_findings(given, version, mode), *findings]
    except Exception as error:  # a fault of ours must not keep a server from starting
        logger.error(
            "hicache-config: the arguments could not be checked (%s: %s); this is a fault of hicache-config, please "
            "report it", type(error).__name__, error, exc_info=logger.isEnabledFor(logging.DEBUG),
        )  # fmt: skip
    if has_errors(findings):
        stop(findings)
    for finding in findings:
        (logger.warning if finding.severity == "warning" else logger.info)("hicache-config: %s", describe(finding))
    if given.get("enable_hierarchical_cache"):
        if mode is Mode.ENFORCE and not given.get("hicache_size"):
            logger.warning("hicache-config: there is no --hicache-size to enforce; SGLang's ratio stands as it is")
        _prove_hooks(version, mode)


def stop(findings: Sequence[Finding]) -> None:
    """End the start with all findings: a normal exception for a program, a text alone on a command line."""
    worst_first = sorted(findings, key=lambda finding: finding.severity != "error")
    if on_command_line():
        from .texts import refusal

        raise SystemExit(refusal(finding for finding in worst_first if finding.severity != "note"))
    raise ConfigurationError(finding for finding in worst_first if finding.severity == "error")


def on_command_line() -> bool:
    """Whether a launch command is at work (`sglang serve`, `python -m sglang.launch_server`) and no embedded Engine.

    Told by the functions that are running: a notebook or a test that makes an Engine has none of the commands' modules
    below it.
    """
    names = list(_running())
    if any(module.endswith(".entrypoints.engine") and function == "__init__" for module, function in names):
        return False
    return any(module.startswith(("sglang.cli.", "sglang.launch_server")) for module, _ in names)


def _running() -> Iterator[tuple[str, str]]:
    """Module and function of every frame below this one; a module run by `-m` under the name that it was asked by."""
    frame = sys._getframe(1)
    while frame is not None:
        module = str(frame.f_globals.get("__name__", ""))
        spec = frame.f_globals.get("__spec__")
        if module == "__main__" and spec is not None:
            module = spec.name
        yield module, frame.f_code.co_name
        frame = frame.f_back  # type: ignore[assignment]


def given_arguments(server_args: Any) -> dict[str, Any]:
    """The arguments that differ from SGLang's defaults, by field name (one written at its default can't be told)."""
    return {
        name: value
        for name, default in _defaults(type(server_args))
        if not _same(value := getattr(server_args, name, default), default)
    }


def _defaults(record: type) -> Iterator[tuple[str, Any]]:
    """Field names and defaults of SGLang's record: a msgspec struct, or a dataclass in older releases."""
    if dataclasses.is_dataclass(record):
        for each in dataclasses.fields(record):
            made = each.default_factory
            yield each.name, made() if made is not dataclasses.MISSING else each.default
        return
    import msgspec

    for each in msgspec.structs.fields(record):
        made = each.default_factory
        yield each.name, made() if made is not msgspec.NODEFAULT else each.default


def _same(value: Any, default: Any) -> bool:
    return type(value) is type(default) and bool(value == default)


def concerns_hicache(given: Mapping[str, Any]) -> bool:
    """Whether there is anything to check."""
    return any(name.startswith("hicache_") or name in _CONCERNED for name in given)


def rule_findings(given: Mapping[str, Any], version: str, mode: Mode) -> list[Finding]:
    """What the rules say to these arguments, and the plan of what is known already."""
    from ...app.checking import check

    environment = {name: value for name, value in os.environ.items() if name.startswith(_VARIABLES)}
    checked = check(given, sglang=version or None, environment=environment, gpu=_gpu(), host_memory=_memory())
    findings = [*checked.findings, *(noted.finding for noted in checked.notes)]
    enforced = mode is Mode.ENFORCE and is_enforced(version)
    accountings: tuple[Accounting, ...] = ("sglang", "total") if enforced else ("sglang",)
    for accounting in accountings:
        findings += [finding for finding in checked.of_sizing(accounting) if finding not in findings]
    return [
        finding
        for finding in findings
        if finding.code not in _KNOWN_ANYWAY and not (enforced and finding.code in _SOLVED)
    ]


def _memory() -> int:
    """Bytes that this machine can ever have free: what is free now may be more when the pools are built."""
    from ...memory import examine_host

    host = examine_host()
    return host.total_bytes if host.cgroup is None else min(host.total_bytes, host.cgroup.limit_bytes)


def _gpu() -> str | None:
    """The accelerator as the rules name it, where SGLang knows it."""
    try:
        from sglang.srt.runtime_context import get_platform

        number = get_platform().device_sm
    except (ImportError, AttributeError):
        return None
    return f"sm{number}" if number else None


def unenforceable(given: Mapping[str, Any], mode: Mode) -> list[Finding]:
    """Errors for set-ups in which a size can't be made a total; nothing is enforced without a size."""
    size = given.get("hicache_size", 0)
    if mode is not Mode.ENFORCE or not isinstance(size, (int, float)) or not size > 0:
        return []
    found: list[Finding] = []

    def refuse(argument: str, what: str) -> None:
        help_ = f"Leave it out, or start with {VARIABLE}={Mode.CHECK.value}."
        found.append(Finding("HC451", "size-can-not-be-enforced", "error", what, help_, argument=argument))

    pages = os.environ.get("SGLANG_HUGEPAGE_SIZE", "").strip()
    if pages.upper() in ("2MB", "1GB"):
        what = f"SGLANG_HUGEPAGE_SIZE={pages}: each host buffer is mapped in whole huge pages, by up to one beyond it"
        help_ = "Leave a page of room for each buffer (two a KV pool at most, three for Mamba states)."
        found.append(Finding("HC452", "huge-pages-round-up", "warning", what, help_, argument="hicache_size"))
    if given.get("use_ray"):
        refuse("use_ray", "Ray's scheduler actors load no plugins, so --hicache-size would not be a total in them")
    if given.get("disaggregation_decode_enable_offload_kvcache"):
        refuse(
            "disaggregation_decode_enable_offload_kvcache",
            "the decode offload manager builds host pools of its own beside HiCache's, each by the whole size",
        )
    if given.get("enable_unified_memory"):
        refuse("enable_unified_memory", "with unified memory host pools may share one arena that has its own formula")
    if given.get("enable_kv_cache_sharding"):
        refuse("enable_kv_cache_sharding", "host pools of a KV cache that is sharded by pages are not planned")
    return found


def _prove_hooks(version: str, mode: Mode) -> None:
    """One clear line where nothing can be enforced, and `check` from there on, in the processes to come as well."""
    if not is_enforced(version):
        if mode is Mode.ENFORCE:
            logger.warning(
                "hicache-config: SGLang %s is not one of %s; arguments are checked, but no size is enforced",
                version or "of unknown version",
                ", ".join(ENFORCED),
            )
        os.environ[VARIABLE] = Mode.CHECK.value
        return
    from .hooks import apply_build_hooks, hook_problems

    apply_build_hooks()
    problems = hook_problems()
    if problems:
        what = "nothing is enforced" if mode is Mode.ENFORCE else "host pools are not looked at"
        logger.warning("hicache-config: %s; %s (%s=check from here on)", "; ".join(problems), what, VARIABLE)
        os.environ[VARIABLE] = Mode.CHECK.value
