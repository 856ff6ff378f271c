"""Expressions of a Python launcher to what can be known of them: texts, numbers, lists, dictionaries. Nothing is run.

Must not import anything above this floor.
"""

from __future__ import annotations

import ast
import json
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from .manifest import split_words
from .python_text import literal
from .text import Builder, Lines, Traced, Unknown

DEEPEST = 40
#: Expressions of one file that are looked at, and words of one list.
MOST_STEPS = 60_000
MOST_ITEMS = 4_096
LONGEST_TEXT = 65_536

_COMPUTED = "is computed by the program"


@dataclass(frozen=True)
class Plain:
    """A number, True, False or None, and its text with its place."""

    value: Any
    text: Traced


@dataclass(frozen=True)
class Row:
    """A list or a tuple."""

    items: tuple[Value, ...]


@dataclass(frozen=True)
class Table:
    """A dictionary; `rest` is what else is put into it and not known."""

    entries: tuple[tuple[Traced, Value], ...]
    rest: tuple[Traced, ...] = ()

    def over(self, other: Table) -> Table:
        """This one's entries over another's."""
        keys = {key.text for key, _ in self.entries}
        kept = tuple(entry for entry in other.entries if entry[0].text not in keys)
        return Table((*kept, *self.entries), (*other.rest, *self.rest))


Value: TypeAlias = "Traced | Plain | Row | Table"
Scope: TypeAlias = "dict[str, Value]"


def parsed(text: str, mode: str = "exec") -> ast.AST | None:
    """The syntax tree of a program, or None where Python itself would refuse it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return ast.parse(text, mode=mode)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return None


def words_of(value: Value) -> list[Traced]:
    """The words of a list as a command; nothing for anything else."""
    return [word for item in value.items if (word := text_of(item)) is not None] if isinstance(value, Row) else []


def text_of(value: Value) -> Traced | None:
    """A value as a word of a command."""
    return value.text if isinstance(value, Plain) else value if isinstance(value, Traced) else None


def same(one: Value | None, other: Value | None) -> bool:
    """Whether two values are known to be equal."""
    if isinstance(one, Row) and isinstance(other, Row):
        return len(one.items) == len(other.items) and all(map(same, one.items, other.items))
    left, right = (text_of(each) if each is not None else None for each in (one, other))
    return left is not None and right is not None and left.is_known and right.is_known and left.text == right.text


@dataclass
class Evaluator:
    """Looks at the expressions of a text. `moved` is where they stand, for an expression within an f-string."""

    text: str
    lines: Lines
    moved: tuple[int, int] | None = None
    steps: list[int] = field(default_factory=lambda: [MOST_STEPS])

    def __post_init__(self) -> None:
        self._rows = self.text.split("\n")
        self._starts = [0]
        for row in self._rows:
            self._starts.append(self._starts[-1] + len(row) + 1)

    @property
    def is_spent(self) -> bool:
        """Whether enough of the program was looked at."""
        return self.steps[0] < 0

    def spend(self, size: int) -> bool:
        """Whether a text or a list of this size may still be made."""
        self.steps[0] -= 1 + size // 8
        return not self.is_spent

    def add(self, one: Value, other: Value, hole: Traced) -> Value:
        """What `+` makes of two values; `hole` stands for what is not known."""
        return added(one, other, hole) if self.spend(size_of(one) + size_of(other)) else hole

    # --- places ---------------------------------------------------------------------------------------------------

    def span(self, node: ast.AST) -> tuple[int, int]:
        """The offsets of a node in the document."""
        if self.moved is not None:
            return self.moved
        return self._inside(node)

    def _inside(self, node: ast.AST) -> tuple[int, int]:
        first, last = getattr(node, "lineno", 1), getattr(node, "end_lineno", None) or 1
        begin = self._offset(first, getattr(node, "col_offset", 0))
        return begin, max(begin, self._offset(last, getattr(node, "end_col_offset", None) or 0))

    def _offset(self, row: int, column: int) -> int:
        """Python counts columns in bytes of UTF-8."""
        line = self._rows[row - 1] if row <= len(self._rows) else ""
        inside = column if line.isascii() else len(line.encode("utf-8")[:column].decode("utf-8", "ignore"))
        return self._starts[min(row, len(self._rows)) - 1] + inside

    def hole(self, node: ast.AST, why: str = _COMPUTED, code: str = "HC009") -> Traced:
        """What is not known, as it is written."""
        begin, end = self.span(node)
        inside = self._inside(node)
        shown = " ".join(self.text[inside[0] : min(inside[1], inside[0] + 200)].split())
        return Traced.hole(Unknown(shown, why, begin, end, code))

    # --- expressions ----------------------------------------------------------------------------------------------

    def value(self, node: ast.AST, scope: Scope, depth: int = 0) -> Value:
        """What an expression stands for; holes where that can't be known."""
        if depth > DEEPEST or not self.spend(0):
            return self.hole(node, "is too deep to follow")
        match node:
            case ast.Constant(value=str()) | ast.JoinedStr():
                return self._literal(node, scope)
            case ast.Constant(value=value) if value is None or isinstance(value, bool | int | float):
                return self._plain(node, value)
            case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as value)):
                return self._plain(node, -value)
            case ast.List() | ast.Tuple():
                return self._row(node, scope, depth)
            case ast.Dict():
                return self._table(node, scope, depth)
            case ast.Name(id=name):
                found = scope.get(name)
                return found if found is not None else self.hole(node, "has no value in this file", "HC008")
            case ast.BinOp(op=ast.Add()):
                return self._sum(node, scope, depth)
            case ast.BoolOp(op=ast.Or(), values=values):
                return self._either(values, scope, depth)
            case ast.IfExp(body=body, orelse=orelse):
                one, other = self.value(body, scope, depth + 1), self.value(orelse, scope, depth + 1)
                return one if same(one, other) else self.hole(node, "depends on a condition")
            case ast.Call():
                return self._call(node, scope, depth)
            case ast.Subscript(value=base, slice=ast.Constant(value=str())) if _name(base) in _ENVIRONMENTS:
                return self.hole(node, "comes from the environment", "HC008")
        return self.hole(node)

    def _plain(self, node: ast.AST, value: Any) -> Plain:
        begin, end = self.span(node)
        shown = str(value) if not isinstance(value, int) or abs(value) < 10**400 else "…"
        written = self.moved is None and self.text[begin:end] == shown
        return Plain(value, Traced.of(shown, begin) if written else Traced.at(shown, begin, end))

    def _literal(self, node: ast.AST, scope: Scope) -> Traced:
        begin, end = self._inside(node)
        text = literal(
            self.text, begin, end, lambda expression, first, last: self._filled(expression, first, last, scope)
        )
        return text if self.moved is None else text.moved_to(*self.moved)

    def _filled(self, expression: str, begin: int, end: int, scope: Scope) -> Traced:
        begin, end = self.moved or (begin, end)
        tree = parsed(expression, "eval") if len(expression) < 1_000 and self.moved is None else None
        if not isinstance(tree, ast.Expression):
            return Traced.hole(Unknown(f"{{{expression[:100]}}}", _COMPUTED, begin, end, "HC009"))
        inner = Evaluator(expression, self.lines, (begin, end), self.steps)
        found = text_of(inner.value(tree.body, scope))
        if found is None or not self.spend(len(found.text)):
            return inner.hole(tree.body)
        return found.moved_to(begin, end)

    def _row(self, node: ast.List | ast.Tuple, scope: Scope, depth: int) -> Row:
        items: list[Value] = []
        for item in node.elts[:MOST_ITEMS]:
            if isinstance(item, ast.Starred):
                inner = self.value(item.value, scope, depth + 1)
                items += inner.items if isinstance(inner, Row) else [self.hole(item)]
            else:
                items.append(self.value(item, scope, depth + 1))
        return Row(tuple(items[:MOST_ITEMS]))

    def _table(self, node: ast.Dict, scope: Scope, depth: int) -> Table:
        out = Table(())
        for key, value in zip(node.keys[:MOST_ITEMS], node.values, strict=False):
            found = self.value(value, scope, depth + 1)
            if key is None:
                out = found.over(out) if isinstance(found, Table) else Table(out.entries, (*out.rest, self.hole(value)))
                continue
            name = self.value(key, scope, depth + 1)
            if isinstance(name, Traced) and name.is_known:
                out = Table(((name, found),)).over(out)
        return out

    def _sum(self, node: ast.BinOp, scope: Scope, depth: int) -> Value:
        parts: list[ast.expr] = []
        left: ast.expr = node
        while isinstance(left, ast.BinOp) and isinstance(left.op, ast.Add):
            parts.append(left.right)
            left = left.left
        values = [self.value(part, scope, depth + 1) for part in (left, *reversed(parts))]
        out = values[0]
        for value, part in zip(values[1:], reversed(parts), strict=True):
            out = self.add(out, value, self.hole(part))
        return out

    def _either(self, values: Sequence[ast.expr], scope: Scope, depth: int) -> Value:
        """`a or b`: the first that is known, since what comes from outside may be missing."""
        found = [self.value(each, scope, depth + 1) for each in values[:DEEPEST]]
        return next((each for each in found if not isinstance(each, Traced) or each.is_known), found[0])

    # --- calls ----------------------------------------------------------------------------------------------------

    def _call(self, node: ast.Call, scope: Scope, depth: int) -> Value:
        name, given = _name(node.func), [self.value(each, scope, depth + 1) for each in node.args[:2]]
        begin, end = self.span(node)
        first = given[0] if given else None
        if name in ("os.environ.get", "os.getenv", "environ.get", "getenv"):
            return given[1] if len(given) > 1 else self.hole(node, "comes from the environment", "HC008")
        if (
            name in ("str", "shlex.quote", "quote", "Path", "pathlib.Path", "int", "float", "list", "os.fspath")
            and given
        ):
            return given[0]
        if name in ("shlex.split", "split") and isinstance(first, Traced):
            return Row(tuple(split_words(first)))
        if name == "shlex.join" and isinstance(first, Row) and self.spend(size_of(first)):
            return joined(first, " ", begin, end)
        if name == "dict" and not node.args:
            return self.keywords(node, scope, depth + 1)
        if name == "json.dumps" and first is not None:
            known, value = plain_of(first)
            return Traced.at(json.dumps(value), begin, end) if known else self.hole(node)
        if isinstance(node.func, ast.Attribute):
            return self._method(node, node.func, given, scope, depth)
        return self.hole(node)

    def keywords(self, node: ast.Call, scope: Scope, depth: int = 0) -> Table:
        """The keywords of a call, with what dictionaries put in with `**`."""
        out = Table(())
        for each in node.keywords[:MOST_ITEMS]:
            value = self.value(each.value, scope, depth)
            if each.arg is not None:
                begin, end = self.span(each)
                key = Traced.of(each.arg, begin) if self.moved is None else Traced.at(each.arg, begin, end)
                out = Table(((key, value),)).over(out)
            elif isinstance(value, Table):
                out = value.over(out)
            else:
                out = Table(out.entries, (*out.rest, self.hole(each.value)))
        return out

    def _method(self, node: ast.Call, func: ast.Attribute, given: list[Value], scope: Scope, depth: int) -> Value:
        own = self.value(func.value, scope, depth + 1)
        begin, end = self.span(node)
        row = given[0] if given and isinstance(given[0], Row) else None
        if func.attr == "join" and isinstance(own, Traced) and own.is_known and row:
            size = size_of(row) + len(own.text) * len(row.items)
            if size > LONGEST_TEXT or not self.spend(size):
                return self.hole(node)
            return joined(row, own.text, begin, end)
        if func.attr == "split" and isinstance(own, Traced) and not node.args:
            return Row(tuple(split_words(own)))
        if func.attr in ("strip", "copy", "lstrip", "rstrip") and not node.args:
            return own
        return self.hole(node)


_ENVIRONMENTS = ("os.environ", "environ")


def _name(node: ast.AST) -> str:
    """`a.b.c` of a name with attributes, else what is known of its end."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute) and len(parts) < DEEPEST:
        parts.append(node.attr)
        node = node.value
    return ".".join([*([node.id] if isinstance(node, ast.Name) else [""]), *reversed(parts)])


name_of = _name


def size_of(value: Value) -> int:
    """About how much there is to copy of a value."""
    if isinstance(value, Row):
        return len(value.items) + sum(len(each.text) for each in value.items if isinstance(each, Traced))
    return len(value.text) if isinstance(value, Traced) else len(value.entries) if isinstance(value, Table) else 1


def added(one: Value, other: Value, hole: Traced) -> Value:
    """What `+` makes of two values; `hole` stands for a list that is not known."""
    if isinstance(one, Row):
        more: tuple[Value, ...] = other.items if isinstance(other, Row) else (hole,)
        return Row((*one.items, *more)[:MOST_ITEMS])
    if isinstance(one, Traced) and isinstance(other, Row):
        return Row((one, *other.items)) if not one.is_known else hole
    left, right = text_of(one), text_of(other)
    if left is None or right is None or len(left.text) + len(right.text) > LONGEST_TEXT:
        return hole
    out = Builder(left.begin)
    out.add_all(left)
    out.add_all(right)
    return out.done(right.end)


def joined(row: Row, between: str, begin: int, end: int) -> Traced:
    """The texts of a list in one, each with its own place."""
    out = Builder(begin)
    for index, word in enumerate(words_of(row)):
        for char in between if index else "":
            out.add(char, word.begin)
        if len(out) < LONGEST_TEXT:
            out.add_all(word)
    return out.done(end)


def plain_of(value: Value) -> tuple[bool, Any]:
    """Whether a value is known whole, and as what Python would have it."""
    if isinstance(value, Plain):
        return True, value.value
    if isinstance(value, Traced):
        return value.is_known, value.text
    if isinstance(value, Row):
        found = [plain_of(item) for item in value.items]
        return all(known for known, _ in found), [each for _, each in found]
    entries: Mapping[str, tuple[bool, Any]] = {key.text: plain_of(each) for key, each in value.entries}
    whole = not value.rest and all(known for known, _ in entries.values())
    return whole, {key: each for key, (_, each) in entries.items()}
