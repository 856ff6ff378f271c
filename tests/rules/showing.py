"""Runs the examples of rules as a reader would: files in a folder, options beside, `validate` and `plan`."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hicache_config import DevicePool, resolve
from hicache_config.app.checking import check_document
from hicache_config.app.options import Options
from hicache_config.app.planning import plan
from hicache_config.arguments import ServerArgs
from hicache_config.core.findings import ConfigurationError, Finding
from hicache_config.core.units import parse_bytes
from hicache_config.engines.sglang.modes import ModeError, read_mode
from hicache_config.engines.sglang.starting import unenforceable
from hicache_config.geometry import load_model
from hicache_config.rules.registry import Rule
from hicache_config.sources import read
from tests.rules.judging import TINY

#: What settings of examples may name; `through` is who is asked instead of the command line.
_KNOWN = {
    "sglang", "model", "patch", "architecture", "gpu", "environment", "host_memory", "device_slots", "pools", "compare",
    "accounting", "through",
}  # fmt: skip


def show(rule: Rule, kind: str) -> tuple[list[Finding], list[Finding]]:
    """What `validate` and `plan` say to an example; `kind` is bad or good.

    Its files go into the working directory, which the test makes an empty one of its own.
    """
    is_good = kind == "good"
    settings = rule.settings if not is_good or rule.good_settings is None else rule.good_settings
    assert set(settings) <= _KNOWN
    arguments = rule.good if is_good else rule.bad
    files = {**rule.files, **(rule.good_files if is_good else rule.bad_files)}
    if "through" in settings:
        return _THROUGH[settings["through"]](arguments, settings), []
    for name, text in files.items():
        if text is not None:
            Path(name).parent.mkdir(parents=True, exist_ok=True)
            Path(name).write_text(text, encoding="utf-8")
    source = next(iter(files)) if not arguments else "arguments.json"
    if arguments:
        Path(source).write_text(json.dumps(dict(arguments)), encoding="utf-8")
    options = _options(rule, settings)
    document = read(source, release=options.release().name)
    placed = [each for entry in check_document(document, options) for each in entry.findings]
    planned = plan(document, options).findings
    return [each.finding for each in placed], [each.finding for each in planned]


def _options(rule: Rule, settings: Mapping[str, Any]) -> Options:
    memory = settings.get("host_memory")
    return Options(
        sglang=settings.get("sglang", rule.until or "0.5.23"),
        model=_model(settings),
        gpu=settings.get("gpu", "sm90"),
        environment=settings.get("environment", {}),
        host_memory_bytes=None if memory is None else parse_bytes(memory),
        device_slots=settings.get("device_slots", {}),
        accounting=settings.get("accounting", "sglang"),
        pools=settings.get("pools"),
        compare=settings.get("compare"),
    )


def _model(settings: Mapping[str, Any]) -> str | None:
    """The model to name: as it stands, or a config.json of it with the keys of the patch changed."""
    name: str | None = settings.get("model")
    if "architecture" in settings:
        whole: Mapping[str, Any] = TINY[settings["architecture"]]
    elif "patch" in settings:
        assert name is not None
        model, problems = load_model(name)
        assert model is not None, problems
        whole = model.whole
    else:
        return name
    Path("model").mkdir()
    Path("model/config.json").write_text(json.dumps(_merged(whole, settings.get("patch", {}))), encoding="utf-8")
    return "model"


def _merged(whole: Mapping[str, Any], patch: Mapping[str, Any]) -> dict[str, Any]:
    inner = {
        key: _merged(whole[key], value) if isinstance(value, Mapping) and isinstance(whole.get(key), Mapping) else value
        for key, value in patch.items()
    }
    return {**whole, **inner}


def _resolve(arguments: Mapping[str, Any], settings: Mapping[str, Any]) -> list[Finding]:
    """One rank's pools without a group, as an engine would ask."""
    try:
        resolve(ServerArgs.model_validate(dict(arguments)), [DevicePool("kv", slots=1_000_000, bytes_per_slot=4096)])
    except ConfigurationError as error:
        return list(error.findings)
    return []


def _plugin(arguments: Mapping[str, Any], settings: Mapping[str, Any]) -> list[Finding]:
    """The plugin's own findings about a start, before it asks the rules; it looks into this process's environment."""
    before = dict(os.environ)
    os.environ.update(settings["environment"])
    try:
        return unenforceable(arguments, read_mode(os.environ))
    except ModeError as error:  # what starting.review makes of it
        return [Finding("HC450", "unknown-mode", "error", str(error))]
    finally:
        os.environ.clear()
        os.environ.update(before)


_THROUGH = {"hicache_config.resolve": _resolve, "the plugin": _plugin}
