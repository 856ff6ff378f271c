"""The proof that hooks are in place, on modules made for the test with a registry that works as SGLang's does."""

from __future__ import annotations

import dataclasses
import functools
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest

from hicache_config.engines.sglang import hooks
from hicache_config.engines.sglang.versions import BUILD, CREATE, Target


def build_kv_cache(*, server_args, tp_worker, page_size, enable_hierarchical_cache, hicache_draft_plan=None):
    return "built"


def create_tree_cache(ctx):
    return "created"


def wrap(original: Callable[..., Any], hook: Callable[..., Any]) -> Callable[..., Any]:
    """An AROUND hook as SGLang's registry applies it (0.5.23, srt/plugins/hook_registry.py)."""

    @functools.wraps(original)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return hook(original, *args, **kwargs)

    return wrapper


def record(*names: str) -> type:
    return dataclasses.make_dataclass("Record", [(name, Any, None) for name in names])


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> dict[str, ModuleType]:
    """An SGLang with both functions hooked and both records whole."""
    contents: dict[str, dict[str, Any]] = {
        BUILD.module: {"build_kv_cache": wrap(build_kv_cache, hooks.HOOKS[BUILD])},
        CREATE.module: {"create_tree_cache": wrap(create_tree_cache, hooks.HOOKS[CREATE])},
    }
    for path, names in hooks.RECORDS.items():
        module, _, name = path.rpartition(".")
        contents.setdefault(module, {})[name] = record(*names)
    modules = {}
    for name, values in contents.items():
        module = ModuleType(name)
        vars(module).update(values)
        monkeypatch.setitem(sys.modules, name, module)
        modules[name] = module
    for parent in ("sglang", "sglang.srt", "sglang.srt.mem_cache"):
        monkeypatch.setitem(sys.modules, parent, ModuleType(parent))
    return modules


def test_hooks_in_place_have_no_problem(engine: dict[str, ModuleType]) -> None:
    assert hooks.hook_problems() == []


def test_hooks_are_found_below_those_of_others(engine: dict[str, ModuleType]) -> None:
    module = engine[CREATE.module]
    module.create_tree_cache = wrap(module.create_tree_cache, lambda original, *args: original(*args))
    assert hooks.hook_problems() == []


@pytest.mark.parametrize(("target", "original"), [(BUILD, build_kv_cache), (CREATE, create_tree_cache)])
def test_a_function_that_is_not_hooked_is_named(
    engine: dict[str, ModuleType], target: Target, original: Callable[..., Any]
) -> None:
    setattr(engine[target.module], target.path.rpartition(".")[2], original)
    assert hooks.hook_problems() == [f"{target.path} is not hooked"]


def test_a_function_that_is_gone_is_named(engine: dict[str, ModuleType]) -> None:
    del engine[CREATE.module].create_tree_cache
    assert hooks.hook_problems() == [f"{CREATE.path} does not exist"]


def test_a_module_that_does_not_load_is_named(engine: dict[str, ModuleType], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, BUILD.module)
    (problem,) = hooks.hook_problems()
    assert problem.startswith(f"{BUILD.module} can't be imported")


def test_a_parameter_that_is_gone_is_named(engine: dict[str, ModuleType]) -> None:
    def changed(*, server_args, tp_worker, page_size, enable_hierarchical_cache):
        return None

    engine[BUILD.module].build_kv_cache = wrap(changed, hooks.HOOKS[BUILD])
    assert hooks.hook_problems() == [f"{BUILD.path} has no parameter hicache_draft_plan"]


def test_another_order_of_parameters_is_named(engine: dict[str, ModuleType]) -> None:
    def changed(server_args, ctx):
        return None

    engine[CREATE.module].create_tree_cache = wrap(changed, hooks.HOOKS[CREATE])
    (problem,) = hooks.hook_problems()
    assert "server_args" in problem


def test_a_field_that_is_gone_is_named(engine: dict[str, ModuleType]) -> None:
    path = next(iter(hooks.RECORDS))
    module, _, name = path.rpartition(".")
    setattr(engine[module], name, record("params"))
    (problem,) = hooks.hook_problems()
    assert problem.startswith(f"{path} has no field")


def test_build_hooks_are_wanted_where_the_scheduler_is_at_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, BUILD.module, raising=False)
    assert not hooks.builds_pools_here()
    scheduler: dict[str, Any] = {"__name__": "sglang.srt.managers.scheduler", "ask": hooks.builds_pools_here}
    exec("def run_scheduler_process(): return ask()", scheduler)
    assert scheduler["run_scheduler_process"]()
    monkeypatch.setitem(sys.modules, BUILD.module, ModuleType(BUILD.module))
    assert hooks.builds_pools_here()
