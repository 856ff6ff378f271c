"""Arguments beside the HiCache block that change what its host pools come to, or whether they can be built.

Source: SGLang 0.5.23, arg_groups/fields/*.py; descriptions are our own. Must not import anything above this floor.
"""

from typing import Any

from .fields import ArgumentBlock, Choice, Integer, Number, Switch, Text, argument


class CacheArgs(ArgumentBlock):
    """Other caches, the prefix tree and device memory."""

    disable_radix_cache: Switch = argument(False, "Turn the prefix cache off. HiCache needs it.")
    radix_cache_backend: Text | None = argument(None, "A registered prefix tree of one's own.")
    radix_eviction_policy: Choice = argument("lru", "Which cached prefixes are dropped first.")
    radix_eviction_policy_config: dict[str, Any] | None = argument(None, "Settings of the eviction policy.")
    enable_unified_memory: Switch = argument(
        False,
        "One device buffer for all pools. Host pools may become page envelopes; layout and io backend are rewritten.",
    )
    enable_page_major_kv_layout: Switch = argument(False, "Device KV page by page; only together with unified memory.")
    enable_session_radix_cache: Switch = argument(False, "Keep prefixes of sessions.")
    enable_streaming_session: Switch = argument(False, "Sessions that are fed piece by piece.")
    enable_unified_cache_external_linker: Switch = argument(
        False, "Link the prefix tree to a storage backend directly, without a host tier; excludes HiCache."
    )
    unified_cache_external_linker_backend: Choice = argument("mooncake", "The backend of the external linker.")
    unified_cache_external_linker_config: dict[str, Any] | None = argument(None, "Settings of the external linker.")
    enable_linker_mla_dedup: Switch = argument(False, "Let the Mooncake linker keep replicated MLA pages once.")
    enable_hisparse: Switch = argument(
        False, "Sparse attention with a host pool of its own; never together with HiCache."
    )
    hisparse_config: Text | None = argument(None, "Settings of HiSparse as JSON text.")
    enable_lmcache: Switch = argument(False, "Use LMCache instead; excludes HiCache.")
    lmcache_config_file: Text | None = argument(None, "Settings file of LMCache.")
    enable_flexkv: Switch = argument(False, "Use FlexKV instead.")
    flexkv_config_file: Text | None = argument(None, "Settings file of FlexKV.")
    page_size: Integer | None = argument(
        None, "Token slots of a page; host pools hold whole pages. Not set: what the attention backend asks for, else 1.",
        unit="token slots", scope="per model", ge=1, examples=[64],
    )  # fmt: skip
    mem_fraction_static: Number | None = argument(
        None, "Share of GPU memory for weights and device pools.", unit="fraction", scope="per rank"
    )
    max_total_tokens: Integer | None = argument(
        None, "Upper bound of the device KV slots.", unit="token slots", scope="per rank", ge=1, examples=[1_000_000]
    )
    max_running_requests: Integer | None = argument(
        None,
        "Most requests at once; with it Mamba states and request slots are bounded.",
        unit="requests",
        scope="per engine",
        ge=1,
    )
    chunked_prefill_size: Integer | None = argument(
        None, "Most tokens of one prefill chunk; 0 or less turns chunking off.", unit="tokens", scope="per rank"
    )
    context_length: Integer | None = argument(None, "Longest context.", unit="tokens", scope="per model", ge=1)
    kv_cache_dtype: Choice = argument(
        "auto", "Type of the stored KV; auto is the model's, or what its checkpoint asks for."
    )
    qsa_indexer_dtype: Choice = argument("auto", "Type of QSA's compressed index keys.")
    swa_full_tokens_ratio: Number | None = argument(
        None,
        "Sliding-window slots per full-attention slot. Not set: 0.8, for some models another value.",
        unit="ratio",
        scope="per rank",
    )
    swa_prefix_tails: Integer | None = argument(None, "Tails of prefixes kept in the sliding-window pool.")
    disable_hybrid_swa_memory: Switch = argument(False, "Keep sliding-window layers in the full pool.")
    max_mamba_cache_size: Integer | None = argument(
        None,
        "Mamba states on the device, divided by the attention data-parallel size.",
        unit="states",
        scope="per engine",
        ge=1,
    )
    mamba_full_memory_ratio: Number | None = argument(
        None, "Device bytes of Mamba states per byte of KV. Not set: 0.9.", unit="ratio"
    )
    mamba_ssm_dtype: Choice | None = argument(None, "Type of the temporal state; not set: the model's.")
    mamba_radix_cache_strategy: Choice = argument("auto", "How states are kept for cached prefixes.")
    mamba_backend: Choice = argument("triton", "Kernels of the state models.")
    mamba_track_interval: Integer = argument(256, "Tokens between two kept states.", unit="tokens", ge=1)
    enable_int8_mamba_checkpoint: Switch = argument(False, "Keep states as int8; not with HiCache.")
    enable_linear_replayssm: Switch = argument(
        False, "Rebuild states by replay; the replay ring counts in the split of a size."
    )
    enable_linear_replayssm_spec: Switch = argument(False, "The same for speculative steps.")


class ParallelArgs(ArgumentBlock):
    """How the engine is spread over ranks and nodes."""

    tp_size: Integer = argument(1, "Tensor-parallel ranks of a pipeline stage.", unit="ranks", scope="per engine", ge=1)
    pp_size: Integer = argument(
        1, "Pipeline stages. Stages own different layers, so the same size buys each a different number of tokens.",
        unit="stages", scope="per engine", ge=1,
    )  # fmt: skip
    dp_size: Integer = argument(
        1,
        "Replicas of the whole engine; SGLang's memory check does not count them.",
        unit="replicas",
        scope="per engine",
        ge=1,
    )
    attn_dp_size: Integer = argument(
        1, "Data-parallel groups of attention inside the tensor ranks.", unit="groups", scope="per engine", ge=1
    )
    enable_dp_attention: Switch = argument(False, "Older spelling: with it dp_size means attn_dp_size.")
    attn_cp_size: Integer = argument(1, "Context-parallel ranks of attention.", unit="ranks", scope="per engine", ge=1)
    dcp_size: Integer = argument(
        1, "Context-parallel ranks of decoding; a host page is that much wider.", unit="ranks", scope="per engine", ge=1
    )
    ep_size: Integer = argument(1, "Expert-parallel ranks.", unit="ranks", scope="per engine", ge=1)
    moe_dp_size: Integer = argument(1, "Data-parallel groups of the experts.", unit="groups", scope="per engine", ge=1)
    nnodes: Integer = argument(1, "Machines of the engine.", unit="nodes", scope="per engine", ge=1)
    node_rank: Integer = argument(0, "Number of this machine.", ge=0)
    enable_prefill_cp: Switch = argument(False, "Context parallelism for prefill.")
    cp_strategy: Choice | None = argument(None, "How a context is cut for context parallelism.")
    enable_dsa_cache_layer_split: Switch = argument(
        False, "Split the layers of a DSA cache over context-parallel ranks."
    )
    enable_kv_cache_sharding: Switch = argument(False, "Shard pages over ranks on a prefill server.")
    use_ray: Switch = argument(False, "Start ranks as Ray actors; SGLang loads no plugins in them.")
    enable_priority_scheduling: Switch = argument(False, "Schedule by priority.")
    disable_overlap_schedule: Switch = argument(False, "No overlap of scheduling and computing.")
    enable_mixed_chunk: Switch = argument(False, "Mix prefill chunks with decoding.")


class ModelArgs(ArgumentBlock):
    """The model and what it runs on."""

    model_path: Text | None = argument(
        None, "Folder or name of the model.", scope="per engine", examples=["zai-org/GLM-5.2-FP8"]
    )
    served_model_name: Text | None = argument(None, "Name that clients use; storage keys may hold it.")
    load_format: Text = argument("auto", "How weights are loaded.")
    trust_remote_code: Switch = argument(False, "Run code that comes with a model.")
    json_model_override_args: Text = argument("{}", "Changes to the model's config.json as JSON text.")
    dtype: Choice = argument("auto", "Type of the weights and activations.")
    quantization: Text | None = argument(None, "Quantisation of the weights.")
    device: Text | None = argument(None, "Kind of accelerator; not set: found by SGLang.")
    attention_backend: Choice | None = argument(None, "Kernels of attention; they decide the page size of some models.")
    prefill_attention_backend: Choice | None = argument(None, "The same for prefill alone.")
    decode_attention_backend: Choice | None = argument(None, "The same for decoding alone.")
    dsa_prefill_backend: Choice | None = argument(
        None, "Kernels of sparse attention for prefill; they decide the KV row."
    )
    dsa_decode_backend: Choice | None = argument(
        None, "Kernels of sparse attention for decoding; they decide the KV row."
    )
    dllm_algorithm: Text | None = argument(None, "Algorithm of a diffusion language model; it turns HiCache off.")
    is_embedding: Switch = argument(False, "Serve embeddings.")
    enable_memory_saver: Switch = argument(False, "Give GPU memory back while idle.")


class SpeculativeArgs(ArgumentBlock):
    """Speculative decoding: drafts have KV of their own."""

    speculative_algorithm: Text | None = argument(
        None, "Algorithm of speculative decoding, such as EAGLE, EAGLE3, NEXTN, STANDALONE."
    )
    speculative_draft_model_path: Text | None = argument(None, "Folder or name of a separate draft model.")
    speculative_draft_kv_cache_dtype: Choice | None = argument(None, "Type of the draft's KV.")
    speculative_num_steps: Integer | None = argument(None, "Draft steps.", unit="steps", ge=0)
    speculative_eagle_topk: Integer | None = argument(None, "Branches of a draft step.", ge=1)
    speculative_num_draft_tokens: Integer | None = argument(
        None, "Draft tokens that are verified at once.", unit="tokens", ge=1
    )
    enable_multi_layer_eagle: Switch = argument(False, "One draft layer for each step.")


class DisaggregationArgs(ArgumentBlock):
    """Prefill and decode on different servers."""

    disaggregation_mode: Choice = argument("null", "null: one server for both; prefill or decode: one half of a pair.")
    disaggregation_decode_enable_radix_cache: Switch = argument(
        False, "Keep the prefix cache on a decode server; HiCache there needs it."
    )
    disaggregation_decode_enable_offload_kvcache: Switch = argument(
        False, "Offload decoded KV to the host: a second stack of host pools of the full size."
    )
    disaggregation_decode_retraction_backup: Choice | None = argument(None, "Where KV of retracted requests goes.")
    disaggregation_decode_host_receive_threshold: Number = argument(
        1.0, "Below 1 a decode server may receive KV into host memory.", unit="fraction"
    )
    disaggregation_decode_extra_slots: Integer | None = argument(
        None, "Further device slots of a decode server.", unit="token slots"
    )
    disaggregation_decode_allocation_policy: Choice = argument("early", "When a decode server allocates.")
    num_reserved_decode_tokens: Integer = argument(
        512, "Slots reserved for a request on a decode server.", unit="token slots", ge=0
    )
    optimistic_prefill_attempts: Integer = argument(0, "Prefill attempts before the peer confirms.", ge=0)
    file_storage_path: Text | None = argument(None, "Folder of the file storage backend.")
