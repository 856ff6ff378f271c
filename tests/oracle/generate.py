"""The lists of geometries that pools.py builds: seeded, so that the same case has the same number every time.

    python tests/oracle/generate.py [FAMILY…]       the cases as JSON lines, all families without names

Values are those of production beside nasty ones: pages from 1 to 256 that divide nothing, budgets below a page and
of a hundred terabytes, ratios below one and not finite, uneven stages, stages that lack a pool, one KV head, one slot.
Uses the standard library alone; neither SGLang nor torch.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from random import Random
from typing import Any

SEED = 20261130
Case = dict[str, Any]

PAGES = [1, 1, 16, 32, 64, 64, 64, 128, 128, 256]
ODD_PAGES = [2, 3, 7, 24, 48, 100, 255]
SIZES = [1, 2, 3, 5, 7, 10, 25, 50, 64, 100, 100, 100, 128, 200, 217, 270, 333, 500, 750, 1000, 1500, 4000]
ODD_SIZES = [1e-9, 1e-7, 1e-6, 2e-5, 0.001, 0.01, 0.1, 1.5, 33.3, 99.999999, 123.456, 20000, 100000]
RATIOS = [2.0, 2.0, 2.0, 1.1, 1.2, 1.5, 2.5, 3.0, 4.0, 5.0, 8.0, 10.0]
ODD_RATIOS = [0, 0.0001, 0.1, 0.2, 0.3333333333333333, 0.7, 0.95, 1.0, 1.05, 3.7, 33.3, 100.0, "nan", "inf", -1, -0.5]
SLOTS = [1024, 8192, 65536, 131072, 500_000, 1_000_000, 1_000_000, 2_000_000, 3_000_000]
MHA_LAYOUTS = ["page_first"] * 6 + ["layer_first"] * 3 + ["page_first_direct"] * 3 + ["page_head"] * 2
MLA_LAYOUTS = ["page_first"] * 6 + ["layer_first"] * 3 + ["page_first_direct"] * 3
STATE_LAYOUTS = ["page_first"] * 4 + ["page_first_direct"]
REFUSED_LAYOUTS = ["page_first_kv_split", "page_head", "layer_first"]
MHA_DTYPES = ["bfloat16", "bfloat16", "bfloat16", "float16", "fp8_e4m3", "fp8_e4m3", "fp8_e5m2"]
STATE_SHAPES = [  # value heads, key heads, value width, key width: published linear hybrids
    (32, 16, 128, 128),
    (48, 16, 128, 128),
    (64, 16, 128, 128),
    (16, 16, 128, 128),
    (24, 8, 96, 64),
]


def page(rng: Random) -> int:
    return rng.choice(ODD_PAGES) if rng.random() < 0.15 else rng.choice(PAGES)


def capacity(rng: Random) -> Case:
    if rng.random() < 0.7:
        return {"size": rng.choice(ODD_SIZES) if rng.random() < 0.2 else rng.choice(SIZES)}
    if rng.random() < 0.3:
        return {"ratio": rng.choice(ODD_RATIOS)}
    return {"ratio": round(rng.uniform(0.5, 6.0), rng.randint(1, 6)) if rng.random() < 0.4 else rng.choice(RATIOS)}


def slots(rng: Random, page_size: int) -> int:
    """Device slots: page-aligned as SGLang's own sizing leaves them, now and then not."""
    draw = rng.random()
    if draw < 0.1:
        return rng.randint(1, 500)
    number = rng.randint(1000, 4_000_000) if draw < 0.5 else rng.choice(SLOTS)
    return number if draw < 0.2 else max(number // page_size, 1) * page_size


def stage_layers(rng: Random, total: int) -> list[int]:
    """Layers of each stage: one stage in half of the cases, else an even or an uneven split."""
    stages = min(rng.choice([1, 1, 1, 1, 2, 2, 3, 4, 4, 8]), total)
    base, rest = divmod(total, stages)
    counts = [base + (number >= stages - rest) for number in range(stages)]
    if stages > 1 and rng.random() < 0.4:
        moved = rng.randint(1, max(counts[0] - 1, 1)) if counts[0] > 1 else 0
        counts[0], counts[-1] = counts[0] - moved, counts[-1] + moved
    return counts


def base_case(rng: Random, family: str, layouts: list[str], page_size: int, dtype: str) -> Case:
    layout = rng.choice(REFUSED_LAYOUTS) if rng.random() < 0.04 else rng.choice(layouts)
    return {"family": family, "page_size": page_size, "dtype": dtype, "layout": layout, "capacity": capacity(rng)}


def stages_of(rng: Random, page_size: int, layers: list[int]) -> list[Case]:
    """Stages of one attention pool; their device slots are equal but in a few cases."""
    common = slots(rng, page_size)
    differ = rng.random() < 0.06
    return [{"kv": {"layers": count, "slots": slots(rng, page_size) if differ else common}} for count in layers]


def mha_geometry(rng: Random) -> Case:
    total, ranks = rng.choice([1, 2, 4, 8, 8, 8, 16, 32, 64]), rng.choice([1, 1, 2, 4, 8, 16])
    width = rng.choice([16, 64, 64, 80, 96, 128, 128, 128, 192, 256, 512])
    return {"heads": max(1, total // ranks), "head_dim": width, "v_head_dim": width}


def mla_geometry(rng: Random) -> Case:
    lora, rope = rng.choice([(512, 64)] * 4 + [(256, 32), (384, 64), (128, 16)])
    return {"kv_lora_rank": lora, "qk_rope_head_dim": rope}


def mha(rng: Random, family: str = "mha") -> Case:
    page_size = page(rng)
    case = base_case(rng, family, MHA_LAYOUTS, page_size, rng.choice(MHA_DTYPES))
    layers = stage_layers(rng, rng.choice([1, 2, 16, 24, 28, 32, 36, 48, 61, 62, 64, 80, 94]))
    return {**case, "kv": mha_geometry(rng), "stages": stages_of(rng, page_size, layers)}


def mha_asymmetric(rng: Random) -> Case:
    case = mha(rng, "mha_asymmetric")
    wide = rng.choice([(192, 128), (192, 128), (128, 64), (256, 192), (64, 128), (96, 32)])
    case["kv"].update(head_dim=wide[0], v_head_dim=wide[1])
    if rng.random() < 0.8:
        case["layout"] = rng.choice(["page_first", "page_first_direct"])
    return case


def mxfp8(rng: Random) -> Case:
    case = mha(rng, "mxfp8")
    width = rng.choice([64, 128, 128, 256, 96])
    case.update(dtype="mxfp8", page_size=128 if rng.random() < 0.85 else 64)
    case["layout"] = "page_first" if rng.random() < 0.85 else "page_first_direct"
    case["kv"].update(head_dim=width, v_head_dim=width)
    for stage in case["stages"]:
        stage["kv"]["slots"] = max(stage["kv"]["slots"] // 128, 1) * 128
    return case


def mla(rng: Random) -> Case:
    page_size = page(rng)
    case = base_case(rng, "mla", MLA_LAYOUTS, page_size, rng.choice(["bfloat16", "bfloat16", "fp8_e4m3", "float16"]))
    layers = stage_layers(rng, rng.choice([1, 27, 60, 61, 61, 62, 93]))
    case.update(kv=mla_geometry(rng), stages=stages_of(rng, page_size, layers))
    if rng.random() < 0.12:
        case["dcp_size"] = rng.choice([2, 4])
    return case


def index_geometry(rng: Random) -> tuple[Case, int]:
    """Index keys and the page that goes with them: 64 index rows a page."""
    pooled = rng.choice([1, 1, 1, 1, 1, 2, 4])
    return {"head_dim": 128, "kpool": pooled}, 64 * pooled


def dsa_geometry(rng: Random, dtype: str) -> Case:
    geometry = mla_geometry(rng)
    lora, rope = geometry["kv_lora_rank"], geometry["qk_rope_head_dim"]
    quantised = lora + lora // 128 * 4 + rope * 2
    fp8_row = dtype == "fp8_e4m3" and rng.random() < 0.7
    return {**geometry, "kv_cache_dim": quantised if fp8_row else lora + rope}


def index_owners(rng: Random, first: int, count: int, every: int) -> list[int]:
    """The layers of a stage that hold index keys of their own, counted from the stage's first."""
    return [layer for layer in range(count) if (first + layer) < 3 or (first + layer - 2) % every == 0]


def with_owners(rng: Random, stages: list[Case]) -> None:
    """Shared top-k layers: in half of the cases only every second to eighth layer owns index keys."""
    every = rng.choice([1, 1, 2, 4, 4, 8])
    first = 0
    for stage in stages:
        count = stage["kv"]["layers"]
        if every > 1:
            stage["index_owners"] = index_owners(rng, first, count, every)
        first += count


def dsa(rng: Random) -> Case:
    index, page_size = index_geometry(rng)
    dtype = rng.choice(["bfloat16", "fp8_e4m3", "fp8_e4m3"])
    case = base_case(rng, "dsa", MLA_LAYOUTS, page_size if rng.random() < 0.97 else 32, dtype)
    layers = stage_layers(rng, rng.choice([8, 32, 47, 61, 61, 78, 78]))
    stages = stages_of(rng, page_size, layers)
    with_owners(rng, stages)
    return {**case, "kv": dsa_geometry(rng, dtype), "index": index, "stages": stages}


def swa(rng: Random, family: str = "swa") -> Case:
    page_size = page(rng)
    case = base_case(rng, family, MHA_LAYOUTS, page_size, rng.choice(MHA_DTYPES))
    case["kv"] = mha_geometry(rng)
    common = slots(rng, page_size)
    share = rng.choice([0.1, 0.2, 0.5, 0.8, 0.8, 0.8, 1.0])
    window = max(int(common * share) // page_size * page_size, 1)
    stages = []
    for layers in stage_layers(rng, rng.choice([4, 24, 36, 36, 48, 48, 60])):
        full = min(max(round(layers / rng.choice([2, 2, 4, 6])), 1), max(layers - 1, 1))
        sliding = max(layers - full, 1)
        stages.append({"kv": {"layers": full, "slots": common}, "swa": {"layers": sliding, "slots": window}})
    case["stages"] = stages
    return case


def swa_two_shapes(rng: Random) -> Case:
    case = swa(rng, "swa_two_shapes")
    case["swa"] = mha_geometry(rng)
    return case


def state_shape(rng: Random) -> Case:
    """A linear layer's state: GDN and Mamba 2, KDA, or Mamba 1, on one of its tensor ranks."""
    value_heads, key_heads, value, key = rng.choice(STATE_SHAPES)
    ranks = rng.choice([1, 1, 2, 4, 8])
    kind = rng.choice(["mamba2", "mamba2", "mamba2", "kda", "kda", "mamba1"])
    if kind == "kda":
        shape = {"num_heads": value_heads, "head_dim": value, "conv_kernel_size": rng.choice([3, 4])}
        if rng.random() < 0.3:
            shape.update(num_k_heads=key_heads, head_k_dim=key)
    elif kind == "mamba1":
        shape = {"intermediate_size": value_heads * value, "state_size": rng.choice([16, 64, 128]), "conv_kernel": 4}
    else:
        shape = {
            "intermediate_size": value_heads * value,
            "n_groups": rng.choice([key_heads, key_heads, 8, 2, 1]),
            "num_heads": value_heads,
            "head_dim": value,
            "state_size": key,
            "conv_kernel": rng.choice([4, 4, 2]),
        }
    ssm = rng.choice(["float32", "float32", "bfloat16", "float16"])
    mamba = {"kind": kind, "conv_dtype": "bfloat16", "ssm_dtype": ssm, "shape": {"tp_world_size": ranks, **shape}}
    if kind == "mamba2" and rng.random() < 0.25:
        mamba["speculative"] = {"requests": rng.randint(1, 256), "draft_tokens": rng.choice([2, 3, 4, 4, 8])}
    return mamba


def state_slots(rng: Random) -> int:
    return rng.choice([1, 2, 16, 60, 62, 100, 256, 500, 600, 1000, 4096, rng.randint(1, 3000)])


def linear(rng: Random) -> Case:
    attention = rng.choice(["mha", "mha", "mha", "mla", "mla", "dsa"])
    page_size = page(rng)
    if attention == "dsa":
        index, page_size = index_geometry(rng)
    dtype = rng.choice(["bfloat16", "bfloat16", "fp8_e4m3"])
    case = base_case(rng, "linear", STATE_LAYOUTS, page_size, dtype)
    case["kv"] = mha_geometry(rng) if attention == "mha" else mla_geometry(rng)
    if attention == "dsa":
        case.update(kv=dsa_geometry(rng, dtype), index=index)
    case["mamba"] = state_shape(rng)
    common, states = slots(rng, page_size), state_slots(rng)
    every = rng.choice([4, 4, 4, 8, 3, 2])
    stages, first = [], 0
    for layers in stage_layers(rng, rng.choice([8, 24, 32, 40, 48, 48, 60, 94])):
        full = sum((first + number) % every == every - 1 for number in range(layers))
        if full == 0 and rng.random() < 0.8:
            full = 1  # the rest stays: a stage without attention, which is a hazard
        linear_layers = max(layers - full, 1)
        stages.append({"kv": {"layers": full, "slots": common}, "mamba": {"layers": linear_layers, "slots": states}})
        first += layers
    if attention == "dsa":
        with_owners(rng, stages)
    case["stages"] = stages
    return case


def mamba_swa(rng: Random) -> Case:
    case = swa(rng, "mamba_swa")
    case["layout"] = rng.choice(STATE_LAYOUTS) if rng.random() < 0.95 else "layer_first"
    case["mamba"] = state_shape(rng)
    if rng.random() < 0.4:
        case["swa"] = mha_geometry(rng)
    states = state_slots(rng)
    for stage in case["stages"]:
        stage["mamba"] = {"layers": rng.randint(1, 2 * stage["swa"]["layers"]), "slots": states}
    return case


def packed(rng: Random) -> Case:
    """A target with next-token-prediction layers in its own rows, on every stage or on the last alone."""
    build = rng.choice([mha, mla, dsa, dsa, linear, swa, swa_two_shapes])
    case = build(rng)
    case["draft"] = {"mode": "packed", "on": rng.choice(["kv", "swa", "swa"])}
    if "dcp_size" in case:
        del case["dcp_size"]
    depths = rng.choice([1, 1, 1, 2, 3])
    for number, stage in enumerate(case["stages"]):
        last = number == len(case["stages"]) - 1
        stage["draft_layers"] = depths if last or rng.random() < 0.7 else 0
    return {**case, "family": "packed"}


def sidecar(rng: Random) -> Case:
    """A target with a draft of its own geometry beside it, whose host pool follows the target's."""
    build = rng.choice([mha, mla, dsa, dsa, linear, swa, swa_two_shapes])
    case = build(rng)
    draft: Case = {"mode": "sidecar"}
    if build in (swa, swa_two_shapes) and rng.random() < 0.6:
        draft["swa"] = case["kv"] if rng.random() < 0.4 else mha_geometry(rng)
        draft["kv"] = draft["swa"]
    elif build is dsa and rng.random() < 0.6:
        draft.update(kv=case["kv"], index=True)
    elif rng.random() < 0.5 and "kv_lora_rank" in case["kv"]:
        draft["kv"] = mla_geometry(rng)
    elif case["dtype"] != "mxfp8":
        draft["kv"] = mha_geometry(rng)
    for stage in case["stages"]:
        stage["draft_layers"] = rng.choice([1, 1, 1, 2, 5])
    return {**case, "family": "sidecar", "draft": draft}


def hazard(rng: Random) -> Case:
    """Stages with different sets of pools: no attention, no sliding window, no index keys, or a layer of nothing."""
    build = rng.choice([linear, linear, swa, mamba_swa, dsa])
    case = build(rng)
    while len(case["stages"]) < 2:
        case = build(rng)
    case["capacity"] = {"size": rng.choice(SIZES)} if rng.random() < 0.8 else {"ratio": rng.choice(RATIOS)}
    case["layout"] = "page_first"
    stage = case["stages"][rng.randrange(len(case["stages"]))]
    if build is dsa:
        stage["index_owners"] = []
    else:
        lost = rng.choice([name for name in ("kv", "swa") if name in stage])
        stage[lost]["layers"] = 0
    return {**case, "family": "hazard"}


def empty_states(rng: Random) -> Case:
    """States in pools of no layers, on one stage or on all: SGLang builds them without bytes."""
    case = rng.choice([linear, mamba_swa])(rng)
    case["capacity"] = {"size": rng.choice(SIZES)} if rng.random() < 0.6 else {"ratio": rng.choice(RATIOS)}
    case["layout"] = "page_first"
    empty = case["stages"] if rng.random() < 0.4 else [rng.choice(case["stages"])]
    for stage in empty:
        stage["mamba"]["layers"] = 0
    return {**case, "family": "empty_states"}


FAMILIES: dict[str, tuple[Callable[[Random], Case], int]] = {
    "mha": (mha, 300),
    "mha_asymmetric": (mha_asymmetric, 120),
    "mxfp8": (mxfp8, 80),
    "mla": (mla, 220),
    "dsa": (dsa, 300),
    "swa": (swa, 240),
    "swa_two_shapes": (swa_two_shapes, 160),
    "linear": (linear, 400),
    "mamba_swa": (mamba_swa, 140),
    "packed": (packed, 200),
    "sidecar": (sidecar, 180),
    "hazard": (hazard, 80),
    "empty_states": (empty_states, 80),
}


def cases(family: str) -> list[Case]:
    """The cases of one family as `{"id": …, "case": …}`, the same every time."""
    build, count = FAMILIES[family]
    rng = Random(f"{SEED}:{family}")
    return [{"id": f"{family}-{number:04d}", "case": build(rng)} for number in range(count)]


def main() -> None:
    for family in sys.argv[1:] or FAMILIES:
        for entry in cases(family):
            print(json.dumps(entry))


if __name__ == "__main__":
    main()
