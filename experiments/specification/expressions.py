"""Evaluation of expressions: ``ranks <= 16 and link.delay < 8 ms``.

One language for the ``where`` of a specification and the conditions of the explorer (docs/reference/conditions.md).
`grammar` parses it into a `tree`; this module evaluates the tree for one configuration,
`experiments.selectors.conditions` translates it to SQL.

Values that cannot be computed (a division by zero, a word that is less than a number, a parameter that the workload does not have) are
neither true nor false: ``and`` and ``or`` ignore them if the other operands decide.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from experiments.specification.grammar import parse
from experiments.specification.tree import (
    Arithmetic,
    Comparison,
    Constant,
    Group,
    Logic,
    Name,
    Negative,
    Node,
    Not,
    Vocabulary,
    walk,
)

SMALLEST: Final = 1e-150
LARGEST: Final = 1e150
"""Bounds of the numbers (but zero) that can be computed with, so that one operation neither overflows nor loses everything."""

_ARITHMETIC: Final[dict[str, Callable[[float, float], float]]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "//": lambda left, right: math.floor(left / right),
    "%": lambda left, right: left - right * math.floor(left / right),
}
_COMPARE: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "in": lambda item, group: item in group,
    "not in": lambda item, group: item not in group,
}


class Expression:
    """A checked expression, called with the parameters of a configuration.

    ``names`` are its parameters; ``tree`` has quantities in base units; ``size`` counts its nodes, the work of one answer.
    """

    def __init__(self, text: str, vocabulary: Vocabulary) -> None:
        """Read ``text``. Raise ValueError with a reader's sentence."""
        self.text = text
        self.tree = parse(text, vocabulary)
        nodes = [node for node, _ in walk(self.tree)]
        self.size = len(nodes)
        self.names = {node.name for node in nodes if isinstance(node, Name)}

    def __call__(self, values: Mapping[str, Any]) -> bool:
        """Return whether the configuration is kept. Raise ValueError if that is unknown."""
        try:
            answer = _evaluate(self.tree, values)
        except _FAILURES as error:
            raise ValueError(f"{self.text!r} cannot be computed: {error}") from None
        if not isinstance(answer, bool):
            raise ValueError(f"{self.text!r} gives {answer!r}, not true or false; compare it, as in 'hosts <= 8'")
        return answer


def calculated(node: Node) -> float | None:
    """Return the number of a calculation without names; None if it has none."""
    value = _attempt(node, {})
    return None if isinstance(value, Exception) else float(value)


_FAILURES: Final = (LookupError, TypeError, ZeroDivisionError, OverflowError)


def _evaluate(node: Node, values: Mapping[str, Any]) -> Any:
    """Return the value of a node. Raise one of the failures."""
    match node:
        case Name():
            if node.name not in values:
                raise LookupError(f"there is no {node.name}")
            return values[node.name]
        case Constant():
            return node.value
        case Group():
            return [_evaluate(item, values) for item in node.items]
        case Negative():
            return -_number(_evaluate(node.operand, values))
        case Arithmetic():
            left, right = (_bounded(_number(_evaluate(operand, values))) for operand in (node.left, node.right))
            return float(_ARITHMETIC[node.sign](left, right))
        case Comparison():
            return _compare(node, values)
        case Not():
            return not _evaluate(node.operand, values)
        case Logic():
            return _decide(node.word, (_attempt(operand, values) for operand in node.operands))
    raise AssertionError(f"unchecked node {node}")


def _number(value: Any) -> float:
    """Return a number; words are refused: ``'a' * 10**9`` would fill the memory."""
    if not isinstance(value, int | float):
        raise TypeError(f"{value!r} is not a number")
    return float(value)


def _bounded(number: float) -> float:
    if number and not SMALLEST <= abs(number) <= LARGEST:
        raise OverflowError(f"{number!r} is too large or too small to compute with")
    return number


def _compare(comparison: Comparison, values: Mapping[str, Any]) -> bool:
    # Every operand once: each is the right of one comparison and the left of the next.
    operands = [_attempt(comparison.left, values), *(_attempt(right, values) for _, right in comparison.tests)]
    signs = (sign for sign, _ in comparison.tests)
    return _decide("and", (_test(*step) for step in zip(signs, operands, operands[1:], strict=False)))


def _attempt(node: Node, values: Mapping[str, Any]) -> Any:
    """Return the value of a node, or the failure to compute it."""
    try:
        return _evaluate(node, values)
    except _FAILURES as error:
        return error


def _test(sign: str, left: Any, right: Any) -> bool | Exception:
    """Return the answer of one comparison, or the failure to compute it."""
    for operand in (left, right):
        if isinstance(operand, Exception):
            return operand
    try:
        return _COMPARE[sign](left, right)
    except _FAILURES as error:
        return error


def _decide(word: str, answers: Iterable[Any]) -> bool:
    """Return the conjunction or disjunction of answers. Raise a deciding failure."""
    failure = None
    for answer in answers:
        if isinstance(answer, Exception):
            failure = failure or answer
        elif bool(answer) is (word == "or"):
            return word == "or"
    if failure is not None:
        raise failure
    return word == "and"
