"""Layout, io backend and write policy as each release's own functions resolve them, over a grid of arguments.

    python tests/oracle/older_resolution.py WHEEL... > tests/recorded/resolution-releases.json

Takes SGLang wheels (`pip download --no-deps sglang==0.5.N`), cuts the HiCache functions out of each (methods of
ServerArgs up to 0.5.18, arg_groups/hicache_hook.py from 0.5.19) and runs them alone, on a plain object. Nothing else of
the wheel is imported, so that any Python runs this. A refusal is recorded by its type.
"""

from __future__ import annotations

import ast
import itertools
import json
import logging
import re
import sys
import textwrap
import zipfile
from types import SimpleNamespace
from typing import Any

LAYOUTS = ("layer_first", "page_first", "page_first_direct", "page_first_kv_split", "page_head")
COPIES = ("direct", "kernel", "kernel_ascend")
STORAGES = (None, "file", "mooncake", "npu_memcache")
DECODE_KERNELS = (None, "fa3")
POLICIES = ("write_back", "write_through")
MODES = ("cache", "buffer_only")
GRID = tuple(itertools.product(LAYOUTS, COPIES, STORAGES, DECODE_KERNELS, POLICIES, MODES))
AXES = (
    "hicache_mem_layout", "hicache_io_backend", "hicache_storage_backend", "decode_attention_backend",
    "hicache_write_policy", "hicache_host_memory_mode",
)  # fmt: skip
WATCHED = ("hicache_mem_layout", "hicache_io_backend", "hicache_write_policy")
_NAMES = re.compile(r"_?(handle_hicache|resolve_.*|validate_hicache_host_memory_mode)")

#: What else the functions look at, at its default.
REST: dict[str, Any] = {
    "enable_hierarchical_cache": True,
    "disaggregation_decode_enable_offload_kvcache": False,
    "disaggregation_mode": "null",
    "disaggregation_decode_retraction_backup": None,
    "disaggregation_decode_host_receive_threshold": 1.0,
    "enable_unified_cache_external_linker": False,
    "unified_cache_external_linker_config": None,
    "unified_cache_external_linker_backend": "mooncake",
    "enable_linker_mla_dedup": False,
    "enable_unified_memory": False,
    "attention_backend": None,
    "dcp_size": 1,
    "hicache_size": 0,
    "hicache_ratio": 2.0,
}


def functions(wheel: zipfile.ZipFile) -> tuple[str, bool]:
    """The source of the HiCache functions, and whether they are methods."""
    names = set(wheel.namelist())
    hook = "sglang/srt/arg_groups/hicache_hook.py"
    source = wheel.read(hook if hook in names else "sglang/srt/server_args.py").decode()
    lines = source.splitlines()
    found = [
        textwrap.dedent("\n".join(lines[node.lineno - 1 : node.end_lineno]))
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.FunctionDef) and _NAMES.fullmatch(node.name) and "hicache" in ast.unparse(node)
    ]
    return "\n\n".join(found), hook not in names


def resolver(wheel: zipfile.ZipFile) -> Any:
    """A function from arguments to the watched values, or the name of the refusal."""
    source, are_methods = functions(wheel)

    def declare(args: Any, _: str, **fields: Any) -> None:
        vars(args).update(fields)

    scope: dict[str, Any] = {
        "Any": Any,
        "logger": logging.getLogger("silent"),
        "is_hip": lambda: False,
        "is_flashinfer_available": lambda: True,
        "is_sm100_supported": lambda: False,
        "envs": SimpleNamespace(SGLANG_HACK_FLASHMLA_BACKEND=SimpleNamespace(get=lambda: "", set=lambda _: None)),
        "resolving_view": lambda args: args,
        "declare_resolution": declare,
        "use_mla_backend": lambda _: False,
    }
    exec(compile("from __future__ import annotations\n" + source, "wheel", "exec"), scope)

    def run(values: dict[str, Any]) -> list[Any] | str:
        if are_methods:
            methods = {name: value for name, value in scope.items() if callable(value) and _NAMES.fullmatch(name)}
            args = type("ServerArgs", (), {**methods, "use_mla_backend": lambda self: False})()
            vars(args).update(REST | values)
            call = args._handle_hicache
        else:
            args = SimpleNamespace(**REST | values)
            call = lambda: scope["handle_hicache"](args)  # noqa: E731
        try:
            call()
        except Exception as error:  # every refusal is a result
            return type(error).__name__
        return [getattr(args, name) for name in WATCHED]

    return run


def main() -> None:
    logging.disable(logging.CRITICAL)
    releases: dict[str, list[Any]] = {}
    for path in sys.argv[1:]:
        version = re.search(r"sglang-(\d+\.\d+\.\d+)", path)
        if version is None:
            sys.exit(f"{path} does not look like a wheel of SGLang")
        with zipfile.ZipFile(path) as wheel:
            run = resolver(wheel)
        # In 0.5.21 the threshold has the other meaning, and 0 as its default.
        off = {"disaggregation_decode_host_receive_threshold": 0.0} if version[1] == "0.5.21" else {}
        releases[version[1]] = [run(off | dict(zip(AXES, point, strict=True))) for point in GRID]
    ordered = dict(sorted(releases.items(), key=lambda item: tuple(map(int, item[0].split(".")))))
    print(json.dumps({"axes": AXES, "watched": WATCHED, "releases": _shared(ordered)}, separators=(",", ":")))


def _shared(releases: dict[str, list[Any]]) -> list[dict[str, Any]]:
    """Releases with the same answers stand together."""
    groups: list[dict[str, Any]] = []
    for name, answers in releases.items():
        if groups and groups[-1]["answers"] == answers:
            groups[-1]["releases"].append(name)
        else:
            groups.append({"releases": [name], "answers": answers})
    return groups


if __name__ == "__main__":
    main()
