"""The command line from outside: exit statuses, what goes where, and that nothing of it shows a traceback."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from hicache_config.cli.main import COMMANDS, group
from hicache_config.core.releases import NEWEST
from hicache_config.reference.pages import explain

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"
GOOD = str(EXAMPLES / "dense-tp8.json")
BAD = str(EXAMPLES / "broken.json")


def call(*words: str, input: str | bytes | None = None) -> Result:
    return CliRunner().invoke(group, words, input=input)


def process(words: Sequence[str], **more: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "hicache_config", *words]
    return subprocess.run(command, capture_output=True, text=True, check=False, **more)  # type: ignore[call-overload, no-any-return]


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help(command: str) -> None:
    result = call(command, "--help")
    assert result.exit_code == 0
    assert result.output.startswith("Usage: ")


@pytest.mark.parametrize(
    ("words", "status"),
    [
        (["validate", GOOD], 0),
        (["validate", BAD], 1),
        (["validate", GOOD, BAD], 1),
        (["validate", "no/such/file"], 2),
        (["validate", BAD, "--ignore", "HC"], 0),
        (["validate", BAD, "--select", "HC7"], 0),
        (["validate", BAD, "--select", "hc7,HC503"], 0),
        (["validate", BAD, "--select", "HC9"], 2),
        (["validate", BAD, "--ignore", "HC1,HC199"], 2),
        (["validate", BAD, "--ignore", "both-size-and-ratio"], 2),
        (["validate", GOOD, "--gpu", "h100"], 2),
        (["validate", GOOD, "--gpu", ""], 2),
        (["validate"], 2),
        (["validate", "--"], 2),
        (["validate", GOOD, "--", "sglang", "serve"], 2),
        (["validate", GOOD, "--format", "xml"], 2),
        (["validate", GOOD, "--sglang", "0.1"], 2),
        (["validate", GOOD, "--sglang", "new"], 2),
        (["validate", GOOD, "--compare", "0.4.0"], 2),
        (["validate", GOOD, "--host-memory", "lots"], 2),
        (["validate", GOOD, "--host-memory", "1500"], 2),
        (["validate", GOOD, "--host-memory", "0"], 1),
        (["validate", GOOD, "--host-memory", "1500000000000"], 0),
        (["validate", GOOD, "--device-slots", "kv"], 2),
        (["validate", GOOD, "--device-slots", "kv=0"], 2),
        (["validate", GOOD, "--device-slots", "kv=1, swa=2,"], 0),
        (["validate", GOOD, "--device-slots", "kv=5,swa=6"], 0),
        (["validate", GOOD, "--env", "NAME"], 2),
        (["validate", GOOD, "--ranks-per-node", "0"], 2),
        (["validate", GOOD, "--from", "json"], 0),
        (["validate", GOOD, "--no-such-option"], 2),
        (["validate", "--", "sglang", "serve", "--model-path", "x", "--hicache-size", "1.5"], 1),
        (["plan", GOOD], 0),
        (["plan", BAD], 1),
        (["plan", GOOD, "--host-memory", "100GB"], 1),
        (["plan", GOOD, "--host-memory", "900GB"], 0),
        (["plan", "no/such/file"], 2),
        (["plan", GOOD, "--model", "no/such-model"], 1),
        (["plan", str(EXAMPLES)], 2),
        (["plan"], 2),
        (["plan", GOOD, "--engine", "x"], 2),
        (["plan", GOOD, "--pools", "no/such/file"], 1),
        (["explain", "HC120"], 0),
        (["explain", "no-such-thing"], 2),
        (["explain", "hicache_size", "--sglang", "x"], 2),
        (["rules"], 0),
        (["schema", "plan"], 0),
        (["schema", "no"], 2),
        (["schema", "args", "--sglang", "0.1"], 2),
        (["schema", "args", GOOD], 0),
        (["schema", "args", BAD], 1),
        (["schema", "pools", str(EXAMPLES / "pair-75-25.pools.json")], 0),
        (["schema", "plan", GOOD], 1),
        (["no-such-command"], 2),
        (["--version"], 0),
    ],
)
def test_exit_statuses(words: list[str], status: int) -> None:
    result = call(*words)
    assert result.exit_code == status, result.output
    assert result.exception is None or isinstance(result.exception, SystemExit)


@pytest.mark.parametrize("spelled", ["sm100", "SM100", "sm_100", "sm100a", " sm100"])
def test_a_gpu_counts_however_it_is_spelled(spelled: str) -> None:
    words = ["--gpu", spelled, "--", "sglang", "serve", "--enable-hierarchical-cache", "--kv-cache-dtype", "mxfp8"]
    assert "needs a Blackwell GPU" not in call("validate", *words).stdout
    assert json.loads(call("plan", "--format", "json", *words).stdout)["gpu"] == "sm100"


def test_device_slots_of_a_list_with_spaces_are_those_pools() -> None:
    words = ["plan", GOOD, "--format", "json", "--device-slots", "kv=64, swa=5"]
    written = json.loads(call(*words).stdout)
    assert written["stages"][0]["pools"][0]["device_slots"] == 64
    assert any("--device-slots swa is not used" in text for text in written["assumptions"])


def test_rules_fit_a_terminal() -> None:
    assert max(map(len, call("rules").stdout.splitlines())) <= 80


@pytest.mark.parametrize(
    "rule", json.loads(call("rules", "--format", "json").stdout), ids=lambda rule: str(rule["code"])
)
def test_an_explanation_is_broken_for_a_terminal_and_its_code_is_not(rule: dict[str, str]) -> None:
    page = call("explain", rule["code"]).stdout
    prose, *blocks = page.split("```")
    for text in (prose, *blocks[1::2]):
        assert all(len(line) <= 80 or " " not in line for line in text.splitlines())
    whole, _ = explain(rule["code"], NEWEST)
    assert whole is not None
    assert page.split() == whole.split()
    assert blocks[::2] == whole.split("```")[1::2]


def test_strict_makes_warnings_count() -> None:
    words = [
        "validate",
        "--",
        "sglang",
        "serve",
        "--model-path",
        "x",
        "--enable-hierarchical-cache",
        "--hicache-size",
        "1",
        "--hicache-ratio",
        "2",
    ]
    assert call(*words).exit_code == 0
    assert call("validate", "--strict", *words[1:]).exit_code == 1


def test_reports_go_to_standard_output_and_the_rest_to_standard_error() -> None:
    result = call("validate", BAD, "--format", "json")
    assert json.loads(result.stdout)["errors"] > 0
    assert result.stderr == ""
    wrong = call("validate", "--format", "json")
    assert wrong.stdout == ""
    assert "no source given" in wrong.stderr


@pytest.mark.parametrize("text", ["{", "", "\0\1", "[1", '"x', "{]"])
@pytest.mark.parametrize("command", ["validate", "plan"])
def test_a_json_report_is_printed_for_what_can_not_be_parsed(command: str, text: str) -> None:
    result = call(command, "-", "--format", "json", "--from", "json", input=text.encode())
    assert result.exit_code == 2
    written = json.loads(result.stdout)
    assert written["kind"] in ("hicache-report", "hicache-plan")


def test_standard_input_is_read() -> None:
    result = call("validate", "-", "--format", "json", input='{"hicache_size": -1}')
    (source,) = json.loads(result.stdout)["sources"]
    assert source["source"] == "-"
    assert [finding["code"] for finding in source["findings"] if finding["severity"] == "error"] == ["HC103"]


def test_nan_and_duplicate_keys_are_found_at_their_place_and_the_rest_is_checked() -> None:
    text = '{\n "hicache_ratio": NaN,\n "tp_size": 2,\n "tp_size": 4,\n "pp_size": 0\n}'
    (source,) = json.loads(call("validate", "-", "--format", "json", "--from", "json", input=text).stdout)["sources"]
    found = {finding["code"]: (finding["line"], finding["column"]) for finding in source["findings"]}
    assert found["HC004"] == (2, 19)
    assert found["HC003"][0] == 4
    assert found["HC103"] == (5, 2)


def test_the_same_input_gives_the_same_bytes() -> None:
    for words in (["validate", BAD, "--format", "json"], ["plan", GOOD], ["rules"]):
        assert call(*words).stdout == call(*words).stdout


def test_fix_writes_the_file_and_diff_does_not(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    text = "enable-hierarchical-cache: true\nhicache-size: 100\nhicache-ratio: 2.0\n"
    path.write_text(text, encoding="utf-8")
    shown = call("validate", str(path), "--diff")
    assert shown.exit_code == 1
    assert "-hicache-ratio: 2.0" in shown.stdout
    assert path.read_text(encoding="utf-8") == text
    fixed = call("validate", str(path), "--fix")
    assert fixed.exit_code == 0
    assert "fixed HC120" in fixed.stderr
    assert path.read_text(encoding="utf-8") == text.replace("hicache-ratio: 2.0\n", "")
    assert call("validate", str(path), "--diff").exit_code == 0


def test_a_file_that_can_not_be_written_is_said_to_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.yaml"
    path.write_text("enable-hierarchical-cache: true\nhicache-size: 100\nhicache-ratio: 2.0\n", encoding="utf-8")

    def fails(fixed: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("hicache_config.app.fixing.write", fails)
    result = call("validate", str(path), "--fix")
    assert "not fixed" in result.stderr
    assert "HC120" in result.stdout


def test_a_folder_is_walked_and_counted(tmp_path: Path) -> None:
    for number in range(3):
        (tmp_path / f"{number}.json").write_text(
            '{"hicache_size": 1, "enable_hierarchical_cache": true}', encoding="utf-8"
        )
    (tmp_path / "broken.json").write_text('{"hicache_size": ', encoding="utf-8")
    result = call("validate", str(tmp_path))
    assert result.exit_code == 2
    assert "3 engines checked" in result.stdout
    assert "1 source could not be read" in result.stdout


def test_many_sources_give_the_same_report_as_one_after_the_other(tmp_path: Path) -> None:
    for number in range(70):
        (tmp_path / f"{number:03}.json").write_text(f'{{"hicache_size": {-number}}}', encoding="utf-8")
    together = json.loads(process(["validate", str(tmp_path), "--format", "json"]).stdout)
    alone = [
        json.loads(call("validate", str(path), "--format", "json").stdout)["sources"][0]
        for path in sorted(tmp_path.iterdir())
    ]
    assert together["sources"] == alone


def test_unrelated_files_can_be_left_out(tmp_path: Path) -> None:
    (tmp_path / "hooks.yaml").write_text("repos:\n  - repo: x\n    rev: y\n    hooks: [z]\n", encoding="utf-8")
    (tmp_path / "other.json").write_text('{"host": "a", "port": 1}', encoding="utf-8")
    (tmp_path / "server.yaml").write_text("tp: 8\nmodel-path: x\n", encoding="utf-8")
    (tmp_path / "broken.json").write_text("{", encoding="utf-8")
    files = sorted(map(str, tmp_path.iterdir()))
    written = json.loads(call("validate", *files, "--skip-unrelated", "--format", "json").stdout)
    assert [Path(source["source"]).name for source in written["sources"]] == ["broken.json", "server.yaml"]
    assert call("validate", files[1], "--skip-unrelated").exit_code == 0


def test_docs_are_written_and_checked(tmp_path: Path) -> None:
    assert call("docs", str(tmp_path)).exit_code == 0
    assert (tmp_path / "index.md").is_file()
    assert call("docs", str(tmp_path), "--check").exit_code == 0
    (tmp_path / "index.md").write_text("old", encoding="utf-8")
    stale = call("docs", str(tmp_path), "--check")
    assert stale.exit_code == 1
    assert "is stale" in stale.stderr


def test_docs_leave_other_files_alone(tmp_path: Path) -> None:
    (tmp_path / "rules").mkdir()
    own = [
        tmp_path / "rules" / "house.md",
        tmp_path / "notes.md",
        tmp_path / "rules" / "HC1.md",
        tmp_path / "a.schema.json",
    ]
    old = tmp_path / "rules" / "HC999.md"
    for path in (*own, old):
        path.write_text("mine", encoding="utf-8")
    assert str(old) in call("docs", str(tmp_path), "--check").stderr
    assert call("docs", str(tmp_path)).exit_code == 0
    assert not old.exists()
    assert {path.read_text(encoding="utf-8") for path in own} == {"mine"}
    assert call("docs", str(tmp_path), "--check").exit_code == 0


@pytest.mark.parametrize("words", [[], ["--check"]])
@pytest.mark.parametrize("out", ["", " ", "file", "file/below"])
def test_a_folder_that_can_not_be_written_is_wrong_usage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, out: str, words: list[str]
) -> None:
    (tmp_path / "file").write_text("mine", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    result = call("docs", out, *words)
    assert result.exit_code == (1 if words and out == "file/below" else 2), "nothing is there: every page is stale"
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_docs_are_written_into_this_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert call("docs", ".").exit_code == 0
    assert (tmp_path / "index.md").is_file()


def test_rules_can_be_listed_as_json() -> None:
    assert {"code", "name", "severity", "why"} <= set(json.loads(call("rules", "--format", "json").stdout)[0])


def test_doctor_reports() -> None:
    result = call("doctor", "--format", "json")
    assert json.loads(result.stdout)["kind"] == "hicache-doctor"
    assert result.exit_code in (0, 1)
    text = call("doctor").stdout
    assert "host memory" in text
    assert all(len(line) <= 80 or " " not in line.strip() for line in text.splitlines())


@pytest.mark.parametrize("constant", ["NaN", "Infinity", "-Infinity"])
def test_a_schema_says_what_json_does_not_have_and_checks_the_rest(constant: str) -> None:
    result = call("schema", "args", "-", input=f'{{"hicache_ratio": {constant}, "tp_size": 0}}')
    assert result.exit_code == 1
    assert f"/: {constant} is no number of JSON" in result.stdout
    assert "/tp_size" in result.stdout


@pytest.mark.parametrize("text", ["{", ""])
def test_a_schema_is_not_held_against_what_is_no_json(text: str) -> None:
    result = call("schema", "args", "-", input=text)
    assert result.exit_code == 2
    assert "is not JSON" in result.stderr


# --- as a process -------------------------------------------------------------------------------------------------


def test_a_fault_of_the_program_asks_for_a_report(tmp_path: Path) -> None:
    code = (
        "import sys; import hicache_config.app.checking as c\n"
        "def boom(*a, **k): raise RuntimeError('boom')\n"
        "c.validate = boom\n"
        f"sys.argv = ['hicache-config', *sys.argv[1:], 'validate', {GOOD!r}]\n"
        "from hicache_config.cli import main; main()\n"
    )
    quiet = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert quiet.returncode == 3
    assert "Please report it" in quiet.stderr
    assert "Traceback" not in quiet.stderr
    loud = subprocess.run([sys.executable, "-c", code, "--debug"], capture_output=True, text=True, check=False)
    assert "Traceback" in loud.stderr


def test_a_reader_that_goes_away_is_no_fault() -> None:
    command = f"{sys.executable} -m hicache_config rules | head -n 1; echo status ${{PIPESTATUS[0]}}"
    result = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    assert result.stderr == ""
    assert result.stdout.startswith("HC001")


def test_no_colour_goes_into_a_pipe() -> None:
    result = process(["validate", BAD], env={**os.environ, "FORCE_COLOR": "1"})
    assert result.returncode == 1
    assert "\x1b" not in result.stdout


@pytest.mark.parametrize("variables", [{}, {"NO_COLOR": "1"}])
def test_colour_on_a_terminal_unless_it_is_refused(variables: dict[str, str]) -> None:
    environment = {**os.environ, "TERM": "xterm-256color", **variables}
    environment.pop("NO_COLOR", None) if not variables else None
    command = f"{sys.executable} -m hicache_config validate {BAD}"
    result = subprocess.run(
        ["script", "-qec", command, "/dev/null"], capture_output=True, text=True, check=False, env=environment
    )
    assert ("\x1b[" in result.stdout) is (not variables)


def test_help_on_a_terminal_is_there() -> None:
    command = f"{sys.executable} -m hicache_config --help"
    result = subprocess.run(["script", "-qec", command, "/dev/null"], capture_output=True, text=True, check=False)
    assert "validate" in result.stdout
