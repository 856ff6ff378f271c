"""Whole models of the families with rules of their own, and drafts, through the real SGLang.

    python tools/oracle.py run special.py [CASES.jsonl] > RESULTS.jsonl

models.py with what these cases need besides: DeepSeek V4.1 layouts as on a GPU that is not there, the stages of a DSpark
head, a stand-in for Inkling's model classes (they import GPU packages; their configuration, pools and stack builder are
the wheel's own), drafts of the DFLASH family, the assertion of ModelRunner for drafts under pipeline parallelism, and
decode servers: SGLang's own choice of the retraction backup and ratio, and the host pool that offload builds.
"""

from __future__ import annotations

import os
import sys
from types import SimpleNamespace
from typing import Any

import children
import harness
import model_objects
import models
import sglang.srt.mem_cache.deepseek_v4_memory_pool as v4_pools
import torch
from sglang.srt.mem_cache.kv_cache_builder import resolve_decode_retraction_backup
from sglang.srt.mem_cache.memory_pool import MHATokenToKVPool, MLATokenToKVPool
from sglang.srt.models.registry import ModelRegistry
from sglang.srt.runtime_context import get_disagg, get_memory, get_schedule, get_spec
from sglang.srt.speculative.dspark_components.dspark_config import parse_dspark_draft_config
from sglang.srt.speculative.spec_info import SpeculativeAlgorithm
from sglang.srt.utils import common
from torch import nn

DSPARK_V4 = "DeepseekV4ForCausalLMDSpark"


def _capability(*arguments: Any) -> tuple[int, int]:
    """Asked when it is needed: models.py sets it for each case."""
    return torch.cuda.get_device_capability(*arguments)


class _Torch:
    """torch as the V4 layouts look at it on the GPU of the case: built for CUDA, with a device of its capability."""

    version = SimpleNamespace(cuda="12.9")
    cuda = SimpleNamespace(
        is_available=lambda: True,
        get_device_capability=_capability,
        use_mem_pool=torch.cuda.use_mem_pool,
    )

    def __getattr__(self, name: str) -> Any:
        return getattr(torch, name)


v4_pools.torch = _Torch()
common.is_sm100_supported = lambda device=None: torch.cuda.get_device_capability()[0] == 10


class InklingForConditionalGeneration(nn.Module):
    """In the place of the model class: what sizing asks of it is whether it takes stages, and its quantisation."""

    def __init__(self) -> None:
        super().__init__()
        self.quant_config = None

    def forward(self, input_ids, positions, forward_batch):
        raise NotImplementedError


class InklingForConditionalGenerationMTP(InklingForConditionalGeneration):
    mtp_layer_id_is_depth = True


for _stand_in in (InklingForConditionalGeneration, InklingForConditionalGenerationMTP):
    ModelRegistry.models.setdefault(_stand_in.__name__, _stand_in)


_real_empty_model = model_objects.empty_model


def _empty_model(model_class: type, attributes: dict[str, Any]) -> nn.Module:
    """The stages of a DSpark head are its layers, as its constructor sets them."""
    if model_class.__name__ == DSPARK_V4:
        config = attributes["config"]
        layers = parse_dspark_draft_config(draft_hf_config=config).target_layer_ids
        stages = len(layers) if layers is not None else int(getattr(config, "num_nextn_predict_layers", 1) or 1)
        attributes = {**attributes, "num_stages": stages, "start_layer": 0, "end_layer": stages}
    return _real_empty_model(model_class, attributes)


model_objects.empty_model = _empty_model
_real_kv_dtype = models.kv_cache_dtype.configure_kv_cache_dtype


def _configure_kv_cache_dtype(**arguments: Any) -> Any:
    """The same for drafts of the DFLASH family, which models.py does not have."""
    algorithm = SpeculativeAlgorithm.from_string(get_spec().speculative_algorithm)
    if arguments["is_draft_worker"] and algorithm.is_dflash_family():
        backend = get_spec().speculative_draft_attention_backend
        arguments.update(is_dflash=True, speculative_draft_attention_backend=backend)
    return _real_kv_dtype(**arguments)


models.kv_cache_dtype.configure_kv_cache_dtype = _configure_kv_cache_dtype


class SpecialCase(models.Case):
    """A case with drafts on the stages that have one, and what a decode server adds."""

    def __init__(self, folder: str, args: dict[str, Any]) -> None:
        args = dict(args)
        off = args.pop("enable_hierarchical_cache", True) is False
        super().__init__(folder, args)
        if off:
            self.command.remove("--enable-hierarchical-cache")

    def stage(self, stage: int) -> dict[str, Any]:
        self.at = stage
        return super().stage(stage)

    def drafts(self, server_args: Any, config: Any, device: Any, quant_config: Any) -> dict[str, Any]:
        last_only = os.environ.get("SGLANG_ENABLE_PP_SPEC") == "1"
        if last_only and self.at < self.pp - 1:
            return {}  # Scheduler.maybe_init_draft_worker makes none there
        return super().drafts(server_args, config, device, quant_config)

    def draft_runner(self, server_args: Any, device: Any, quant_config: Any, depth: int | None) -> Any:
        runner = super().draft_runner(server_args, device, quant_config, depth)
        takes_stages = model_objects.takes_stages(type(runner.model))
        if self.pp > 1 and not takes_stages and os.environ.get("SGLANG_ENABLE_PP_SPEC") != "1":
            error = AssertionError("Pipeline Parallel is not compatible with this model.")
            error.oracle_where = ["model_executor/model_runner.py:ModelRunner.__init__"]
            raise error
        return runner

    def host_pools(  # noqa: PLR0917 - as models.py has it
        self, server_args: Any, config: Any, device: Any, drafts: dict[str, Any], stage: int, window: Any
    ) -> dict[str, Any]:
        if get_disagg().disaggregation_mode != "decode":
            return super().host_pools(server_args, config, device, drafts, stage, window)
        backup = resolve_decode_retraction_backup(tp_worker=_worker(config, device, drafts))
        self.told["decode"] = {"backup": backup, "ratio": float(get_memory().hicache_ratio)}
        built: dict[str, Any] = {"pools": []}
        if get_memory().enable_hierarchical_cache or backup == "host_pool":
            built = super().host_pools(server_args, config, device, drafts, stage, window)
        if get_disagg().disaggregation_decode_enable_offload_kvcache:
            built["pools"].append(_offload(device.token_to_kv_pool))
        return built


def _worker(config: Any, device: Any, drafts: dict[str, Any]) -> Any:
    """What SGLang asks a worker for when it works out the backup of retracted requests."""
    full, swa = device.full_max_total_num_tokens, device.swa_max_total_num_tokens
    return SimpleNamespace(
        is_hybrid_swa=config.is_hybrid_swa,
        get_memory_pool=lambda: (device.req_to_token_pool, device.token_to_kv_pool_allocator),
        get_tokens_per_layer_info=lambda: (full, swa),
        model_runner=SimpleNamespace(
            mtp_draft_device_pools=drafts.get("mtp_draft_device_pools", ()),
            spec_algorithm=SpeculativeAlgorithm.from_string(get_spec().speculative_algorithm),
            model_config=config,
        ),
    )


def _offload(kvcache: Any) -> dict[str, Any]:
    """The host pool of DecodeKVCacheOffloadManager, by the builder and the check that its constructor has."""
    if not isinstance(kvcache, (MHATokenToKVPool, MLATokenToKVPool)):
        error = ValueError("Unsupported KV cache type for decode offload")
        error.oracle_where = ["disaggregation/decode_kvcache_offload_manager.py:DecodeKVCacheOffloadManager.__init__"]
        raise error
    with harness.host_base.host_memory_budget_scope(harness.UNLIMITED):
        pool = models.assembler.build_kv_host_pool(
            kv_pool=kvcache, page_size=get_schedule().page_size, use_mla=isinstance(kvcache, MLATokenToKVPool)
        )
    entry = SimpleNamespace(name=SimpleNamespace(value="offload_kv"), host_pool=pool, device_pool=kvcache)
    described = harness._describe(entry, None)
    calls = harness._stage
    described["raw_slots"] = described["share_gb"] = None
    if get_memory().hicache_size > 0:
        calls.pools[-1] = "offload_kv"
        described["raw_slots"], described["share_gb"] = calls.raw[-1], calls.sizes[-1]
    return described


def main() -> int:
    return children.main(SpecialCase)


if __name__ == "__main__":
    sys.exit(main())
