"""What the plugin reads of SGLang's device pools against the host pools that SGLang builds for them, pool by pool.

    python reading_driver.py pools|models|special READINGS.jsonl CASES.jsonl

runs a driver of tests/oracle over its cases and writes one line for each stage that is built: the class of the device
pool, and what differs between the plugin's reading and the real pools (nothing, where it is right). Runs in the
oracle's environment.
"""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "oracle"))

import harness
from sglang.srt.mem_cache.unified_cache.component_type import ComponentType
from sglang.srt.runtime_context import get_parallel

from hicache_config.core.findings import ConfigurationError
from hicache_config.core.pools import DevicePool
from hicache_config.core.releases import Release
from hicache_config.engines.sglang.families import Situation, read

RELEASE = Release.of(harness.versions()["sglang"])
READINGS = Path(sys.argv[2])
real_build = harness.build_host_pools


def build_host_pools(kvcache: Any, params: Any, components: set[Any], server_args: Any) -> dict[str, Any]:
    """The oracle's own, and a line about the reading."""
    built = real_build(kvcache, params, components, server_args)
    entry: dict[str, Any] = {"pool": type(kvcache).__name__, "differences": [], "refused": []}
    try:
        pools = read(situation(kvcache, params, components))
        entry["differences"] = list(differences({pool.name: pool for pool in pools}, built["pools"]))
    except ConfigurationError as error:
        entry["refused"] = [[finding.code, finding.message] for finding in error.findings]
    with READINGS.open("a", encoding="utf-8") as out:
        out.write(json.dumps(entry) + "\n")
    return built


harness.build_host_pools = build_host_pools


def situation(kvcache: Any, params: Any, components: set[Any]) -> Situation:
    """As building._situation has it."""
    parallel = get_parallel()
    return Situation(
        kvcache=kvcache,
        req_to_token_pool=params.req_to_token_pool,
        allocator=params.token_to_kv_pool_allocator,
        page_size=params.page_size,
        release=RELEASE,
        has_swa=ComponentType.SWA in components,
        has_state=ComponentType.MAMBA in components,
        dcp_size=parallel.attn_dcp_size if parallel.dcp_enabled else 1,
        packed=tuple(params.mtp_draft_device_pools),
        packed_states=tuple(params.mtp_draft_mamba_pools),
        sidecar=tuple(params.sidecar_draft_device_pools),
    )


def differences(pools: dict[str, DevicePool], real: list[dict[str, Any]]) -> Iterator[str]:
    """Where a reading does not explain the real pools."""
    described = {pool["name"]: pool for pool in real}
    if list(pools) != list(described):
        yield f"read {', '.join(pools)}; built {', '.join(described)}"
    for name in pools.keys() & described.keys():
        pool, built = pools[name], described[name]
        pages = pages_of(built)
        if (pool.follows, pool.page_size) != (built["follows"], built["page_size"]):
            yield f"{name} follows {pool.follows} in pages of {pool.page_size}: {built['follows']}, {built['page_size']}"
        if (pages + pool.extra_pages) * pool.bytes_per_page != built["bytes"]:
            yield f"{name}: ({pages} + {pool.extra_pages}) * {pool.bytes_per_page} is not {built['bytes']}"
        is_split = pool.follows is None and pool.bytes_per_page and pool.page_rule == "added"
        if is_split and pool.device_bytes != built["device_bytes"]:
            yield f"{name} weighs {pool.device_bytes}, not {built['device_bytes']}"
        if pool.follows is not None:
            leader = pools[pool.follows]
            following = pool.pages_following(pages_of(described[pool.follows]), leader)
            if following != pages:
                yield f"{name} has {pages} pages, not {following}"


def pages_of(built: dict[str, Any]) -> int:
    return int(built["slots"] // built["page_size"] if built["pages"] is None else built["pages"])


def main() -> int | None:
    name, _, cases = sys.argv[1:]
    driver = importlib.import_module(name)
    sys.argv = [name, cases]
    return driver.main()  # not 0 where the process of a case failed


if __name__ == "__main__":
    sys.exit(main())
