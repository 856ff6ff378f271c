"""Pages of rules and arguments, from their metadata alone; `explain` prints the same text as the reference.

Must not import anything above this floor.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Mapping
from itertools import pairwise
from typing import Any

from ..arguments import ServerArgs
from ..arguments.names import find
from ..arguments.releases import Argument, known, table
from ..rules.registry import Rule, all_rules

_FENCES = {"json": "json", "yaml": "yaml", "sh": "bash", "log": "text"}
_NEEDS = {"model": "the model", "plan": "the sizes of the pools", "host": "the host's memory"}


def explain(subject: str, release: str) -> tuple[str | None, str | None]:
    """The page of a rule's code or name, or of an argument in any spelling; None and the closest name without one."""
    wanted = subject.strip()
    rules = {rule.code: rule for rule in all_rules()}
    by_name = {rule.name: rule for rule in rules.values()}
    rule = rules.get(wanted.upper()) or by_name.get(wanted.lower())
    if rule is not None:
        return rule_page(rule), None
    named = find(wanted, release) or find(wanted.replace("-", "_").lstrip("_"), release)
    if named is not None and named.argument is not None:
        return argument_page(named.argument, release), None
    names = [*rules, *by_name, *table(release)]
    close = difflib.get_close_matches(wanted.lstrip("-").replace("-", "_"), names, n=1) or difflib.get_close_matches(
        wanted, names, n=1
    )
    return None, close[0] if close else None


def versions_of(rule: Rule) -> str:
    """The releases that a rule holds for, in words."""
    if rule.since and rule.until:
        return f"SGLang {rule.since} to {rule.until}"
    if rule.since:
        return f"SGLang {rule.since} and later"
    return f"SGLang up to {rule.until}" if rule.until else "all supported releases"


def rule_line(rule: Rule) -> str:
    """A rule on one line: code, severity, name, releases."""
    return f"{rule.code}  {rule.severity:<7}  {rule.name:<39}  {versions_of(rule)}"


def rule_record(rule: Rule) -> dict[str, Any]:
    """A rule as JSON lists hold it."""
    return {
        "code": rule.code,
        "name": rule.name,
        "severity": rule.severity,
        "since": rule.since,
        "until": rule.until,
        "needs": list(rule.needs),
        "covers": list(rule.covers),
        "why": rule.why,
        "late": rule.late,
    }


def rule_page(rule: Rule) -> str:
    """The page of a rule as Markdown."""
    lines = [f"# {rule.code} {rule.name}", "", f"{rule.severity}, {versions_of(rule)}.", "", rule.why]
    if rule.late:
        lines += ["", f"SGLang itself finds it late: {rule.late}."]
    if rule.needs:
        needs = " and ".join(_NEEDS[need] for need in rule.needs)
        lines += ["", f"It needs {needs}; without, it is listed as skipped."]
    if rule.unshown:
        return "\n".join([*lines, "", f"No file can show it. {rule.unshown}"])
    good_settings = rule.settings if rule.good_settings is None else rule.good_settings
    lines += _example("Fails", rule.bad, {**rule.files, **rule.bad_files}, rule.settings)
    lines += _example("Passes", rule.good, {**rule.files, **rule.good_files}, good_settings)
    return "\n".join(lines)


def _example(
    title: str, arguments: Mapping[str, Any], files: Mapping[str, str | None], settings: Mapping[str, Any]
) -> list[str]:
    """An example under its title: arguments (or a source among the files), files, and what it needs besides."""
    lines = ["", f"## {title}"]
    if arguments or not files:
        lines += ["", *_fenced(json.dumps(dict(arguments), indent=1, ensure_ascii=False), "json")]
    for name, text in files.items():
        lines += ["", *_file(name, text)]
    words = ", ".join(said for name, value in settings.items() for said in _besides(name, value))
    if "through" in settings:
        words = words.replace("`--env ", "`")  # these read their own environment
        return [*lines, "", f"Asked of {settings['through']}{', with ' if words else ''}{words}."]
    return [*lines, "", f"With {words}."] if words else lines


def _file(name: str, text: str | None) -> list[str]:
    if text is None:
        return [f"`{name}` is not there."]
    if not text.replace("\n", "").isprintable():
        return [f"`{name}`, its characters written as JSON escapes them:", "", *_fenced(json.dumps(text), "text")]
    return [f"`{name}`:", "", *_fenced(text.rstrip("\n"), _FENCES[name.rpartition(".")[2]])]


def _fenced(text: str, language: str) -> list[str]:
    return [f"```{language}", text, "```"]


def _besides(name: str, value: Any) -> list[str]:
    """One setting of an example as one would ask for it: options of the command line where there is one."""
    if name == "environment":
        return [f"`--env {variable}={text}`" for variable, text in value.items()]
    if name == "device_slots":
        return [f"`--device-slots {','.join(f'{pool}={slots}' for pool, slots in value.items())}`"]
    if name == "architecture":
        return [f"a model of class {value}"]
    if name == "patch":
        return [f"its config.json changed by `{json.dumps(value, ensure_ascii=False)}`"]
    return [] if name == "through" else [f"`--{name.replace('_', '-')} {value}`"]


def argument_page(argument: Argument, release: str) -> str:
    """The page of an argument of a release as Markdown: flags, type, default, choices, unit, scope, history."""
    lines = [f"# {argument.name}", ""]
    info = ServerArgs.model_fields.get(argument.field or argument.name)
    if info is not None and info.description:
        lines += [info.description, ""]
    rows = [("flags", ", ".join(f"`{flag}`" for flag in argument.spellings) or "none: it is set from Python only")]
    rows.append(("type", _type_of(argument)))
    rows.append(("default", "depends on the machine" if "default" in argument.unknown else _value(argument.default)))
    if argument.choices:
        rows.append(("choices", ", ".join(map(_value, argument.choices))))
    extra = info.json_schema_extra if info is not None else None
    if isinstance(extra, dict):
        rows += [(name, str(extra[name])) for name in ("unit", "scope") if name in extra]
    if argument.deprecated:
        rows.append(("deprecated", "write " + ", ".join(argument.replaced_by) if argument.replaced_by else "yes"))
    lines += [f"- {name}: {text}" for name, text in rows]
    lines += ["", f"In SGLang {release}. {_history(argument.name)}"]
    about = [rule for rule in all_rules() if _is_about(rule, argument.name)]
    if about:
        lines += [
            "",
            "Rules with an example about it:",
            *(f"- {rule.code} {rule.name} ({rule.severity})" for rule in about),
        ]
    return "\n".join(lines)


def _is_about(rule: Rule, name: str) -> bool:
    """Whether a rule's example is about an argument; of another floor's finding, whether the repair changes it."""
    return name in rule.bad and (rule.check is not None or rule.bad[name] != rule.good.get(name))


def _type_of(argument: Argument) -> str:
    words = {"flag": "switch", "int": "whole number", "float": "number", "str": "text", "json": "JSON text"}
    word = words.get(argument.kind, argument.type or argument.kind)
    if argument.converter == "human_readable_int":
        word += " (1M and 1Mi are read)"
    if argument.nargs in ("+", "*"):
        word = f"list of {word}"
    return f"{word}, or not set" if argument.optional else word


def _value(value: Any) -> str:
    if value is None:
        return "not set"
    return f"`{json.dumps(list(value) if isinstance(value, tuple) else value, ensure_ascii=False)}`"


def _history(name: str) -> str:
    """Since when the known releases have an argument, and when its default or choices changed."""
    having = [release for release in known() if name in table(release)]
    parts = [f"Known in {having[0]} to {having[-1]}." if len(having) > 1 else f"Known in {having[0]} only."]
    for before, after in pairwise(having):
        old, new = table(before)[name], table(after)[name]
        if old.default != new.default:
            parts.append(f"Default {_value(old.default)} until {before}, {_value(new.default)} since {after}.")
        added = [choice for choice in new.choices or () if choice not in (old.choices or ())]
        if old.choices and added:
            parts.append(f"{after} added {', '.join(map(_value, added))}.")
    return " ".join(parts)
