"""The script that takes argument tables from SGLang's wheels, on small wheels of our own in each of the three forms, and
(live) on the real ones.

Live tests need $HICACHE_WHEELS, a folder of downloaded sglang wheels; the comparison with the real parser also needs
the oracle's environment.
Past 400 lines, since the small wheels that it makes are written out in it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
import zipfile
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
TOOLS = ROOT / "tools"
WHEELS = os.environ.get("HICACHE_WHEELS")

UTILITIES = """
    WORDS = ["all"]
    def number(value): return int(value)
"""
WRITTEN = """
    import argparse, dataclasses, json
    from typing import List, Literal, Optional
    from sglang.srt.names import Parsers, Mode, human_readable_int
    from sglang.srt.utils import WORDS as ALL_WORDS
    LAYOUTS = ["layer_first", "page_first"]
    MORE = [*LAYOUTS, "other"] + ALL_WORDS
    SAMPLERS = {"b", "a"}

    @dataclasses.dataclass
    class ServerArgs:
        model_path: str
        tp_size: int = 1
        layout: str = "layer_first"
        more: Optional[str] = None
        parser: Optional[str] = None
        mode: str = "none"
        sampler: Optional[str] = None
        limit: Optional[int] = 10 * 1000
        names: List[str] = dataclasses.field(default_factory=list)
        warm: bool = dataclasses.field(default_factory=lambda: is_hip())
        method: Optional[str] = None
        new_name: bool = False

        @staticmethod
        def add_cli_args(parser):
            parsers = list(Parsers.Known.keys())
            parser.add_argument("--model-path", "--model", type=str, required=True)
            parser.add_argument("--tensor-parallel-size", "--tp-size", type=int, default=ServerArgs.tp_size)
            parser.add_argument("--layout", type=str, choices=LAYOUTS, default=ServerArgs.layout)
            parser.add_argument("--more", choices=MORE, default=ServerArgs.more)
            parser.add_argument("--parser", choices=["auto"] + parsers, default=ServerArgs.parser)
            parser.add_argument("--mode", choices=[m.name.lower() for m in Mode], default=ServerArgs.mode)
            parser.add_argument("--sampler", choices=SAMPLERS)
            parser.add_argument("--limit", type=human_readable_int, default=ServerArgs.limit)
            parser.add_argument("--names", type=str, nargs="+", default=[])
            parser.add_argument("--warm", action="store_true")
            parser.add_argument("--method", type=str, default="A", choices=made_at_start())
            parser.add_argument("--new-name", action=argparse.BooleanOptionalAction, default=ServerArgs.new_name)
            parser.add_argument("--old-name", action=OldName, dest="new_name", new_flag="--new-name")
            parser.add_argument("--gone", action=DeprecatedAction, help="Note: --gone is deprecated now. Use --layout instead.")

        @classmethod
        def from_cli_args(cls, args):
            args.tp_size = args.tensor_parallel_size
            return cls(**vars(args))

    class DeprecatedAction(argparse.Action):
        def __init__(self, option_strings, dest, nargs=0, **kwargs): ...

    OldName = None
    class OldName(argparse.Action):
        def __init__(self, option_strings, dest, new_flag=None, nargs=0, const=True, default=False, **kwargs): ...
"""
NAMES = """
    from enum import IntEnum
    class Detector: ...
    class Parsers:
        Known = {"one": Detector, "two": Detector}
    class Mode(IntEnum):
        NONE = 0
        ALL = 1
    def human_readable_int(value): ...
"""
ANNOTATED = """
    from sglang.srt.arg_groups.arg_utils import A, Arg, add_cli_args_from_dataclass
    LAYOUTS = ["layer_first", "page_first"]

    {head}
    class ServerArgs:
        {fields}

        @staticmethod
        def add_cli_args(parser):
            add_cli_args_from_dataclass(parser, ServerArgs)
            choices = set(LAYOUTS)
            if envs.SGLANG_MORE.get():
                choices.add("more")
            parser.add_argument("--sampler", choices=choices, default=_declared_default("sampler"))

        @classmethod
        def from_cli_args(cls, args):
            return cls(**vars(args))
    {tail}
"""
FIELDS = """
        model_path: A[str, Arg(help="the model", aliases=["--model"])]
        enable: A[bool, "Turn it on.", NS("memory")] = False
        ratio: A[Optional[float], "A ratio.", NS("memory")] = None
        layout: A[str, Arg(choices=LAYOUTS)] = "page_first"
        policy: A[Literal["early", "late"], "When."] = "early"
        sizes: A[Optional[List[int]], Arg(nargs="*")] = None
        config: A[Optional[Dict[str, Any]], Arg(type_parser=json.loads)] = None
        backend: A[str, Arg(cli_name="--short-backend")] = "x"
        lora: A[Optional[bool], Arg(action=argparse.BooleanOptionalAction, fallback=False)] = None
        hidden: A[bool, Arg(no_cli=True)] = False
        sampler: Optional[str] = None
        keep: A[bool, "Deprecated. Use --layout=layer_first for that."] = False
"""
RULES = "\n".join(
    f"def {name}(): ...\n"
    for name in (
        "_unwrap_annotated",
        "_unwrap_optional",
        "_unwrap_literal",
        "_infer_type_func",
        "_field_default",
        "_field_to_cli_name",
        "add_cli_args_from_dataclass",
    )
)


@pytest.fixture
def tool(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(TOOLS))
    return import_module("arguments_from_wheels")


def _wheel(folder: Path, version: str, modules: dict[str, str]) -> Path:
    path = folder / f"sglang-{version}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for module, text in modules.items():
            archive.writestr(f"{module.replace('.', '/')}.py", textwrap.dedent(text))
    return path


def _written(folder: Path, version: str, text: str = WRITTEN) -> Path:
    modules = {"sglang.srt.server_args": text, "sglang.srt.names": NAMES, "sglang.srt.utils": UTILITIES}
    return _wheel(folder, version, modules)


def _annotated(folder: Path, fields_apart: bool) -> Path:
    environ = "class Envs:\n    SGLANG_MORE = EnvBool(False)\n"
    head, tail = "@dataclasses.dataclass", ""
    modules = {"sglang.srt.arg_groups.arg_utils": RULES, "sglang.srt.environ": environ}
    fields = FIELDS
    if fields_apart:
        modules["sglang.srt.arg_groups.fields.all"] = (
            'LAYOUTS = ["layer_first", "page_first"]\nclass All(msgspec.Struct):\n'
            + textwrap.indent(textwrap.dedent(FIELDS), "    ")
        )
        modules["sglang.srt.arg_groups.field_order"] = 'POSITIONAL_FIELD_ORDER = ("model_path", "ratio")'
        head = "from sglang.srt.arg_groups.fields.all import All"
        fields, tail = "pass", "_INPUT_NAMESPACES = [All]\n    ServerArgs = msgspec.defstruct('ServerArgs', [])"
    modules["sglang.srt.server_args"] = ANNOTATED.format(head=head, fields=fields.strip(), tail=tail)
    return _wheel(folder, "0.6.0", modules)


def test_written_options(tool: ModuleType, tmp_path: Path) -> None:
    version, table = tool.read_wheel(_written(tmp_path, "0.5.1"))
    assert version == "0.5.1"
    assert table == {
        "gone": {
            "field": None,
            "flags": ["--gone"],
            "kind": "flag",
            "action": "DeprecatedAction",
            "deprecated": True,
            "replaced_by": ["--layout"],
        },
        "help": {"field": None, "flags": ["-h", "--help"], "kind": "flag", "action": "help"},
        "layout": {
            "flags": ["--layout"],
            "kind": "str",
            "default": "layer_first",
            "choices": ["layer_first", "page_first"],
        },
        "limit": {
            "flags": ["--limit"],
            "kind": "int",
            "optional": True,
            "converter": "human_readable_int",
            "default": 10_000,
        },
        "method": {
            "flags": ["--method"],
            "kind": "str",
            "optional": True,
            "cli_default": "A",
            "unknown": ["choices"],
        },
        "mode": {"flags": ["--mode"], "kind": "str", "default": "none", "choices": ["none", "all"]},
        "model_path": {"flags": ["--model-path", "--model"], "kind": "str", "required": True},
        "more": {
            "flags": ["--more"],
            "kind": "str",
            "optional": True,
            "choices": ["layer_first", "page_first", "other", "all"],
        },
        "names": {"flags": ["--names"], "kind": "str", "nargs": "+", "default": []},
        "new_name": {"flags": ["--new-name"], "kind": "flag", "action": "BooleanOptionalAction", "default": False},
        "old_name": {
            "field": "new_name",
            "flags": ["--old-name"],
            "kind": "flag",
            "action": "OldName",
            "const": True,
        },
        "parser": {"flags": ["--parser"], "kind": "str", "optional": True, "choices": ["auto", "one", "two"]},
        "sampler": {"flags": ["--sampler"], "kind": "str", "optional": True, "choices": ["a", "b"]},
        "tp_size": {"flags": ["--tensor-parallel-size", "--tp-size"], "kind": "int", "default": 1},
        "warm": {"flags": ["--warm"], "kind": "flag", "cli_default": False, "unknown": ["default"]},
    }


@pytest.mark.parametrize("fields_apart", [False, True])
def test_annotated_fields(
    tool: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fields_apart: bool
) -> None:
    path = _annotated(tmp_path, fields_apart)
    rules: Any = import_module("wheel_arguments")
    values: Any = import_module("wheel_values")
    monkeypatch.setattr(rules, "KNOWN_RULES", frozenset({rules.rules_digest(values.Wheel(path))}))
    _, table = tool.read_wheel(path)
    assert table == {
        "backend": {"flags": ["--short-backend"], "kind": "str", "default": "x"},
        "config": {
            "flags": ["--config"],
            "kind": "json",
            "type": "Optional[Dict[str, Any]]",
            "optional": True,
            "converter": "json.loads",
        },
        "enable": {"flags": ["--enable"], "kind": "flag", "default": False},
        "help": {"field": None, "flags": ["-h", "--help"], "kind": "flag", "action": "help"},
        "hidden": {"kind": "flag", "default": False},
        "keep": {
            "flags": ["--keep"],
            "kind": "flag",
            "default": False,
            "deprecated": True,
            "replaced_by": ["--layout=layer_first"],
        },
        "layout": {
            "flags": ["--layout"],
            "kind": "str",
            "default": "page_first",
            "choices": ["layer_first", "page_first"],
        },
        "lora": {
            "flags": ["--lora"],
            "kind": "flag",
            "optional": True,
            "action": "BooleanOptionalAction",
            "fallback": False,
        },
        "model_path": {"flags": ["--model-path", "--model"], "kind": "str", "required": True},
        "policy": {"flags": ["--policy"], "kind": "str", "default": "early", "choices": ["early", "late"]},
        "ratio": {"flags": ["--ratio"], "kind": "float", "optional": True},
        "sampler": {"flags": ["--sampler"], "kind": "str", "optional": True, "choices": ["layer_first", "page_first"]},
        "sizes": {"flags": ["--sizes"], "kind": "int", "optional": True, "nargs": "*"},
    }


def test_rules_that_nobody_compared_are_refused(tool: ModuleType, tmp_path: Path) -> None:
    rules: Any = import_module("wheel_arguments")
    with pytest.raises(rules.UnknownRulesError, match="add the digest to KNOWN_RULES"):
        tool.read_wheel(_annotated(tmp_path, fields_apart=False))


def test_the_newest_post_decides_and_the_file_says_so(tool: ModuleType, tmp_path: Path) -> None:
    paths = [
        _written(tmp_path, "0.5.1"),
        _written(tmp_path, "0.5.1.post1", WRITTEN.replace('layout: str = "layer_first"', 'layout: str = "page_first"')),
        _written(tmp_path, "0.5.1.post2", WRITTEN.replace('layout: str = "layer_first"', 'layout: str = "page_first"')),
    ]
    assert tool.wheels_by_release(tmp_path) == {"0.5.1": paths}
    data = json.loads(tool.render("0.5.1", paths))
    assert (data["read_from"], data["same_in"], data["differs_in"]) == ("0.5.1.post1", ["0.5.1.post2"], ["0.5.1"])
    assert data["arguments"]["layout"]["default"] == "page_first"


def test_releases_come_in_the_order_of_numbers(tool: ModuleType, tmp_path: Path) -> None:
    for version in ("0.5.10", "0.5.9", "0.5.9.post10", "0.5.9.post2"):
        _written(tmp_path, version)
    (tmp_path / "other-1.0-py3-none-any.whl").touch()
    found = {
        release: [path.name.split("-")[1] for path in paths]
        for release, paths in tool.wheels_by_release(tmp_path).items()
    }
    assert found == {"0.5.9": ["0.5.9", "0.5.9.post2", "0.5.9.post10"], "0.5.10": ["0.5.10"]}
    assert list(found) == ["0.5.9", "0.5.10"]


def _run(*words: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, TOOLS / "arguments_from_wheels.py", *words]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_a_folder_without_wheels_is_wrong_usage(tmp_path: Path) -> None:
    done = _run(tmp_path, "--check")
    assert (done.returncode, done.stdout) == (2, "")
    assert "no folder with sglang-*.whl files" in done.stderr


def test_a_release_without_its_file_fails_the_check(tmp_path: Path) -> None:
    _written(tmp_path, "0.4.99")
    done = _run(tmp_path, "--check")
    assert done.returncode == 1
    assert "would change: 0.4.99.json" in done.stdout


def _as_real(tool: ModuleType, arguments: Any) -> dict[str, Any]:
    """What arguments_from_parser.py would print if SGLang were exactly as the trees of the small wheel say."""
    table = tool.records(arguments)
    options = [
        {"flags": tool.spellings(each)} | {key: getattr(each, key) for key in tool.COMPARED}
        for each in arguments.options
    ]
    fields: dict[str, dict[str, Any]] = {
        name: {"optional": table[name].get("optional", False)} for name in arguments.fields
    }
    for name in fields.keys() - {"model_path"}:
        fields[name]["default"] = table[name].get("default")
    effects: dict[str, Any] = {"-h": {"words": ["-h"], "error": "0"}, "--help": {"words": ["--help"], "error": "0"}}
    for name, record in table.items():
        sets = record.get("field", name)
        for flag in record["flags"] if name != "help" else []:
            effects[flag] = {"words": [flag, "a-word"], "changed": {sets: True} if sets else {}}
    effects["--no-new-name"] = {"words": ["--no-new-name"], "changed": {}}  # it is off already
    launched = {name: table[name].get("cli_default", table[name].get("default")) for name in fields}
    return json.loads(json.dumps({"options": options, "fields": fields, "launched": launched, "effects": effects}))


def _change(real: dict[str, Any], path: str, value: Any) -> None:
    *parents, last = path.split("/")
    for key in parents:
        real = real[int(key) if isinstance(real, list) else key]
    real[int(last) if isinstance(real, list) else last] = value


CHANGES = [
    ("options/3/flags", ["--layout", "--memory-layout"]),
    ("options/3/dest", "other"),
    ("options/3/action", "append"),
    ("options/3/converter", "int"),
    ("options/3/nargs", "+"),
    ("options/3/const", 1),
    ("options/3/default", "page_first"),
    ("options/3/choices", ["page_first", "layer_first"]),
    ("options/3/required", True),
    ("options/13/new_flag", "--other"),
    ("options/13/error_message", "gone"),
    ("options/2/default", True),
    ("options/2/default", 1.0),
    ("fields/layout", {"optional": True, "default": "layer_first"}),
    ("fields/layout", {"optional": False}),
    ("fields/layout/default", None),
    ("fields/one_more", {"optional": False, "default": 1}),
    ("launched/layout", "page_first"),
    ("effects/--tp-size/changed", {"pp_size": 7}),
    ("effects/--tp-size/changed", {}),
    ("effects/--gone/changed", {"layout": "x"}),
    ("effects/--gone", {"words": ["--gone"], "error": "2"}),
    ("effects/--old-name/changed", {"new_name": "auto"}),
    ("effects/--one-more", {"words": ["--one-more"], "changed": {}}),
]


@pytest.mark.parametrize(("path", "value"), CHANGES)
def test_the_comparison_with_a_real_parser_sees_a_difference(
    tool: ModuleType, tmp_path: Path, path: str, value: Any
) -> None:
    rules: Any = import_module("wheel_arguments")
    values: Any = import_module("wheel_values")
    arguments = rules.Arguments(values.Wheel(_written(tmp_path, "0.5.1")))
    real = _as_real(tool, arguments)
    assert tool.differences(arguments, real) == []
    _change(real, path, value)
    assert tool.differences(arguments, real) != []


@pytest.mark.parametrize("what", ["options", "fields", "effects"])
def test_the_comparison_sees_what_is_missing(tool: ModuleType, tmp_path: Path, what: str) -> None:
    rules: Any = import_module("wheel_arguments")
    values: Any = import_module("wheel_values")
    arguments = rules.Arguments(values.Wheel(_written(tmp_path, "0.5.1")))
    real = _as_real(tool, arguments)
    if what == "options":
        real[what].pop()
    else:
        real[what].popitem()
    assert tool.differences(arguments, real) != []


# The real wheels -------------------------------------------------------------------------------------------------


@pytest.mark.live
@pytest.mark.skipif(not WHEELS, reason="needs $HICACHE_WHEELS, a folder of sglang wheels")
def test_the_files_are_what_the_wheels_say() -> None:
    done = _run(str(WHEELS), "--check")
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.live
@pytest.mark.skipif(not WHEELS, reason="needs $HICACHE_WHEELS, a folder of sglang wheels")
def test_the_newest_table_is_what_the_real_parser_and_record_say(tmp_path: Path) -> None:
    script = str(TOOLS / "arguments_from_parser.py")
    oracle = [sys.executable, str(TOOLS / "oracle.py"), "run", script]
    real = tmp_path / "real.json"
    with real.open("w") as out:
        subprocess.run(oracle, stdout=out, check=True)
    done = _run(str(WHEELS), "--against", real)
    assert done.returncode == 0, done.stdout + done.stderr
