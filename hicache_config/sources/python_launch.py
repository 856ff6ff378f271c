"""A Python launcher to the servers that it starts: command lists, command texts, `sgl.Engine(…)`. Read, never run.

Statements are walked once from top to bottom, both arms of an `if` too. Must not import anything above this floor.
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Iterator, Sequence

from ..arguments.given import Given
from ..arguments.names import find
from .container import Surroundings, engines_of_script, engines_of_words, known_environment
from .document import Engine, Noted
from .launch import are_arguments, find_launch, mentions_launch
from .notes import not_known, note
from .python_values import Evaluator, Plain, Row, Scope, Table, Value, name_of, parsed, plain_of, same, words_of
from .text import Lines, Traced, Unknown

MOST_ENGINES = 200
MOST_STATEMENTS = 20_000

#: Calls whose keywords are SGLang's arguments.
_ENGINES = re.compile(r"(?:.*\.)?(?:Engine|ServerArgs|Runtime|HttpServerEngineAdapter|HttpServerEngine)")
#: Calls that show a command and do not run it.
_SHOWING = re.compile(
    r"(?:.*\.)?(?:print|pprint|write|debug|info|warning|error|log|echo|add_argument|ArgumentParser|join|quote|format|dumps"
    r"|append|extend|raise_for_status|fail|skip|assert\w*|Error|\w*Error|\w*Exception)"
)
_WORD = re.compile(r"\w+")
_NAME = re.compile(r"[A-Z][A-Z0-9_]*", re.ASCII)


class PythonReader:
    """Walks a program and collects the servers that it would start."""

    def __init__(self, text: str, lines: Lines, release: str) -> None:
        self.text, self.lines, self.release = text, lines, release
        self.evaluator = Evaluator(text, lines)
        self.environment: dict[str, Traced] = {}
        self.engines: list[Engine] = []
        self._covered: set[int] = set()
        self._left: dict[int, tuple[Value, dict[str, Traced]]] = {}
        self._statements = 0

    def read(self) -> list[Engine]:
        """The servers of the program; none where it can't be parsed."""
        tree = parsed(self.text)
        if isinstance(tree, ast.Module):
            self._body(tree.body, {})
        for value, environment in self._left.values():
            self._command(value, environment, whole=True)
        # A list that only names the program says nothing of what it is started with.
        found = [each for each in self.engines if each.given or each.not_known]
        return sorted(found[:MOST_ENGINES], key=_first_line)

    @property
    def is_cut(self) -> bool:
        """Whether the program goes on behind what was looked at."""
        return self.evaluator.is_spent or self._statements > MOST_STATEMENTS

    # --- statements -----------------------------------------------------------------------------------------------

    def _body(self, body: Sequence[ast.stmt], scope: Scope) -> None:
        for statement in body:
            self._statements += 1
            if self._statements > MOST_STATEMENTS or len(self.engines) >= MOST_ENGINES or self.evaluator.is_spent:
                return
            self._statement(statement, scope)

    def _statement(self, node: ast.stmt, scope: Scope) -> None:
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                self._function(node, dict(scope))
            case ast.ClassDef():
                self._body(node.body, dict(scope))
            case ast.If():
                self._calls(node.test, scope)
                self._branches(node, [node.body, node.orelse], scope, self._shown(node.test))
            case ast.For() | ast.AsyncFor() | ast.While():
                self._loop(node, scope)
            case ast.With() | ast.AsyncWith():
                for item in node.items:
                    self._calls(item.context_expr, scope)
                self._body(node.body, scope)
            case ast.Try():
                self._body(node.body, scope)
                for each in (*(handler.body for handler in node.handlers), node.orelse, node.finalbody):
                    self._body(each, scope)
            case ast.Match():
                self._branches(node, [case.body for case in node.cases], scope, self._shown(node.subject))
            case _:
                self._simple(node, scope)

    def _simple(self, node: ast.stmt, scope: Scope) -> None:
        for value in (child for child in ast.iter_child_nodes(node) if isinstance(child, ast.expr)):
            self._calls(value, scope)
        match node:
            case ast.Assign(targets=targets, value=value):
                found = self.evaluator.value(value, scope)
                for target in targets:
                    self._assign(target, found, scope)
            case ast.AnnAssign(target=target, value=ast.expr() as value):
                self._assign(target, self.evaluator.value(value, scope), scope)
            case ast.AugAssign(target=ast.Name(id=name), op=ast.Add(), value=value) if name in scope:
                more = self.evaluator.value(value, scope)
                scope[name] = self.evaluator.add(scope[name], more, self.evaluator.hole(value))
                self._remember(scope[name])
            case ast.Expr(value=ast.Call() as call):
                self._changing(call, scope)
            case ast.Return(value=ast.expr() as value):
                self._remember(self.evaluator.value(value, scope))

    def _assign(self, target: ast.expr, value: Value, scope: Scope) -> None:
        match target:
            case ast.Name(id=name):
                scope[name] = value
                self._remember(value)
            case ast.Attribute(attr=name, value=ast.Name(id="self" | "cls")):
                self._remember(value)
            case ast.Subscript(value=base, slice=ast.Constant(value=str() as key)):
                name = name_of(base)
                if _NAME.fullmatch(key) and "env" in name.lower() and isinstance(value, Traced):
                    self.environment[key] = value
                elif isinstance(held := scope.get(name), Table):
                    begin, end = self.evaluator.span(target)
                    scope[name] = Table(((Traced.at(key, begin, end), value),)).over(held)
            case ast.Tuple(elts=targets) if isinstance(value, Row) and len(targets) == len(value.items):
                for each, item in zip(targets, value.items, strict=True):
                    self._assign(each, item, scope)
            case ast.Tuple(elts=targets):
                for each in targets:
                    if isinstance(each, ast.Name):
                        scope.pop(each.id, None)

    def _changing(self, call: ast.Call, scope: Scope) -> None:
        """`x.append(…)`, `x.extend(…)`, `x.update(…)`."""
        if not isinstance(call.func, ast.Attribute) or not isinstance(call.func.value, ast.Name):
            return
        name, held = call.func.value.id, scope.get(call.func.value.id)
        given = self.evaluator.value(call.args[0], scope) if call.args else self.evaluator.keywords(call, scope)
        if call.func.attr == "append" and isinstance(held, Row):
            scope[name] = self.evaluator.add(held, Row((given,)), self.evaluator.hole(call))
        elif call.func.attr == "extend" and isinstance(held, Row):
            scope[name] = self.evaluator.add(held, given, self.evaluator.hole(call))
        elif call.func.attr == "update" and isinstance(held, Table):
            rest = Table((), (self.evaluator.hole(call),))
            scope[name] = (given if isinstance(given, Table) else rest).over(held)
        else:
            return
        self._remember(scope[name])

    def _function(self, node: ast.FunctionDef | ast.AsyncFunctionDef, scope: Scope) -> None:
        """A function's body, its parameters at their defaults."""
        given = [*node.args.posonlyargs, *node.args.args]
        defaults: list[ast.expr | None] = [*[None] * (len(given) - len(node.args.defaults)), *node.args.defaults]
        pairs = [*zip(given, defaults, strict=True), *zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True)]
        for parameter, default in pairs:
            scope.pop(parameter.arg, None)
            if default is not None and not (isinstance(default, ast.Constant) and default.value is None):
                scope[parameter.arg] = self.evaluator.value(default, scope)
        self._body(node.body, scope)

    def _loop(self, node: ast.For | ast.AsyncFor | ast.While, scope: Scope) -> None:
        if not isinstance(node, ast.While):
            self._calls(node.iter, scope)
            for name in (each.id for each in ast.walk(node.target) if isinstance(each, ast.Name)):
                scope[name] = self.evaluator.hole(node.target, "changes with each pass of a loop")
        self._branches(node, [node.body, node.orelse], scope, "a loop")

    def _branches(self, node: ast.stmt, bodies: Sequence[Sequence[ast.stmt]], scope: Scope, shown: str) -> None:
        arms = []
        for body in bodies:
            arm = dict(scope)
            self._body(body, arm)
            arms.append(arm)
        for name in dict.fromkeys(name for arm in arms for name in arm):
            values = [arm.get(name) for arm in arms]
            if all(value is values[0] or same(value, values[0]) for value in values) and values[0] is not None:
                scope[name] = values[0]
            else:
                scope[name] = self._differing(node, name, values, shown)

    def _differing(self, node: ast.stmt, name: str, values: Sequence[Value | None], shown: str) -> Value:
        begin, _ = self.evaluator.span(node)
        keyword = _WORD.match(self.text, begin)
        end = begin + 1 if keyword is None else keyword.end()
        why = f"depends on `{shown}`"
        rows = [value for value in values if isinstance(value, Row)]
        if not rows:
            return Traced.hole(Unknown(name, why, begin, end, "HC009"))
        common: list[Value] = []
        for items in zip(*(row.items for row in rows), strict=False):
            if not all(item is items[0] or same(item, items[0]) for item in items) or len(rows) < len(values):
                break
            common.append(items[0])
        return Row((*common, Traced.hole(Unknown(f"a part of {name}", why, begin, end, "HC009"))))

    def _shown(self, node: ast.expr) -> str:
        begin, end = self.evaluator.span(node)
        return " ".join(self.text[begin : min(end, begin + 40)].split())

    # --- servers --------------------------------------------------------------------------------------------------

    def _calls(self, node: ast.AST, scope: Scope) -> None:
        """The calls of an expression that start a server."""
        for call in (each for each in ast.walk(node) if isinstance(each, ast.Call)):
            name = name_of(call.func)
            if _ENGINES.fullmatch(name) and "sglang" in self.text:
                self._engine(call, scope)
            elif not _SHOWING.fullmatch(name):
                environment = self._environment_of(call, scope)
                for value in (*call.args[:20], *(each.value for each in call.keywords[:200])):
                    self._command(self.evaluator.value(value, scope), environment)

    def _environment_of(self, call: ast.Call, scope: Scope) -> dict[str, Traced]:
        found = dict(self.environment)
        for each in call.keywords:
            value = self.evaluator.value(each.value, scope) if each.arg in ("env", "environment") else None
            if isinstance(value, Table):
                found |= {key.text: item for key, item in value.entries if isinstance(item, Traced)}
        return found

    def _remember(self, value: Value) -> None:
        """A command that is put somewhere: it counts where nothing later is seen to run it.

        What a list came to in the end stands for what it was before: they begin with the same word.
        """
        span = _span(value) if isinstance(value, Traced | Row | Table) else None
        if span is not None:
            self._left[span[0]] = (value, dict(self.environment))

    def _command(self, value: Value, environment: dict[str, Traced], *, whole: bool = False) -> None:
        """A value that may be a command: a list of words, a text, or a dictionary of flags."""
        around = Surroundings(environment)
        if isinstance(value, Row):
            words = words_of(value)
            if not words or not self._starts(words):
                for item in value.items[:20]:
                    if isinstance(item, Row | Table):
                        self._command(item, environment, whole=whole)
                nested = words if len(words) < 20 else []
                for word in nested if whole or any(mentions_launch(each.text) for each in nested) else ():
                    self._command(word, environment)
                return
            # An arm of an `if` made one longer: what the list is behind it says so.
            begun = whole and not self._covered.isdisjoint(words[0].starts[:1])
            if not begun and self._is_new(words):
                self.engines += engines_of_words(words, self.lines, self.release, around)
        elif isinstance(value, Traced) and mentions_launch(value.text) and (not whole or " -" in value.text):
            if self._is_new([value]):
                self.engines += engines_of_script(value, self.lines, self.release, around)
        elif isinstance(value, Table) and any("hicache" in key.text for key, _ in value.entries):
            self._table(value, environment)
        elif isinstance(value, Table) and whole:
            for _, each in value.entries:
                self._command(each, environment, whole=not isinstance(each, Table))

    def _starts(self, words: Sequence[Traced]) -> bool:
        """Whether words start a server, or are flags of HiCache that another program will hand to one."""
        flags = any("hicache" in word.text or "hierarchical" in word.text for word in words)
        return find_launch(words) is not None or (flags and are_arguments(words, self.release))

    def _is_new(self, words: Sequence[Traced]) -> bool:
        """Whether most of the words stand in no command that was found before."""
        starts = {start for word in words for start in word.starts[:1]}
        is_new = 2 * len(starts & self._covered) <= len(starts)
        self._covered |= {start for word in words for start in word.starts} if len(words) == 1 else starts
        return is_new

    def _engine(self, call: ast.Call, scope: Scope) -> None:
        """`Engine(model_path=…, hicache_size=…)`: keywords, and dictionaries that are put in with `**`."""
        table = self.evaluator.keywords(call, scope)
        known = [find(key.text, self.release) for key, _ in table.entries]
        if any(named is not None and not named.is_abbreviation for named in known):
            self._table(table, self.environment)

    def _table(self, table: Table, environment: dict[str, Traced]) -> None:
        keys = [key for key, _ in table.entries]
        if not self._is_new(keys):
            return
        variables, notes = known_environment(environment, self.lines)
        given: list[Given] = []
        unknown: list[str] = []
        for rest in table.rest:
            notes += [not_known(each, self.lines) for each in rest.unknown.values()]
        for key, value in table.entries:
            found, more = self._given(key, value)
            notes += more
            if found is not None:
                given.append(found)
            elif more:
                unknown.append(key.text)
        self.engines.append(
            Engine(given=tuple(given), environment=variables, notes=tuple(notes), not_known=tuple(unknown))
        )

    def _given(self, key: Traced, value: Value) -> tuple[Given | None, list[Noted]]:
        is_known, plain = plain_of(value)
        if not is_known:
            holes = list(_holes(value))
            return None, [not_known(each, self.lines, key.text) for each in holes]
        if isinstance(plain, float) and not math.isfinite(plain):
            place = self.lines.place(key.begin, key.end)
            return None, [note("HC004", f"{key.text} has no end", "Write a finite number.", place)]
        is_flag = key.text.startswith("-")
        if is_flag and plain is False:
            return None, []
        written = "" if plain is True else str(plain) if not isinstance(plain, list) else [str(each) for each in plain]
        begin, end = _span(value) or (key.begin, key.end)
        key_place, value_place = self.lines.place(key.begin, key.end), self.lines.place(begin, end)
        whole = key_place.to(value_place)
        return Given(key.text, written if is_flag else plain, is_flag, whole, key_place, value_place), []


def _first_line(engine: Engine) -> tuple[int, int]:
    places = [place for each in engine.given if (place := each.place) is not None]
    places += [place for each in engine.notes if (place := each.place) is not None]
    return min(((place.line, place.column) for place in places), default=(0, 0))


def _holes(value: Value) -> Iterator[Unknown]:
    if isinstance(value, Traced):
        yield from value.unknown.values()
    for item in value.items if isinstance(value, Row) else ():
        yield from _holes(item)
    if isinstance(value, Table):
        for _, item in value.entries:
            yield from _holes(item)
        for rest in value.rest:
            yield from rest.unknown.values()


def _span(value: Value) -> tuple[int, int] | None:
    """Where a value stands, from its first part to its last."""
    if isinstance(value, Traced | Plain):
        text = value.text if isinstance(value, Plain) else value
        return text.begin, text.end
    parts = list(value.items) if isinstance(value, Row) else [item for _, item in value.entries]
    spans = [each for part in parts if (each := _span(part)) is not None]
    return (spans[0][0], spans[-1][1]) if spans else None
