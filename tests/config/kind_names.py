"""Finds the places of a source that know a kind of cluster by its name."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator

ROOM = "experiments.cluster_kinds"


def named_in_python(source: str, kinds: Collection[str], titles: Collection[str]) -> set[str]:
    """Return the kinds that code names, as a whole text or by their module."""
    return {name for node in ast.walk(ast.parse(source)) for name in _names(node) if name in {*kinds, *titles}}


def named_in_template(source: str, kinds: Collection[str]) -> set[str]:
    """Return the kinds that stand in quotes inside a tag of a template."""
    tags = " ".join(re.findall(r"\{[%{].*?[%}]\}", source, re.DOTALL))
    return {quoted for quoted in re.findall(r"""["']([^"']*)["']""", tags) if quoted in kinds}


def _names(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value
    elif isinstance(node, ast.ImportFrom) and node.module == ROOM:
        yield from (alias.name for alias in node.names)
        yield from (alias.name.lower() for alias in node.names)
    elif isinstance(node, ast.ImportFrom) and node.module is not None:
        yield node.module.removeprefix(f"{ROOM}.")
    elif isinstance(node, ast.Import):
        yield from (alias.name.removeprefix(f"{ROOM}.") for alias in node.names)
