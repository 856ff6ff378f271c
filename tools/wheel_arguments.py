"""A wheel's server arguments from its syntax trees: the fields of ServerArgs and the options of its command line.

Three forms are read: plain dataclass fields with a call of add_argument for each option (to 0.5.13), annotated fields
in server_args.py (0.5.14 to 0.5.19), annotated fields in arg_groups/fields/ (from 0.5.20). How an annotated field
becomes an option is SGLang's arg_utils.py; its rules are followed here in our own code, and a wheel whose rules are
not among those that were compared is refused until a person has read them.
"""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from wheel_values import Definition, NotKnownError, Scope, Wheel

SERVER_ARGS = "sglang.srt.server_args"
ARG_UTILS = "sglang.srt.arg_groups.arg_utils"
FIELD_ORDER = "sglang.srt.arg_groups.field_order"
SUPPRESS = "==SUPPRESS=="  # argparse.SUPPRESS: the option leaves no default of its own

# The first twelve hex digits of the SHA-256 of the functions (in this order, their source joined by a blank line) that
# turn a field into an option. The code here was compared with each: 0.5.14-0.5.19, 0.5.20, 0.5.21-0.5.23.
RULE_FUNCTIONS = (
    "_unwrap_annotated",
    "_unwrap_optional",
    "_unwrap_literal",
    "_infer_type_func",
    "_field_default",
    "_field_to_cli_name",
    "add_cli_args_from_dataclass",
)
KNOWN_RULES = frozenset({"73ddeb18c949", "3e5a78e617e2", "89a8b12c4d9b"})


class UnknownRulesError(Exception):
    """The wheel turns fields into options by rules that nobody has compared with those here."""


@dataclass
class Field:
    """A field of ServerArgs as declared. `value` is the tree of its default, None where it has none."""

    name: str
    annotation: ast.expr
    value: ast.expr | None
    scope: Scope
    arg: Mapping[str, ast.expr] | None = None  # what Arg(...) says of it, {} for a bare help text, None for neither


@dataclass
class Option:
    """One option of the parser, as argparse would hold it. `unknown` names what the trees do not tell."""

    flags: tuple[str, ...]
    dest: str
    action: str = "store"
    converter: str | None = None
    nargs: str | int | None = None
    const: Any = None
    default: Any = None
    choices: list[Any] | None = None
    required: bool = False
    new_flag: str | None = None
    error_message: str | None = None
    help: str = ""
    unknown: list[str] = field(default_factory=list)


class Arguments:
    """The fields and options of one wheel."""

    def __init__(self, wheel: Wheel) -> None:
        self.wheel = wheel
        self.problems: list[str] = []
        self.fields: dict[str, Field] = {}
        for item in self._declared():
            self.fields[item.name] = item  # declared twice (0.5.15 has one): the last one holds, as in Python
        self.options = list(self._options())
        self.renamed = dict(self._renamed())

    # Fields ----------------------------------------------------------------------------------------------------------

    def _declared(self) -> Iterator[Field]:
        if "_INPUT_NAMESPACES" not in self.wheel.names(SERVER_ARGS):
            yield from self._class_fields(SERVER_ARGS, self.wheel.class_node(SERVER_ARGS, "ServerArgs"))
            return
        classes = Scope(self.wheel, SERVER_ARGS).named("_INPUT_NAMESPACES")
        found = {item.name: item for group in classes for item in self._class_fields(group.module, group.node)}
        # The record's order: a frozen list first, what it does not name after it.
        order = Scope(self.wheel, FIELD_ORDER).named("POSITIONAL_FIELD_ORDER")
        yield from (found.pop(name) for name in order if name in found)
        yield from found.values()

    def _class_fields(self, module: str, node: ast.ClassDef) -> Iterator[Field]:
        scope = Scope(self.wheel, module, special=self._special)
        for statement in node.body:
            if not isinstance(statement, ast.AnnAssign) or not isinstance(statement.target, ast.Name):
                continue
            annotation, arg = _split_annotation(statement.annotation)
            yield Field(statement.target.id, annotation, statement.value, scope, arg)

    def field_default(self, name: str) -> Any:
        """A field's default; a factory's result. Raises NotKnownError, also where there is none."""
        item = self.fields[name]
        node = item.value
        if node is None:
            raise NotKnownError(f"{name} has no default")
        if isinstance(node, ast.Call) and ast.unparse(node.func) in ("dataclasses.field", "field", "msgspec.field"):
            keywords = {keyword.arg: keyword.value for keyword in node.keywords}
            if "default" in keywords:
                return item.scope.value(keywords["default"])
            factory = keywords["default_factory"]
            if isinstance(factory, ast.Lambda):
                return item.scope.value(factory.body)
            return item.scope.value(ast.Call(func=factory, args=[], keywords=[]))
        return item.scope.value(node)

    # Options ---------------------------------------------------------------------------------------------------------

    def _options(self) -> Iterator[Option]:
        yield Option(("-h", "--help"), "help", action="help", nargs=0, default=SUPPRESS)
        scope = Scope(self.wheel, SERVER_ARGS, special=self._special)
        for statement in self._method("add_cli_args"):
            call = statement.value if isinstance(statement, ast.Expr) else None
            if isinstance(call, ast.Call) and ast.unparse(call.func) == "parser.add_argument":
                yield self._written_option(call, scope)
            elif isinstance(call, ast.Call) and ast.unparse(call.func) == "add_cli_args_from_dataclass":
                self._check_rules()
                for item in self.fields.values():
                    yield from self._field_option(item)
            else:
                scope.run([statement])

    def _method(self, name: str) -> list[ast.stmt]:
        """The statements of a method of ServerArgs."""
        body = self.wheel.class_node(SERVER_ARGS, "ServerArgs").body
        return next(item.body for item in body if isinstance(item, ast.FunctionDef) and item.name == name)

    def _renamed(self) -> Iterator[tuple[str, str]]:
        """The field that a parsed name goes to where the two differ (to 0.5.13): `args.tp_size = args.tensor_…`."""
        for statement in self._method("from_cli_args"):
            if not isinstance(statement, ast.Assign) or not isinstance(statement.targets[0], ast.Attribute):
                continue
            if not isinstance(statement.value, ast.Attribute):
                raise NotKnownError(f"sglang {self.wheel.version}: from_cli_args: {ast.unparse(statement)}")
            yield statement.value.attr, statement.targets[0].attr

    def _special(self, node: ast.expr) -> tuple[Any] | None:
        """What the parser's code asks of the record: `ServerArgs.name` and `_declared_default("name")`."""
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "ServerArgs":
            return (self.field_default(node.attr),)
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "_declared_default":
            assert isinstance(node.args[0], ast.Constant)
            return (self.field_default(str(node.args[0].value)),)
        if ast.unparse(node) == "argparse.SUPPRESS":
            return (SUPPRESS,)
        return None

    def _check_rules(self) -> None:
        found = rules_digest(self.wheel)
        if found not in KNOWN_RULES:
            raise UnknownRulesError(
                f"sglang {self.wheel.version}: arg_groups/arg_utils.py turns fields into options by rules (digest "
                f"{found}) that were not compared with tools/wheel_arguments.py. Read {', '.join(RULE_FUNCTIONS)} "
                "there, mend the code here where they differ, and add the digest to KNOWN_RULES."
            )

    def _known(self, option: Option, key: str, node: ast.expr, scope: Scope) -> Any:
        """The value of a part of an option, or None with the part's name among the unknown ones."""
        try:
            return scope.value(node)
        except NotKnownError as error:
            option.unknown.append(key)
            self.problems.append(f"{option.flags[0]}: {key}: {error}")
            return None

    def _written_option(self, call: ast.Call, scope: Scope) -> Option:
        keywords = {str(keyword.arg): keyword.value for keyword in call.keywords}
        flags = tuple(str(scope.value(argument)) for argument in call.args)
        dest = str(scope.value(keywords["dest"])) if "dest" in keywords else automatic_dest(flags)
        return self._option(flags, dest, keywords, scope)

    def _field_option(self, item: Field) -> Iterator[Option]:
        """The option of an annotated field, by the rules of arg_utils.py:add_cli_args_from_dataclass."""
        if item.arg is None:
            return
        arg, scope = dict(item.arg), item.scope
        if "no_cli" in arg and scope.value(arg["no_cli"]):
            return
        flag = scope.value(arg["cli_name"]) if "cli_name" in arg else "--" + item.name.replace("_", "-")
        flags = (str(flag), *(scope.value(arg["aliases"]) if "aliases" in arg else ()))
        keep = {"help", "const"} & arg.keys()
        keywords = {key: arg[key] for key in keep}
        if "action" in arg:
            keywords["action"] = arg["action"]
            keywords.pop("const", None)
            extra = arg.get("action_kwargs")
            if isinstance(extra, ast.Dict):
                keywords |= {str(scope.value(k)): v for k, v in zip(extra.keys, extra.values, strict=True) if k}
        else:
            keywords |= _typed_keywords(item, arg)
        yield self._option(flags, item.name, keywords, scope, item)

    def _option(
        self,
        flags: tuple[str, ...],
        dest: str,
        keywords: Mapping[str, ast.expr],
        scope: Scope,
        item: Field | None = None,
    ) -> Option:
        option = Option(flags, dest)
        implied: Mapping[str, Any] = {}
        if "action" in keywords:
            node = keywords["action"]
            option.action = str(node.value) if isinstance(node, ast.Constant) else ast.unparse(node).split(".")[-1]
            implied = self._implied(node, option.action, scope)
        option.nargs, option.default = implied.get("nargs"), implied.get("default")
        option.const = implied.get("const")
        if "type" in keywords:
            option.converter = ast.unparse(keywords["type"])
        for key in ("nargs", "const", "choices", "required", "new_flag", "error_message", "help", "default"):
            if key in keywords:
                setattr(option, key, self._known(option, key, keywords[key], scope))
        if "const_value" in keywords:
            option.const = self._known(option, "const", keywords["const_value"], scope)
        if item is not None and item.value is not None:
            try:
                option.default = self.field_default(item.name)
            except NotKnownError as error:
                option.unknown.append("default")
                self.problems.append(f"{flags[0]}: default: {error}")
        if option.choices is not None:
            unordered = isinstance(option.choices, (set, frozenset))
            option.choices = sorted(option.choices) if unordered else list(option.choices)
        return option

    def _implied(self, node: ast.expr, action: str, scope: Scope) -> Mapping[str, Any]:
        """What an action itself says of nargs, const and default: argparse's own, or the wheel's class's signature."""
        if action == "store_true":
            return {"nargs": 0, "const": True, "default": False}
        if action == "BooleanOptionalAction":
            return {"nargs": 0}
        found = scope.value(node)
        if not isinstance(found, Definition) or not isinstance(found.node, ast.ClassDef):
            raise NotKnownError(f"the action {action}")
        init = [f for f in found.node.body if isinstance(f, ast.FunctionDef) and f.name == "__init__"]
        if not init:
            return {}
        arguments = init[0].args
        values = arguments.defaults
        named = arguments.args[len(arguments.args) - len(values) :]
        return {name.arg: scope.value(value) for name, value in zip(named, values, strict=True)}


def _split_annotation(node: ast.expr) -> tuple[ast.expr, Mapping[str, ast.expr] | None]:
    """A field's own type, and the parts of its Arg(...) ({} for a bare help text, None where it has neither)."""
    if not (isinstance(node, ast.Subscript) and ast.unparse(node.value) in ("A", "Annotated")):
        return node, None
    assert isinstance(node.slice, ast.Tuple)
    inner, *rest = node.slice.elts
    for part in rest:
        if isinstance(part, ast.Call):
            if ast.unparse(part.func) == "Arg":
                return inner, {str(keyword.arg): keyword.value for keyword in part.keywords}
            continue  # NS(...): where the field lives
        return inner, {"help": part}
    return inner, None


def automatic_dest(flags: tuple[str, ...]) -> str:
    """The name that argparse takes from the first long flag."""
    return next((flag for flag in flags if flag.startswith("--")), flags[0]).lstrip("-").replace("-", "_")


def unwrap_optional(node: ast.expr) -> tuple[ast.expr, bool]:
    """The type inside `Optional[...]` or `... | None`, and whether None is allowed."""
    if isinstance(node, ast.Subscript) and ast.unparse(node.value) in ("Optional", "typing.Optional"):
        return unwrap_optional(node.slice)[0], True
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        sides = [side for side in (node.left, node.right) if ast.unparse(side) != "None"]
        if len(sides) == 1:
            return unwrap_optional(sides[0])[0], True
    if isinstance(node, ast.Subscript) and ast.unparse(node.value) == "Union":
        members = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        rest = [member for member in members if ast.unparse(member) != "None"]
        if len(rest) == 1:
            return unwrap_optional(rest[0])[0], len(rest) < len(members)
    return node, False


def literals(node: ast.expr) -> list[Any] | None:
    """The values of `Literal[...]`."""
    if isinstance(node, ast.Subscript) and ast.unparse(node.value) == "Literal":
        elements = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        return [ast.literal_eval(element) for element in elements]
    return None


def element_type(node: ast.expr) -> str | None:
    """The element type of `List[...]`, None for anything else."""
    if isinstance(node, ast.Subscript) and ast.unparse(node.value) in ("List", "list"):
        return ast.unparse(node.slice)
    return None


def _converter(name: str) -> ast.expr:
    return ast.Name(name if name in ("str", "int", "float") else "str")


def _typed_keywords(item: Field, arg: Mapping[str, ast.expr]) -> dict[str, ast.expr]:
    """What a field's type makes of its option: choices, a list, a switch or one value."""
    inner, _ = unwrap_optional(item.annotation)
    kept = {key: arg[key] for key in ("choices",) if key in arg}
    parser = arg.get("type_parser")
    values = literals(inner)
    if values is not None:
        choices = kept.get("choices", ast.List(elts=[ast.Constant(value) for value in values]))
        return {"type": parser or _converter(type(values[0]).__name__), "choices": choices}
    element = element_type(inner)
    if element is not None and parser is None:
        return {"type": _converter(element), "nargs": arg.get("nargs", ast.Constant("+")), **kept}
    if ast.unparse(inner) == "bool":
        return {"action": ast.Constant("store_true")}
    out = {"type": parser or _converter(ast.unparse(inner)), **kept}
    if "nargs" in arg:
        out["nargs"] = arg["nargs"]
    if "required" in arg:
        out["required"] = arg["required"]
    elif item.value is None:
        out["required"] = ast.Constant(True)
    return out


def rules_digest(wheel: Wheel) -> str:
    """The digest of the wheel's functions that turn a field into an option."""
    source = wheel.source(ARG_UTILS)
    texts = []
    for name in RULE_FUNCTIONS:
        node = wheel.top(ARG_UTILS, name)
        texts.append(ast.get_source_segment(source, node) or "")
    return hashlib.sha256("\n\n".join(texts).encode()).hexdigest()[:12]
