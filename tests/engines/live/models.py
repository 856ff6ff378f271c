"""Tiny models: config.json contents only, one of each family that starts on a CPU. Sizes are ours."""

from __future__ import annotations

from typing import Any

Config = dict[str, Any]

_COMMON: Config = {
    "hidden_size": 64, "intermediate_size": 128, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16,
    "vocab_size": 128, "max_position_embeddings": 2048, "rms_norm_eps": 1e-5, "torch_dtype": "bfloat16",
    "bos_token_id": 1, "eos_token_id": 2, "hidden_act": "silu", "rope_theta": 10000.0,
}  # fmt: skip

LLAMA: Config = {
    **_COMMON, "architectures": ["LlamaForCausalLM"], "model_type": "llama", "num_hidden_layers": 4,
    "tie_word_embeddings": False,
}  # fmt: skip

#: Drafts of LLAMA: one that takes its hidden states, and a small model of the same words.
LLAMA_EAGLE: Config = {**LLAMA, "architectures": ["LlamaForCausalLMEagle"], "num_hidden_layers": 1}
LLAMA_SMALL: Config = {**LLAMA, "num_hidden_layers": 2}

GPT_OSS: Config = {
    **_COMMON, "architectures": ["GptOssForCausalLM"], "model_type": "gpt_oss", "num_hidden_layers": 6,
    "sliding_window": 128, "layer_types": ["sliding_attention", "full_attention"] * 3, "num_local_experts": 4,
    "num_experts_per_tok": 2, "pad_token_id": 0, "rope_theta": 150000,
}  # fmt: skip

_DEEPSEEK: Config = {
    **_COMMON, "moe_intermediate_size": 32, "num_hidden_layers": 4, "num_key_value_heads": 4, "kv_lora_rank": 512,
    "qk_rope_head_dim": 64, "qk_nope_head_dim": 128, "v_head_dim": 128, "q_lora_rank": 32, "n_routed_experts": 4,
    "n_shared_experts": 1, "num_experts_per_tok": 2, "n_group": 1, "topk_group": 1, "first_k_dense_replace": 1,
    "num_nextn_predict_layers": 1, "scoring_func": "sigmoid", "topk_method": "noaux_tc", "norm_topk_prob": True,
    "routed_scaling_factor": 2.5, "moe_layer_freq": 1,
    "rope_scaling": {
        "type": "yarn", "factor": 1.0, "original_max_position_embeddings": 2048, "mscale": 1.0, "mscale_all_dim": 1.0,
        "beta_fast": 32, "beta_slow": 1,
    },
}  # fmt: skip

DEEPSEEK_V3: Config = {**_DEEPSEEK, "architectures": ["DeepseekV3ForCausalLM"], "model_type": "deepseek_v3"}

DEEPSEEK_V32: Config = {
    **_DEEPSEEK, "architectures": ["DeepseekV32ForCausalLM"], "model_type": "deepseek_v32", "index_head_dim": 128,
    "index_n_heads": 4, "index_topk": 64,
}  # fmt: skip

QWEN3_NEXT: Config = {
    **_COMMON, "architectures": ["Qwen3NextForCausalLM"], "model_type": "qwen3_next", "moe_intermediate_size": 32,
    "shared_expert_intermediate_size": 32, "num_hidden_layers": 4, "full_attention_interval": 4,
    "partial_rotary_factor": 0.25, "linear_conv_kernel_dim": 4, "linear_key_head_dim": 16, "linear_value_head_dim": 16,
    "linear_num_key_heads": 2, "linear_num_value_heads": 4, "num_experts": 4, "num_experts_per_tok": 2,
    "decoder_sparse_step": 1, "norm_topk_prob": True, "mlp_only_layers": [],
}  # fmt: skip

#: Sparse attention with index keys on three of four layers.
MINIMAX_M3: Config = {
    **_COMMON, "architectures": ["MiniMaxM3SparseForCausalLM"], "model_type": "minimax_m2", "num_hidden_layers": 4,
    "head_dim": 128, "num_local_experts": 4, "num_experts_per_tok": 2, "rotary_dim": 64, "partial_rotary_factor": 0.5,
    "qk_norm_type": "per_head", "use_qk_norm": True, "use_gemma_norm": True, "use_routing_bias": True,
    "scoring_func": "sigmoid", "hidden_act": "swigluoai", "swiglu_alpha": 1.702, "swiglu_limit": 7.0,
    "dense_intermediate_size": 128, "moe_intermediate_size": 32, "shared_intermediate_size": 32, "n_shared_experts": 1,
    "first_k_dense_replace": 1, "moe_layer_freq": [0, 1, 1, 1], "routed_scaling_factor": 2.0,
    "tie_word_embeddings": False, "attention_output_gate": False,
    "sparse_attention_config": {
        "sparse_attention_freq": [0, 1, 1, 1], "sparse_block_size": 128, "sparse_disable_index_value": [0, 1, 1, 1],
        "sparse_index_dim": 128, "sparse_init_block": 0, "sparse_local_block": 1, "sparse_num_index_heads": 4,
        "sparse_score_type": "max", "sparse_topk_blocks": 16, "use_sparse_attention": True,
    },
}  # fmt: skip

#: Every layer is compressed: a CPU has no rotary embedding for one that is not.
DEEPSEEK_V4: Config = {
    **_COMMON, "architectures": ["DeepseekV4ForCausalLM"], "model_type": "deepseek_v4", "num_hidden_layers": 4,
    "compress_ratios": [4, 128, 4, 128], "head_dim": 512, "hc_eps": 1e-6, "hc_mult": 4, "hc_sinkhorn_iters": 20,
    "index_head_dim": 128, "index_n_heads": 4, "index_topk": 64, "moe_intermediate_size": 32, "n_routed_experts": 4,
    "n_shared_experts": 1, "norm_topk_prob": True, "num_experts_per_tok": 2, "num_hash_layers": 1,
    "num_key_value_heads": 1, "num_nextn_predict_layers": 1, "o_groups": 2, "o_lora_rank": 32, "q_lora_rank": 32,
    "qk_rope_head_dim": 64, "routed_scaling_factor": 1.5, "scoring_func": "sqrtsoftplus", "sliding_window": 128,
    "swiglu_limit": 10.0, "topk_method": "noaux_tc", "compress_rope_theta": 160000, "tie_word_embeddings": False,
    "rope_scaling": {
        "beta_fast": 32, "beta_slow": 1, "factor": 16, "original_max_position_embeddings": 2048, "type": "yarn",
    },
}  # fmt: skip

#: Full attention at layer 7 alone: stage 0 of (3, 5) owns none.
KIMI_LINEAR: Config = {
    **_COMMON, "architectures": ["KimiLinearForCausalLM"], "model_type": "kimi_linear", "num_hidden_layers": 8,
    "num_key_value_heads": 4, "kv_lora_rank": 512, "qk_rope_head_dim": 64, "qk_nope_head_dim": 128, "v_head_dim": 128,
    "q_lora_rank": None, "mla_use_nope": True, "num_experts": 4, "num_experts_per_token": 2, "num_shared_experts": 1,
    "moe_intermediate_size": 32, "first_k_dense_replace": 1, "moe_layer_freq": 1, "num_expert_group": 1,
    "topk_group": 1, "moe_router_activation_func": "sigmoid", "moe_renormalize": True, "routed_scaling_factor": 2.5,
    "use_grouped_topk": True, "model_max_length": 2048, "tie_word_embeddings": False,
    "linear_attn_config": {
        "full_attn_layers": [8], "kda_layers": [1, 2, 3, 4, 5, 6, 7], "head_dim": 16, "num_heads": 4,
        "short_conv_kernel_size": 4,
    },
}  # fmt: skip

#: Arguments without which a model does not start on a CPU, or sizes its states by the memory that is free.
_STATES = (
    "--mamba-radix-cache-strategy", "no_buffer", "--disable-overlap-schedule", "--max-mamba-cache-size", "64",
)  # fmt: skip
NEEDS: dict[str, tuple[str, ...]] = {
    "kimi_linear": _STATES,
    "qwen3_next": _STATES,
}
