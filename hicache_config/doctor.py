"""What this machine and its SGLang would do: the facts behind the command `doctor`. No click, no printing.

SGLang itself is loaded in a process of its own. Must not import cli.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Literal

from .core.releases import NEWEST, Release, ReleaseError
from .core.units import GIB, RESERVE_BYTES, format_gb, format_gib
from .engines.sglang.modes import VARIABLE, Mode, ModeError, read_mode
from .engines.sglang.versions import ENFORCED, installed_sglang, is_enforced
from .memory import HostFacts, examine_host

#: "failed": something would fail or not do what is asked for; "unknown": it could not be found out.
State = Literal["ok", "warning", "failed", "unknown"]

GROUP = "sglang.srt.plugins"
_PLUGIN = "hicache_config"
_HUGE_PAGES = {"2MB": 2 * 2**20, "1GB": 2**30}


@dataclass(frozen=True)
class Check:
    """One thing that was looked at: `name` in words, what was found, and what to do where it is not ok."""

    name: str
    state: State
    text: str
    help: str = ""

    def as_dict(self) -> dict[str, str]:
        """The check as `doctor --format json` writes it."""
        return {"name": self.name, "state": self.state, "text": self.text, "help": self.help}


@dataclass(frozen=True)
class Report:
    """All checks in order, and the facts that they stand on. `failed` decides the exit status."""

    checks: tuple[Check, ...]
    mode: str | None
    sglang: str | None
    ranks: int
    host: HostFacts
    claim_bytes: int
    probe: Mapping[str, Any] | None = field(default=None)

    @property
    def failed(self) -> bool:
        """Whether something would fail."""
        return any(check.state == "failed" for check in self.checks)

    def as_dict(self) -> dict[str, Any]:
        """The report as `doctor --format json` writes it."""
        return {
            "kind": "hicache-doctor",
            "version": 1,
            "mode": self.mode,
            "sglang": self.sglang,
            "ranks": self.ranks,
            "claim_bytes_per_rank": self.claim_bytes,
            "host": self.host.as_dict(),
            "hooks": None if self.probe is None else dict(self.probe),
            "failed": self.failed,
            "checks": [check.as_dict() for check in self.checks],
        }


def examine(
    *, ranks: int = 1, environment: Mapping[str, str] | None = None, load_sglang: bool = True, timeout_s: float = 180
) -> Report:
    """Look at SGLang, the plugin and the host.

    `ranks` is how many ranks of a server lie on this host, `environment` that of the server (default: this process's).
    `load_sglang=False` leaves out the check of the hooks, which imports SGLang in another process (about 10 seconds).
    """
    environment = os.environ if environment is None else environment
    version = installed_sglang()
    mode, mode_check = _mode(environment)
    checks = [mode_check, _sglang(version, mode)]
    probe: Mapping[str, Any] | None = None
    if version is not None:
        found = _plugin(environment, mode)
        checks.append(found)
        if found.state == "ok" and load_sglang:
            probe = run_probe(environment, timeout_s)
            checks.append(_hooks(probe, mode))
    host = examine_host()
    release = _release(version)
    claim = host.claim_bytes(release, ranks)
    checks += [
        _memory(host, release, claim, ranks),
        *_cgroup(host, release),
        *_pages(host, environment),
        _pinning(host),
    ]
    return Report(tuple(checks), None if mode is None else mode.value, version, ranks, host, claim, probe)


def _release(version: str | None) -> Release:
    try:
        return Release.of(version or NEWEST)
    except ReleaseError:
        return Release.of(NEWEST)


def _mode(environment: Mapping[str, str]) -> tuple[Mode | None, Check]:
    try:
        mode = read_mode(environment)
    except ModeError as error:
        return None, Check("mode", "failed", str(error), "SGLang would not start.")
    given = VARIABLE in environment
    return mode, Check("mode", "ok", f"{VARIABLE} is {'' if given else 'not set, which means '}{mode.value}")


def _sglang(version: str | None, mode: Mode | None) -> Check:
    if version is None:
        return Check("SGLang", "ok", f"not installed in this environment ({sys.prefix}); configurations can be checked")
    if is_enforced(version):
        return Check("SGLang", "ok", f"{version}, on which a size can be enforced")
    help_ = f"Enforced are {', '.join(ENFORCED)}; on this one arguments are checked and no size is changed."
    state: State = "failed" if mode is Mode.ENFORCE else "warning"
    return Check("SGLang", state, f"{version}, on which no size is enforced", help_)


def _plugin(environment: Mapping[str, str], mode: Mode | None) -> Check:
    """Whether SGLang finds the plugin and is allowed to load it."""
    ours = [point for point in _entry_points() if point.name == _PLUGIN]
    if not ours:
        return Check(
            "plugin", "failed", f"SGLang's entry point group {GROUP} has no {_PLUGIN} in this environment",
            "Install hicache-config into the environment of SGLang: pip install hicache-config",
        )  # fmt: skip
    allowed = {name.strip() for name in environment.get("SGLANG_PLUGINS", "").split(",") if name.strip()}
    if allowed and _PLUGIN not in allowed:
        return Check(
            "plugin", "failed" if mode is Mode.ENFORCE else "warning",
            f"SGLANG_PLUGINS={environment['SGLANG_PLUGINS']} leaves the plugin out, so SGLang starts without it",
            f"Add {_PLUGIN} to SGLANG_PLUGINS, or unset it.",
        )  # fmt: skip
    return Check("plugin", "ok", f"found ({ours[0].value}) and allowed")


def _entry_points() -> list[EntryPoint]:
    return list(entry_points(group=GROUP))


def run_probe(environment: Mapping[str, str], timeout_s: float) -> Mapping[str, Any]:
    """What engines.sglang.probe answers, or an `error` where it does not."""
    command = [sys.executable, "-m", "hicache_config.engines.sglang.probe"]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=timeout_s, check=False, env=dict(environment)
        )
        answer = json.loads(done.stdout.strip().splitlines()[-1])
    except subprocess.TimeoutExpired:
        return {"error": f"SGLang did not load within {timeout_s:g} s", "loaded": False, "problems": []}
    except (ValueError, IndexError):
        last = (done.stderr.strip().splitlines() or ["it printed nothing"])[-1]
        return {"error": f"the process that loads SGLang ended with {done.returncode}: {last}", "loaded": False,
                "problems": []}  # fmt: skip
    return answer if isinstance(answer, dict) else {"error": "no answer", "loaded": False, "problems": []}


def _hooks(probe: Mapping[str, Any], mode: Mode | None) -> Check:
    if probe["error"]:
        return Check("hooks", "failed", f"SGLang does not load: {probe['error']}", "Mend the installation of SGLang.")
    if not probe["loaded"]:
        return Check(
            "hooks", "failed", "SGLang loads its plugins but not this one",
            "Start SGLang with SGLANG_LOG_LEVEL=info and look for the reason at 'plugin'.",
        )  # fmt: skip
    if probe["problems"]:
        state: State = "failed" if mode is Mode.ENFORCE else "warning"
        return Check("hooks", state, "; ".join(probe["problems"]), "No size is enforced on this SGLang.")
    return Check("hooks", "ok", "all are in place")


def _memory(host: HostFacts, release: Release, claim: int, ranks: int) -> Check:
    together = host.usable_bytes(release)
    text = (
        f"{format_gib(together)} available of {format_gib(host.total_bytes)}, less SGLang's reserve of "
        f"{format_gib(RESERVE_BYTES, 0)}: a rank may claim {format_gb(max(0, claim))} with {ranks} on this host"
    )
    if claim <= 0:
        return Check("host memory", "failed", text, "HiCache can't build a host pool here.")
    return Check("host memory", "ok", text)


def _cgroup(host: HostFacts, release: Release) -> list[Check]:
    if host.cgroup_problem is not None:
        help_ = "SGLang then refuses to size by a fraction; give --hicache-size or --hicache-ratio."
        return [Check("cgroup", "warning" if release.has_fraction else "ok", host.cgroup_problem, help_)]
    limit = host.cgroup
    if limit is None or limit.limit_bytes > host.total_bytes:
        return [Check("cgroup", "ok", "no memory limit over this process")]
    counts = "" if release.has_fraction else f" (SGLang {release.name} does not look at it)"
    text = f"{format_gib(limit.bytes)} left of the limit of {format_gib(limit.limit_bytes)} in {limit.file}{counts}"
    return [Check("cgroup", "ok", text)]


def _pages(host: HostFacts, environment: Mapping[str, str]) -> list[Check]:
    asked = environment.get("SGLANG_HUGEPAGE_SIZE", "").strip().upper()
    offered = ", ".join(
        f"{pages.free} of {pages.total} of {_binary(pages.page_bytes)} free" for pages in host.huge_pages
    )
    thp = f"; transparent huge pages: {host.transparent_huge_pages}" if host.transparent_huge_pages else ""
    text = f"{offered or 'none'}{thp}"
    if not asked:
        return [Check("huge pages", "ok", text)]
    if asked not in _HUGE_PAGES:
        return [
            Check(
                "huge pages",
                "warning",
                f"SGLANG_HUGEPAGE_SIZE={asked} is ignored by SGLang; {text}",
                "Write 2MB or 1GB.",
            )
        ]
    free = sum(pages.free_bytes for pages in host.huge_pages if pages.page_bytes == _HUGE_PAGES[asked])
    if not free:
        help_ = "Set pages aside (vm.nr_hugepages), or unset SGLANG_HUGEPAGE_SIZE."
        return [Check("huge pages", "warning", f"SGLANG_HUGEPAGE_SIZE={asked}, of which none is free; {text}", help_)]
    return [Check("huge pages", "ok", f"SGLANG_HUGEPAGE_SIZE={asked} with {format_gib(free)} free; {text}")]


def _binary(amount: int) -> str:
    """A page or a limit in the unit that leaves no fraction, such as 2 MiB; GiB with three digits where none does."""
    for unit, name in ((GIB, "GiB"), (2**20, "MiB"), (2**10, "KiB")):
        if amount and amount % unit == 0:
            return f"{amount // unit:,} {name}"
    return format_gib(amount)


def _pinning(host: HostFacts) -> Check:
    limit = host.memlock_bytes
    if limit is None:
        return Check("locked memory", "unknown", "the limit can't be read")
    shown = "no limit" if limit < 0 else f"limit of {_binary(limit)}"
    return Check(
        "locked memory", "ok",
        f"{shown} (RLIMIT_MEMLOCK); it binds RDMA registration, not the pinning by CUDA, which no limit shows",
    )  # fmt: skip
