"""Whole models through the real SGLang: from config.json and arguments to each stage's host pools.

    python tools/oracle.py run models.py [CASES.jsonl] > RESULTS.jsonl

One case a line in, one `{"id": …, "result": …}` a line out (README.md has both shapes). A case runs the wheel's own
argument resolution for a GPU that is not there, ModelConfig, the layer range of the real model class,
KVCacheConfigurator for the device pools and the stack builder for the host pools. The profile of GPU memory is
replaced: `max_total_tokens` and `max_mamba_cache_size` decide. `--whole FOLDER` reads models from another folder.
"""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import children
import harness
import model_objects
from sglang.srt.arg_groups.overrides import resolution_result
from sglang.srt.configs.model_config import AttentionArch, ModelConfig
from sglang.srt.distributed.utils import get_pp_indices
from sglang.srt.layers import quantization
from sglang.srt.layers.quantization.mxfp4 import Mxfp4Config
from sglang.srt.mem_cache import kv_cache_configurator, kv_cache_dtype, memory_pool
from sglang.srt.mem_cache.cache_init_params import CacheInitParams
from sglang.srt.mem_cache.deepseek_v4_memory_pool import DeepSeekV4TokenToKVPool
from sglang.srt.mem_cache.hybrid_cache import hybrid_pool_assembler as assembler
from sglang.srt.mem_cache.kv_cache_builder import uses_ssm_state
from sglang.srt.mem_cache.kv_cache_configurator import KVCacheConfigurator
from sglang.srt.mem_cache.unified_cache.component_type import ComponentType
from sglang.srt.model_executor import pool_configurator
from sglang.srt.model_executor.model_runner_components.layer_setup import resolve_layer_indices
from sglang.srt.model_executor.model_runner_components.spec_aux_hidden_state import (
    resolve_spec_aux_hidden_state_config,
)
from sglang.srt.model_loader.utils import get_model_architecture
from sglang.srt.runtime_context import (
    SpawnRanks,
    get_model,
    get_parallel,
    get_schedule,
    get_spec,
    publish,
    reset_context,
)
from sglang.srt.server_args import prepare_server_args
from sglang.srt.speculative.base_spec_worker import _can_pack_hicache_mtp
from sglang.srt.speculative.spec_info import SpeculativeAlgorithm

ANY_TOKENS = 1_000_000  # where no device size is given: single-pool models come to the same with any
ENDLESS_GPU_GB = 1e6
RESOLVED = (
    "page_size",
    "kv_cache_dtype",
    "attention_backend",
    "dsa_prefill_backend",
    "dsa_decode_backend",
    "hicache_mem_layout",
    "hicache_io_backend",
    "hicache_ratio",
    "swa_full_tokens_ratio",
    "disable_hybrid_swa_memory",
    "mamba_radix_cache_strategy",
    "disable_overlap_schedule",
    "attn_dp_size",
)


# -- what is replaced besides the harness's own ---------------------------------------------------------------------


def _endless_memory(self, pre_model_load_memory) -> int:
    """GPU memory without end, less what the states of linear layers take."""
    rest = ENDLESS_GPU_GB
    if self.mambaish_config is not None:
        rest = self._handle_max_mamba_cache(rest)
    return int(rest * (1 << 30))


def _cap_tokens(self, capacity: int) -> int:
    """The caller's limit; every stage has the same, so that the world's minimum is it."""
    return min(capacity, get_schedule().max_total_tokens or ANY_TOKENS)


KVCacheConfigurator._profile_available_bytes = _endless_memory
KVCacheConfigurator._apply_token_constraints = _cap_tokens
kv_cache_configurator.get_available_gpu_memory = lambda *args, **kwargs: ENDLESS_GPU_GB

# The CUDA build registers mxfp4 where this CPU import does not.
for _registry in (quantization.BASE_QUANTIZATION_METHODS, quantization.QUANTIZATION_METHODS):
    _registry.setdefault("mxfp4", Mxfp4Config)

_real_index_dtype = memory_pool.get_minimax_sparse_index_dtype


def _cuda_index_dtype(**arguments):
    """MiniMax index keys as a CUDA build would have them: the one size that asks which build this is."""
    memory_pool._is_cuda = True
    try:
        return _real_index_dtype(**arguments)
    finally:
        memory_pool._is_cuda = False


kv_cache_configurator.get_minimax_sparse_index_dtype = _cuda_index_dtype
pool_configurator.get_minimax_sparse_index_dtype = _cuda_index_dtype


# -- one stage ------------------------------------------------------------------------------------------------------


class Case:
    """One model with its arguments, on the way through SGLang. `phase` says how far it came."""

    def __init__(self, folder: str, args: dict[str, Any]) -> None:
        self.phase = "arguments"
        self.command = ["--model-path", folder, "--load-format", "dummy", "--device", "cuda", "--log-level", "error"]
        self.command.append("--enable-hierarchical-cache")
        for name, value in args.items():
            flag = f"--{name.replace('_', '-')}"
            if value is True:
                self.command.append(flag)
            elif value is not False and value is not None:
                self.command += [flag, str(value)]
        self.tp, self.pp = args.get("tp_size", 1), args.get("pp_size", 1)
        self.told: dict[str, Any] = {}

    def resolve(self, stage: int) -> Any:
        """SGLang's own resolution, published as the first rank of that stage."""
        self.phase = "arguments"
        reset_context()
        server_args = prepare_server_args(self.command)
        publish(server_args, role="scheduler", ranks=SpawnRanks(world_rank=stage * self.tp, gpu_id=0))
        self.told["resolved"] = {name: resolution_result(server_args, name) for name in RESOLVED}
        return server_args

    def stage(self, stage: int) -> dict[str, Any]:
        """Device and host pools of one stage, as README.md describes a stage."""
        server_args = self.resolve(stage)
        self.phase = "model"
        config = ModelConfig.from_server_args(server_args)
        model_class, _ = get_model_architecture(config)
        self.told["family"] = {"model_class": model_class.__name__, "quantization": config.quantization}
        if self.pp > 1 and not model_objects.takes_stages(model_class):
            refused = AssertionError("Pipeline Parallel is not compatible with this model.")
            refused.oracle_where = ["model_executor/model_runner.py:__init__"]  # once the weights are loaded
            raise refused
        quant_config = model_objects.quantization_of(config)
        model = model_objects.stage_model(model_class, config, stage, self.pp, quant_config)
        layers = resolve_layer_indices(model=model, model_config=config, is_draft_worker=False)
        window = model_objects.sliding_window(model, config)
        self.phase = "device pools"
        configurator = self.configurator(server_args, config, model, layers, stage, window)
        with harness.UntouchedDevice():
            device = configurator.configure(pre_model_load_memory=ENDLESS_GPU_GB)
            drafts = self.drafts(server_args, config, device, quant_config)
            self.phase = "host pools"
            built = self.host_pools(server_args, config, device, drafts, stage, window)
        first, end = get_pp_indices(config.hf_text_config.num_hidden_layers, stage, self.pp)
        return {
            "stage": stage,
            "layers": layers.end_layer - layers.start_layer,
            "first_layer": layers.start_layer,
            "weight_layers": end - first,
            "device_slots": _device_slots(device),
            **built,
        }

    def configurator(  # noqa: PLR0917 - what SGLang's own class asks for
        self, server_args: Any, config: ModelConfig, model: Any, layers: Any, stage: int, window: Any
    ) -> KVCacheConfigurator:
        """SGLang's own sizing of the target's device pools."""
        spec = SpeculativeAlgorithm.from_string(get_spec().speculative_algorithm)
        named, dtype = _kv_dtype(model, config, draft=False)
        self.told["family"]["kv_dtype"] = str(dtype).removeprefix("torch.")
        group = {"rank_in_group": stage, "world_size": self.pp}
        return KVCacheConfigurator(
            **_common(config, server_args, named, dtype),
            attn_dp_size=get_parallel().attn_dp_size,
            pp_size=self.pp,
            pp_group=SimpleNamespace(**group, is_first_rank=stage == 0, is_last_rank=stage == self.pp - 1),
            model=model,
            sliding_window_size=window,
            spec_algorithm=spec,
            is_draft_worker=False,
            spec_aux_config=resolve_spec_aux_hidden_state_config(
                server_args=server_args, model_config=config, spec_algorithm=spec, is_draft_worker=False
            ),
            layer_info=layers,
            req_to_token_pool=None,
            token_to_kv_pool_allocator=None,
            memory_pool_config=None,
        )

    def drafts(self, server_args: Any, config: ModelConfig, device: Any, quant_config: Any) -> dict[str, Any]:
        """The draft runners' device pools, and SGLang's own choice whether they are packed into the target's rows."""
        spec = SpeculativeAlgorithm.from_string(get_spec().speculative_algorithm)
        if spec.is_none() or not spec.has_draft_kv():
            return {}
        count = int(get_spec().speculative_num_steps) if config.is_multi_layer_eagle else 1
        runners = [
            self.draft_runner(server_args, device, quant_config, depth if config.is_multi_layer_eagle else None)
            for depth in range(count)
        ]
        self.told["family"]["draft_class"] = type(runners[0].model).__name__
        pools = tuple(runner.token_to_kv_pool for runner in runners)
        if not _can_pack_hicache_mtp(spec, tuple(runners)):
            self.told["family"]["draft"] = "sidecar"
            return {"sidecar_draft_device_pools": pools[:1]}
        self.told["family"]["draft"] = "packed"
        target_states = getattr(device.req_to_token_pool, "mamba_pool", None)
        states = tuple(getattr(runner.req_to_token_pool, "mamba_pool", None) for runner in runners)
        separate = any(pool is not None and pool is not target_states for pool in states)
        return {"mtp_draft_device_pools": pools, "mtp_draft_mamba_pools": states if separate else ()}

    def draft_runner(self, server_args: Any, device: Any, quant_config: Any, depth: int | None) -> Any:
        config = ModelConfig.from_server_args(
            server_args, model_path=get_spec().speculative_draft_model_path, is_draft_model=True
        )
        model_class, _ = get_model_architecture(config)
        if get_spec().speculative_draft_model_path not in {None, get_model().model_path}:
            quant_config = model_objects.quantization_of(config)
        if config.num_nextn_predict_layers:
            inner = SimpleNamespace(layers=[None])
            known = {"model": inner, "config": config.hf_config, "quant_config": quant_config}
            model = model_objects.empty_model(model_class, known)
        else:  # every layer of a model of its own, or of the target itself where no draft is named
            model = model_objects.stage_model(model_class, config, 0, 1, quant_config)
        layers = resolve_layer_indices(model=model, model_config=config, is_draft_worker=True, draft_model_idx=depth)
        named, dtype = _kv_dtype(model, config, draft=True)
        nothing = ("draft_model_config", "dflash_draft_num_layers", "eagle_draft_num_layers")
        nothing += ("eagle_draft_swa_num_layers", "draft_kv_num_layers")
        sized = KVCacheConfigurator(
            **_common(config, server_args, named, dtype),
            attn_dp_size=1,
            pp_size=1,
            pp_group=SimpleNamespace(rank_in_group=0, world_size=1, is_first_rank=True, is_last_rank=True),
            model=model,
            sliding_window_size=config.sliding_window_size if config.is_hybrid_swa else None,
            spec_algorithm=SpeculativeAlgorithm.from_string(get_spec().speculative_algorithm),
            is_draft_worker=True,
            spec_aux_config=SimpleNamespace(**dict.fromkeys(nothing)),
            layer_info=layers,
            req_to_token_pool=device.req_to_token_pool,
            token_to_kv_pool_allocator=device.token_to_kv_pool_allocator,
            memory_pool_config=device.memory_pool_config,
            draft_model_idx=depth,
        ).configure(pre_model_load_memory=ENDLESS_GPU_GB)
        return SimpleNamespace(
            model=model,
            model_config=config,
            token_to_kv_pool=sized.token_to_kv_pool,
            req_to_token_pool=sized.req_to_token_pool,
        )

    def host_pools(  # noqa: PLR0917 - what SGLang's own class asks for
        self, server_args: Any, config: ModelConfig, device: Any, drafts: dict[str, Any], stage: int, window: Any
    ) -> dict[str, Any]:
        kvcache = device.token_to_kv_pool
        components = {ComponentType.FULL}
        is_v4 = isinstance(kvcache, DeepSeekV4TokenToKVPool)
        if config.is_hybrid_swa and (not is_v4 or kvcache.needs_paged_swa_allocator):
            components.add(ComponentType.SWA)
        if uses_ssm_state(config):
            components.add(ComponentType.MAMBA)
        parallel = get_parallel()
        params = CacheInitParams(
            disable=False,
            req_to_token_pool=device.req_to_token_pool,
            token_to_kv_pool_allocator=device.token_to_kv_pool_allocator,
            page_size=device.token_to_kv_pool_allocator.page_size if parallel.dcp_enabled else get_schedule().page_size,
            pp_rank=stage,
            pp_size=self.pp,
            sliding_window_size=window,
            **drafts,
        )
        self.told["family"].update(
            device_pool=type(kvcache).__name__,
            strategy=type(assembler._select_strategy(kvcache, components)).__name__.removeprefix("_"),
            components=sorted(component.name for component in components),
        )
        return harness.build_host_pools(kvcache, params, components, server_args)


def _common(config: ModelConfig, server_args: Any, named: str | None, dtype: Any) -> dict[str, Any]:
    """What target and draft tell the configurator alike."""
    return {
        "device": "cpu",
        "gpu_id": 0,
        "model_config": config,
        "server_args": server_args,
        "kv_cache_dtype": dtype,
        "kv_cache_dtype_str": get_model().kv_cache_dtype if named is None else named,
        "model_dtype": config.dtype,
        "page_size": get_schedule().page_size,
        "post_capture_kv_active": False,
        "is_hybrid_swa": config.is_hybrid_swa,
        "is_hybrid_swa_compress": config.is_hybrid_swa_compress,
        "use_mla_backend": config.attention_arch == AttentionArch.MLA,
        "forward_stream": None,
    }


def _kv_dtype(model: Any, config: ModelConfig, *, draft: bool) -> tuple[str | None, Any]:
    return kv_cache_dtype.configure_kv_cache_dtype(
        server_args_kv_cache_dtype=get_model().kv_cache_dtype,
        model=model,
        model_dtype=config.dtype,
        is_draft_worker=draft,
        is_dflash=False,
        speculative_draft_attention_backend=None,
        speculative_draft_kv_cache_dtype=get_spec().speculative_draft_kv_cache_dtype if draft else None,
    )


def _device_slots(device: Any) -> dict[str, int]:
    """Slots of the independent device pools, by name."""
    if device.swa_max_total_num_tokens is not None:
        slots = {"kv": device.full_max_total_num_tokens, "swa": device.swa_max_total_num_tokens}
    else:
        slots = {"kv": device.max_total_num_tokens}
    states = getattr(device.req_to_token_pool, "mamba_pool", None)
    return slots if states is None else {**slots, "mamba": states.size}


def main() -> int:
    return children.main(Case)


if __name__ == "__main__":
    sys.exit(main())
