"""The oracle's tooling without SGLang: the lists of cases, the recordings, and the environment's life."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent


def load(folder: Path, name: str) -> ModuleType:
    """A module that lies outside any package, as the command itself finds it."""
    sys.path.insert(0, str(folder))
    try:
        return __import__(name)
    finally:
        sys.path.remove(str(folder))


oracle = load(ROOT / "tools", "oracle")
recordings = load(HERE, "recordings")
recorded = load(ROOT / "tools", "recorded")
generate = load(HERE, "generate")
model_cases = load(HERE, "model_cases")
collective_cases = load(HERE, "collective_cases")
special_cases = load(HERE, "special_cases")
class_cases = load(HERE, "class_cases")
older_cases = load(HERE, "older_cases")
resolution_cases = load(HERE, "resolution_cases")

LISTS = {**{f"pools-{name}": (lambda name=name: generate.cases(name)) for name in generate.FAMILIES}}
LISTS |= {"models": model_cases.cases, "special": special_cases.cases, "classes": class_cases.cases}
LISTS |= {"collective": collective_cases.cases}
LISTS |= {"resolution": resolution_cases.cases}


@pytest.mark.parametrize("name", LISTS)
def test_what_is_recorded_is_what_the_lists_of_cases_ask(name: str) -> None:
    header, entries = recordings.read(recordings.FOLDER / f"{name}.jsonl")
    listed = {entry["id"]: entry["case"] for entry in LISTS[name]()}
    assert {entry["id"]: entry["case"] for entry in entries}.items() <= listed.items()
    assert header["cases"] == len(entries)
    assert header["complete"] == (len(entries) == len(listed))
    assert [entry["id"] for entry in entries] == sorted(entry["id"] for entry in entries)


@pytest.mark.parametrize("name", LISTS)
def test_recordings_are_of_the_pins_in_the_tree(name: str) -> None:
    header, _ = recordings.read(recordings.FOLDER / f"{name}.jsonl")
    assert oracle.header(oracle.DEFAULT_RELEASE).items() <= header.items()


@pytest.mark.parametrize("release", older_cases.RELEASES)
def test_older_releases_are_recorded_as_their_lists_ask_and_with_the_pins_in_the_tree(release: str) -> None:
    header, entries = recordings.read(recordings.FOLDER / f"older-{release}.jsonl.gz")
    assert oracle.header(release).items() <= header.items()
    assert header["complete"]
    listed = {entry["id"]: entry["case"] for entry in older_cases.every_case(release)}
    assert {entry["id"]: entry["case"] for entry in entries} == listed


@pytest.mark.parametrize("release", older_cases.MODEL_RELEASES)
def test_whole_models_of_older_releases_are_those_of_their_lists(release: str) -> None:
    header, entries = recordings.read(recordings.FOLDER / f"whole-{release}.jsonl.gz")
    assert oracle.header(release).items() <= header.items()
    listed = {entry["id"]: entry["case"] for entry in older_cases.whole_models(release)}
    assert {entry["id"]: entry["case"] for entry in entries}.items() <= listed.items()
    assert header["complete"] == (len(entries) == len(listed))


def test_every_release_before_the_newest_has_cases() -> None:
    """From the oldest that is supported on; a new release that is made the newest shows here."""
    assert (
        tuple(f"0.5.{minor}" for minor in range(10, int(oracle.DEFAULT_RELEASE.rpartition(".")[2])))
        == older_cases.RELEASES
    )
    for release in older_cases.RELEASES:
        held = [family for family, first in older_cases.FAMILIES.items() if older_cases.has(release, first)]
        assert all(len(older_cases.cases(release, family)) > 30 for family in held)


def test_a_packed_recording_is_read_as_a_plain_one(tmp_path: Path) -> None:
    entry = {"id": "a", "case": {}, "result": {}}
    for name in ("plain.jsonl", "packed.jsonl.gz", "again.jsonl.gz"):
        recordings.write(tmp_path / name, {"what": "pools"}, [entry])
    read = [recordings.read(tmp_path / name) for name in ("plain.jsonl", "packed.jsonl.gz")]
    assert read[0] == read[1] == ({"kind": "hicache-oracle", "version": 1, "what": "pools", "cases": 1}, [entry])
    assert (tmp_path / "packed.jsonl.gz").read_bytes() == (tmp_path / "again.jsonl.gz").read_bytes()


def test_there_are_enough_cases_of_pools() -> None:
    assert sum(len(recordings.read(path)[1]) for path in recordings.files("pools")) >= 2000


def test_lists_of_cases_are_the_same_every_time() -> None:
    """In another process too, whose hashes of text are others."""
    command = [sys.executable, str(HERE / "generate.py"), "linear", "hazard"]
    again = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    assert [json.loads(line) for line in again] == generate.cases("linear") + generate.cases("hazard")


@pytest.mark.parametrize("path", recordings.files("pools"), ids=lambda path: path.stem)
def test_recorded_pools_hang_together(path: Path) -> None:
    """What must hold of any recording: pages make slots, slots make bytes, followers have their leader's pages."""
    for entry in recordings.read(path)[1]:
        for stage in entry["result"].get("stages", ()):
            named = {pool["name"]: pool for pool in stage["pools"]}
            for pool in stage["pools"]:
                assert pool["slots"] == pool["pages"] * pool["page_size"]
                page_bytes = pool["bytes_per_slot"] * pool["page_size"]
                assert pool["bytes"] == (pool["pages"] + pool["extra_pages"]) * page_bytes
                if pool["follows"] is not None and not pool["name"].startswith("draft_swa"):
                    assert pool["pages"] == named[pool["follows"]]["pages"]


def test_differences_name_the_place() -> None:
    old = {"stages": [{"pools": [{"slots": 5, "name": "kv"}]}]}
    new = {"stages": [{"pools": [{"slots": 6, "name": "kv"}]}]}
    assert recordings.differences(old, new) == ["stages[0].pools[0].slots: recorded 5, now 6"]
    assert recordings.differences(old, old) == []
    assert recordings.differences(old, {"error": 1}) == [
        'error: recorded "nothing", now 1',
        f'stages: recorded {json.dumps(old["stages"])}, now "nothing"',
    ]


def test_another_pin_is_another_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "requirements-1.0.txt").write_text("# a comment\nsglang==1.0\ntorch==2.13.0\n")
    monkeypatch.setattr(oracle, "DRIVERS", tmp_path)
    before = oracle.pins_hash("1.0")
    (tmp_path / "requirements-1.0.txt").write_text("# another comment\ntorch==2.13.0\nsglang==1.0\n")
    assert oracle.pins_hash("1.0") == before
    (tmp_path / "requirements-1.0.txt").write_text("sglang==1.0\ntorch==2.13.1\n")
    assert oracle.pins_hash("1.0") != before


def test_an_older_release_lies_over_the_packages_of_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "requirements-2.0.txt").write_text("sglang==2.0\ntorch==2.13.0\n")
    (tmp_path / "requirements-1.0.txt").write_text("# over 2.0\n-r requirements-2.0.txt\nsglang==1.0\n")
    monkeypatch.setattr(oracle, "DRIVERS", tmp_path)
    assert (oracle.lies_over("1.0"), oracle.lies_over("2.0")) == ("2.0", None)
    assert oracle.pins("1.0", False) == ["sglang==1.0", "torch==2.13.0"]
    before = oracle.pins_hash("1.0")
    (tmp_path / "requirements-2.0.txt").write_text("sglang==2.0\ntorch==2.13.1\n")
    assert oracle.pins_hash("1.0") != before


def test_a_release_without_pins_is_named_with_those_that_have() -> None:
    with pytest.raises(oracle.OracleError, match=r"no pins for SGLang 9\.9: there are pins for 0\.5\.10, .*0\.5\.23$"):
        oracle.build("9.9")


def test_a_failing_build_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HICACHE_ORACLE", str(tmp_path))

    def install(folder: Path, release: str, server: bool) -> None:
        (folder / "bin").mkdir(parents=True)
        raise oracle.OracleError("no such package")

    monkeypatch.setattr(oracle, "install", install)
    with pytest.raises(oracle.OracleError, match="no such package"):
        oracle.build()
    assert [path.name for path in tmp_path.iterdir() if path.is_dir()] == []


def test_an_environment_is_made_once_and_its_scripts_find_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HICACHE_ORACLE", str(tmp_path))
    made = []

    def install(folder: Path, release: str, server: bool) -> None:
        made.append(folder)
        oracle.site_packages(folder).mkdir(parents=True)
        (folder / "bin").mkdir()
        (folder / "bin" / "python").write_text("")
        (folder / "bin" / "sglang").write_text(f"#!{folder}/bin/python\n")

    monkeypatch.setattr(oracle, "install", install)
    folder = oracle.build()
    assert oracle.build() == folder
    assert len(made) == 1
    assert (folder / "bin" / "sglang").read_text() == f"#!{folder}/bin/python\n"
    assert (oracle.site_packages(folder) / "triton" / "__init__.py").is_file()
    assert not (oracle.site_packages(folder) / "vllm").exists()
    assert not (oracle.site_packages(folder) / "sgl_kernel").exists()
    assert oracle.build(server=True) != folder


@pytest.mark.parametrize(
    "path", [path for one in recorded.FILES for path in sorted(ROOT.glob(one))], ids=lambda p: p.name
)
def test_every_recording_can_be_held_against_another(path: Path) -> None:
    text = recorded.text_of(path.name, path.read_bytes())
    cases = recorded.cases_of(path.name, text)
    assert len(cases) > 1
    assert recorded.compare(cases, recorded.cases_of(path.name, text)) == []
    name = next(name for name in cases if name != "header")
    assert recorded.compare(cases, {**cases, name: None}) != []
