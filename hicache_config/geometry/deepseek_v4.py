"""DeepSeek V4 and V4.1: latents of a sliding window, compressed latents with index keys, and compressor states.

All pools are made of pages: the kv anchor holds no bytes and only says how many pages the compressed pools have, the
sliding pool says the same for the states. SGLang refuses a size. Must not import anything above this floor.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..core.pools import DevicePool
from .family import Case, FamilyPage
from .given import given
from .model import refuse
from .parallel import StageLayers
from .speculation import algorithm_of
from .v4_drafts import is_speculative, v4_draft_layers
from .v4_layout import LATENT, ROPE, Layouts, index_token_bytes, layouts

ARCHITECTURE = "DeepseekV4ForCausalLM"
#: Tokens that share one latent, by the layer's entry in `compress_ratios`; 0 keeps the sliding window alone.
_RATIOS = frozenset({0, 1, 2, 4, 128})
_STATE_BYTES: Mapping[str, int] = {"float32": 4, "fp32": 4, "bfloat16": 2, "bf16": 2}


class DeepseekV4:
    """The family of DeepseekV4ForCausalLM."""

    page = FamilyPage(
        name="deepseek_v4",
        title="DeepSeek V4",
        pools=(
            "kv", "swa", "deepseek_v4_c4", "deepseek_v4_c4_indexer", "deepseek_v4_c4_state",
            "deepseek_v4_c4_indexer_state", "deepseek_v4_c128", "deepseek_v4_c1", "deepseek_v4_c1_indexer",
            "deepseek_v4_c2", "deepseek_v4_c2_indexer",
        ),
        formula=(
            "Pages of 256 tokens. kv: no bytes; pages = int(ceil(device slots / 256) x ratio), without an added page. "
            "swa: the same of its own slots, 149,760 bytes a layer (584 a token, rounded to 576), packed drafts "
            "included. c4 and c128, as kv: 37,440 and 1,728 bytes for each layer of that compress ratio. c4_indexer: "
            "8,448 (fp4 4,352). c4_state and c4_indexer_state, as swa: ring x 4 x width x 4 bytes, ring 8, or 16 with "
            "speculation. V4.1 adds c1 and c2 for the layers of kv_source_layer_ids. Only a ratio; a size through the "
            "ratio that it equals."
        ),
        checked="whole models through SGLang's own configuration, its device and host pools",
        models=("deepseek-ai/DeepSeek-V4-Flash", "nvidia/DeepSeek-V4-Pro-NVFP4"),
    )  # fmt: skip

    def matches(self, case: Case) -> bool:
        return case.model.architecture == ARCHITECTURE

    def pools(self, case: Case, stage: StageLayers) -> list[DevicePool]:
        _check(case)
        arranged = layouts(attention_backend(case), case.question.environment, case.settings.gpu)
        layers = owners(case, stage)
        pools = [
            DevicePool("kv", slots=case.slots.get("kv"), bytes_per_slot=0, page_size=case.page_size, page_rule="whole"),
            _window(case, stage, arranged),
        ]
        if layers[4]:
            pools += [*_compressed(case, arranged, 4, len(layers[4])), *_states(case, len(layers[4]))]
        if layers[128]:
            pools += _compressed(case, arranged, 128, len(layers[128]))
        for ratio in (1, 2):
            if layers[ratio]:
                pools += _compressed(case, arranged, ratio, len(layers[ratio]))
        return pools


def _window(case: Case, stage: StageLayers, arranged: Layouts) -> DevicePool:
    count = stage.count + v4_draft_layers(case, stage)
    return DevicePool(
        "swa",
        slots=case.slots.get("swa"),
        page_bytes=arranged.main.page_bytes(case.page_size) * count,
        page_size=case.page_size,
        page_rule="whole",
    )


def _compressed(case: Case, arranged: Layouts, ratio: int, count: int) -> list[DevicePool]:
    """The latents of one compress ratio, and their index keys (all ratios but 128)."""
    tokens = case.page_size // ratio
    name = f"deepseek_v4_c{ratio}"
    pools = [_paged(case, name, "kv", arranged.of_ratio(ratio).page_bytes(tokens) * count)]
    if ratio != 128:
        four_bits = ratio in (1, 2) or bool(given(case.args, "enable_deepseek_v4_fp4_indexer"))
        keys = tokens * index_token_bytes(case.model.integer("index_head_dim"), four_bits)
        pools.append(_paged(case, f"{name}_indexer", "kv", keys * count))
    return pools


def _states(case: Case, count: int) -> list[DevicePool]:
    """Compressor states of ratio 4: a ring of overlapping keys and scores a page of the sliding pool.

    Source: 0.5.23, deepseek_v4_compress_state.py:CompressStatePool and get_compress_state_ring_size.
    """
    text = case.question.environment.get("SGLANG_DSV4_COMPRESS_STATE_DTYPE", "float32").strip().lower()
    if text not in _STATE_BYTES:
        raise refuse(
            "HC621",
            "v4-state-type",
            f"SGLANG_DSV4_COMPRESS_STATE_DTYPE={text} is refused; SGLang knows float32 and bfloat16",
            "Unset it, or write float32 or bfloat16.",
        )
    ring = 16 if is_speculative(case) else 8
    value = ring * 4 * _STATE_BYTES[text]
    return [
        _paged(case, "deepseek_v4_c4_state", "swa", value * LATENT * count),
        _paged(case, "deepseek_v4_c4_indexer_state", "swa", value * case.model.integer("index_head_dim") * count),
    ]


def _paged(case: Case, name: str, follows: str, page_bytes: int) -> DevicePool:
    return DevicePool(name, page_size=case.page_size, follows=follows, page_bytes=page_bytes)


# --- layers and settings ------------------------------------------------------------------------------------------


def owners(case: Case, stage: StageLayers) -> Mapping[int, Sequence[int]]:
    """Layers of a stage that own compressed storage, by ratio; of ratios 1 and 2 only the source layers do.

    Source: 0.5.23, deepseek_v4_memory_pool.py:collect_sources_by_ratio.
    """
    ratios = case.model.integers("compress_ratios")
    if ratios is None:
        raise case.model.missing("compress_ratios")
    if len(ratios) < case.layers:
        raise case.model.wrong(
            "compress_ratios", f"a list of {len(ratios)}", f"a number for each of {case.layers} layers"
        )
    if not set(ratios) <= _RATIOS:
        raise case.model.wrong("compress_ratios", sorted(set(ratios)), "ratios of 0, 1, 2, 4 and 128")
    sources = set(case.model.integers("kv_source_layer_ids") or ())
    found: dict[int, list[int]] = {1: [], 2: [], 4: [], 128: []}
    for layer in range(stage.first, stage.end):
        ratio = ratios[layer]
        if ratio in (4, 128) or (ratio in (1, 2) and layer in sources):
            found[ratio].append(layer)
    return found


def attention_backend(case: Case) -> str:
    """--dsv4-attn-backend as SGLang settles it (0.5.23, deepseek_v4_hook.py:_default_dsv4_attention_backend)."""
    asked = given(case.args, "dsv4_attn_backend", "auto")
    if asked != "auto":
        return str(asked)
    mode = case.question.environment.get("SGLANG_DSV4_KV_LAYOUT")
    shared = case.args.disaggregation_mode == "null" and case.parallel.attention_tensor > 1
    mega = (
        case.model.model_type.startswith("deepseek_v41")
        and case.settings.gpu.is_sm100
        and case.settings.kv_type == "fp8_e4m3"
        and not shared
        and (mode is None or mode.lower() in {"auto", "v41", "v41_new"})
    )
    return "flashmla_mega" if mega else "flashmla"


def _check(case: Case) -> None:
    """Refuse what SGLang refuses for V4 before or while it builds the pools."""
    model, args, gpu = case.model, case.args, case.settings.gpu
    if model.integer("head_dim") != LATENT:
        raise model.wrong("head_dim", model.get("head_dim"), f"{LATENT}, the width of V4's latent")
    if model.integer("qk_rope_head_dim") != ROPE:
        raise model.wrong("qk_rope_head_dim", model.get("qk_rope_head_dim"), f"{ROPE}, as V4's rows have it")
    backend = given(args, "dsv4_attn_backend", "auto")
    if backend == "trtllm" and not gpu.is_sm100:
        raise _needs("--dsv4-attn-backend trtllm", "sm100 or sm103", gpu.name)
    if backend == "flashmla_mega" and not (gpu.is_sm100 and model.model_type.startswith("deepseek_v41")):
        raise _needs(
            "--dsv4-attn-backend flashmla_mega", "DeepSeek V4.1 on sm100 or sm103", f"{model.shown}, {gpu.name}"
        )
    if given(args, "enable_deepseek_v4_fp4_indexer") and not (gpu.is_sm100 or gpu.name in {"sm120", "sm121"}):
        raise _needs("--enable-deepseek-v4-fp4-indexer", "sm100 or sm120", gpu.name)
    if gpu.major == 12 and case.is_on("SGLANG_OPT_SM120_DIRECT_SWA_KV"):
        raise refuse(
            "HC622",
            "v4-direct-window-pages",
            "SGLANG_OPT_SM120_DIRECT_SWA_KV stores a page of 256 tokens as rows of 64, which HiCache can't map: SGLang "
            "stops when it builds the host pools",
            "Unset SGLANG_OPT_SM120_DIRECT_SWA_KV.",
        )
    if args.disable_hybrid_swa_memory:
        raise refuse(
            "HC691",
            "v4-needs-window-pool",
            "DeepSeek V4 does not run without its sliding-window pool: SGLang stops when it builds the device pools, "
            "after the weights are loaded",
            "Take --disable-hybrid-swa-memory out.",
            argument="disable_hybrid_swa_memory",
            asked=True,
        )
    if given(args, "enable_encoder_swa_bounded_replay"):
        raise refuse(
            "HC623",
            "v4-encoder-replay",
            "with --enable-encoder-swa-bounded-replay the sliding window is rebuilt instead of mirrored; its pools are "
            "not known here",
            "Leave it off, or give the pools themselves with --pools.",
        )
    if model.model_type.startswith("deepseek_v41"):
        _check_v41(case)


def _check_v41(case: Case) -> None:
    """Refuse what V4.1 does not have (0.5.23, deepseek_v4_hook.py:validate_deepseek_v41_features)."""
    args = case.args
    refused = (
        (f"--pp-size {args.pp_size}", args.pp_size > 1, "Write --pp-size 1."),
        (
            f"--speculative-algorithm {args.speculative_algorithm}",
            algorithm_of(case) not in {"", "DSPARK"},
            "Write --speculative-algorithm DSPARK, or leave it out.",
        ),
        ("--enable-hisparse", args.enable_hisparse, "Leave --enable-hisparse out."),
        (
            "--enable-two-batch-overlap",
            bool(given(args, "enable_two_batch_overlap")),
            "Leave --enable-two-batch-overlap out.",
        ),
    )
    for what, asked, help in refused:
        if asked:
            raise refuse("HC628", "v41-refuses", f"{what} is refused for DeepSeek V4.1", help)


def _needs(what: str, needed: str, have: str) -> Exception:
    return refuse("HC624", "v4-needs-gpu", f"{what} needs {needed}; here it is {have}", f"Leave {what} out.")
