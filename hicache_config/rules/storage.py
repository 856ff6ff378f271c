"""Storage backends: which layouts, models and set-ups each takes.

Source: SGLang 0.5.23, mem_cache/storage/, managers/cache_controller.py, mem_cache/hicache_storage.py.
Must not import anything above this floor.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..core.units import format_gb
from .backends.memory import MOONCAKE_BUFFER, host_bytes_per_rank, sharing_ranks
from .case import Case
from .common import flag, hicache
from .registry import Seen, rule
from .storage_settings import CONFIG, settings_of

ON = {"enable_hierarchical_cache": True}
FILE = {**ON, "hicache_storage_backend": "file"}
_BACKEND = "hicache_storage_backend"
ADDRESS = '{"master_server_address": "master:50051"}'
TENSORCAST = '{"tensorcast": {"daemon_address": "localhost:9000"}}'

#: Layouts that a backend takes; the others stop it when it is attached.
_LAYOUTS: dict[str, tuple[str, ...]] = {
    "npu_memcache": ("page_first", "page_first_direct", "page_head", "page_first_kv_split"),
    "hf3fs": ("layer_first", "page_first", "page_first_direct"),
    "simm": ("page_first", "page_first_direct"),
    "mori": ("page_first", "page_first_direct", "page_head"),
    "tensorcast": ("page_first", "page_first_direct"),
}
#: Backends that copy whole flat pages, which some host pools do not offer.
_FLAT_PAGES = ("file", "sim", "hf3fs", "eic", "shm", "aibrix", "dynamic")


def _backend(case: Case) -> str | None:
    backend = case.raw(_BACKEND)
    return backend if isinstance(backend, str) and case.resolution.host_pools else None


@rule(
    "HC708",
    "layout-not-for-this-storage",
    "error",
    covers=("2.7 layouts",),
    why="Each backend stores certain layouts alone. npu_memcache, simm and mori assert theirs when they are "
    "attached; hf3fs leaves a variable unset with page_head and page_first_kv_split; TensorCast takes page_first "
    "with kernel or page_first_direct with direct. Source: SGLang 0.5.23, mem_cache/storage/.",
    bad={**ON, _BACKEND: "hf3fs", "hicache_mem_layout": "page_head"},
    good={**ON, _BACKEND: "hf3fs", "hicache_mem_layout": "page_first"},
    late="mem_cache/storage/backend_factory.py:_create_builtin_backend",
)
def layout_not_for_this_storage(case: Case) -> Iterator[Seen]:
    """A layout that the backend does not take."""
    backend, layout = _backend(case), case.resolved("hicache_mem_layout")
    if backend is None or backend not in _LAYOUTS or "hicache_mem_layout" in case.invalid:
        return
    pairs = {"page_first": "kernel", "page_first_direct": "direct"}
    io_backend = case.resolved("hicache_io_backend")
    if layout not in _LAYOUTS[backend] or (backend == "tensorcast" and pairs.get(layout) != io_backend):
        yield Seen(
            "hicache_mem_layout" if case.gave("hicache_mem_layout") else _BACKEND,
            f"{flag(case, _BACKEND, backend)} does not store {flag(case, 'hicache_mem_layout', layout)}"
            + (f" with {flag(case, 'hicache_io_backend', io_backend)}" if layout in _LAYOUTS[backend] else ""),
            "Write --hicache-mem-layout page_first --hicache-io-backend kernel.",
            asked=case.raw("hicache_mem_layout"),
        )


@rule(
    "HC709",
    "storage-not-for-this-model",
    "error",
    covers=("2.7 models",),
    why="AIBrix refuses latent rows; hf3fs needs a metadata server for them (the file of "
    "SGLANG_HICACHE_HF3FS_CONFIG_PATH). Host pools of keys and values with different widths, and of mxfp8, hand "
    "out no flat pages: backends that copy them fail at the first page, while requests run. DeepSeek V4's anchor "
    "pool has no bytes, by which hf3fs divides. Source: SGLang 0.5.23, mem_cache/storage/ and "
    "mem_cache/pool_host/mha.py.",
    bad={**ON, _BACKEND: "aibrix"},
    good=FILE,
    needs=("model",),
    settings={"architecture": "DeepseekV3ForCausalLM"},
    late="mem_cache/storage/aibrix_kvcache/aibrix_kvcache_storage.py:__init__",
)
def storage_not_for_this_model(case: Case) -> Iterator[Seen]:
    """A backend that cannot store the model's pools."""
    backend, traits = _backend(case), case.traits
    if backend is None or traits is None:
        return
    given = flag(case, _BACKEND, backend)
    if backend == "aibrix" and traits.latent:
        yield Seen(
            _BACKEND,
            f"{given} refuses latent rows ({traits.architecture})",
            "Take mooncake, nixl or file.",
            asked=backend,
        )
    if backend == "hf3fs" and traits.latent and "SGLANG_HICACHE_HF3FS_CONFIG_PATH" not in case.environment:
        yield Seen(
            _BACKEND,
            f"{given} needs a metadata server for latent rows ({traits.architecture})",
            "Name it as metadata_server_url in the file of SGLANG_HICACHE_HF3FS_CONFIG_PATH.",
            asked=backend,
            severity="warning",
        )
    if backend == "hf3fs" and traits.v4:
        yield Seen(
            _BACKEND, f"{given} cannot store DeepSeek V4: its first pool has no bytes", "Take mooncake.", asked=backend
        )
    if backend in _FLAT_PAGES and (traits.asymmetric or case.resolved("kv_cache_dtype") == "mxfp8"):
        what = "keys and values of different widths" if traits.asymmetric else "mxfp8 rows"
        yield Seen(
            _BACKEND,
            f"{given} copies flat pages, which host pools of {what} do not hand out: the first page fails",
            "Take a backend with zero copy, such as mooncake.",
            asked=backend,
        )


@rule(
    "HC710",
    "tensorcast-set-up",
    "error",
    since="0.5.21",
    covers=("2.7 tensorcast",),
    why="TensorCast works in mode cache, without decode context parallelism, context parallelism and tp_lcm_size. "
    "Source: SGLang 0.5.23, mem_cache/storage/tensorcast_store/.",
    bad={**ON, _BACKEND: "tensorcast", CONFIG: TENSORCAST, "hicache_host_memory_mode": "buffer_only"},
    good={**ON, _BACKEND: "tensorcast", CONFIG: TENSORCAST},
    late="mem_cache/storage/tensorcast_store/host_allocator.py:create_tensorcast_host_allocator",
)
def tensorcast_set_up(case: Case) -> Iterator[Seen]:
    """TensorCast where it does not work."""
    if _backend(case) != "tensorcast":
        return
    settings = settings_of(case)
    in_use = {
        "hicache_host_memory_mode": case.raw("hicache_host_memory_mode") == "buffer_only",
        "dcp_size": case.raw("dcp_size") > 1,
        "attn_cp_size": case.raw("attn_cp_size") > 1,
        CONFIG: bool(settings and settings.typed and settings.typed.tp_lcm_size),
    }
    for name, used in in_use.items():
        if used:
            what = "tp_lcm_size" if name == CONFIG else flag(case, name, case.raw(name))
            yield Seen(name, f"{what} is refused with TensorCast", "Take it out, or another backend.")


@rule(
    "HC711",
    "nixl-without-an-active-plugin",
    "error",
    covers=("2.7 nixl",),
    why="With `plugin` in its settings NIXL takes the first one that is active; with none SGLang reads a name that "
    "is not set. Source: SGLang 0.5.23, mem_cache/storage/nixl/nixl_utils.py:get_specified_plugin.",
    bad={**ON, _BACKEND: "nixl", CONFIG: '{"plugin": {"posix": {"active": false}}}'},
    good={**ON, _BACKEND: "nixl", CONFIG: '{"plugin": {"posix": {"active": true}}}'},
    late="mem_cache/storage/nixl/nixl_utils.py:get_specified_plugin",
)
def nixl_without_an_active_plugin(case: Case) -> Iterator[Seen]:
    """`plugin` with no active entry; watermarks the wrong way round."""
    settings = settings_of(case)
    if settings is None or settings.backend != "nixl" or settings.typed is None:
        return
    from .backends.kinds import NixlSettings

    typed = settings.typed
    assert isinstance(typed, NixlSettings)
    if typed.plugin is not None and not any(
        each.get("active") in (True, "true", "True") for each in typed.plugin.values()
    ):
        yield Seen(
            CONFIG,
            "none of the plugins is active",
            'Write "active": true in one of them.',
            pointer=f"/{CONFIG}/plugin",
        )
    if typed.l3_cleaner_low_watermark >= typed.l3_cleaner_high_watermark:
        yield Seen(
            CONFIG,
            f"l3_cleaner_low_watermark {typed.l3_cleaner_low_watermark:g} is not below the high one, "
            f"{typed.l3_cleaner_high_watermark:g}",
            "Write a low one below the high one.",
            pointer=f"/{CONFIG}/l3_cleaner_low_watermark",
            severity="warning",
        )


@rule(
    "HC715",
    "mooncake-without-an-address",
    "warning",
    covers=("2.7 mooncake",),
    why="SGLang reads Mooncake's settings only when a server address is among them; else it reads its file, else the "
    "environment, which then needs MOONCAKE_MASTER or MOONCAKE_CLIENT. Source: SGLang 0.5.23, "
    "mem_cache/storage/mooncake_store/mooncake_store.py:_load_config.",
    bad={**ON, _BACKEND: "mooncake", CONFIG: '{"global_segment_size": "64gb"}'},
    good={**ON, _BACKEND: "mooncake", CONFIG: ADDRESS},
)
def mooncake_without_an_address(case: Case) -> Iterator[Seen]:
    """Mooncake's settings that are not read, or no address at all."""
    settings = settings_of(case)
    if settings is None or settings.backend != "mooncake" or settings.typed is None:
        return
    from .backends.kinds import MooncakeSettings

    typed = settings.typed
    assert isinstance(typed, MooncakeSettings)
    if typed.master_server_address is not None or typed.client_server_address is not None:
        return
    shared = ("prefetch_", "hicache_storage_pass", "tp_lcm_size", "extra_backend_tag", "enable_group_semantics")
    dead = [key for key in settings.given or {} if not str(key).startswith(shared)]
    told = any(
        name in case.environment
        for name in ("MOONCAKE_MASTER", "MOONCAKE_CLIENT", "SGLANG_HICACHE_MOONCAKE_CONFIG_PATH")
    )
    if dead:
        yield Seen(
            CONFIG,
            f"{', '.join(map(str, dead))}: not read, because neither master_server_address nor "
            "client_server_address is there",
            'Add "master_server_address".',
            pointer=f"/{CONFIG}/{dead[0]}" if case.gave(CONFIG) else None,
        )
    elif not told:
        yield Seen(
            _BACKEND,
            "Mooncake needs a server address, and none is given here",
            "Add master_server_address to the settings, or set MOONCAKE_MASTER.",
            asked="mooncake",
        )


@rule(
    "HC716",
    "storage-takes-host-memory",
    "note",
    covers=("2.7 memory",),
    why="A Mooncake segment lies in host memory beside the host pools. It is one amount for the engine, divided by "
    "tensor ranks x stages, and `4gb` there means 4 GiB. Source: SGLang 0.5.23, "
    "mem_cache/storage/mooncake_store/mooncake_store.py.",
    bad={
        **ON,
        _BACKEND: "mooncake",
        "tp_size": 8,
        CONFIG: '{"master_server_address": "m:1", "global_segment_size": "64gb"}',
    },
    good=FILE,
)
def storage_takes_host_memory(case: Case) -> Iterator[Seen]:
    """What the backend takes of a node, in figures."""
    backend = _backend(case)
    if backend is None:
        return
    amount = host_bytes_per_rank(backend, case.raw(CONFIG), case.args, case.environment)
    if not amount:
        return
    ranks = sharing_ranks(case.args)
    shared = f"its segment divided by {ranks} ranks" if ranks > 1 else "its segment"
    divided = f" ({shared}, and a buffer)" if backend == "mooncake" and amount > MOONCAKE_BUFFER else ""
    yield Seen(
        _BACKEND,
        f"{backend} takes {format_gb(amount)} of host memory per rank beside the host pools{divided}",
        "Count it in what the node must have.",
        asked=backend,
    )


@rule(
    "HC717",
    "mori-key-without-effect",
    "warning",
    since="0.5.15",
    covers=("2.7 mori",),
    why="Some of MORI's keys count only when it is distributed (master_address), others only when it is not. Source: "
    "SGLang 0.5.23, mem_cache/storage/umbp/umbp_store.py:_warn_extra_config_scope.",
    bad={**ON, _BACKEND: "mori", CONFIG: '{"auto_heartbeat": true}'},
    good={**ON, _BACKEND: "mori", CONFIG: '{"auto_heartbeat": true, "master_address": "m:1"}'},
)
def mori_key_without_effect(case: Case) -> Iterator[Seen]:
    """A key of the other mode."""
    settings = settings_of(case)
    if settings is None or settings.backend != "mori" or not settings.given:
        return
    from .backends.kinds import MORI_ALONE, MORI_DISTRIBUTED

    distributed = bool(settings.given.get("master_address"))
    for key in settings.given:
        if key in (MORI_ALONE if distributed else MORI_DISTRIBUTED):
            yield Seen(
                CONFIG,
                f"{key} counts only {'without' if distributed else 'with'} master_address",
                "Take it out.",
                pointer=f"/{CONFIG}/{key}",
            )


@rule(
    "HC718",
    "file-storage-keys",
    "note",
    covers=("2.7 file",),
    why="The keys of the file backend hold the model's name and the ranks, neither the KV type nor the layout nor a "
    "revision: runs that differ in those read each other's bytes. Without max_size the folder grows for ever. "
    "Source: SGLang 0.5.23, mem_cache/hicache_storage.py:HiCacheFile.",
    bad=FILE,
    good={**ON, _BACKEND: "mooncake", CONFIG: ADDRESS},
)
def file_storage_keys(case: Case) -> Iterator[Seen]:
    """A folder that several runs may share, and that grows."""
    if _backend(case) != "file" or not hicache(case):
        return
    settings = settings_of(case)
    given = (settings.given if settings is not None else None) or {}
    capped = "max_size" in given or "SGLANG_HICACHE_FILE_BACKEND_MAX_SIZE" in case.environment
    yield Seen(
        _BACKEND,
        "the file backend's keys do not hold the KV type, the layout or a revision of the model"
        + ("" if capped else "; and no max_size is set, so the folder grows for ever"),
        "Use a folder for each model revision, KV type and layout" + ("." if capped else ", and set max_size."),
        asked="file",
    )
