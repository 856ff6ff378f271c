"""Make the table of model classes from an installed SGLang: run it with the Python of the oracle's environment.

    tools/oracle.py's Python  tools/model_classes.py  [OUT]

Each class of the model registry is imported; those of modules that need a GPU are read instead. p: its forward() takes
pp_proxy_tensors, without which SGLang refuses pipeline parallelism; s: its objects have start_layer and end_layer, so
that pools know the layers of a stage; q: an __init__ of it or of a base class sets quant_config, so that the
checkpoint's KV type counts. Prints the table, or writes it to OUT (hicache_config/geometry/classes-VERSION.json).
"""

from __future__ import annotations

import ast
import inspect
import json
import sys
import textwrap
from pathlib import Path
from typing import Any

import class_releases


def letters(model_class: type) -> str:
    """p, s and q, as far as they hold for a class."""
    forward: Any = getattr(model_class, "forward", None)
    runs = forward is not None and "pp_proxy_tensors" in inspect.signature(forward).parameters
    tells = _has(model_class, "start_layer") and _has(model_class, "end_layer")
    return ("p" if runs else "") + ("s" if tells else "") + ("q" if _has(model_class, "quant_config") else "")


def _has(model_class: type, name: str) -> bool:
    """Whether objects of the class have the attribute: as a property, or set in an __init__ of SGLang's."""
    if isinstance(inspect.getattr_static(model_class, name, None), property):
        return True
    return any(name in _assigned(base) for base in model_class.__mro__ if base.__module__.startswith("sglang"))


def _assigned(base: type) -> set[str]:
    made = base.__dict__.get("__init__")
    if made is None:
        return set()
    return _stored(ast.parse(textwrap.dedent(inspect.getsource(made))))


def _stored(tree: ast.AST) -> set[str]:
    """What is assigned to an attribute of self."""
    return {
        node.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute)
        and isinstance(node.ctx, ast.Store)
        and isinstance(node.value, ast.Name)
        and node.value.id == "self"
    }


def read(sources: list[str]) -> dict[str, str]:
    """The same of the classes that modules name as EntryClass, without importing them; their own base classes count."""
    trees = [ast.parse(source) for source in sources]
    classes = {node.name: node for tree in trees for node in tree.body if isinstance(node, ast.ClassDef)}
    return {name: _read(classes[name], classes) for source in sources for name in class_releases.entries(source)}


def _read(node: ast.ClassDef, classes: dict[str, ast.ClassDef]) -> str:
    line = [node]
    for each in line:
        line += [classes[base.id] for base in each.bases if isinstance(base, ast.Name) and base.id in classes]
    methods = [item for each in line for item in each.body if isinstance(item, ast.FunctionDef)]
    forward = next((item for item in methods if item.name == "forward"), None)
    runs = forward is not None and "pp_proxy_tensors" in {
        argument.arg for argument in ast.walk(forward.args) if isinstance(argument, ast.arg)
    }
    has = {name for item in methods if item.name == "__init__" for name in _stored(item)}
    has |= {item.name for item in methods if any(ast.unparse(one) == "property" for one in item.decorator_list)}
    return (
        ("p" if runs else "")
        + ("s" if {"start_layer", "end_layer"} <= has else "")
        + ("q" if "quant_config" in has else "")
    )


def main(out: Path | None) -> None:
    import sglang
    from sglang.srt import models
    from sglang.srt.models.registry import ModelRegistry

    table = {name: letters(found) for name, found in ModelRegistry.models.items()}
    paths = sorted(Path(next(iter(models.__path__))).glob("*.py"))
    table |= read([path.read_text("utf-8") for path in paths if f"{models.__name__}.{path.stem}" not in sys.modules])
    table = dict(sorted(table.items()))
    head = {
        "sglang": sglang.__version__,
        "made": "tools/model_classes.py: every class of the model registry was imported, or read where its module "
        "needs a GPU; p = forward() takes pp_proxy_tensors, s = objects have start_layer and end_layer, q = an "
        "__init__ sets quant_config",
    }
    rows = ",\n  ".join(f"{json.dumps(name)}: {json.dumps(found)}" for name, found in table.items())
    text = ",\n ".join(f"{json.dumps(key)}: {json.dumps(value)}" for key, value in head.items())
    text = f'{{{text},\n "classes": {{\n  {rows}}}}}\n'
    if out is None:
        print(text, end="")
    else:
        out.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else None)
