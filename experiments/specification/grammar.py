"""Reading the expression language: text to a tree. Pure.

    conditions  either, either, ...                      a comma is an `and`
    either      both or both ...
    both        negation and negation ...
    negation    not negation | comparison
    comparison  sum [< <= > >= == = != in, not in sum ...]
    sum         product + - product ...
    product     signed * / // % signed ...
    signed      - signed | + signed | atom
    atom        4   4 MiB   'text'   true   name   link.delay   (either)   (a, b)   [a, b]

Only this tree is ever evaluated, by our own walks over it; nothing is compiled or executed.

Words without quotes may stand to the right of a parameter that holds words: ``link.topology = two sites``.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final, NoReturn

from experiments.common.quantities import BYTE_RATE, DIMENSIONS
from experiments.errors import alternatives
from experiments.specification.tree import (
    MAX_DEPTH,
    Arithmetic,
    Comparison,
    Constant,
    Group,
    Logic,
    Name,
    Negative,
    Node,
    Not,
    Quantity,
    Vocabulary,
    check_depth,
    in_base_units,
    negative,
    walk,
)

MAX_LENGTH: Final = 1000


class Unreadable(ValueError):
    """The text is not an expression."""


_UNITS = "|".join(
    sorted({re.escape(u) for d in (*DIMENSIONS, BYTE_RATE) for u in d.units if u not in ("", "%")}, key=len)[::-1]
)


def _token(pattern: str) -> re.Pattern[str]:
    return re.compile(rf"\s*(?P<token>{pattern})")


_WORD: Final = {word: _token(rf"{word}(?!\w)") for word in ("and", "or", "not")}
_SIGN: Final = _token(r"<=|>=|==|!=|=|<|>|in(?!\w)|not\s+in(?!\w)")
_SUM: Final = _token(r"[+\-]")
_PRODUCT: Final = _token(r"\*|//|/|%")
_NUMBER: Final = _token(r"(?:[0-9][0-9_]*(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+\-]?[0-9]+)?")
# A percent sign is the remainder of a division if an operand follows.
_UNIT: Final = _token(rf"(?:(?i:{_UNITS}))(?!\w)|%(?=\s*(?:$|[)\],<>=!]|(?:and|or|in|not)\b))")
_QUOTED: Final = _token(r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"")
_TRUTH: Final = _token(r"(?:[Tt]rue|[Ff]alse)(?![\w.])")
_LONG_NAME: Final = _token(r"[A-Za-z][\w.\-]*")
_NAME: Final = _token(r"(?!(?:and|or|not|in)\b)[^\W\d]\w*(?:\.[^\W\d]\w*)*")
_OPEN: Final = _token(r"[(\[]")
_CLOSE: Final = {"(": _token(r"\)"), "[": _token(r"\]")}
_COMMA: Final = _token(",")
_END: Final = re.compile(r"\s*\Z")
_BOUNDARY: Final = re.compile(r"\s*(?:\Z|[,()\[\]<>=!]|(?:and|or|not|in)(?![\w.\-/]))")
_BARE: Final = re.compile(
    r"""\s*(?P<token>[^\s,()\[\]<>=!'"][^,()\[\]<>=!'"]*?)"""
    r"\s*(?=\Z|[,()\[\]<>=!]|(?<![\w.\-/])(?:and|or|not|in)(?![\w.\-/]))"
)


_ALLOWED: Final = "anything but names, values, + - * / // %, comparisons, in, and, or, not is not allowed"


def parse(text: str, vocabulary: Vocabulary) -> Node:
    """Return the tree of ``text``, with quantities in base units. Raise ValueError."""
    if len(text) > MAX_LENGTH:
        raise ValueError(f"longer than {MAX_LENGTH} characters")
    parser = _Parser(text, vocabulary)
    tree = parser.conditions()
    check_depth(tree)
    for node, _ in walk(tree):
        if isinstance(node, Quantity):
            raise ValueError(f"{node.text} is compared with nothing")
    return tree


def _unknown(name: str, vocabulary: Vocabulary) -> str:
    if vocabulary.is_open:
        return f"unknown name {name!r}; put text in quotes, or to the right of its parameter"
    return f"unknown parameter {name!r}{alternatives(name, sorted(vocabulary.all_names))}"


class _Parser:
    """Parser with one method for each line of the grammar."""

    def __init__(self, text: str, vocabulary: Vocabulary) -> None:
        self._text = text
        self._names = vocabulary
        self._at = 0
        self._nested = 0
        self._compared: set[str] = set()
        """Unknown names that are compared with a value, if the vocabulary is open."""

    def conditions(self) -> Node:
        parts = []
        while not _END.match(self._text, self._at):
            if self._take(_COMMA) is None:
                parts.append(self._condition())
        if not parts:
            self._fail()
        # `hosts == 2, 4` is not meant as `hosts == 2 and 4`, which holds wherever the first does.
        if len(parts) > 1 and any(isinstance(part, Arithmetic | Constant | Group | Negative) for part in parts):
            raise ValueError("a comma goes between comparisons; write 'hosts in (2, 4)' for one of several values")
        return parts[0] if len(parts) == 1 else Logic("and", tuple(parts))

    def _condition(self) -> Node:
        condition = self._either()
        if not (_END.match(self._text, self._at) or _COMMA.match(self._text, self._at)):
            self._fail()
        for node, _ in walk(condition):
            if isinstance(node, Name) and node.name not in self._names.all_names and node.name not in self._compared:
                raise Unreadable(_unknown(node.name, self._names))
        return condition

    def _either(self) -> Node:
        return self._logic("or", self._both)

    def _both(self) -> Node:
        return self._logic("and", self._negation)

    def _logic(self, word: str, operand: Callable[[], Node]) -> Node:
        operands = [operand()]
        while self._take(_WORD[word]):
            operands.append(operand())
        return operands[0] if len(operands) == 1 else Logic(word, tuple(operands))

    def _negation(self) -> Node:
        if self._take(_WORD["not"]):
            return Not(self._inside(self._negation))
        return self._comparison()

    def _comparison(self) -> Node:
        left = before = self._sum()
        tests: list[tuple[str, Node]] = []
        while sign := self._take(_SIGN):
            before = self._compared_with(before, sign)
            tests.append((sign, before))
        return self._comparison_of(left, tests) if tests else left

    def _comparison_of(self, left: Node, tests: list[tuple[str, Node]]) -> Node:
        if isinstance(left, Name) and self._names.is_open and left.name not in self._names.all_names:
            self._compared.add(left.name)
        signs = ["==" if sign == "=" else " ".join(sign.split()) for sign, _ in tests]
        return in_base_units(
            Comparison(left, tuple(zip(signs, (right for _, right in tests), strict=True))), self._names
        )

    def _compared_with(self, left: Node, sign: str) -> Node:
        if not isinstance(left, Name) or not (self._names.is_open or left.name in self._names.words):
            return self._sum()
        if sign.endswith("in") and (bracket := self._take(_OPEN)):
            return self._inside(lambda: self._items(bracket, lambda: self._value(left.name)))
        return self._value(left.name)

    def _value(self, name: str) -> Node:
        """Return the value that ``name`` is compared with; a word may have no quotes."""
        start = self._at
        try:
            value = self._sum()
            if _BOUNDARY.match(self._text, self._at) and not self._is_word(value, name):
                return value
        except Unreadable:
            pass
        self._at = start
        word = self._take(_BARE) or self._fail()
        if name in self._names.numbers:
            raise ValueError(f"{name} is compared with a number, not with {word[:40]!r}")
        return Constant(word)

    def _is_word(self, value: Node, name: str) -> bool:
        """Return whether a readable expression is a word, to the right of ``name``."""
        names, holds_words, takes_words = self._names, name in self._names.words, self._holds_any_word(name)
        match value:
            case Name():
                is_known = name in names.all_names and value.name in names.all_names
                return not is_known or holds_words != (value.name in names.words)
            case Constant(bool()):
                return holds_words or (names.is_open and not takes_words)  # an open vocabulary takes it for no number
            case Constant():
                return holds_words and not isinstance(value.value, str)
            case Quantity():
                return takes_words
            case Group():
                return False
        has_unknown = any(isinstance(node, Name) and node.name not in names.all_names for node, _ in walk(value))
        return holds_words or (takes_words and has_unknown)

    def _holds_any_word(self, name: str) -> bool:
        names = self._names
        return name in names.words or (names.is_open and name not in names.numbers and name not in names.dimensions)

    def _sum(self) -> Node:
        return self._arithmetic(_SUM, self._product)

    def _product(self) -> Node:
        return self._arithmetic(_PRODUCT, self._signed)

    def _arithmetic(self, signs: re.Pattern[str], operand: Callable[[], Node]) -> Node:
        left = operand()
        while sign := self._take(signs):
            left = Arithmetic(sign, left, operand())
        return left

    def _signed(self) -> Node:
        sign = self._take(_SUM)
        if sign is None:
            return self._atom()
        operand = self._inside(self._signed)
        return negative(operand) if sign == "-" else operand

    def _atom(self) -> Node:
        if bracket := self._take(_OPEN):
            return self._inside(lambda: self._items(bracket, self._either))
        if quoted := self._take(_QUOTED):
            return Constant(re.sub(r"\\(.)", r"\1", quoted[1:-1], flags=re.DOTALL))
        if number := self._take(_NUMBER):
            return self._number(number)
        if truth := self._take(_TRUTH):
            return Constant(truth.lower() == "true")
        return Name(self._long_name() or self._take(_NAME) or self._fail())

    def _items(self, bracket: str, item: Callable[[], Node]) -> Node:
        """Return the content of brackets: one item in round ones is itself, else a group."""
        items: list[Node] = []
        commas = 0
        while not self._take(_CLOSE[bracket]):
            if len(items) > commas:
                commas += 1
                self._take(_COMMA) or self._fail()
                continue
            items.append(item())
        return items[0] if bracket == "(" and len(items) == 1 and not commas else Group(tuple(items))

    def _number(self, number: str) -> Node:
        unit = self._take(_UNIT)
        if unit is not None:
            return Quantity(f"{number.replace('_', '')} {unit}")
        if re.compile(r"[\w.]").match(self._text, self._at):
            self._fail()
        value = float(number)
        if value == float("inf"):
            raise ValueError(f"{number[:40]} is too large a number")
        return Constant(int(value) if value.is_integer() and abs(value) < 2**53 else value)

    def _long_name(self) -> str | None:
        """Return the longest known name here; metrics may have hyphens."""
        match = _LONG_NAME.match(self._text, self._at)
        name = match["token"] if match else ""
        while "-" in name and name not in self._names.all_names:
            name = name.rpartition("-")[0]
        if match is None or "-" not in name:
            return None
        self._at = match.start("token") + len(name)
        return name

    def _inside(self, part: Callable[[], Node]) -> Node:
        self._nested += 1
        if self._nested > MAX_DEPTH:
            raise ValueError("cannot be read: nested too deeply")
        try:
            return part()
        finally:
            self._nested -= 1

    def _take(self, token: re.Pattern[str]) -> str | None:
        match = token.match(self._text, self._at)
        if match is None:
            return None
        self._at = match.end()
        return match["token"]

    def _fail(self) -> NoReturn:
        rest = " ".join(self._text[self._at : self._at + 40].split())
        position = f"from {rest!r} on" if rest else "to its end"
        raise Unreadable(f"cannot be read {position}; {_ALLOWED}")
