"""What loads when: importing the package and starting the command line stay light."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

HEAVY = ("torch", "sglang", "pydantic", "click", "jsonschema", "rich", "ruamel", "psutil")
EXAMPLE = Path(__file__).resolve().parents[1] / "examples" / "dense-tp8.json"


def loaded_by(code: str) -> set[str]:
    """Which of the heavy packages are loaded after `code` ran in a fresh interpreter."""
    probe = f"{code}\nimport sys\nprint('loaded:' + ' '.join(n for n in {HEAVY!r} if n in sys.modules))"
    run = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True)
    return set(run.stdout.rpartition("loaded:")[2].split())


def test_importing_the_package_loads_nothing_heavy() -> None:
    assert loaded_by("import hicache_config") == set()


def test_core_needs_the_standard_library_only() -> None:
    assert loaded_by("import hicache_config.core.plan") == set()
    assert loaded_by("from hicache_config import DevicePool, Plan, TotalSize") == set()


def command(*words: str) -> str:
    return (
        "import sys\n"
        f"sys.argv = ['hicache-config', *{list(words)!r}]\n"
        "from hicache_config.cli import main\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
    )


def test_help_loads_click_alone() -> None:
    assert loaded_by(command("--help")) == {"click"}


@pytest.mark.parametrize("words", [("validate", str(EXAMPLE)), ("plan", str(EXAMPLE), "--format", "json")])
def test_commands_load_neither_torch_nor_sglang_nor_jsonschema(words: tuple[str, ...]) -> None:
    assert loaded_by(command(*words)) <= {"click", "pydantic"}


def test_names_of_the_package_are_there_and_no_others() -> None:
    import hicache_config

    for name in hicache_config.__all__:
        assert getattr(hicache_config, name) is not None
    assert set(hicache_config.__all__) == set(dir(hicache_config))
    with pytest.raises(AttributeError):
        _ = hicache_config.no_such_name  # type: ignore[attr-defined]


#: What a source loads of the readers, beyond what every source needs.
READERS = {
    "json": {"arguments_file", "formats.json", "json_tree", "nested", "tree"},
    "toml": {"arguments_file", "formats.toml", "json_tree", "nested", "toml_tree", "tree"},
    "log": {"allocations", "arguments_file", "formats.log", "json_tree", "log", "nested", "python_repr", "tree"},
}
EVERY = {"document", "files", "folder", "formats", "formats.content", "launch", "notes", "read", "sniff", "text"}


@pytest.mark.parametrize("form", READERS)
def test_a_source_loads_the_reader_of_its_format_alone(form: str) -> None:
    code = f"from hicache_config.sources import read\nread('x', text='hicache_size = 1', form={form!r})"
    probe = f"{code}\nimport sys\nprint('loaded:' + ' '.join(sys.modules))"
    run = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True)
    start = "hicache_config.sources."
    names = run.stdout.rpartition("loaded:")[2].split()
    assert {name.removeprefix(start) for name in names if name.startswith(start)} == READERS[form] | EVERY
