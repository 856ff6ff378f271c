"""Device pools and host pools of the real SGLang for a list of geometries; runs inside the oracle's environment.

    python tools/oracle.py run pools.py [CASES.jsonl] > RESULTS.jsonl

One case a line (README.md has the shape), from the file or from standard input; one `{"id": …, "result": …}` a line
out. Device pools come from SGLang's constructors, host pools from the stack builder that it selects itself, many
cases in one process. A case that SGLang refuses is a result too; a fault of this driver ends it.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import harness
import torch
from sglang.srt.configs.mamba_utils import (
    KimiLinearCacheParams,
    KimiLinearStateShape,
    Mamba2CacheParams,
    Mamba2StateDType,
    Mamba2StateShape,
)
from sglang.srt.mem_cache.memory_pool import (
    DSATokenToKVPool,
    HybridLinearKVPool,
    MambaPool,
    MHATokenToKVPool,
    MHATokenToKVPoolMXFP8,
    MLATokenToKVPool,
)
from sglang.srt.mem_cache.pool_host import mha_mxfp8
from sglang.srt.mem_cache.swa_memory_pool import SWAKVPool
from sglang.srt.mem_cache.unified_cache.component_type import ComponentType
from sglang.srt.runtime_context import get_context, get_parallel, publish, reset_context
from sglang.srt.server_args import ServerArgs

DTYPES = {
    "bfloat16": torch.bfloat16,
    "float16": torch.float16,
    "float32": torch.float32,
    "fp8_e4m3": torch.float8_e4m3fn,
    "fp8_e5m2": torch.float8_e5m2,
}
COMMON = {"device": "cpu", "enable_memory_saver": False}


def _allow_mxfp8() -> None:
    """The host pool of mxfp8 asks for a transfer kernel that only a GPU has, after its sizes are settled."""
    real = mha_mxfp8.MHATokenToKVPoolMXFP8Host._init_write_back_staging_buffers

    def staging(self, *args: Any) -> None:
        real(self, *args)
        self.can_use_write_back_jit = self.layout == "page_first"

    mha_mxfp8.MHATokenToKVPoolMXFP8Host._init_write_back_staging_buffers = staging
    mha_mxfp8.can_use_write_back_jit_kernel = lambda **geometry: True


_allow_mxfp8()
_published: dict[str, Any] = {}


def publish_context(dcp_size: int) -> ServerArgs:
    """SGLang's process-wide settings; published again only when the parallel sizes change."""
    if _published.get("dcp_size") != dcp_size:
        reset_context()
        parallel = {"tp_size": dcp_size, "dcp_size": dcp_size} if dcp_size > 1 else {}
        server_args = ServerArgs(model_path="dummy", device="cpu", enable_hierarchical_cache=True, **parallel)
        publish(server_args, role="test")
        if dcp_size > 1:
            get_parallel().override_permanently(attn_dcp_rank=0)
        _published.update(dcp_size=dcp_size, server_args=server_args)
    return _published["server_args"]


def set_memory(case: dict[str, Any]) -> None:
    """Size or ratio, and the layout, as the resolved arguments would have them."""
    capacity = case["capacity"]
    get_context().override(
        "oracle",
        hicache_size=capacity.get("size", 0),
        hicache_ratio=float(capacity.get("ratio", 2.0)),
        hicache_mem_layout=case["layout"],
    )


def mha_pool(case: dict[str, Any], geometry: dict[str, Any], layers: int, slots: int) -> MHATokenToKVPool:
    """A plain attention pool; mxfp8 where the case says so."""
    kind = MHATokenToKVPoolMXFP8 if case["dtype"] == "mxfp8" else MHATokenToKVPool
    dtype = torch.float8_e4m3fn if case["dtype"] == "mxfp8" else DTYPES[case["dtype"]]
    return kind(
        size=slots,
        page_size=case["page_size"],
        dtype=dtype,
        head_num=geometry["heads"],
        head_dim=geometry["head_dim"],
        v_head_dim=geometry["v_head_dim"],
        layer_num=layers,
        **COMMON,
    )


def mla_pool(case: dict[str, Any], geometry: dict[str, Any], layers: int, slots: int) -> MLATokenToKVPool:
    return MLATokenToKVPool(
        size=slots,
        page_size=case["page_size"],
        dtype=DTYPES[case["dtype"]],
        kv_lora_rank=geometry["kv_lora_rank"],
        qk_rope_head_dim=geometry["qk_rope_head_dim"],
        layer_num=layers,
        **COMMON,
    )


def dsa_pool(
    case: dict[str, Any], geometry: dict[str, Any], layers: int, slots: int, owners: list[int] | None = None
) -> DSATokenToKVPool:
    """Sparse MLA with its index keys; `owners` are the layers of the stage that hold keys, None for all."""
    index = case["index"]
    return DSATokenToKVPool(
        size=slots,
        page_size=case["page_size"],
        kv_lora_rank=geometry["kv_lora_rank"],
        dtype=DTYPES[case["dtype"]],
        qk_rope_head_dim=geometry["qk_rope_head_dim"],
        layer_num=layers,
        index_head_dim=index["head_dim"],
        index_kpool=index["kpool"],
        kv_cache_dim=geometry["kv_cache_dim"],
        skip_topk_layers=None if owners is None else [layer not in owners for layer in range(layers)],
        **COMMON,
    )


def swa_pool(case: dict[str, Any], full: list[int], sliding: list[int], slots: int, swa_slots: int) -> SWAKVPool:
    """A hybrid of full and sliding-window layers; the `swa` geometry counts only where the case gives one."""
    kv, swa = case["kv"], case.get("swa")
    shapes = {}
    if swa is not None:
        shapes = {"swa_head_num": swa["heads"], "swa_head_dim": swa["head_dim"], "swa_v_head_dim": swa["v_head_dim"]}
    return SWAKVPool(
        size=slots,
        size_swa=swa_slots,
        page_size=case["page_size"],
        dtype=DTYPES[case["dtype"]],
        head_num=kv["heads"],
        head_dim=kv["head_dim"],
        v_head_dim=kv["v_head_dim"],
        swa_attention_layer_ids=sliding,
        full_attention_layer_ids=full,
        device="cpu",
        **shapes,
    )


def mamba_pool(mamba: dict[str, Any], layer_ids: list[int], slots: int) -> MambaPool:
    """The states of linear layers: Mamba 2 and GDN (`mamba2`), Mamba 1 (`mamba1`) or KDA (`kda`) shapes."""
    dtype = Mamba2StateDType(conv=DTYPES[mamba["conv_dtype"]], temporal=DTYPES[mamba["ssm_dtype"]])
    make_shape = {
        "mamba2": Mamba2StateShape.create,
        "mamba1": Mamba2StateShape.create_full_rank,
        "kda": KimiLinearStateShape.create,
    }[mamba["kind"]]
    make_params = KimiLinearCacheParams if mamba["kind"] == "kda" else Mamba2CacheParams
    params = make_params(shape=make_shape(**mamba["shape"]), layers=layer_ids, dtype=dtype)
    speculative = mamba.get("speculative", {})
    return MambaPool(
        size=slots,
        spec_state_size=speculative.get("requests", 0),
        speculative_num_draft_tokens=speculative.get("draft_tokens"),
        cache_params=params,
        mamba_layer_ids=layer_ids,
        device="cpu",
    )


def linear_pool(
    case: dict[str, Any], full: list[int], slots: int, states: MambaPool, owners: list[int] | None
) -> HybridLinearKVPool:
    """A linear hybrid: attention over `full`, states beside it; its attention is MHA, MLA or DSA."""
    kv = case["kv"]
    options: dict[str, Any] = {}
    if "kv_lora_rank" in kv:
        options.update(use_mla=True, kv_lora_rank=kv["kv_lora_rank"], qk_rope_head_dim=kv["qk_rope_head_dim"])
    if "index" in case:
        options.update(
            use_dsa=True,
            index_head_dim=case["index"]["head_dim"],
            index_kpool=case["index"]["kpool"],
            kv_cache_dim=kv["kv_cache_dim"],
            skip_topk_layers=None if owners is None else [layer not in owners for layer in range(len(full))],
        )
    return HybridLinearKVPool(
        size=slots,
        dtype=DTYPES[case["dtype"]],
        page_size=case["page_size"],
        head_num=kv.get("heads", 1),
        head_dim=kv.get("head_dim", 1),
        full_attention_layer_ids=full,
        device="cpu",
        mamba_pool=states,
        **options,
    )


def plain_pool(case: dict[str, Any], geometry: dict[str, Any], layers: int, slots: int, owners=None) -> Any:
    """The attention pool that a geometry names: MHA, MLA or DSA."""
    if "kv_cache_dim" in geometry and "index" in case:
        return dsa_pool(case, geometry, layers, slots, owners)
    if "kv_lora_rank" in geometry:
        return mla_pool(case, geometry, layers, slots)
    return mha_pool(case, geometry, layers, slots)


def layer_ids(stage: dict[str, Any], *kinds: str) -> dict[str, list[int]]:
    """Layer numbers for each kind, dealt in turn (which layer is of which kind changes no size)."""
    left = {kind: stage[kind]["layers"] for kind in kinds}
    dealt: dict[str, list[int]] = {kind: [] for kind in kinds}
    number = 0
    while any(left.values()):
        for kind in kinds:
            if left[kind]:
                dealt[kind].append(number)
                left[kind] -= 1
                number += 1
    return dealt


def draft_pools(case: dict[str, Any], stage: dict[str, Any]) -> dict[str, tuple[Any, ...]]:
    """The draft's device pools, as many depths as the stage has, packed or beside the target (`sidecar`)."""
    depths = stage.get("draft_layers", 0)
    if not depths:
        return {}
    draft = case["draft"]
    slots, geometry = stage["kv"]["slots"], draft.get("kv", case["kv"])
    if draft["mode"] == "sidecar":
        inner = {**case, "index": case["index"]} if draft.get("index", False) else _without(case, "index")
        if draft.get("swa"):
            return {"sidecar_draft_device_pools": (_swa_draft({**case, "swa": draft["swa"]}, stage, depths),)}
        return {"sidecar_draft_device_pools": (plain_pool(inner, geometry, depths, slots),)}
    if "swa" in stage:
        return {"mtp_draft_device_pools": tuple(_swa_draft(case, stage, 1, draft["on"]) for _ in range(depths))}
    return {"mtp_draft_device_pools": tuple(plain_pool(case, geometry, 1, slots) for _ in range(depths))}


def _swa_draft(case: dict[str, Any], stage: dict[str, Any], depths: int, kind: str = "swa") -> SWAKVPool:
    layers = list(range(depths))
    full, sliding = (layers, []) if kind == "kv" else ([], layers)
    return swa_pool(case, full, sliding, stage["kv"]["slots"], stage["swa"]["slots"])


def _without(case: dict[str, Any], key: str) -> dict[str, Any]:
    return {name: value for name, value in case.items() if name != key}


def build_stage(case: dict[str, Any], stage: dict[str, Any], server_args: ServerArgs) -> dict[str, Any]:
    """One stage: its device pools, then SGLang's own stack over them."""
    components = {ComponentType.FULL}
    states = None
    kv_slots = stage["kv"]["slots"]
    with harness.UntouchedDevice():
        if "mamba" in stage:
            components.add(ComponentType.MAMBA)
        if "swa" in stage:
            components.add(ComponentType.SWA)
            ids = layer_ids(stage, *[kind for kind in ("kv", "swa", "mamba") if kind in stage])
            kvcache = swa_pool(case, ids["kv"], ids["swa"], kv_slots, stage["swa"]["slots"])
        elif "mamba" in stage:
            ids = layer_ids(stage, "mamba", "kv")
        if "mamba" in stage:
            states = mamba_pool(case["mamba"], ids["mamba"], stage["mamba"]["slots"])
        if "swa" not in stage and "mamba" in stage:
            kvcache = linear_pool(case, ids["kv"], kv_slots, states, stage.get("index_owners"))
        elif "swa" not in stage:
            kvcache = plain_pool(case, case["kv"], stage["kv"]["layers"], kv_slots, stage.get("index_owners"))
        drafts = draft_pools(case, stage)
        nothing = SimpleNamespace(alloc=None, free=None)
        params = SimpleNamespace(
            req_to_token_pool=SimpleNamespace(mamba_pool=states, mamba_allocator=nothing),
            token_to_kv_pool_allocator=SimpleNamespace(swa_attn_allocator=None),
            page_size=case["page_size"] * case.get("dcp_size", 1),
            tp_cache_group=None,
            attn_cp_cache_group=None,
            attn_tp_cache_group=None,
            pp_cache_group=None,
            mtp_draft_device_pools=drafts.get("mtp_draft_device_pools", ()),
            mtp_draft_mamba_pools=(),
            sidecar_draft_device_pools=drafts.get("sidecar_draft_device_pools", ()),
        )
        return harness.build_host_pools(kvcache, params, components, server_args)


def run_case(case: dict[str, Any]) -> dict[str, Any]:
    """The figures of one case, or SGLang's error with its place and its stage."""
    server_args = publish_context(case.get("dcp_size", 1))
    set_memory(case)
    try:
        return harness.over_stages(
            lambda stage: build_stage(case, case["stages"][stage], server_args), len(case["stages"])
        )
    except Exception as error:  # what SGLang raises is the result; a fault of ours has no place in its wheel
        refused = harness.refusal(error)
        if not refused["where"]:
            raise
        return {"error": refused}


def run_cases(lines: Iterable[str]) -> None:
    for line in filter(str.strip, lines):
        entry = json.loads(line)
        print(json.dumps({"id": entry["id"], "result": run_case(entry["case"])}), flush=True)


def main() -> None:
    if len(sys.argv) > 1:
        with Path(sys.argv[1]).open(encoding="utf-8") as lines:
            run_cases(lines)
    else:
        run_cases(sys.stdin)


if __name__ == "__main__":
    main()
