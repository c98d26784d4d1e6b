"""The filter language of a sweep: ``ranks <= 16 and link.delay < 8 ms and molecules != 512``.

Python's parser reads it; only the nodes listed here are evaluated, by our own walk over the tree. Nothing is ever compiled or executed.
Quantities are put into quotes before, and become numbers in the base unit of the parameter that they are compared with.
"""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from experiments.quantities import DIMENSIONS, Dimension

MAX_LENGTH: Final = 500
MAX_DEPTH: Final = 40
_WORDS = "|".join(
    sorted({re.escape(u) for d in DIMENSIONS for u in d.units if u not in ("", "%")}, key=len, reverse=True)
)
_QUANTITY = re.compile(
    r"""(?P<quoted>'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")"""
    r"|(?<![\w.])(?P<number>(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)\s*"
    # A percent sign is the remainder of a division where an operand follows.
    rf"(?P<unit>(?:{_WORDS})(?!\w)|%(?=\s*(?:$|[)\],<>=!]|(?:and|or|in|not)\b)))"
)


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
    """A checked filter. ``names`` are the parameters it uses; calling it with a configuration's parameters answers yes or no.

    ``dimensions`` are those of the parameters that are stored in a base unit: they are compared with quantities such as ``2 ms``.
    """

    def __init__(self, text: str, known: set[str], dimensions: Mapping[str, Dimension] | None = None) -> None:
        if len(text) > MAX_LENGTH:
            raise ValueError(f"longer than {MAX_LENGTH} characters")
        unquoted: set[str] = set()
        try:
            self._tree = ast.parse(_quote_quantities(text.strip(), unquoted), mode="eval").body
        except (SyntaxError, ValueError, MemoryError, RecursionError):
            raise ValueError(f"cannot be read: {text!r}; write for example 'hosts * ranks_per_host <= 16'") from None
        self.text = text
        self.names: set[str] = set()
        self._check(self._tree, known, 0)
        for comparison in _comparisons(self._tree):
            _resolve_quantities(comparison, dimensions or {}, unquoted)

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


def _quote_quantities(text: str, quantities: set[str]) -> str:
    """Return ``link.delay < 2 ms`` as ``link.delay < '2 ms'``, and add what was quoted to ``found``."""

    def quote(match: re.Match[str]) -> str:
        if match["quoted"] is not None:
            return match.group()
        quantity = f"{match['number']} {match['unit']}"
        quantities.add(quantity)
        return f"'{quantity}'"

    return _QUANTITY.sub(quote, text)


def _comparisons(node: ast.AST) -> Iterator[ast.Compare]:
    """Yield every comparison of a checked tree."""
    if isinstance(node, ast.Compare):
        yield node
    for child in _children(node) if _name(node) is None else ():
        yield from _comparisons(child)


def _operands(node: ast.AST) -> Iterator[ast.expr]:
    """Yield what stands in a comparison, without what stands in comparisons inside of it."""
    for child in _children(node) if _name(node) is None else ():
        yield child
        if not isinstance(child, ast.Compare):
            yield from _operands(child)


def _resolve_quantities(comparison: ast.Compare, dimensions: Mapping[str, Dimension], unquoted: set[str]) -> None:
    """Turn the quantities of a comparison into numbers, by the dimension of the parameters in it. Raise ValueError."""
    operands = list(_operands(comparison))
    texts = [each for each in operands if isinstance(each, ast.Constant) and isinstance(each.value, str)]
    kinds = {
        dimension.name: dimension for each in operands if (dimension := dimensions.get(_name(each) or "")) is not None
    }
    if len(kinds) == 1:
        (kind,) = kinds.values()
        for each in texts:
            each.value = kind.parse(str(each.value))
        return
    wrong = next((each.value for each in texts if each.value in unquoted), None)
    if wrong is not None:
        met = f"a {' and a '.join(kinds)}" if kinds else "nothing that has a unit"
        raise ValueError(f"{wrong} is compared with {met}; write a number")


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
