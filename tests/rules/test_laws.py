"""What must hold of resolution and of fixes, whatever the arguments."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hicache_config.app.examining import Examined
from hicache_config.arguments import ServerArgs
from hicache_config.arguments.releases import known, table
from hicache_config.core.findings import Finding
from hicache_config.core.releases import Release
from hicache_config.rules.case import Case
from hicache_config.rules.registry import Rule, all_rules, run
from hicache_config.rules.resolution import HICACHE_FIELDS, Resolution, resolve_arguments
from tests.rules.judging import examined

VALUES: dict[str, tuple[Any, ...]] = {
    "enable_hierarchical_cache": (True, False),
    "hicache_size": (0, 1, 100),
    "hicache_ratio": (0.5, 2.0),
    "hicache_host_memory_fraction": (0.5, 1.0),
    "hicache_host_memory_mode": ("cache", "buffer_only"),
    "hicache_write_policy": ("write_back", "write_through", "write_through_selective"),
    "hicache_io_backend": ("direct", "kernel", "kernel_ascend"),
    "hicache_mem_layout": ("layer_first", "page_first", "page_first_direct", "page_first_kv_split", "page_head"),
    "hicache_storage_backend": ("file", "mooncake", "hf3fs", "nixl"),
    "disable_radix_cache": (True,),
    "enable_unified_memory": (True,),
    "device": ("npu", "cuda"),
    "pp_size": (1, 2, 3),
    "tp_size": (1, 4),
    "dcp_size": (1, 2),
    "disaggregation_mode": ("null", "prefill", "decode"),
    "disaggregation_decode_enable_radix_cache": (True,),
    "disaggregation_decode_host_receive_threshold": (0.0, 0.5, 1.0),
    "disaggregation_decode_retraction_backup": ("cpu_tensor", "host_pool"),
    "optimistic_prefill_attempts": (0, 2),
    "dllm_algorithm": ("LowConfidence",),
}
RELEASES = st.sampled_from(known())


@st.composite
def arguments(draw: st.DrawFn, release: str) -> dict[str, Any]:
    """Arguments that the release has, with values it takes."""
    out = {}
    for name in draw(st.lists(st.sampled_from(sorted(VALUES)), unique=True, max_size=9)):
        argument = table(release).get(name)
        choices = [
            value
            for value in VALUES[name]
            if argument is not None and (not argument.choices or value in argument.choices)
        ]
        if choices:
            out[name] = draw(st.sampled_from(choices))
    return out


@st.composite
def resolved(draw: st.DrawFn) -> tuple[ServerArgs, Resolution]:
    release = draw(RELEASES)
    values = draw(arguments(release))
    args = ServerArgs.model_validate(values, context={"release": release})
    return args, resolve_arguments(args, release)


@given(resolved())
def test_rewrites_of_an_argument_are_a_chain(made: tuple[ServerArgs, Resolution]) -> None:
    args, resolution = made
    for name in {rewrite.argument for rewrite in resolution.rewrites}:
        chain = resolution.of(name)
        assert chain[0].asked == getattr(args, name)
        assert chain[-1].gets == resolution.value(name)
        for before, after in pairwise(chain):
            assert before.gets == after.asked
        assert all(rewrite.why for rewrite in chain)


@given(resolved())
def test_layouts_that_were_resolved_stay(made: tuple[ServerArgs, Resolution]) -> None:
    args, resolution = made
    stable = ("hicache_mem_layout", "hicache_io_backend", "hicache_write_policy", "enable_hierarchical_cache")
    again = args.model_copy(update={name: resolution.value(name) for name in stable})
    twice = resolve_arguments(again, resolution.release)
    assert [twice.value(name) for name in stable] == [resolution.value(name) for name in stable]


@given(resolved())
def test_values_stay_where_there_are_no_host_pools(made: tuple[ServerArgs, Resolution]) -> None:
    args, resolution = made
    if not resolution.host_pools:
        for name in ("hicache_mem_layout", "hicache_io_backend", "hicache_write_policy", "hicache_storage_backend"):
            assert resolution.value(name) == getattr(args, name)


@given(resolved())
def test_the_final_values_hold_every_hicache_argument_of_the_release(made: tuple[ServerArgs, Resolution]) -> None:
    args, resolution = made
    final = resolution.final()
    names = {name for name in HICACHE_FIELDS if name in table(resolution.release.name)}
    assert names | args.written == set(final)
    assert list(final) == sorted(final)


@settings(max_examples=200)
@given(resolved())
def test_rules_say_something_whole_of_any_arguments(made: tuple[ServerArgs, Resolution]) -> None:
    args, resolution = made
    case = Case(args, resolution.release, resolution, written=args.written)
    findings, skipped = run(case)
    for finding in findings:
        assert finding.message
        assert "None" not in finding.message
        assert finding.argument is None or finding.argument in table(resolution.release.name)
    assert {each.code for each in skipped}.isdisjoint(finding.code for finding in findings)


@given(resolved())
def test_warnings_of_one_argument_do_not_depend_on_the_order_written(made: tuple[ServerArgs, Resolution]) -> None:
    args, resolution = made
    values = {name: getattr(args, name) for name in sorted(args.written, reverse=True)}
    other = ServerArgs.model_validate(values, context={"release": resolution.release.name})
    assert resolve_arguments(other, Release.of(resolution.release.name)).final() == resolution.final()


# --- fixes --------------------------------------------------------------------------------------------------------

WITH_EXAMPLES = [rule for rule in all_rules() if rule.check is not None]


def named(rule: Rule) -> str:
    return f"{rule.code}-{rule.name}"


def _found(found: Examined, code: str) -> list[Finding]:
    return [finding for finding in found.findings if finding.code == code]


def _fixed(arguments_: dict[str, Any], finding: Finding) -> dict[str, Any]:
    assert finding.fix is not None
    out = {**arguments_, **finding.fix.set}
    return {name: value for name, value in out.items() if value is not None}


@pytest.mark.parametrize("rule", WITH_EXAMPLES, ids=named)
def test_a_fix_answers_its_finding(rule: Rule, tmp_path: Path) -> None:
    asked = {"sglang": rule.until or "0.5.23", **rule.settings}
    before = examined(rule.bad, asked, tmp_path)
    for finding in _found(before, rule.code):
        if finding.fix is None:
            continue
        after = examined(_fixed(dict(rule.bad), finding), asked, tmp_path)
        assert finding.message not in [each.message for each in _found(after, rule.code)]
        if finding.fix.safe:
            assert after.capacity == before.capacity
            for name in (
                "hicache_mem_layout",
                "hicache_io_backend",
                "hicache_write_policy",
                "enable_hierarchical_cache",
            ):
                assert after.resolution.value(name) == before.resolution.value(name)
            errors = {each.code for each in before.findings if each.severity == "error"}
            assert {each.code for each in after.findings if each.severity == "error"} <= errors
