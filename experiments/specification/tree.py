"""Tree of an expression, and the vocabulary of its names and quantities."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from experiments.common.quantities import Dimension

MAX_DEPTH: Final = 40


@dataclass(frozen=True, slots=True)
class Name:
    """A parameter or a metric."""

    name: str


@dataclass(frozen=True, slots=True)
class Constant:
    value: float | str | bool


@dataclass(frozen=True, slots=True)
class Quantity:
    """A number with its unit; its base unit follows from the comparison."""

    text: str


@dataclass(frozen=True, slots=True)
class Group:
    items: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Negative:
    operand: Node


@dataclass(frozen=True, slots=True)
class Arithmetic:
    sign: str
    left: Node
    right: Node


@dataclass(frozen=True, slots=True)
class Comparison:
    """Chained comparison of ``left`` and ``tests``: ``2 <= hosts < 8``."""

    left: Node
    tests: tuple[tuple[str, Node], ...]


@dataclass(frozen=True, slots=True)
class Not:
    operand: Node


@dataclass(frozen=True, slots=True)
class Logic:
    """``word`` is ``and`` or ``or``."""

    word: str
    operands: tuple[Node, ...]


Node: TypeAlias = Name | Constant | Quantity | Group | Negative | Arithmetic | Comparison | Not | Logic


def children(node: Node) -> tuple[Node, ...]:
    """Return the operands of a node."""
    match node:
        case Group():
            return node.items
        case Negative() | Not():
            return (node.operand,)
        case Arithmetic():
            return (node.left, node.right)
        case Comparison():
            return (node.left, *(right for _, right in node.tests))
        case Logic():
            return node.operands
    return ()


def walk(tree: Node) -> Iterator[tuple[Node, int]]:
    """Yield every node with its depth, without recursion."""
    waiting = [(tree, 0)]
    while waiting:
        node, depth = waiting.pop()
        yield node, depth
        waiting.extend((child, depth + 1) for child in children(node))


def check_depth(tree: Node) -> None:
    """Raise ValueError for a tree that a recursion could not walk."""
    if any(depth > MAX_DEPTH for _, depth in walk(tree)):
        raise ValueError("nested too deeply")


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """Meaning of the names in an expression."""

    all_names: Collection[str]
    dimensions: Mapping[str, Dimension] = field(default_factory=dict)
    """Dimensions of names with a base unit: they are compared with quantities such as ``2 ms``."""
    words: Collection[str] = ()
    """Those that hold words, and nothing else."""
    numbers: Collection[str] = ()
    """Those that an open vocabulary knows to hold numbers, and nothing else."""
    is_open: bool = False
    """Unknown names may be compared with a value: the repository holds parameters that workloads no longer have."""
    as_stored: Callable[[str, str], str] | None = None
    """(name, word): the stored form of a word that a parameter is compared with. Raises ValueError."""


def negative(operand: Node) -> Node:
    """Return ``-operand``; of a number the number."""
    if isinstance(operand, Constant) and isinstance(operand.value, int | float) and not isinstance(operand.value, bool):
        return Constant(-operand.value)
    return Negative(operand)


def in_base_units(comparison: Comparison, vocabulary: Vocabulary) -> Comparison:
    """Turn the quantities of a comparison into numbers. Raise ValueError."""
    check_depth(comparison)
    operands = list(_operands(comparison))
    dimensions = [vocabulary.dimensions.get(operand.name) for operand in operands if isinstance(operand, Name)]
    kinds = {dimension.name: dimension for dimension in dimensions if dimension is not None}
    if len(kinds) == 1:
        (kind,) = kinds.values()
        return _with_constants(comparison, kind.parse)
    quantity = next((operand.text for operand in operands if isinstance(operand, Quantity)), None)
    if quantity is not None:
        met = f"a {' and a '.join(kinds)}" if kinds else "nothing that has a unit"
        raise ValueError(f"{quantity} is compared with {met}; write a number")
    as_stored, left = vocabulary.as_stored, comparison.left
    if as_stored is None or not isinstance(left, Name) or left.name not in vocabulary.words:
        return comparison
    return _with_constants(comparison, lambda text: as_stored(left.name, text))


def _operands(node: Node) -> Iterator[Node]:
    """Yield the operands of a comparison, without those of comparisons inside."""
    for child in children(node):
        yield child
        if not isinstance(child, Comparison):
            yield from _operands(child)


def _with_constants(comparison: Comparison, read: Callable[[str], float | str]) -> Comparison:
    """Return the comparison with its texts and quantities read."""

    def changed(node: Node) -> Node:
        match node:
            case Quantity():
                return Constant(read(node.text))
            case Constant(str() as text):
                return Constant(read(text))
            case Group():
                return Group(tuple(map(changed, node.items)))
            case Negative():
                return negative(changed(node.operand))
            case Not():
                return Not(changed(node.operand))
            case Arithmetic():
                return Arithmetic(node.sign, changed(node.left), changed(node.right))
            case Logic():
                return Logic(node.word, tuple(map(changed, node.operands)))
        return node

    return Comparison(changed(comparison.left), tuple((sign, changed(right)) for sign, right in comparison.tests))
