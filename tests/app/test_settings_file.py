"""Storage settings in a file of their own: read beside the source, checked by the same rules."""

from __future__ import annotations

from pathlib import Path

import pytest

from hicache_config.app.checking import validate
from hicache_config.app.options import Options
from hicache_config.sources import read

ARGS = 'enable-hierarchical-cache: true\nhicache-size: 1\nhicache-storage-backend: {backend}\nhicache-storage-backend-extra-config: "@{name}"\n'


def codes(folder: Path, name: str, text: str | bytes | None, backend: str = "seaweedfs") -> dict[str, str]:
    source = folder / "server.yaml"
    source.write_text(ARGS.format(name=name, backend=backend), encoding="utf-8")
    if text is not None:
        (folder / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    report = validate([read(str(source))], Options(sglang="0.5.23"))
    return {placed.finding.code: placed.finding.message for entry in report.sources for placed in entry.findings}


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("s.json", '{"endpoint": "x", "buckt": "y"}'),
        ("s.yaml", "endpoint: x\nbuckt: y\n"),
        ("s.yml", "endpoint: x\nbuckt: y\n"),
        ("s.toml", 'endpoint = "x"\nbuckt = "y"\n'),
    ],
)
def test_the_settings_in_a_file_are_checked(tmp_path: Path, name: str, text: str) -> None:
    assert any("buckt" in message for message in codes(tmp_path, name, text).values())


@pytest.mark.parametrize("text", ["{", "[1]", b"\0\0", ""])
def test_a_file_that_holds_no_settings_is_an_error(tmp_path: Path, text: str | bytes) -> None:
    assert "can't be read as storage settings" in codes(tmp_path, "s.json", text)["HC002"]


def test_a_file_that_is_not_here_is_named(tmp_path: Path) -> None:
    assert "is not on this machine" in codes(tmp_path, "s.json", None)["HC009"]


def test_a_suffix_that_sglang_does_not_read_is_left_to_the_rules(tmp_path: Path) -> None:
    assert not {"HC002", "HC009"} & set(codes(tmp_path, "s.txt", "x"))
