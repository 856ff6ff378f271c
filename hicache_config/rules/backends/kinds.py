"""A model for each storage backend: its keys, their types, units and scopes, and what it requires.

Source: SGLang 0.5.23, mem_cache/storage/*/ and mem_cache/hicache_storage.py. Must not import anything above this floor.
"""

from typing import Annotated, Any, ClassVar, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from .fields import (
    BackendSettings,
    FileBytes,
    LooseNumber,
    LooseSwitch,
    LooseWhole,
    Number,
    SegmentBytes,
    Switch,
    Text,
    Whole,
    setting,
)

_PER_ENGINE = "per engine: divided by tensor ranks x stages"


def _lower(value: Any) -> Any:
    return value.strip().lower() if isinstance(value, str) else value


class FileSettings(BackendSettings):
    """One file a page in a folder."""

    backend: ClassVar[str] = "file"

    file_storage_path: Text | None = setting(
        None, "Folder of the pages. SGLANG_HICACHE_FILE_BACKEND_STORAGE_DIR wins over it; without both /tmp/hicache."
    )
    enable_metadata_cache: Switch = setting(False, "Remember which pages exist.")
    metadata_ttl: LooseNumber = setting(5.0, "How long that is remembered.", unit="seconds", ge=0)
    max_size: FileBytes | None = setting(
        None, "Cap of the folder; without it it grows for ever.", unit="bytes, or text such as 200G", scope="per rank"
    )
    min_free_space: FileBytes | None = setting(
        None, "Free space to keep on the file system.", unit="bytes, or text such as 50G", scope="per file system"
    )
    eviction_ratio: LooseNumber = setting(
        0.9,
        "Down to which part of the cap files are removed; another value counts as 0.9.",
        unit="fraction",
        gt=0,
        le=1,
    )


class SimSettings(BackendSettings):
    """Keeps keys alone and waits as a medium would: for measuring, what is read back is garbage."""

    backend: ClassVar[str] = "sim"

    sim_write_gbps: LooseNumber = setting(5.0, "Writing speed; 0 or less is endless.", unit="GB/s", scope="per rank")
    sim_read_gbps: LooseNumber | None = setting(
        None, "Reading speed; not set: as for writing.", unit="GB/s", scope="per rank"
    )
    sim_op_latency_us: LooseNumber = setting(100.0, "Wait of each operation.", unit="microseconds")


class MooncakeSettings(BackendSettings):
    """A Mooncake store. Its keys count only with a server address among them; else its file, else the environment."""

    backend: ClassVar[str] = "mooncake"

    master_server_address: Text | None = setting(None, "Host and port of the Mooncake master (or MOONCAKE_MASTER).")
    client_server_address: Text | None = setting(None, "Host and port of a Mooncake client (or MOONCAKE_CLIENT).")
    local_hostname: Text | None = setting(None, "Name of this node; MOONCAKE_LOCAL_HOSTNAME wins over it.")
    metadata_server: Text = setting("P2PHANDSHAKE", "Metadata server of the transfer engine.")
    global_segment_size: SegmentBytes = setting(
        4 * 2**30,
        "Host memory lent to the store.",
        unit="bytes, or text such as 4gb, where gb means GiB",
        scope=_PER_ENGINE,
    )
    protocol: Text = setting("rdma", "How data travels, such as rdma or tcp.")
    device_name: Text = setting("", "Network cards: names, or a JSON object by tensor rank.")
    master_metrics_port: LooseWhole = setting(9003, "Port of the master's metrics.", ge=0, le=65535)
    check_server: Switch = setting(False, "Ask the server before starting.")
    standalone_storage: Switch = setting(False, "Use a client process of its own, which maps the host pools.")
    enable_ssd_offload: Switch = setting(False, "Let the store offload to disks.")
    ssd_offload_path: Text | None = setting(None, "Folder for that; each rank gets a folder of its own in it.")
    tenant_id: Text | None = setting("default", "Tenant of the store.")
    enable_group_semantics: Switch = setting(False, "Keep the pages of a batch together.")
    extra_backend_tag: Text | None = setting(None, "Prefix of all keys.")


class Hf3fsSettings(BackendSettings):
    """3FS. Its other settings stand in the file that SGLANG_HICACHE_HF3FS_CONFIG_PATH names."""

    backend: ClassVar[str] = "hf3fs"

    use_mock_hf3fs_client: Switch = setting(False, "Use a stand-in for tests.")


class Hf3fsFile(BaseModel):
    """The file that SGLANG_HICACHE_HF3FS_CONFIG_PATH names; the first four keys are required."""

    model_config = ConfigDict(extra="allow", frozen=True)

    file_path_prefix: Text = setting(..., "Path of the files; .RANK.bin is added.")
    file_size: LooseWhole = setting(..., "Size of each file.", unit="bytes", scope="per rank", gt=0)
    numjobs: LooseWhole = setting(..., "Clients of a rank.", ge=1)
    entries: LooseWhole = setting(..., "Pages of one batch.", ge=1)
    metadata_server_url: Text | None = setting(None, "Metadata server; models with latent rows need it.")
    client_timeout: LooseNumber = setting(5, "Timeout of a client.", unit="seconds", gt=0)


class NixlSettings(BackendSettings):
    """NIXL: keys for SGLang itself, and either `plugin` with settings by plugin or flat settings of one plugin."""

    backend: ClassVar[str] = "nixl"
    open_ended: ClassVar[bool] = True

    use_direct_io: Switch = setting(True, "Open files past the page cache.")
    l3_cleaner_enabled: Switch = setting(True, "Remove old files by itself.")
    l3_cleaner_high_watermark: LooseNumber = setting(
        80, "Removing begins above it.", unit="percent of the file system", ge=0, le=100
    )
    l3_cleaner_low_watermark: LooseNumber = setting(
        70, "Removing ends below it.", unit="percent of the file system", ge=0, le=100
    )
    plugin: dict[str, dict[str, Any]] | None = setting(
        None, "Settings by plugin (posix, gds, gds_mt, 3fs, obj); the first with `active: true` is taken."
    )


class AibrixSettings(BackendSettings):
    """AIBrix takes its settings from the environment. Models with latent rows are refused."""

    backend: ClassVar[str] = "aibrix"


class EicSettings(BackendSettings):
    """EIC takes its settings from a YAML file that the environment names."""

    backend: ClassVar[str] = "eic"


class SimmSettings(BackendSettings):
    """SiMM. Without `manager_address` the file that SGLANG_HICACHE_SIMM_CONFIG_PATH names is read."""

    backend: ClassVar[str] = "simm"

    manager_address: Text | None = setting(None, "Host and port of the manager.")
    clnt_threadpool_size: Whole = setting(10, "Threads of the client.", ge=1)
    enable_profile: Switch = setting(False, "Measure the client.")
    extra_backend_tag: Text | None = setting(None, "Prefix of all keys.")


class TensorcastScratch(BaseModel):
    """The staging area of transfer mode scratch."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    capacity_bytes: Whole = setting(
        16 * 2**20, "Size of the staging area of each direction.", unit="bytes", scope="per rank and direction", gt=0
    )


class TensorcastInner(BaseModel):
    """The object `tensorcast`; unknown keys are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    daemon_address: Text = setting(..., "Address of the daemon of this node.")
    namespace: Annotated[Text, Field(min_length=1)] = setting("default", "Name space of the pages.")
    transfer_mode: Literal["allocator", "scratch"] = setting(
        "allocator",
        "allocator: host pools lie in the daemon's memory; scratch: pages are copied through a staging area.",
    )
    model_id: Text | None = setting(None, "Name of the model in keys.")
    model_version: Annotated[Text, Field(min_length=1)] = setting("unversioned", "Version of the model in keys.")
    session_name_prefix: Annotated[Text, Field(min_length=1)] = setting("sglang", "Prefix of session names.")
    region_name_prefix: Annotated[Text, Field(min_length=1)] = setting("sglang_tensorcast", "Prefix of region names.")
    exists_timeout_s: Number = setting(30.0, "Timeout of a look-up.", unit="seconds", gt=0)
    transfer_timeout_s: Number | None = setting(None, "Timeout of a transfer.", unit="seconds", gt=0)
    scratch: TensorcastScratch = setting(TensorcastScratch(), "The staging area.")


class TensorcastSettings(BackendSettings):
    """TensorCast: all settings stand in one object, `tensorcast`."""

    backend: ClassVar[str] = "tensorcast"

    tensorcast: TensorcastInner = setting(..., "Settings of TensorCast.")


class SeaweedfsSettings(BackendSettings):
    """SeaweedFS by its S3 gateway."""

    backend: ClassVar[str] = "seaweedfs"

    endpoint: Text = setting(..., "URL of the S3 gateway.")
    bucket: Text = setting("sglang-hicache", "Bucket of the pages.")
    prefix: Text = setting("", "Prefix of all keys.")
    region: Text = setting("us-east-1", "Region of the gateway.")
    access_key: Text | None = setting(None, "Access key; without it the usual AWS chain is asked.")
    secret_key: Text | None = setting(None, "Secret key; better kept out of the command line.")
    max_workers: Whole = setting(16, "Threads.", scope="per rank", ge=1)


class NpuMemcacheSettings(BackendSettings):
    """MemCache on Ascend NPUs; further keys go to its own LocalConfig."""

    backend: ClassVar[str] = "npu_memcache"
    open_ended: ClassVar[bool] = True

    device_id: LooseWhole | None = setting(None, "Number of the NPU; not set: found out.", ge=0)
    init_bm: LooseSwitch | None = setting(None, "Whether the big-memory part is started.")
    conf_file_path: Text | None = setting(None, "Its own settings file.")
    check_server: Switch = setting(False, "Ask the server before starting.")
    metrics_url: Text | None = setting(None, "Where metrics are read.")
    memcache_metrics_url: Text | None = setting(None, "The same under an older name.")
    extra_backend_tag: Text | None = setting(None, "Prefix of all keys.")


class DynamicSettings(BackendSettings):
    """A backend class of one's own; further keys are for it."""

    backend: ClassVar[str] = "dynamic"
    open_ended: ClassVar[bool] = True

    backend_name: Text = setting(..., "Name of the backend in logs.")
    module_path: Text = setting(..., "Python module that holds it.")
    class_name: Text = setting(..., "Class in that module.")
    interface_v1: LooseWhole | LooseSwitch = setting(0, "1 where it has the zero-copy interface.")
    allocator: Text | None = setting(None, "shm: host pools lie in shared memory.")


class ShmSettings(BackendSettings):
    """Shared memory; no real third tier."""

    backend: ClassVar[str] = "shm"


class MoriSettings(BackendSettings):
    """UMBP of MORI; `master_address` makes it distributed."""

    backend: ClassVar[str] = "mori"

    dram_capacity_bytes: LooseWhole | None = setting(
        None, "Host memory of the store, beside the host pools.", unit="bytes", scope="per rank", gt=0
    )
    ssd_enabled: LooseSwitch | None = setting(None, "Use disks.")
    ssd_capacity_bytes: LooseWhole | None = setting(None, "Disk space.", unit="bytes", scope="per rank", gt=0)
    ssd_storage_dir: Text | None = setting(None, "Folder on disk.")
    ssd_io_backend: Annotated[Literal["posix", "io_uring"], BeforeValidator(_lower)] | None = setting(
        None, "How disks are read."
    )
    ssd_durability_mode: Annotated[Literal["strict", "sync", "relaxed", "async"], BeforeValidator(_lower)] | None = (
        setting(None, "When a write counts as done.")
    )
    ssd_backend: Annotated[Literal["file", "spdk", "spdk_proxy"], BeforeValidator(_lower)] | None = setting(
        None, "Kind of disk store."
    )
    spdk_passthrough: dict[str, Any] | None = setting(None, "Further settings of SPDK.")
    master_address: Text | None = setting(None, "Address of the master; makes the store distributed.")
    extra_backend_tag: Text | None = setting(None, "Prefix of all keys.")


#: Further keys that UMBP knows; their values are its own business (0.5.23, storage/umbp/umbp_store.py).
MORI_COMMON = frozenset(
    [
        "node_address",
        "node_id",
        "node_tags",
        "tags",
        "ssd_segment_size_bytes",
        "ssd_queue_depth",
        "ssd_high_watermark",
        "ssd_low_watermark",
        "ssd_copy_queue_depth",
        "ssd_copy_worker_threads",
        "spdk_nvme_pci_addr",
        "spdk_proxy_shm_name",
        "spdk_proxy_startup_timeout_ms",
        "spdk_proxy_bin",
        "spdk_proxy_tenant_id",
        "spdk_proxy_tenant_id_base",
        "spdk_proxy_tenant_quota_bytes",
        "spdk_proxy_max_channels",
        "spdk_proxy_data_per_channel_mb",
        "spdk_proxy_auto_start",
        "spdk_proxy_idle_exit_timeout_ms",
        "spdk_proxy_allow_borrow",
        "spdk_proxy_reserved_shared_bytes",
        "kv_events_subscriber",
        "kv_events_endpoint",
        "kv_events_topic",
        "disable_zero_copy_register",
    ]
)
MORI_ALONE = frozenset(
    [
        "ssd_copy_async",
        "ssd_copy_batch_max_ops",
        "eviction_policy",
        "eviction_candidate_window",
        "auto_promote_on_read",
        "standalone_address",
        "standalone_auto_start",
        "standalone_startup_timeout_ms",
    ]
)
MORI_DISTRIBUTED = frozenset(
    [
        "auto_heartbeat",
        "io_engine_host",
        "io_engine_port",
        "staging_buffer_size",
        "ranged_scratch_size",
        "ssd_staging_buffer_size",
        "ssd_staging_buffer_slots",
        "peer_service_port",
        "cache_remote_fetches",
        "dram_page_size",
    ]
)

#: The models by backend name.
MODELS: dict[str, type[BackendSettings]] = {
    model.backend: model
    for model in (
        FileSettings, SimSettings, MooncakeSettings, NpuMemcacheSettings, Hf3fsSettings, NixlSettings, AibrixSettings,
        DynamicSettings, EicSettings, SimmSettings, MoriSettings, ShmSettings, TensorcastSettings, SeaweedfsSettings,
    )
}  # fmt: skip


def model_of(backend: str) -> type[BackendSettings] | None:
    """The model of a backend, None for a name that is none."""
    return MODELS.get(backend)


def further_keys(backend: str) -> frozenset[str]:
    """Keys that a backend knows beside those of its model."""
    return MORI_COMMON | MORI_ALONE | MORI_DISTRIBUTED if backend == "mori" else frozenset()
