"""Values out of a wheel's syntax trees: constants, lists, dictionary keys and enum members, across its modules.

Nothing of the wheel is imported or executed. An expression outside the small part of Python understood here raises
NotKnownError with the reason: a value is read or it is not, it is never guessed.
"""

from __future__ import annotations

import ast
import operator
import zipfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any


class NotKnownError(Exception):
    """The syntax tree does not tell this value. The text says which expression, and where."""


@dataclass(frozen=True)
class Definition:
    """A class or a function of the wheel: the module that holds it and its tree."""

    module: str
    node: ast.ClassDef | ast.FunctionDef


@dataclass(frozen=True)
class Member:
    """A member of an enum: its name is all that is needed of it."""

    name: str


class Wheel:
    """A wheel file, read as the zip that it is."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.version = path.name.split("-")[1]
        self._zip = zipfile.ZipFile(path)
        self._names = frozenset(self._zip.namelist())
        self.source = lru_cache(maxsize=None)(self._source)
        self.names = lru_cache(maxsize=None)(self._module_names)

    def close(self) -> None:
        self._zip.close()

    def has(self, module: str) -> bool:
        return self._file(module) is not None

    def _file(self, module: str) -> str | None:
        base = module.replace(".", "/")
        return next((name for name in (f"{base}.py", f"{base}/__init__.py") if name in self._names), None)

    def _source(self, module: str) -> str:
        name = self._file(module)
        if name is None:
            raise NotKnownError(f"{module} is not in the wheel")
        return self._zip.read(name).decode("utf-8")

    def _module_names(self, module: str) -> Mapping[str, ast.AST]:
        """What each name of a module's top level was bound to last: a value's tree, a definition or an import."""
        return dict(_bindings(ast.parse(self.source(module)).body))

    def top(self, module: str, name: str) -> ast.AST:
        """The tree that a name of a module's top level is bound to."""
        found = self.names(module).get(name)
        if found is None:
            raise NotKnownError(f"{module} does not bind {name} at its top level")
        return found

    def class_node(self, module: str, name: str) -> ast.ClassDef:
        """The class statement of that name at a module's top level, also where the name is bound anew after it."""
        for statement in ast.parse(self.source(module)).body:
            if isinstance(statement, ast.ClassDef) and statement.name == name:
                return statement
        raise NotKnownError(f"{module} has no class {name}")


def _bindings(body: list[ast.stmt]) -> Iterator[tuple[str, ast.AST]]:
    for statement in body:
        if isinstance(statement, (ast.ClassDef, ast.FunctionDef)):
            yield statement.name, statement
        elif isinstance(statement, ast.Assign):
            for target in statement.targets:
                if isinstance(target, ast.Name):
                    yield target.id, statement.value
        elif isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name) and statement.value:
            yield statement.target.id, statement.value
        elif isinstance(statement, ast.ImportFrom):
            for alias in statement.names:
                yield alias.asname or alias.name, statement


BINARY: Mapping[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.BitOr: operator.or_,
}
BUILTINS: Mapping[str, Callable[..., Any]] = {"list": list, "tuple": tuple, "set": set, "frozenset": frozenset}
METHODS = frozenset({"keys", "lower", "upper"})


@dataclass
class Scope:
    """Where expressions are evaluated: a module of a wheel, with local names on top.

    `special` answers for what only the caller knows (the default of a field, say): it gets the tree and returns a
    1-tuple with the value, or None to leave it to the rules here.
    """

    wheel: Wheel
    module: str
    local: dict[str, Any] = field(default_factory=dict)
    special: Callable[[ast.expr], tuple[Any] | None] = lambda _node: None

    def value(self, node: ast.expr) -> Any:
        """The value of an expression. Raises NotKnownError."""
        answer = self.special(node)
        if answer is not None:
            return answer[0]
        method = getattr(self, f"_{type(node).__name__.lower()}", None)
        if method is None:
            raise NotKnownError(f"{self.module}: {ast.unparse(node)}")
        return method(node)

    def run(self, body: list[ast.stmt]) -> tuple[Any] | None:
        """Execute a function's statements: names, imports, branches, and in-place additions; a 1-tuple at a return."""
        for statement in body:
            if isinstance(statement, ast.Return):
                return (self.value(statement.value) if statement.value else None,)
            if isinstance(statement, ast.ImportFrom):
                for alias in statement.names:
                    self.local[alias.asname or alias.name] = self._imported(statement, alias.name)
            elif isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
                self.local[statement.targets[0].id] = self.value(statement.value)
            elif isinstance(statement, ast.If):
                answer = self.run(statement.body if self.value(statement.test) else statement.orelse)
                if answer is not None:
                    return answer
            elif isinstance(statement, ast.Expr):
                self._expression_statement(statement.value)
            else:
                raise NotKnownError(f"{self.module}: {ast.unparse(statement)}")
        return None

    def _expression_statement(self, node: ast.expr) -> None:
        if isinstance(node, ast.Constant):  # a docstring
            return
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in ("add", "append"):
            getattr(self.value(node.func.value), node.func.attr)(self.value(node.args[0]))
            return
        self.value(node)

    # One method for each kind of expression, found by its name.

    def _constant(self, node: ast.Constant) -> Any:
        return node.value

    def _name(self, node: ast.Name) -> Any:
        return self.local[node.id] if node.id in self.local else self.named(node.id)

    def named(self, name: str) -> Any:
        """What the module's top level binds a name to, imports followed. Raises NotKnownError."""
        found = self.wheel.top(self.module, name)
        if isinstance(found, (ast.ClassDef, ast.FunctionDef)):
            return Definition(self.module, found)
        if isinstance(found, ast.ImportFrom):
            original = next(alias.name for alias in found.names if (alias.asname or alias.name) == name)
            return self._imported(found, original)
        assert isinstance(found, ast.expr)
        return Scope(self.wheel, self.module, special=self.special).value(found)

    def _imported(self, statement: ast.ImportFrom, name: str) -> Any:
        if statement.level or not statement.module:
            raise NotKnownError(f"{self.module}: a relative import of {name}")
        return Scope(self.wheel, statement.module, special=self.special).named(name)

    def _elements(self, nodes: list[ast.expr]) -> list[Any]:
        out: list[Any] = []
        for node in nodes:
            if isinstance(node, ast.Starred):
                out.extend(self._iterate(node.value))
            else:
                out.append(self.value(node))
        return out

    def _list(self, node: ast.List) -> list[Any]:
        return self._elements(node.elts)

    def _tuple(self, node: ast.Tuple) -> tuple[Any, ...]:
        return tuple(self._elements(node.elts))

    def _set(self, node: ast.Set) -> set[Any]:
        return set(self._elements(node.elts))

    def _dict(self, node: ast.Dict) -> dict[Any, Any]:
        """The keys are what is wanted; a value that is no plain value is kept as its tree."""
        out: dict[Any, Any] = {}
        for key, item in zip(node.keys, node.values, strict=True):
            if key is None:
                out.update(self.value(item))
                continue
            try:
                out[self.value(key)] = self.value(item)
            except NotKnownError:
                out[self.value(key)] = item
        return out

    def _binop(self, node: ast.BinOp) -> Any:
        if type(node.op) not in BINARY:
            raise NotKnownError(f"{self.module}: {ast.unparse(node)}")
        return BINARY[type(node.op)](self.value(node.left), self.value(node.right))

    def _unaryop(self, node: ast.UnaryOp) -> Any:
        if isinstance(node.op, ast.USub):
            return -self.value(node.operand)
        if isinstance(node.op, ast.Not):
            return not self.value(node.operand)
        raise NotKnownError(f"{self.module}: {ast.unparse(node)}")

    def _compare(self, node: ast.Compare) -> bool:
        if len(node.ops) == 1 and isinstance(node.ops[0], (ast.Is, ast.IsNot)):
            same = self.value(node.left) is self.value(node.comparators[0])
            return same if isinstance(node.ops[0], ast.Is) else not same
        raise NotKnownError(f"{self.module}: {ast.unparse(node)}")

    def _joinedstr(self, node: ast.JoinedStr) -> str:
        """The fixed parts of an f-string: only help texts are f-strings here, and only for words like "deprecated"."""
        return "".join(str(part.value) if isinstance(part, ast.Constant) else "…" for part in node.values)

    def _subscript(self, node: ast.Subscript) -> Any:
        return self.value(node.value)[self.value(node.slice)]

    def _attribute(self, node: ast.Attribute) -> Any:
        owner = self.value(node.value)
        if isinstance(owner, Member) and node.attr == "name":
            return owner.name
        if isinstance(owner, Definition) and isinstance(owner.node, ast.ClassDef):
            bound = dict(_bindings(owner.node.body))
            found = bound.get(node.attr)
            if isinstance(found, ast.expr):
                # Names in a class body may be those of its other members.
                scope = Scope(self.wheel, owner.module, special=self.special)
                scope.local.update({k: scope.value(v) for k, v in bound.items() if isinstance(v, ast.Constant)})
                return scope.value(found)
        raise NotKnownError(f"{self.module}: {ast.unparse(node)}")

    def _iterate(self, node: ast.expr) -> list[Any]:
        return list(_items(self.value(node)))

    def _listcomp(self, node: ast.ListComp) -> list[Any]:
        (generator,) = node.generators
        if generator.ifs or not isinstance(generator.target, ast.Name):
            raise NotKnownError(f"{self.module}: {ast.unparse(node)}")
        out = []
        for item in self._iterate(generator.iter):
            inner = Scope(self.wheel, self.module, {**self.local, generator.target.id: item}, self.special)
            out.append(inner.value(node.elt))
        return out

    def _call(self, node: ast.Call) -> Any:
        text = ast.unparse(node.func)
        if text == "sys.modules.get":
            return None  # nothing has been imported yet when a parser is built
        if text in BUILTINS and text not in self.local and not node.keywords:
            return BUILTINS[text](*(_items(self.value(argument)) for argument in node.args))
        if text.startswith("envs.") and text.endswith(".get"):
            return self._environment_default(text.split(".")[1])
        if isinstance(node.func, ast.Attribute) and node.func.attr in METHODS and not node.args:
            owner = self.value(node.func.value)
            if isinstance(owner, (str, dict)):
                return getattr(owner, node.func.attr)()
        elif not node.args and not node.keywords:
            called = self.value(node.func)
            if isinstance(called, Definition) and isinstance(called.node, ast.FunctionDef):
                answer = Scope(self.wheel, called.module, special=self.special).run(called.node.body)
                return answer[0] if answer else None
        raise NotKnownError(f"{self.module}: {ast.unparse(node)}")

    def _environment_default(self, name: str) -> Any:
        """What `envs.NAME.get()` gives when the variable is not set: the first argument of its declaration."""
        envs = self.wheel.top("sglang.srt.environ", "Envs")
        assert isinstance(envs, ast.ClassDef)
        found = dict(_bindings(envs.body)).get(name)
        if isinstance(found, ast.Call) and found.args:
            return self.value(found.args[0])
        raise NotKnownError(f"the default of the environment variable {name}")


def _items(value: Any) -> Any:
    """What a loop over a value sees: an enum's members, a dictionary's keys, else its elements."""
    if isinstance(value, Definition) and isinstance(value.node, ast.ClassDef):
        return [Member(name) for name, node in _bindings(value.node.body) if isinstance(node, ast.expr)]
    if isinstance(value, (list, tuple, set, frozenset, dict, type({}.keys()))):
        return value
    raise NotKnownError(f"a loop over {value!r}")
