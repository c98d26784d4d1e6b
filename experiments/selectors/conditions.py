"""Explorer conditions: an expression as SQL over all configurations.

`experiments.specification.expressions` evaluates the same for one configuration in Python, with equal results; a value that it cannot
compute does not match here. Negations move into the comparisons (``not a < b`` is ``a >= b``), so that NULL never matches.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Final

from django.db.models import BooleanField, Exists, Q, TextField, Value
from django.db.models.functions import Collate
from django.db.models.lookups import Exact, GreaterThan, GreaterThanOrEqual, In, LessThan, LessThanOrEqual

from experiments.errors import CannotExplore
from experiments.metrics import is_metric
from experiments.selectors import configuration_values as values
from experiments.selectors.explorer_names import COLUMNS, vocabulary_of
from experiments.specification.expressions import Expression, calculated
from experiments.specification.grammar import MAX_LENGTH
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
    walk,
)

MOST_OPERATIONS: Final = 50
"""Limit of calculations, which PostgreSQL performs for every configuration."""
_NEGATED: Final = {"<": ">=", ">": "<=", "==": "!=", "in": "not in"}
_OPPOSITE: Final = {**_NEGATED, **{negated: sign for sign, negated in _NEGATED.items()}}
_MIRRORED: Final = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
_ORDER: Final = {"<": LessThan, "<=": LessThanOrEqual, ">": GreaterThan, ">=": GreaterThanOrEqual}
_LOOKUP: Final = {"<": "lt", "<=": "lte", ">": "gt", ">=": "gte"}


def condition(conditions: Expression, scope: str) -> Q:
    """Return the condition for metrics of a scope. Raise CannotExplore."""
    return _Question(scope).holds(conditions.tree)


def metric_condition(conditions: Expression, scope: str) -> Q:
    """Return the condition on the trial's own metrics of a scope. Raise CannotExplore."""
    return _OfTrials(scope).holds(conditions.tree)


def read_conditions(text: str, to_sql: Callable[[Expression, str], Q] = condition) -> Expression:
    """Return the parsed conditions, checked by ``to_sql``. Raise CannotExplore."""
    try:
        conditions = Expression(text, vocabulary_of(text[:MAX_LENGTH]))  # of longer ones it takes minutes
    except ValueError as error:
        raise CannotExplore(f"{error}.", field="where") from None
    to_sql(conditions, "all")
    return conditions


class _Question:
    """Converts the nodes of one expression to SQL conditions."""

    def __init__(self, scope: str) -> None:
        self._scope = scope
        self._operations = 0

    def holds(self, node: Node, expected: bool = True) -> Q:
        """Return the condition that ``node`` is true, or false if not ``wanted``."""
        match node:
            case Logic():
                parts = [self.holds(operand, expected) for operand in node.operands]
                return Q(*parts, _connector=Q.AND if (node.word == "and") is expected else Q.OR)
            case Not():
                return self.holds(node.operand, not expected)
            case Comparison():
                lefts = (node.left, *(right for _, right in node.tests))
                steps = [
                    self._test(left, sign if expected else _OPPOSITE[sign], right)
                    for left, (sign, right) in zip(lefts, node.tests, strict=False)
                ]
                return Q(*steps, _connector=Q.AND if expected else Q.OR)
            case Constant(bool() as truth):
                return Q(Value(truth is expected, output_field=BooleanField()))
        raise _refused(f"{_source_of(node)} is not a comparison; write for example hosts >= 4, elapsed_s < 10")

    def _test(self, left: Node, sign: str, right: Node) -> Q:
        for operand in (left, right):
            if isinstance(operand, Comparison | Logic | Not):
                raise _refused("a comparison is compared with something; join comparisons by and, or, not")
        if sign in ("in", "not in"):
            items = right.items if isinstance(right, Group) else ()
            if not items or not all(isinstance(item, Constant) for item in items):
                raise _refused(f"{sign} needs values in brackets to its right, as in hosts in (2, 4)")
            return self._is_among(left, [item.value for item in items if isinstance(item, Constant)], sign == "in")
        if isinstance(left, Constant):
            left, sign, right = right, _MIRRORED.get(sign, sign), left
        if isinstance(left, Constant):
            raise _refused(f"{_source_of(left)} is compared with {_source_of(right)}; one side needs a name")
        if sign in _ORDER:
            return self._is_ordered(left, sign, right)
        if isinstance(right, Constant):
            return self._is_among(left, [right.value], sign == "==")
        return self._is_equal(left, right, sign == "==")

    def _is_among(self, node: Node, constants: Sequence[float | str | bool], expected: bool) -> Q:
        """Return the condition that a value is one of several (one for ``==``)."""
        if not _is_number(node):
            parameter = values.parameter(_name(node))
            one = In(parameter, [values.stored(other) for constant in constants for other in _alike(constant)])
            return Q(one) if expected else Q(~one)
        numbers = [_constant(constant, node) for constant in constants]
        if isinstance(node, Name) and is_metric(node.name):
            among = Q(median__in=numbers)
            return Q(Exists(values.medians(node.name, self._scope).filter(among if expected else ~among)))
        one = In(self._number(node), numbers)
        return Q(one) if expected else Q(~one)

    def _is_ordered(self, left: Node, sign: str, right: Node) -> Q:
        if isinstance(left, Name) and is_metric(left.name) and isinstance(right, Constant):
            median = {f"median__{_LOOKUP[sign]}": _constant(right.value, left)}
            return Q(Exists(values.medians(left.name, self._scope).filter(**median)))
        if isinstance(left, Name) and left.name in COLUMNS and isinstance(right, Constant):
            bound = _constant(right.value, left)
            if math.isfinite(bound):
                # Statistics of the integer column let the planner estimate the matches.
                whole = math.ceil(bound) if sign in (">=", "<") else math.floor(bound)
                return Q(**{f"{left.name}__{_LOOKUP[sign]}": whole})
        orders = []
        if not (isinstance(right, Constant) and isinstance(right.value, str)):
            orders.append(Q(_ORDER[sign](self._number(left), self._number(right))))
        elif _is_number(left):
            raise _no_number(left, right.value)
        if not (_is_number(left) or _is_number(right)):
            orders.append(Q(_ORDER[sign](values.word(_name(left)), _text(right))))
        return Q(*orders, _connector=Q.OR)

    def _is_equal(self, left: Node, right: Node, expected: bool) -> Q:
        """Return the condition that two values of any type are equal."""
        same = Exact(self._anything(left), self._anything(right))
        return Q(same) if expected else Q(~same)

    def _number(self, node: Node) -> Any:
        if isinstance(node, Negative | Arithmetic) and not any(isinstance(inner, Name) for inner, _ in walk(node)):
            # PostgreSQL would evaluate the constant before the guards.
            return values.constant(calculated(node))
        match node:
            case Name():
                return values.number(node.name, self._scope, is_metric=is_metric(node.name))
            case Constant(bool() | int() | float() as value):
                return values.constant(value)
            case Negative():
                return values.Negated(self._number(node.operand))
            case Arithmetic():
                self._operations += 1
                if self._operations > MOST_OPERATIONS:
                    raise _refused(f"more than {MOST_OPERATIONS} calculations: split the condition")
                return values.Computed(node.sign, self._number(node.left), self._number(node.right))
        raise _refused(f"{_source_of(node)} is not a number to calculate with")

    def _anything(self, node: Node) -> Any:
        return values.as_json(self._number(node)) if _is_number(node) else values.anything(_name(node))


class _OfTrials(_Question):
    """Converts comparisons of a metric with a number to SQL conditions on trials."""

    def _test(self, left: Node, sign: str, right: Node) -> Q:
        if isinstance(left, Constant):
            left, sign, right = right, _MIRRORED.get(sign, sign), left
        if not (isinstance(left, Name) and is_metric(left.name)):
            raise _refused(f"{_source_of(left)} is not a metric; write for example elapsed_s < 10")
        if not isinstance(right, Constant) or sign in ("in", "not in"):
            raise _refused(f"{left.name} is compared with one number, as in {left.name} < 10")
        bound = _constant(right.value, left)
        value = Q(value=bound) if sign in ("==", "!=") else Q(**{f"value__{_LOOKUP[sign]}": bound})
        of_trial = values.measurements(left.name, self._scope)
        return Q(Exists(of_trial.filter(~value if sign == "!=" else value)))


def _is_number(node: Node) -> bool:
    """Return whether a value is always a number; a parameter may be a word."""
    match node:
        case Constant():
            return not isinstance(node.value, str)
        case Name():
            return node.name in COLUMNS or is_metric(node.name)
    return True


def _name(node: Node) -> str:
    if not isinstance(node, Name):
        raise _refused(f"{_source_of(node)} is in the place of a name")
    return node.name


def _text(node: Node) -> Any:
    if isinstance(node, Constant):
        return Collate(Value(node.value, output_field=TextField()), "C")
    return values.word(_name(node))


def _constant(value: float | str | bool, node: Node) -> float:
    if isinstance(value, str):
        raise _no_number(node, value)
    return float(value)


def _alike(value: float | str | bool) -> list[float | str | bool]:
    """Return the JSON values equal in Python: true and false are 1 and 0."""
    if isinstance(value, str) or value not in (0, 1):
        return [value]
    return [int(value), bool(value)]


def _no_number(node: Node, value: str) -> CannotExplore:
    return _refused(f"{_source_of(node)} is compared with a number, not with {value[:40]!r}")


def _refused(sentence: str) -> CannotExplore:
    return CannotExplore(f"{sentence}.", field="where")


def _source_of(node: Node) -> str:
    match node:
        case Name():
            return node.name
        case Constant():
            return repr(node.value)[:40]
        case Group():
            return "a list"
        case Arithmetic() | Negative():
            return "a calculation"
    return "a condition"
