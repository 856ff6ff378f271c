"""What Kubernetes and Compose files share: scalars to words, variables, substitution before a command is read.

Must not import anything above this floor.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from collections.abc import Mapping as Map

from .text import Builder, Traced, Unknown
from .tree import Mapping, Node, Scalar, Sequence

#: A variable that makes a longer text is not followed.
LONGEST_VALUE = 65_536

Substitute = Callable[[Traced], Traced]

_KUBERNETES = re.compile(r"\$\$|\$\(([A-Za-z_][\w.-]*)\)", re.ASCII)
_COMPOSE = re.compile(
    r"\$\$|\$\{([A-Za-z_]\w*)(?:(:?[-?+])((?:[^{}]|\$\{[^{}]*\})*))?\}|\$([A-Za-z_]\w*)|\$\{[^}]{0,200}\}", re.ASCII
)


def words_of(node: Node | None, text: str, substitute: Substitute, *, split: bool) -> list[Traced]:
    """The words of a command: items of a list as they are, a single text split at white space when `split`."""
    if isinstance(node, Sequence):
        return [
            substitute(item.traced(text)) for item in node.items if isinstance(item, Scalar) and item.value is not None
        ]
    if isinstance(node, Scalar) and node.value is not None:
        whole = substitute(node.traced(text))
        return split_words(whole) if split else [whole]
    return []


def split_words(source: Traced) -> list[Traced]:
    """Words between white space, with a shell's quotes and backslashes; nothing is expanded."""
    out: list[Traced] = []
    current: Builder | None = None
    quote = ""
    here = 0
    while here < len(source.text):
        char = source.text[here]
        if not quote and char in " \t\n":
            if current is not None:
                out.append(current.done(source.end_at(here)))
            current = None
        else:
            current = Builder(source.offset(here)) if current is None else current
            if char == quote:
                quote = ""
            elif not quote and char in "'\"":
                quote = char
            elif char == "\\" and quote != "'" and here + 1 < len(source.text):
                here += 1
                if source.text[here] != "\n":
                    current.add_from(source, here)
            else:
                current.add_from(source, here)
        here += 1
    if current is not None:
        out.append(current.done(source.end_at(len(source.text))))
    return out


def kubernetes_variables(known: Map[str, Traced]) -> Substitute:
    """Kubernetes' own `$(NAME)`; a name without a value stays as it is written, which is never what was meant."""

    def substitute(source: Traced) -> Traced:
        return _replaced(source, _KUBERNETES, lambda match, part: _kubernetes(match, part, known))

    return substitute


def _kubernetes(match: re.Match[str], part: Traced, known: Map[str, Traced]) -> Traced:
    if match[0] == "$$":
        return part.part(0, 1)
    value = known.get(match[1])
    if value is not None:
        return value.moved_to(part.begin, part.end)
    return Traced.hole(Unknown(match[0], "has no value among the variables of its container", part.begin, part.end))


def compose_variables(known: Map[str, Traced]) -> Substitute:
    """Compose's interpolation: values of the `.env` file, else defaults; what has neither comes from outside."""

    def substitute(source: Traced) -> Traced:
        return _replaced(source, _COMPOSE, lambda match, part: _compose(match, part, known))

    return substitute


def _compose(match: re.Match[str], part: Traced, known: Map[str, Traced]) -> Traced:
    if match[0] == "$$":
        return part.part(0, 1)
    operator, value = match[2] or "", known.get(match[1] or match[4] or "")
    counts = value is not None and bool(value.text or not operator.startswith(":"))
    if operator.endswith("+"):
        return _argument_of(match, part) if counts else Traced.at("", part.begin, part.end)
    if value is not None and (counts or not operator):
        return value.moved_to(part.begin, part.end)
    if operator.endswith("-"):
        return _replaced(_argument_of(match, part), _COMPOSE, lambda inner, text: _compose(inner, text, known))
    return Traced.hole(Unknown(match[0], "is set outside this file", part.begin, part.end))


def _argument_of(match: re.Match[str], part: Traced) -> Traced:
    """What stands behind the operator of `${NAME:-default}`."""
    return part.part(match.start(3) - match.start(), match.end(3) - match.start()).moved_to(part.begin, part.end)


def _replaced(source: Traced, pattern: re.Pattern[str], make: Callable[[re.Match[str], Traced], Traced]) -> Traced:
    out = Builder(source.begin)
    here = 0
    for match in pattern.finditer(source.text):
        for index in range(here, match.start()):
            out.add_from(source, index)
        part = source.part(match.start(), match.end())
        value = make(match, part)
        if len(out) + len(value.text) > LONGEST_VALUE:
            value = Traced.hole(Unknown(match[0][:40], "is too long to follow", part.begin, part.end, "HC009"))
        out.add_all(value)
        here = match.end()
    if here == 0:
        return source
    for index in range(here, len(source.text)):
        out.add_from(source, index)
    return out.done(source.end)


def variables(
    node: Node | None, text: str, substitute: Substitute, refer: Callable[[Node | None], Traced | None] | None = None
) -> dict[str, Traced]:
    """Variables of a container: a mapping, a list of `NAME=value`, or a list of `{name, value}`.

    A Kubernetes variable that comes from elsewhere (`valueFrom`) has the value that `refer` gives, else one that is not
    known.
    """
    found: dict[str, Traced] = {}
    if isinstance(node, Mapping):
        for entry in node.entries:
            found[entry.key] = _value(entry.value, text, substitute, entry.key)
    elif isinstance(node, Sequence):
        for item in node.items:
            if isinstance(item, Scalar) and isinstance(item.value, str):
                word = substitute(item.traced(text))
                name, sign, _ = word.text.partition("=")
                found[name] = word.behind(len(name) + 1) if sign else _outside(name, word.begin, word.end)
            elif isinstance(item, Mapping):
                name_node = item.get("name")
                if isinstance(name_node, Scalar) and isinstance(name_node.value, str):
                    name, origin = name_node.value, item.get("valueFrom")
                    referred = refer(origin) if refer is not None else None
                    found[name] = referred or _value(item.get("value") or origin, text, substitute, name)
    return found


def _value(node: Node | None, text: str, substitute: Substitute, name: str) -> Traced:
    if isinstance(node, Scalar) and node.value is not None:
        return substitute(node.traced(text))
    begin, end = (node.start, node.end) if node is not None else (0, 0)
    return _outside(name, begin, end)


def _outside(name: str, begin: int, end: int) -> Traced:
    return Traced.hole(Unknown(f"${name}", "is set outside this file", begin, end))


def scalar_at(node: Mapping, *keys: str) -> Scalar | None:
    """The scalar behind several keys, or None."""
    found = node.at(*keys)
    return found if isinstance(found, Scalar) and found.value is not None else None
