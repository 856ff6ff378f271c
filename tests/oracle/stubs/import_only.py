"""Packages that can be imported but not used, for a machine without a GPU.

SGLang's modules name Triton kernels and image transforms at import time, on paths that sizing never runs.
`stand_in("triton")` makes the package `triton` answer every attribute and every submodule: a name that begins
with a capital letter is an empty class (an exception class where it ends in Error or Resources), any other name
is a submodule that can also be called as a decorator and hands the function back. Nothing computes anything.
"""

from __future__ import annotations

import importlib
import sys
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType


class StandInModule(ModuleType):
    """A submodule of a stand-in: false, callable as a decorator with or without arguments."""

    def __getattr__(self, name: str):
        return _member(self.__name__, name)

    def __call__(self, *args, **kwargs):
        if not kwargs and len(args) == 1 and callable(args[0]):
            return args[0]
        return lambda function: function

    def __bool__(self) -> bool:
        return False


class _EnumLike(type):
    """Lets a stand-in class be read like an enumeration: InterpolationMode.BICUBIC."""

    def __getattr__(cls, name: str) -> str:
        if name.startswith("__"):
            raise AttributeError(name)
        return f"{cls.__name__}.{name}"


class _SubmoduleFinder(MetaPathFinder, Loader):
    """Finds every dotted name below one package."""

    def __init__(self, package: str) -> None:
        self._prefix = f"{package}."

    def find_spec(self, fullname, path=None, target=None):
        if fullname.startswith(self._prefix):
            return ModuleSpec(fullname, self, is_package=True)
        return None

    def create_module(self, spec):
        return StandInModule(spec.name)

    def exec_module(self, module) -> None:
        """A stand-in has no code."""


def _member(owner: str, name: str):
    if name.startswith("__") and name.endswith("__"):
        raise AttributeError(name)
    if not name[:1].isupper():
        value = importlib.import_module(f"{owner}.{name}")
    elif name.endswith(("Error", "Resources")):
        value = type(name, (Exception,), {"__module__": owner})
    else:
        value = _EnumLike(name, (), {"__module__": owner, "__init__": lambda self, *args, **kwargs: None})
    setattr(sys.modules[owner], name, value)
    return value


def stand_in(package: str) -> None:
    """Turn the package of that name, which is being imported, into a stand-in."""
    sys.meta_path.insert(0, _SubmoduleFinder(package))
    sys.modules[package].__getattr__ = lambda name: _member(package, name)
