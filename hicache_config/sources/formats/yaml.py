"""YAML: a file of arguments, a manifest, a Compose file. Must not import anything above this floor."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ..document import Noted, named
from ..notes import note
from ..template import conditions, is_template, masked
from ..tree import Node, is_manifest
from ..yaml_tree import read_yaml
from .content import Content, Result


def read(content: Content) -> Result:
    """The engines of a YAML text, which its tree tells the kind of."""
    if content.form != "yaml" and is_template(content.text):
        found = _template(content)
        if found[1]:
            return found
    trees, notes = read_yaml(content.text, content.lines)
    if not trees:
        return content.form or "yaml", (), notes
    if content.form != "yaml":
        found = read_manifest(trees, content, notes)
        if found[1] or content.form is not None or any(is_manifest(tree) for tree in trees):
            return found
    from ..arguments_file import ArgumentsReader

    reader = ArgumentsReader(content.text, content.lines, content.release, for_config=True)
    for tree in trees:
        reader.read(tree)
    return "yaml", named(reader.out.engines), [*notes, *reader.out.notes]


def _template(content: Content) -> Result:
    """The engines of a manifest that a template is for."""
    text = masked(content.text)
    trees, notes = read_yaml(text, content.lines)
    form, engines, found = read_manifest(trees, replace(content, text=text), notes)
    place = conditions(content.text)
    if place is not None:
        message = "parts that the template may leave out are taken as written"
        found = [*found, note("HC009", message, "", content.lines.place(*place), severity="note")]
    return form, engines, found


def read_manifest(trees: Sequence[Node], content: Content, notes: Sequence[Noted]) -> Result:
    """The engines of a manifest or a Compose file."""
    from ..compose import is_compose, read_compose

    text, lines, release = content.text, content.lines, content.release
    if content.form == "compose" or (content.form is None and any(is_compose(tree) for tree in trees)):
        return "compose", named([found for tree in trees for found in read_compose(tree, text, lines, release)]), notes
    from ..kubernetes import KubernetesReader

    reader = KubernetesReader(text, lines, release)
    return "kubernetes", named([(found.name, found.engine) for found in reader.read_all(trees)]), notes
