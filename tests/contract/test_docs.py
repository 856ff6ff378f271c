"""The commands and answers in docs/ are those of the program: what a reader copies is run here."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from ruamel.yaml import YAML
from sarif_pydantic import Sarif

from tests.contract.support import call

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
GOOD = "model-path: openai/gpt-oss-120b\ntp: 8\nenable-hierarchical-cache: true\nhicache-size: 100\n"


def blocks(name: str, kind: str) -> list[str]:
    """The fenced blocks of one kind in a page."""
    return re.findall(rf"^```{kind}\n(.*?)^```", (DOCS / name).read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)


def yaml(text: str) -> Any:
    return YAML(typ="safe").load(text)


@pytest.fixture
def deployment(tmp_path: Path) -> Path:
    """A folder as CI has it: one good file, one with a typing error."""
    (tmp_path / "deploy").mkdir()
    (tmp_path / "deploy" / "server.yaml").write_text(GOOD, encoding="utf-8")
    (tmp_path / "deploy" / "typo.yaml").write_text(GOOD.replace("hicache-size", "hicache-siez"), encoding="utf-8")
    return tmp_path


def run(command: str, folder: Path) -> int:
    """A step of a workflow, in a shell as CI starts it."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    return subprocess.run(
        ["bash", "-eo", "pipefail", "-c", command], cwd=folder, env={**os.environ, "PATH": path},
        capture_output=True, check=False,
    ).returncode  # fmt: skip


def test_the_workflow_fails_for_a_finding_and_leaves_a_sarif_report(deployment: Path) -> None:
    workflow = yaml(blocks("ci.md", "yaml")[0])
    steps = {step["name"]: step["run"] for step in workflow["jobs"]["check"]["steps"] if "run" in step}
    assert run(steps["Annotate"], deployment) == 1
    assert run(steps["SARIF"], deployment) == 0
    log = Sarif.model_validate_json((deployment / "hicache.sarif").read_text(encoding="utf-8"))
    assert [result.rule_id for result in log.runs[0].results or [] if result.level == "error"] == ["HC010"]
    (deployment / "deploy" / "typo.yaml").unlink()
    assert run(steps["Annotate"], deployment) == 0


def test_the_other_steps_run(deployment: Path) -> None:
    room, upgrade = (yaml(block)[0]["run"] for block in blocks("ci.md", "yaml")[1:3])
    server = deployment / "deploy" / "server.yaml"
    server.write_text(GOOD.replace("openai/gpt-oss-120b", "meta-llama/Meta-Llama-3.1-70B"), encoding="utf-8")
    assert run(room, deployment) == 0
    assert run(room.replace("1500GB", "500GB"), deployment) == 1
    (deployment / "deploy" / "typo.yaml").unlink()
    assert run(upgrade, deployment) == 0


def test_the_junit_job_fails_and_leaves_its_report(deployment: Path) -> None:
    (command,) = yaml(blocks("ci.md", "yaml")[3])["hicache"]["script"][1:]
    assert run(command, deployment) == 1
    suites = ElementTree.parse(deployment / "hicache.xml").getroot()
    assert [(Path(suite.get("name", "")).name, suite.get("failures")) for suite in suites] == [
        ("server.yaml", "0"),
        ("typo.yaml", "1"),
    ]


def test_the_hooks_are_those_that_are_defined() -> None:
    defined = {hook["id"] for hook in yaml((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))}
    page = (DOCS / "hooks.md").read_text(encoding="utf-8")
    assert all(f"`{hook}`" in page for hook in defined)
    (repo,) = yaml(blocks("hooks.md", "yaml")[0])["repos"]
    assert {hook["id"] for hook in repo["hooks"]} <= defined
    for hook in repo["hooks"]:
        assert call("validate", "-", *hook["args"], input=GOOD).exit_code == 0


def test_what_the_hook_is_said_to_print(tmp_path: Path) -> None:
    script = tmp_path / "launch.sh"
    script.write_text(
        "#!/bin/sh\npython -m sglang.launch_server --model-path openai/gpt-oss-120b --tp 8 \\\n"
        "  --enable-hierarchical-cache --hicache-siez 100\n",
        encoding="utf-8",
    )
    server = tmp_path / "server.yaml"
    server.write_text(GOOD + "hicache-ratio: 2.0\n", encoding="utf-8")
    printed = call("validate", str(script), str(server), "--sglang", "0.5.23").stdout.replace(f"{tmp_path}/", "")
    shown = blocks("hooks.md", "text")[0].split("\n\n", 1)[1]
    for finding in shown.strip().split("\n\n"):
        assert finding in printed


def test_suppressions_do_what_the_page_says() -> None:
    comments = "".join(blocks("hooks.md", "yaml")[1])
    text = GOOD.replace("hicache-size: 100\n", "hicache-size: 100\n" + comments.split("\n")[0] + "\n")
    assert "HC120" not in call("validate", "-", "--strict", input=text).stdout
    assert "HC120" in call("validate", "-", "--strict", input=text.replace("HC120", "HC121")).stdout
    assert "HC022" in call("validate", "-", input=text.split(" the ratio is")[0] + "\n").stdout


def test_our_column_of_the_comparison(tmp_path: Path) -> None:
    text = blocks("comparison.md", "json")[0]
    result = call("validate", "-", "--format", "json", "--from", "json", "--sglang", "0.5.23", input=text)
    found = {
        f"{each['line']}:{each['column']} {each['code']}"
        for source in json.loads(result.stdout)["sources"]
        for each in source["findings"]
        if each["severity"] == "error"
    }
    page = (DOCS / "comparison.md").read_text(encoding="utf-8")
    assert found == set(re.findall(r"\| (\d+:\d+ HC\d{3})", page))
    schema = json.loads((ROOT / "schemas" / "args.schema.json").read_text(encoding="utf-8"))
    assert schema["$id"].startswith("urn:hicache-config:args")
