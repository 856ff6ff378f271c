"""What the lines of a server's log say was allocated, gathered for a comparison with a plan.

Line shapes: SGLang 0.5.10 to 0.5.23, mem_cache/pool_host/ and memory_pool_host.py (host pools), managers/scheduler.py
and model_executor/pool_configurator.py (device pools). Must not import anything above this floor.
"""

from __future__ import annotations

import re
from typing import Any

MOST_POOLS = 4_096

_DEVICE = re.compile(r"\bmax_total_num_tokens=(\d{1,18})\b")
_SLIDING = re.compile(
    r"Use sliding window memory pool.*?(?:full_layer_tokens=(\d{1,18}), )?swa_layer_tokens=(\d{1,18})"
)
_RANK = re.compile(r"\b((?:(?:DP|PP|TP|EP|CP|ATTN_TP)\d+ ?)+)\]")
#: (pattern, pool). A pattern's groups are gb, slots, pages, pool.
_HOST = (
    (
        re.compile(
            r"Allocating (?P<pool>[\w/ -]{1,40}) hierarchical KV host pool: "
            r"(?P<slots>\d{1,18}) tokens, (?P<gb>\d+\.\d+) GB"
        ),
        None,
    ),
    (re.compile(r"Allocating (?P<gb>\d+\.\d+) GB host memory for hierarchical KV cache"), "kv"),
    (
        re.compile(
            r"Allocating (?P<gb>\d+\.\d+) GB host memory for hierarchical Mamba cache"
            r"(?: \((?P<slots>\d{1,18}) state slots)?"
        ),
        "mamba",
    ),
    (re.compile(r"Allocating (?P<gb>\d+\.\d+) GB host memory for DSA indexer"), "indexer"),
    (re.compile(r"Allocating (?P<gb>\d+\.\d+) GB host memory for MiniMax"), "indexer"),
    (
        re.compile(
            r"Allocating (?P<gb>\d+\.\d+) GB host memory for V4 (?:paged|state) pool '(?P<pool>[^']{1,60})' "
            r"\(layers=\d+, pages=(?P<pages>\d{1,18})"
        ),
        None,
    ),
)
_REFUSED = re.compile(
    r"Not enough host memory.*?Requesting (?P<asked>\d+\.\d+) GB but only have (?P<free>\d+\.\d+) GB free"
)
#: SGLang's labels of pools that have another name here.
_POOL_NAMES = {"full": "kv"}


class Allocations:
    """Collects lines. `reported()` has only what was seen:

    `max_total_num_tokens` (slots of the device's kv pool), `device_slots` by pool, `host_pools`, a list with one entry
    a line of the log (`pool`, `gb` as printed with two decimals, `line`, and where it has them `slots`, `pages` and
    `rank`), and `refused`, a list of `asked_gb`, `free_gb` and `line` where SGLang found too little host memory.
    """

    def __init__(self) -> None:
        self._out: dict[str, Any] = {}

    def line(self, text: str, number: int) -> None:
        """Look at one line of the log."""
        if "max_total_num_tokens=" in text and (device := _DEVICE.search(text)):
            self._out.setdefault("max_total_num_tokens", int(device[1]))
        elif "Use sliding window" in text and (sliding := _SLIDING.search(text)):
            slots = {"swa": int(sliding[2])} | ({"kv": int(sliding[1])} if sliding[1] else {})
            self._out.setdefault("device_slots", slots)
        elif "Allocating" in text:
            self._host(text, number)
        elif "Not enough host memory" in text and (refused := _REFUSED.search(text)):
            entry = {"asked_gb": float(refused["asked"]), "free_gb": float(refused["free"]), "line": number}
            self._out.setdefault("refused", []).append(entry)

    def _host(self, text: str, number: int) -> None:
        pools = self._out.get("host_pools", [])
        for pattern, pool in _HOST:
            match = pattern.search(text)
            if match is None or len(pools) >= MOST_POOLS:
                continue
            groups = match.groupdict()
            label = pool or groups["pool"]
            entry: dict[str, Any] = {"pool": _POOL_NAMES.get(label, label), "gb": float(groups["gb"]), "line": number}
            entry |= {key: int(groups[key]) for key in ("slots", "pages") if groups.get(key)}
            rank = _RANK.search(text[: match.start()])
            if rank is not None:
                entry["rank"] = rank[1].strip()
            self._out.setdefault("host_pools", []).append(entry)
            return

    def reported(self) -> dict[str, object]:
        """What was seen."""
        return dict(self._out)
