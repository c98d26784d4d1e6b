"""The filter language of a sweep: ``hosts * ranks_per_host <= 16 and molecules != 512``.

Python's parser reads it; only the nodes listed here are evaluated, by our own walk over the tree. Nothing is ever compiled or executed.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping
from typing import Any, Final

MAX_LENGTH: Final = 500
MAX_DEPTH: Final = 40


def _numeric(operation: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """Numbers only: ``'a' * 10**9`` and ``'%999999999d' % 1`` would fill the memory."""

    def checked(left: Any, right: Any) -> Any:
        for operand in (left, right):
            if not isinstance(operand, int | float):
                raise TypeError(f"{operand!r} is not a number")
        return operation(left, right)

    return checked


_BINARY: Final[dict[type[ast.AST], Callable[[Any, Any], Any]]] = {
    ast.Add: _numeric(operator.add),
    ast.Sub: _numeric(operator.sub),
    ast.Mult: _numeric(operator.mul),
    ast.Div: _numeric(operator.truediv),
    ast.FloorDiv: _numeric(operator.floordiv),
    ast.Mod: _numeric(operator.mod),
}
_COMPARE: Final[dict[type[ast.AST], Callable[[Any, Any], bool]]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.In: lambda item, group: item in group,
    ast.NotIn: lambda item, group: item not in group,
}


class Expression:
    """A checked filter. ``names`` are the parameters it uses; calling it with a configuration's parameters answers yes or no."""

    def __init__(self, text: str, known: set[str]) -> None:
        if len(text) > MAX_LENGTH:
            raise ValueError(f"longer than {MAX_LENGTH} characters")
        try:
            self._tree = ast.parse(text.strip(), mode="eval").body
        except (SyntaxError, ValueError, MemoryError, RecursionError):
            raise ValueError(f"cannot be read: {text!r}; write for example 'hosts * ranks_per_host <= 16'") from None
        self.text = text
        self.names: set[str] = set()
        self._check(self._tree, known, 0)

    def _check(self, node: ast.AST, known: set[str], depth: int) -> None:
        if depth > MAX_DEPTH:
            raise ValueError("nested too deeply")
        name = _name(node)
        if name is not None:
            if name not in known:
                raise ValueError(f"unknown parameter {name!r}; known: {', '.join(sorted(known))}")
            self.names.add(name)
            return
        for child in _children(node):
            self._check(child, known, depth + 1)

    def __call__(self, values: Mapping[str, Any]) -> bool:
        """Return whether the configuration is kept. Raise ValueError when the expression cannot be computed for it."""
        try:
            answer = _evaluate(self._tree, values)
        except (TypeError, ZeroDivisionError, OverflowError) as error:
            raise ValueError(f"{self.text!r} cannot be computed: {error}") from None
        if not isinstance(answer, bool):
            raise ValueError(f"{self.text!r} answers {answer!r}, not yes or no; compare it, as in 'hosts <= 8'")
        return answer


def _name(node: ast.AST) -> str | None:
    """Return a plain or dotted name (``link.delay``)."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        return f"{node.value.id}.{node.attr}"
    return None


def _children(node: ast.AST) -> list[ast.expr]:
    """Return the operands of an allowed node; refuse every other node."""
    match node:
        case ast.BoolOp():
            return node.values
        case ast.BinOp() if type(node.op) in _BINARY:
            return [node.left, node.right]
        case ast.UnaryOp() if isinstance(node.op, ast.Not | ast.USub):
            return [node.operand]
        case ast.Compare() if all(type(op) in _COMPARE for op in node.ops):
            return [node.left, *node.comparators]
        case ast.Tuple() | ast.List():
            return node.elts
        case ast.Constant() if isinstance(node.value, int | float | str | bool):
            return []
    # Named by its kind, not printed back: ast.unparse recurses as deeply as the text nests.
    raise ValueError(
        f"{type(node).__name__} is not allowed; use names, numbers, + - * / // %, comparisons, in, and, or, not"
    )


def _evaluate(node: ast.AST, values: Mapping[str, Any]) -> Any:
    name = _name(node)
    if name is not None:
        return values[name]
    match node:
        case ast.Constant():
            return node.value
        case ast.BoolOp():
            results = (_evaluate(value, values) for value in node.values)
            return all(results) if isinstance(node.op, ast.And) else any(results)
        case ast.BinOp():
            return _BINARY[type(node.op)](_evaluate(node.left, values), _evaluate(node.right, values))
        case ast.UnaryOp():
            operand = _evaluate(node.operand, values)
            return not operand if isinstance(node.op, ast.Not) else -operand
        case ast.Compare():
            left = _evaluate(node.left, values)
            for op, right_node in zip(node.ops, node.comparators, strict=True):
                right = _evaluate(right_node, values)
                if not _COMPARE[type(op)](left, right):
                    return False
                left = right
            return True
        case ast.Tuple() | ast.List():
            return [_evaluate(item, values) for item in node.elts]
    raise AssertionError(f"unchecked node {ast.dump(node)}")
