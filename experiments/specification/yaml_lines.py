"""YAML 1.2 with line numbers of its fields, and a writer whose texts stay texts.

Numbers, booleans and null are those of the core schema: ``010`` has no octal digits, ``1:2`` is no time, ``yes`` is no boolean. A word
that YAML 1.1 reads as another value is refused with both spellings, since its author may mean either.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import Any, Final

import yaml

from experiments.common import budget
from experiments.common.storable import LARGEST_INTEGER
from experiments.errors import FieldError, InvalidSpec

MAX_BYTES: Final = 200_000
"""The parser is written in Python and reads about 100 kB/s: larger texts would keep a web worker busy for long."""

_TAG: Final = "tag:yaml.org,2002:"
_CORE: Final = [
    (f"{_TAG}{kind}", re.compile(rf"(?:{words})\Z"))
    for kind, words in {
        "null": "~|null|Null|NULL|",
        "bool": "true|True|TRUE|false|False|FALSE",
        "int": "[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+",
        "float": r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)",
    }.items()
]
"""Tags of plain words in the core schema (YAML 1.2.2, section 10.3.2)."""
_DOUBTFUL: Final = re.compile(
    r"yes|no|on|off|[-+]?0[0-9_]+|[-+]?0[box][0-9a-f_]+|[-+]?[.0-9][-+.0-9e]*_[-+.0-9e_]*"
    r"|[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+(?:\.[0-9_]*)?",
    re.IGNORECASE,
)
"""Words among which are all that YAML 1.1 reads as another number or boolean."""
_LONGEST_DOUBTFUL: Final = 100
"""Longer ones take seconds to read, or are beyond the largest float."""


def _whole(word: str) -> int:
    return int(word, 0) if word[:2] in ("0o", "0x") else int(word)


def _real(word: str) -> float:
    if word.lower().endswith(("inf", "nan")):
        return float(word.replace(".", ""))
    number = float(word)
    if math.isinf(number) or (number == 0 and re.match(r"[-+.0]*[1-9]", word)):
        raise ValueError(f"{word[:40]} is too {'large' if number else 'small'} a number")
    return number


_NUMBERS: Final = {f"{_TAG}int": _whole, f"{_TAG}float": _real}


class _Loader(yaml.SafeLoader):
    """Safe loader of plain data, stricter than YAML.

    Refused: duplicate keys (the last would silently win), aliases (a few lines can expand to gigabytes), tags, and anything but a word as
    a key, which stays the text that was written. Dates stay text.
    """

    yaml_implicit_resolvers = {None: _CORE}  # noqa: RUF012 (the base class's own shape)

    def compose_node(self, parent: yaml.Node | None, index: int | None) -> yaml.Node | None:
        budget.check()
        event: Any = self.peek_event()  # type: ignore[no-untyped-call]
        if isinstance(event, yaml.AliasEvent):
            raise _refused("aliases (*name) are not allowed", event)
        if getattr(event, "tag", None) is not None:
            raise _refused(f"tags ({event.tag}) are not allowed", event)
        is_key = isinstance(parent, yaml.MappingNode) and index is None
        if (
            isinstance(event, yaml.ScalarEvent)
            and event.implicit[0]
            and not is_key
            and (why := _why_doubtful(event.value))
        ):
            raise _refused(why, event)
        return super().compose_node(parent, index)  # type: ignore[arg-type]

    def construct_scalar(self, node: Any) -> Any:
        value: Any = super().construct_scalar(node)
        if isinstance(value, str) and not value.isascii():
            # JSON writes a rare character as two escapes, "\\ud83d\\ude00"; YAML would keep them as two halves.
            return value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
        return value

    def construct_number(self, node: yaml.ScalarNode) -> int | float:
        try:
            return _NUMBERS[node.tag](node.value)
        except ValueError as error:
            raise _refused(str(error), node) from None

    def construct_plain_mapping(self, node: yaml.MappingNode) -> dict[Any, Any]:
        mapping: dict[Any, Any] = {}
        for key_node, value_node in node.value:
            if not isinstance(key_node, yaml.ScalarNode):
                raise _refused("a field name must be plain text", key_node)
            key = self.construct_scalar(key_node)
            if key in mapping:
                raise _refused(f"{key!r} is given twice", key_node)
            mapping[key] = self.construct_object(value_node, deep=True)
        return mapping


_Loader.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, _Loader.construct_plain_mapping)
for _tag in _NUMBERS:
    _Loader.add_constructor(_tag, _Loader.construct_number)


class _RefusedError(yaml.MarkedYAMLError):
    """YAML that is valid, and refused here."""


def _refused(problem: str, position: Any) -> _RefusedError:
    return _RefusedError(problem=problem, problem_mark=position.start_mark)


def _why_doubtful(word: str) -> str:
    """Return why YAML 1.1 reads another value of a plain word, or ''."""
    if not _DOUBTFUL.fullmatch(word):
        return ""
    if len(word) > _LONGEST_DOUBTFUL:
        return f"{word[:40]}… is too long a number: write it with quotes"
    try:
        earlier = yaml.safe_load(word)
    except ValueError:  # 0x_, a number without digits
        return f"{word[:40]} is no number that YAML reads: write '{word[:40]}' with quotes"
    tag = next((tag for tag, pattern in _CORE if pattern.match(word)), "")
    now = _NUMBERS[tag](word) if tag in _NUMBERS else word
    if type(earlier) is type(now) and earlier == now:
        return ""
    plain = now if isinstance(earlier, str) else str(earlier).lower()
    return f"versions of YAML differ on {word}: write {plain} or '{word}'"


class Dumper(yaml.SafeDumper):
    """Writer of plain data; texts that YAML could misread have quotes."""

    yaml_implicit_resolvers = {**yaml.SafeDumper.yaml_implicit_resolvers, None: _CORE}  # noqa: RUF012

    def represent_text(self, text: str) -> yaml.ScalarNode:
        # The breaks of Unicode would come back as spaces.
        style = '"' if re.search("[\x85\u2028\u2029]", text) else "|" if "\n" in text else None
        return self.represent_scalar(f"{_TAG}str", text, style)


Dumper.add_representer(str, Dumper.represent_text)


def dump(data: Any, dumper: type[Dumper] = Dumper, *, width: int = 80) -> str:
    """Return plain data as YAML that `YamlDocument` reads to equal data."""
    return str(yaml.dump(data, Dumper=dumper, sort_keys=False, allow_unicode=True, width=width))


class YamlDocument:
    """A parsed document. Raise InvalidSpec, with the line, for other text."""

    data: Any

    def __init__(self, text: str, *, limit: int = MAX_BYTES) -> None:
        self._fields: dict[yaml.Node, dict[str, tuple[yaml.Node, yaml.Node]]] = {}
        """Fields of the mappings that were searched, by name: a search in each list takes the square of its length."""
        if len(text) > limit:
            raise InvalidSpec([FieldError("", f"larger than {limit} characters")])
        try:
            self._root, self.data = _read(text)
        except yaml.MarkedYAMLError as error:
            is_open = (error.context or "").startswith("while parsing a flow")  # its bracket is not closed
            mark = (error.context_mark if is_open else None) or error.problem_mark or error.context_mark
            line = mark.line + 1 if mark else None
            problem = error.problem or error.context or ""
            why = problem if isinstance(error, _RefusedError) else f"not valid YAML: {_in_words(problem)}"
            raise InvalidSpec([FieldError("", why, line)]) from None
        except RecursionError:
            raise InvalidSpec([FieldError("", "not valid YAML: nested too deeply")]) from None
        except (yaml.YAMLError, ValueError) as error:
            raise InvalidSpec([FieldError("", f"not valid YAML: {error}")]) from None

    def line(self, path: str) -> int | None:
        """Return the 1-based line of the field, or of its nearest written parent."""
        return None if self._root is None else self._nearest(self._root, path)[0]

    def altered(self, *paths: str) -> Iterator[FieldError]:
        """Yield the numbers at fields that a text would lose: ``1.10`` is 1.1."""
        for path in paths:
            _, node, rest = (0, self._root, "") if self._root is None else self._nearest(self._root, path)
            items = [] if rest else node.value if isinstance(node, yaml.SequenceNode) else [node]
            for item in (item for item in items if isinstance(item, yaml.ScalarNode) and item.tag in _NUMBERS):
                word, number = item.value, _NUMBERS[item.tag](item.value)
                # Numbers beyond these are refused, and cannot be written or compared with others.
                is_usable = math.isfinite(number) if isinstance(number, float) else abs(number) <= LARGEST_INTEGER
                if is_usable and str(number) != word:
                    why = f"YAML takes {word} for the number {number}: write {number} or '{word}'"
                    yield FieldError(path, why, item.start_mark.line + 1)

    def _nearest(self, root: yaml.Node, path: str) -> tuple[int, yaml.Node, str]:
        """Return line, node and unwritten rest of the path of a field or parent."""
        line, node, rest = 1, root, path
        while rest and (step := self._step(node, rest)) is not None:
            line, node, rest = step
        return line, node, rest

    def _step(self, node: yaml.Node, rest: str) -> tuple[int, yaml.Node, str] | None:
        """Follow the longest key of ``rest``: keys such as ``link.delay`` have dots."""
        if isinstance(node, yaml.SequenceNode):
            index, _, tail = rest.partition(".")
            if index.isdecimal() and int(index) < len(node.value):
                child = node.value[int(index)]
                return child.start_mark.line + 1, child, tail
        elif isinstance(node, yaml.MappingNode):
            if node not in self._fields:
                self._fields[node] = {key.value: (key, value) for key, value in node.value}
            name, tail = rest, ""
            while name:
                budget.check()
                if name in self._fields[node]:
                    key, value = self._fields[node][name]
                    return key.start_mark.line + 1, value, tail
                name = name.rpartition(".")[0]
                tail = rest[len(name) + 1 :]
        return None


_HINTS: Final = {
    r"mapping values are not allowed": "check indentation and colons, here and in the line before; quote a text with a colon",
    r"expected <block end>": "check the indentation: this line begins further left or right than its neighbours",
    r"could not find expected ':'": "this line, or the one before it, lacks a colon after the name of its field",
    r"cannot start any token": "indent with spaces, and quote a text that begins with a special character",
    r"found unexpected end of stream": "a quote or a bracket is not closed",
    r"expected ',' or": "a list or a mapping in brackets is not closed, or lacks a comma",
    r"expected the node content": "a bracket or a value is missing",
    r"found another document": "more than one document: leave out the line with ---",
}
"""Words of the parser, as patterns, and what to correct."""


def _in_words(problem: str) -> str:
    """Return what to correct; the parser's own words if it is another problem."""
    return next((hint for pattern, hint in _HINTS.items() if re.search(pattern, problem)), problem)


def _read(text: str) -> tuple[yaml.Node | None, Any]:
    loader = _Loader(text)
    try:
        root = loader.get_single_node()
        return root, None if root is None else loader.construct_document(root)
    finally:
        loader.dispose()
