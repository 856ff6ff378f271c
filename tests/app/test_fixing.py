"""Safe fixes: what is spliced reads back without the finding, and nothing else of the text changes."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hicache_config.app.checking import check_document
from hicache_config.app.fixing import Fixed, fix, write
from hicache_config.app.options import Options
from hicache_config.sources import read

OPTIONS = Options(sglang="0.5.23")


def fixed(name: str, text: str) -> Fixed:
    return fix(read(name, text=text), OPTIONS)


CASES = {
    "json-first.json": (
        '{\n  "hicache_ratio": 2.0,\n  "hicache_size": 100,\n  "enable_hierarchical_cache": true\n}\n',
        '{\n  "hicache_size": 100,\n  "enable_hierarchical_cache": true\n}\n',
    ),
    "json-last.json": (
        '{"enable_hierarchical_cache": true, "hicache_size": 100, "hicache_ratio": 2.0}',
        '{"enable_hierarchical_cache": true, "hicache_size": 100}',
    ),
    "json-replaced.json": (
        '{"enable_hierarchical_cache": true, "hicache_ratio": 2.0,\n "hicache_mem_layout": "page_first_direct", "hicache_io_backend": "kernel"}',
        '{"enable_hierarchical_cache": true, "hicache_ratio": 2.0,\n "hicache_mem_layout": "page_first_direct", "hicache_io_backend": "direct"}',
    ),
    "json-inserted.json": (
        '{\n  "enable_hierarchical_cache": true,\n  "hicache_ratio": 2.0,\n  "hicache_mem_layout": "page_first_direct"\n}',
        '{\n  "enable_hierarchical_cache": true,\n  "hicache_ratio": 2.0,\n  "hicache_mem_layout": "page_first_direct",\n  "hicache_io_backend": "direct"\n}',
    ),
    "line.yaml": (
        "# kept\nenable-hierarchical-cache: true\nhicache-size: 100  # kept too\nhicache-ratio: 2.0  # old\n\ntp: 8\n",
        "# kept\nenable-hierarchical-cache: true\nhicache-size: 100  # kept too\n\ntp: 8\n",
    ),
    "inserted.yaml": (
        "enable-hierarchical-cache: true\nhicache-ratio: 2.0\nhicache-mem-layout: page_first_direct # why\ntp: 8\n",
        "enable-hierarchical-cache: true\nhicache-ratio: 2.0\nhicache-mem-layout: page_first_direct # why\nhicache-io-backend: direct\ntp: 8\n",
    ),
    "line.toml": (
        "enable_hierarchical_cache = true\nhicache_size = 100\nhicache_ratio = 2.0 # old\n",
        "enable_hierarchical_cache = true\nhicache_size = 100\n",
    ),
    "one-line.sh": (
        "sglang serve --model-path x --enable-hierarchical-cache --hicache-ratio 2 --hicache-size 100\n",
        "sglang serve --model-path x --enable-hierarchical-cache --hicache-size 100\n",
    ),
    "continued.sh": (
        "sglang serve --model-path x \\\n  --hicache-ratio 2 \\\n  --hicache-size 100 \\\n  --enable-hierarchical-cache\n",
        "sglang serve --model-path x \\\n  --hicache-size 100 \\\n  --enable-hierarchical-cache\n",
    ),
    "continued-last.sh": (
        "sglang serve --model-path x --enable-hierarchical-cache \\\n  --hicache-size 100 \\\n  --hicache-ratio=2\necho done\n",
        "sglang serve --model-path x --enable-hierarchical-cache \\\n  --hicache-size 100\necho done\n",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_a_fix_changes_what_it_says_and_no_more(name: str) -> None:
    before, after = CASES[name]
    result = fixed(name, before)
    assert result.after == after
    assert result.is_changed
    assert {finding.code for finding in result.fixed} <= {"HC120", "HC203"}
    again = fixed(name, after)
    assert not again.is_changed
    assert again.diff() == ""
    assert "-" in result.diff()


def test_what_is_not_safe_is_shown_and_not_written() -> None:
    result = fixed("args.json", '{"hicache_mem_layout": "page_frist"}')
    assert not result.is_changed
    assert "HC102" in [finding.code for finding in result.shown]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("flow.yaml", "{enable-hierarchical-cache: true, hicache-size: 100, hicache-ratio: 2.0}\n"),
        (
            "compose.yaml",
            "services:\n  a:\n    command: [sglang, serve, --enable-hierarchical-cache, --hicache-size, '100', --hicache-ratio, '2']\n",
        ),
        ("Dockerfile", "CMD sglang serve --enable-hierarchical-cache --hicache-size 100 --hicache-ratio 2\n"),
    ],
)
def test_formats_and_layouts_that_can_not_be_spliced_are_left_alone(name: str, text: str) -> None:
    result = fixed(name, text)
    assert not result.is_changed
    assert "HC120" in [finding.code for finding in result.shown]


KEYS = {
    "enable_hierarchical_cache": st.just(True),
    "hicache_size": st.integers(0, 200),
    "hicache_ratio": st.floats(0.5, 4),
    "hicache_host_memory_fraction": st.floats(0.1, 1),
    "hicache_mem_layout": st.sampled_from(["page_first", "page_first_direct", "layer_first"]),
    "hicache_io_backend": st.sampled_from(["kernel", "direct"]),
    "hicache_write_policy": st.sampled_from(["write_back", "write_through"]),
    "hicache_storage_backend": st.sampled_from(["file", "mooncake", None]),
    "disable_radix_cache": st.booleans(),
    "tp_size": st.integers(1, 8),
}


@given(st.fixed_dictionaries({}, optional=KEYS), st.sampled_from([None, 1, 2]), st.randoms(use_true_random=False))
def test_fixed_json_is_sound_and_has_no_new_finding(
    arguments: dict[str, object], indent: int | None, random: object
) -> None:
    names = list(arguments)
    random.shuffle(names)  # type: ignore[attr-defined]
    before = json.dumps({name: arguments[name] for name in names}, indent=indent)
    result = fixed("args.json", before)
    after = json.loads(result.after)
    changed = {name for finding in result.fixed if finding.fix for name in finding.fix.set}
    assert {name: value for name, value in after.items() if name not in changed} == {
        name: value for name, value in arguments.items() if name not in changed
    }
    left = {
        placed.finding.code
        for entry in check_document(read("args.json", text=result.after), OPTIONS)
        for placed in entry.findings
        if placed.finding.severity == "error"
    }
    old = {
        placed.finding.code
        for entry in check_document(read("args.json", text=before), OPTIONS)
        for placed in entry.findings
        if placed.finding.severity == "error"
    }
    assert left <= old


def on_disk(path: Path, data: bytes) -> Fixed:
    path.write_bytes(data)
    return fix(read(str(path)), OPTIONS)


@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
def test_line_ends_the_mark_and_the_mode_stay(tmp_path: Path, end: bytes, mark: bytes) -> None:
    path = tmp_path / "args.yaml"
    lines = [b"enable-hierarchical-cache: true", b"hicache-size: 100", b"hicache-ratio: 2.0", b""]
    result = on_disk(path, mark + end.join(lines))
    path.chmod(0o640)
    write(result)
    assert path.read_bytes() == mark + end.join(lines[:2] + lines[3:])
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert [each.name for each in tmp_path.iterdir()] == ["args.yaml"]


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    real, link = tmp_path / "real.yaml", tmp_path / "link.yaml"
    real.write_text("enable-hierarchical-cache: true\nhicache-size: 100\nhicache-ratio: 2.0\n", encoding="utf-8")
    link.symlink_to(real)
    write(fix(read(str(link)), OPTIONS))
    assert link.is_symlink()
    assert "ratio" not in real.read_text(encoding="utf-8")


@pytest.mark.parametrize("data", [b"a: 1\r\nenable-hierarchical-cache: true\nhicache-size: 100\nhicache-ratio: 2.0\n"])
def test_mixed_line_ends_are_not_written(tmp_path: Path, data: bytes) -> None:
    result = on_disk(tmp_path / "args.yaml", data)
    with pytest.raises(ValueError, match="mixed line ends"):
        write(result)
    assert (tmp_path / "args.yaml").read_bytes() == data


def test_a_file_that_changed_meanwhile_is_not_written(tmp_path: Path) -> None:
    path = tmp_path / "args.yaml"
    result = on_disk(path, b"enable-hierarchical-cache: true\nhicache-size: 100\nhicache-ratio: 2.0\n")
    path.write_bytes(b"other: 1\n")
    with pytest.raises(ValueError, match="changed meanwhile"):
        write(result)
    assert path.read_bytes() == b"other: 1\n"


def test_nothing_is_left_behind_when_writing_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "args.yaml"
    data = b"enable-hierarchical-cache: true\nhicache-size: 100\nhicache-ratio: 2.0\n"
    result = on_disk(path, data)

    def fails(self: Path, target: Path) -> None:
        raise OSError(28, os.strerror(28))

    monkeypatch.setattr(Path, "replace", fails)
    with pytest.raises(OSError, match="space"):
        write(result)
    assert path.read_bytes() == data
    assert [each.name for each in tmp_path.iterdir()] == ["args.yaml"]


def test_a_fix_does_not_throw_away_what_could_not_be_read() -> None:
    text = '{"enable_hierarchical_cache": true, "hicache_storage_backend": "mooncake",\n "hicache_storage_backend_extra_config": {"prefetch_threshold": NaN}}'
    fixed = fix(read("a.json", text=text), Options(sglang="0.5.23"))
    assert "HC712" in [finding.code for finding in fixed.shown]
    assert "NaN" in fixed.after
    read_whole = fix(read("a.json", text=text.replace("NaN", "5")), Options(sglang="0.5.23"))
    assert "HC712" in [finding.code for finding in read_whole.fixed]
