"""What is wrong inside --hicache-storage-backend-extra-config.

SGLang reads it after the weights are loaded. Source: SGLang 0.5.23,
mem_cache/hybrid_cache/hybrid_cache_controller.py:parse_storage_backend_extra_config and mem_cache/storage/.
Must not import anything above this floor.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING

from ..core.findings import Fix
from .case import Case
from .common import flag
from .registry import Seen, rule

if TYPE_CHECKING:
    from .backends.reading import Problem, Settings

CONFIG = "hicache_storage_backend_extra_config"
FILE = {"enable_hierarchical_cache": True, "hicache_storage_backend": "file"}
MOONCAKE = {**FILE, "hicache_storage_backend": "mooncake"}
_PARSER = "mem_cache/hybrid_cache/hybrid_cache_controller.py:parse_storage_backend_extra_config"
#: Keys that SGLang takes out and checks itself, whatever the backend.
_SHARED = (
    "prefetch_threshold",
    "prefetch_timeout_base",
    "prefetch_timeout_per_ki_token",
    "hicache_storage_pass_prefix_keys",
)


def settings_of(case: Case) -> Settings | None:
    """The settings of the case's backend, None without a backend or without host pools that would use it."""
    backend = case.raw("hicache_storage_backend")
    if not isinstance(backend, str) or CONFIG in case.invalid or not case.resolution.host_pools:
        return None
    from .backends.reading import read_settings  # models of every backend, for those who have one

    settings = read_settings(backend, case.raw(CONFIG))
    if settings.path is not None and settings.path in case.files:
        return read_settings(backend, case.files[settings.path])
    return settings


def _problems(case: Case, *kinds: str) -> Iterator[Problem]:
    settings = settings_of(case)
    for problem in settings.problems if settings is not None else ():
        if problem.kind in kinds:
            yield problem


def _seen(case: Case, problem: Problem) -> Seen:
    asked = problem.value if isinstance(problem.value, str | int | float | bool | None) else None
    at = CONFIG if case.gave(CONFIG) else "hicache_storage_backend"
    return Seen(
        at,
        f"{flag(case, CONFIG)}: {problem.message}",
        problem.help,
        asked=asked,
        pointer=f"/{CONFIG}{problem.key}" if problem.key and at == CONFIG else None,
    )


@rule(
    "HC701",
    "storage-settings-unreadable",
    "error",
    covers=(75,),
    why="The settings are JSON text, or @ and the path of a .json, .toml, .yaml or .yml file. SGLang reads them only "
    "when the host pools are built, after the weights are loaded.",
    bad={**FILE, CONFIG: "{'prefetch_threshold': 256}"},
    good={**FILE, CONFIG: '{"prefetch_threshold": 256}'},
    late=_PARSER,
)
def storage_settings_unreadable(case: Case) -> Iterator[Seen]:
    """Text that is no JSON object, or a file with an unknown suffix."""
    yield from (_seen(case, problem) for problem in _problems(case, "unreadable", "file"))


@rule(
    "HC702",
    "storage-setting-wrong",
    "error",
    covers=(75, "2.7 keys"),
    why="A setting of the wrong type, or out of its range, is refused after the weights are loaded, or is taken for "
    "something else (true passes as a threshold of 1 token; the text false counts as on). Source: SGLang 0.5.23, "
    "hybrid_cache_controller.py:parse_storage_backend_extra_config.",
    bad={**FILE, CONFIG: '{"prefetch_threshold": "256"}'},
    good={**FILE, CONFIG: '{"prefetch_threshold": 256}'},
    late=_PARSER,
)
def storage_setting_wrong(case: Case) -> Iterator[Seen]:
    """A value of the wrong type or out of range."""
    for problem in _problems(case, "wrong"):
        if not _is_file_cap(case, problem):
            yield _seen(case, problem)


@rule(
    "HC703",
    "storage-setting-unknown",
    "warning",
    covers=("2.7 keys",),
    why="Backends pass keys that they do not know by in silence, so a misspelt setting has no effect (TensorCast "
    "refuses them). Source: SGLang 0.5.23, mem_cache/storage/.",
    bad={**FILE, CONFIG: '{"prefetch_treshold": 512}'},
    good={**FILE, CONFIG: '{"prefetch_threshold": 512}'},
)
def storage_setting_unknown(case: Case) -> Iterator[Seen]:
    """A key that the backend does not have."""
    for problem in _problems(case, "unknown"):
        seen = _seen(case, problem)
        inside = problem.key.count("/") > 1
        yield Seen(
            seen.argument,
            seen.message,
            seen.help,
            asked=seen.asked,
            pointer=seen.pointer,
            severity="error" if inside and case.raw("hicache_storage_backend") == "tensorcast" else None,
        )


@rule(
    "HC704",
    "storage-setting-missing",
    "error",
    covers=(78, "2.7 keys"),
    why="Some backends require settings: dynamic the place of its class, SeaweedFS its endpoint, TensorCast its "
    "daemon. They fail when the backend is made, after the weights are loaded. Source: SGLang 0.5.23, "
    "mem_cache/storage/backend_factory.py.",
    bad={**FILE, "hicache_storage_backend": "dynamic", CONFIG: '{"module_path": "own.store"}'},
    good={**FILE, "hicache_storage_backend": "dynamic",
          CONFIG: '{"backend_name": "own", "module_path": "own.store", "class_name": "Store"}'},
    late="mem_cache/storage/backend_factory.py:_create_dynamic_backend",
)  # fmt: skip
def storage_setting_missing(case: Case) -> Iterator[Seen]:
    """A required key that is not there."""
    yield from (_seen(case, problem) for problem in _problems(case, "missing"))


@rule(
    "HC705",
    "prefetch-threshold-below-a-page",
    "note",
    covers=(76,),
    why="A prefix shorter than the threshold is never fetched from storage, and the threshold counts at least as a "
    "page (with buffer_only and sliding windows at least as a window). Source: SGLang 0.5.23, "
    "managers/cache_controller.py.",
    bad={**FILE, "page_size": 64, CONFIG: '{"prefetch_threshold": 16}'},
    good={**FILE, "page_size": 64, CONFIG: '{"prefetch_threshold": 128}'},
)
def prefetch_threshold_below_a_page(case: Case) -> Iterator[Seen]:
    """A threshold that counts as a page."""
    settings, page = settings_of(case), case.resolved("page_size")
    if settings is None or settings.given is None or page is None:
        return
    asked = settings.given.get("prefetch_threshold")
    if isinstance(asked, int) and not isinstance(asked, bool) and 0 <= asked < page:
        yield Seen(
            CONFIG,
            f"prefetch_threshold {asked} counts as {page}, the page size",
            f"Write {page} or more.",
            asked=asked,
            gets=page,
            pointer=f"/{CONFIG}/prefetch_threshold",
        )


@rule(
    "HC706",
    "tp-lcm-size",
    "error",
    covers=(77,),
    why="tp_lcm_size must be a multiple of the tensor ranks (asserted when the backend is attached), and heads are "
    "split by it only with layout page_head, keys and values (no latent rows), and when it is larger than the "
    "ranks; otherwise it is ignored. Source: SGLang 0.5.23, "
    "managers/cache_controller.py:_generate_storage_config.",
    bad={**MOONCAKE, "tp_size": 4, CONFIG: '{"tp_lcm_size": 6, "master_server_address": "master:50051"}'},
    good={**MOONCAKE, "tp_size": 4, "hicache_mem_layout": "page_head",
          CONFIG: '{"tp_lcm_size": 8, "master_server_address": "master:50051"}'},
    late="managers/cache_controller.py:_generate_storage_config",
)  # fmt: skip
def tp_lcm_size(case: Case) -> Iterator[Seen]:
    """tp_lcm_size that does not fit, or has no effect."""
    settings = settings_of(case)
    if settings is None or settings.typed is None or not settings.typed.tp_lcm_size:
        return
    asked, ranks = settings.typed.tp_lcm_size, case.raw("tp_size") // max(int(case.resolved("attn_dp_size") or 1), 1)
    pointer = f"/{CONFIG}/tp_lcm_size"
    if ranks and asked % ranks:
        yield Seen(
            CONFIG,
            f"tp_lcm_size {asked} is no multiple of the {ranks} tensor ranks",
            f"Write a multiple of {ranks}.",
            asked=asked,
            pointer=pointer,
        )
    elif case.resolved("hicache_mem_layout") != "page_head" or asked <= ranks or (case.traits and case.traits.latent):
        yield Seen(
            CONFIG,
            f"tp_lcm_size {asked} is ignored: heads are split only with layout page_head, keys and values, and "
            "more than the "
            f"{ranks} tensor ranks",
            "Take it out, or write --hicache-mem-layout page_head.",
            asked=asked,
            pointer=pointer,
            severity="warning",
        )


@rule(
    "HC707",
    "storage-settings-without-backend",
    "warning",
    why="Settings of a storage backend are never read without one. Source: SGLang 0.5.23, "
    "mem_cache/unified_radix_cache.py:init_hicache.",
    bad={"enable_hierarchical_cache": True, CONFIG: '{"prefetch_threshold": 256}'},
    good={**FILE, CONFIG: '{"prefetch_threshold": 256}'},
)
def storage_settings_without_backend(case: Case) -> Iterator[Seen]:
    """Settings with no backend."""
    lonely = case.raw("hicache_storage_backend") is None and case.resolution.host_pools
    if case.gave(CONFIG) and case.raw(CONFIG) and lonely:
        yield Seen(
            CONFIG,
            f"{flag(case, CONFIG)} is never read: no {flag(case, 'hicache_storage_backend')} is given",
            f"Add {flag(case, 'hicache_storage_backend')}, or take it out.",
            fix=Fix({CONFIG: None}, safe=True),
        )


@rule(
    "HC712",
    "storage-settings-as-a-mapping",
    "warning",
    why="SGLang's --config file turns a mapping into Python text with single quotes, which its own JSON reader "
    "refuses; the command line takes text alone.",
    bad={**FILE, CONFIG: {"prefetch_threshold": 256}},
    good={**FILE, CONFIG: '{"prefetch_threshold": 256}'},
)
def storage_settings_as_a_mapping(case: Case) -> Iterator[Seen]:
    """A mapping where SGLang takes text."""
    config = case.raw(CONFIG)
    if case.gave(CONFIG) and isinstance(config, dict):
        text = json.dumps(config)
        yield Seen(
            CONFIG,
            f"{flag(case, CONFIG)} is a mapping here; SGLang itself takes JSON text and stops at a mapping",
            f"Write it as text: '{text}'." if len(text) < 200 else "Write it as JSON text in quotes.",
            fix=Fix({CONFIG: text}, safe=True),
        )


@rule(
    "HC713",
    "file-cap-unreadable",
    "warning",
    covers=("2.7 file",),
    why="A cap of the file backend that SGLang cannot read is switched off with a log line, and the folder grows "
    "until the disk is full. It takes bytes, or k, M, G, T (powers of 1000) and Ki, Mi, Gi, Ti, with no B: 200GB "
    "is not read. Source: SGLang 0.5.23, mem_cache/storage/file/lru_file_evictor.py:_parse_size_to_bytes.",
    bad={**FILE, CONFIG: '{"max_size": "200GB"}'},
    good={**FILE, CONFIG: '{"max_size": "200G"}'},
)
def file_cap_unreadable(case: Case) -> Iterator[Seen]:
    """max_size, min_free_space or eviction_ratio that count as not given."""
    for problem in _problems(case, "wrong"):
        if _is_file_cap(case, problem):
            yield _seen(case, problem)
    if case.raw("hicache_storage_backend") != "file":
        return
    from .backends.reading import read_settings

    for key in ("max_size", "min_free_space"):
        name = f"SGLANG_HICACHE_FILE_BACKEND_{key.upper()}"
        if name in case.environment and read_settings("file", {key: case.environment[name]}).problems:
            yield Seen(
                "hicache_storage_backend",
                f"{name}={case.environment[name]} cannot be read and switches the cap off",
                "Write bytes, or a number with G (10**9) or Gi (2**30) and no B.",
                asked=case.environment[name],
            )


def _is_file_cap(case: Case, problem: Problem) -> bool:
    caps = ("/max_size", "/min_free_space", "/eviction_ratio")
    return case.raw("hicache_storage_backend") == "file" and problem.key in caps
