"""What is added to a family's pools, as the reference shows it: drafts, offload, and the arena of unified memory.

Must not import anything above this floor.
"""

from __future__ import annotations

from .family import FamilyPage

_WHOLE = "whole models through SGLang's own configuration, its device and host pools"

ADDED: tuple[FamilyPage, ...] = (
    FamilyPage(
        name="packed drafts",
        title="Drafts in the model's own rows",
        pools=("kv", "swa", "mamba", "indexer"),
        formula=(
            "EAGLE and NEXTN with a draft of the model's own shape: its layers (as many as steps with multi-layer "
            "EAGLE) add their row to kv, to swa for MiMo-V2 and DeepSeek V4, and an index row to the indexer. Inside "
            "the size, but not in the weights by which SGLang splits it; what states keep for speculation on the "
            "device is in them. With SGLANG_ENABLE_PP_SPEC on the last stage alone."
        ),
        checked=f"{_WHOLE}; Inkling with stand-ins for its model classes, which need a GPU to import",
        models=("zai-org/GLM-5.2-FP8", "XiaomiMiMo/MiMo-V2-Flash", "deepseek-ai/DeepSeek-V4-Flash", "Inkling"),
    ),
    FamilyPage(
        name="drafts",
        title="Drafts with pools of their own",
        pools=("draft", "draft_indexer", "draft_swa"),
        formula=(
            "EAGLE3, STANDALONE, DFLASH and DSPARK, by the config.json of the draft. draft, follows kv: row x layers "
            "of the draft, slot by slot; draft_indexer beside it for sparse drafts. draft_swa, the sliding layers of a "
            "draft, follows swa: int(d x (T / d)) // page + 1 pages, with d device slots and T host slots of swa, in "
            "floats. Outside the size in SGLang, but for NVFP4 of MiniMax M3 and the sliding drafts of Inkling, which "
            "are taken out of kv's share. Full layers of a sliding draft have no host pool."
        ),
        checked=f"{_WHOLE}, with made-up drafts; generated geometries",
        models=("Qwen/Qwen3-8B", "openai/gpt-oss-120b", "moonshotai/Kimi-K2.5"),
    ),
    FamilyPage(
        name="offload",
        title="Offload of decode servers",
        pools=("offload_kv",),
        formula=(
            "kv once more, of the full size or ratio, without packed drafts and index keys; for one pool of plain or "
            "latent attention alone. Beside HiCache it is a second stack, so both take the whole size."
        ),
        checked=f"{_WHOLE} and its offload manager's own choice",
        models=("Qwen/Qwen3-8B", "deepseek-ai/DeepSeek-V3"),
    ),
    FamilyPage(
        name="arena",
        title="The arena of unified memory",
        pools=("kv", "swa"),
        formula=(
            "--enable-unified-memory with a sliding window: one stretch of bytes for both pools, the larger of "
            "int(size x 1e9 x page / page bytes) // page + 1 pages over the two. No plan by pool is made; it is "
            "refused with these bytes."
        ),
        checked="SGLang's own arena, for two models' sizes",
        models=("openai/gpt-oss-120b",),
    ),
    FamilyPage(
        name="none",
        title="Models without host pools",
        pools=(),
        formula=(
            "Whisper and EmbeddingGemma 2 have no prefix cache, and SGLang refuses HiCache (HC687); so it does for "
            "MiniCPM with sparse or lightning layers (HC640). Mamba 2 alone has a kv pool of no bytes, which can't be "
            "mapped (HC688). Contriever, Moss-VL, Cosmos 3 and whatever runs through "
            "transformers' own code are refused as not known."
        ),
        checked=(
            "SGLang's own refusals and pools for the first four; Moss-VL and Cosmos 3 can't be built without the code "
            "that comes with the model"
        ),
        models=("openai/whisper-large-v3", "state-spaces/mamba2-2.7b"),
    ),
)
