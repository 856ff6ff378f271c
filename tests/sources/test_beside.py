"""Files that a source names are read where they may be, and nothing else of the machine is."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from hicache_config.app.checking import check_document
from hicache_config.app.fixing import fix
from hicache_config.app.options import Options
from hicache_config.reports.github import github
from hicache_config.reports.junit import junit
from hicache_config.reports.report import Report
from hicache_config.reports.sarif import sarif
from hicache_config.reports.text import report_text
from hicache_config.sources import Document, read, read_command
from hicache_config.sources.folder import LARGEST, MOST_FILES, Folder, NotOpened
from hicache_config.sources.text import Lines


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a source, the folder where the program runs another one."""
    (tmp_path / "project").mkdir()
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "secret.yaml").write_text("hicache-size: 1\n")
    monkeypatch.chdir(tmp_path / "elsewhere")
    return tmp_path / "project"


def refused(folder: Folder, name: str) -> str:
    with pytest.raises(NotOpened) as caught:
        folder.open(name, Lines(""))
    return str(caught.value)


def test_a_file_is_found_beside_the_source_and_where_the_program_runs(project: Path) -> None:
    folder = Folder.of(str(project / "launch.sh"))
    (project / "a.yaml").write_text("a")
    (project.parent / "elsewhere" / "b.yaml").write_text("b")
    assert folder.open("a.yaml", Lines("")).text == "a"
    assert folder.open("../elsewhere/b.yaml", Lines("")).text == "b"
    assert Folder.of("-").open("b.yaml", Lines("")).text == "b"


@pytest.mark.parametrize("name", ["../secret.yaml", "sub/../../secret.yaml", "link.yaml", "round.yaml"])
def test_a_file_outside_is_not_read(project: Path, name: str) -> None:
    (project / "link.yaml").symlink_to(project.parent / "secret.yaml")
    (project / "round.yaml").symlink_to(project / "round.yaml")
    assert refused(Folder.of(str(project / "x")), name) in ("is not there", OUTSIDE)
    assert refused(Folder.of(str(project / "x")), str(project.parent / "secret.yaml")) == OUTSIDE


OUTSIDE = "lies outside the folder of the source and the one where this program runs"


def test_who_types_a_command_may_name_any_file(project: Path) -> None:
    document = read_command(["sglang", "serve", "--config", str(project.parent / "secret.yaml")])
    (given,) = document.engines[0].given
    assert (given.key, given.value) == ("--hicache-size", "1")
    assert given.place is not None
    assert document.included == {given.place.file: "hicache-size: 1\n"}


@pytest.mark.parametrize("name", ["", "\0", ".", "x" * 5_000, "gone.yaml"])
def test_a_name_of_nothing_is_refused(project: Path, name: str) -> None:
    refused(Folder.of(str(project / "x")), name)


def test_pipes_large_files_and_binaries_are_refused(project: Path) -> None:
    os.mkfifo(project / "pipe")
    with (project / "large").open("wb") as file:
        file.truncate(LARGEST + 1)
    (project / "binary").write_bytes(b"\0\1\2")
    folder = Folder.of(str(project / "x"))
    assert refused(folder, "pipe") == "is no file"
    assert refused(folder, "large") == "is larger than a mebibyte"
    assert "not text" in refused(folder, "binary")


def test_of_many_files_the_first_are_read(project: Path) -> None:
    folder, lines = Folder.of(str(project / "x")), Lines("")
    for number in range(MOST_FILES + 1):
        (project / str(number)).write_text("x")
    bases = [folder.open(str(number), lines).base for number in range(MOST_FILES)]
    assert len(set(bases)) == MOST_FILES
    assert folder.open("0", lines).base == bases[0]
    assert "more than" in refused(folder, str(MOST_FILES))


def test_scripts_that_take_each_other_in_end(project: Path) -> None:
    (project / "a.sh").write_text("A=1\nsource b.sh\n" * 200)
    (project / "b.sh").write_text("B=2\nsource a.sh\nsource ./b.sh\n" * 200)
    document = read(str(project / "launch.sh"), text="source a.sh\nsglang serve --tp $A --pp-size $B --ep-size $C\n")
    assert {given.key: given.value for given in document.engines[0].given} == {"--tp": "1", "--pp-size": "2"}


# --- reports ------------------------------------------------------------------------------------------------------


@pytest.fixture
def included(project: Path, monkeypatch: pytest.MonkeyPatch) -> Document:
    monkeypatch.chdir(project)
    (project / "conf").mkdir()
    (project / "conf" / "server.yaml").write_text("page-size: 64\nhicache-wrong: 5\nhicache-size: 1\n")
    (project / "launch.sh").write_text("sglang serve --model-path /m \\\n  --config conf/server.yaml\n")
    return read("launch.sh")


def report_of(document: Document) -> Report:
    return Report("0.5.23", tuple(check_document(document, Options(select=("HC010",)))))


def test_reports_name_the_file_that_a_finding_is_in(included: Document) -> None:
    report = report_of(included)
    (finding,) = report.as_dict()["sources"][0]["findings"]
    assert (finding["file"], finding["line"], finding["column"]) == ("conf/server.yaml", 2, 1)
    text = report_text(report, color=False)
    assert text.startswith("conf/server.yaml:2:1: error HC010")
    assert "    2 | hicache-wrong: 5\n" in text
    assert github(report).startswith("::error file=conf/server.yaml,")
    (result,) = sarif(report)["runs"][0]["results"]
    assert result["locations"][0]["physicalLocation"]["artifactLocation"] == {"uri": "conf/server.yaml"}
    assert "line 2 column 1 of conf/server.yaml" in junit(report)


def test_a_finding_in_the_source_itself_has_no_file(included: Document) -> None:
    text = included.text.replace("--config conf/server.yaml", "--hicache-wrong 5")
    (finding,) = report_of(read("launch.sh", text=text)).as_dict()["sources"][0]["findings"]
    assert "file" not in finding


def test_findings_of_other_files_come_behind_those_of_the_source(included: Document) -> None:
    document = read("launch.sh", text=included.text.replace("--model-path", "--hicache-worse 1 --model-path"))
    entry = report_of(document).as_dict()["sources"][0]
    assert [finding.get("file") for finding in entry["findings"]] == [None, "conf/server.yaml"]


def test_a_comment_in_another_file_answers_what_is_found_there(included: Document, project: Path) -> None:
    path = project / "conf" / "server.yaml"
    path.write_text(path.read_text().replace("5", "5  # hicache: ignore HC010 it is ours"))
    assert report_of(read("launch.sh")).sources[0].findings == ()
    # It speaks of that file alone: a comment in line 2 of it is none for line 2 of the source.
    text = included.text.replace("\n", "\n --hicache-worse 5 ", 1)
    assert len(report_of(read("launch.sh", text=text)).sources[0].findings) == 1


def test_a_fix_does_not_write_into_another_file(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(project)
    (project / "server.yaml").write_text("hicache-size: 100\nhicache-ratio: 3\nenable-hierarchical-cache: true\n")
    document = read("launch.sh", text="sglang serve --model-path /m --config server.yaml\n")
    fixed = fix(document, Options())
    assert not fixed.is_changed
    assert fixed.shown


def test_the_file_of_a_finding_is_in_the_schema(included: Document) -> None:
    from jsonschema import Draft202012Validator

    schema: Any = json.loads((Path(__file__).parents[2] / "schemas" / "report.schema.json").read_text("utf-8"))
    Draft202012Validator(schema).validate(report_of(included).as_dict())
