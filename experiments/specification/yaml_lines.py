"""YAML with line numbers of its fields."""

from __future__ import annotations

from typing import Any, Final

import yaml

from experiments.common.storable import LARGEST_INTEGER
from experiments.errors import FieldError, InvalidSpec
from experiments.specification import budget

MAX_BYTES: Final = 200_000
"""The parser is written in Python and reads about 100 kB/s: larger texts would keep a web worker busy for long."""
_LONGEST_NUMBER: Final = 100
"""Characters; YAML also has numbers to the base of 60, whose value takes the square of their length to compute."""


class _Loader(yaml.SafeLoader):
    """Safe loader of plain data, stricter than YAML.

    Refused: duplicate keys (the last would silently win), aliases (a few lines can expand to gigabytes), tags, and
    anything but plain text, numbers and true/false as a key. Dates stay text.
    """

    yaml_implicit_resolvers = {  # noqa: RUF012 (the base class's own shape)
        first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        budget.check()
        event: Any = self.peek_event()  # type: ignore[no-untyped-call]
        if isinstance(event, yaml.AliasEvent):
            mark: Any = event.start_mark
            raise yaml.MarkedYAMLError(problem="aliases (*name) are not allowed", problem_mark=mark)
        if getattr(event, "tag", None) is not None:
            raise yaml.MarkedYAMLError(problem=f"tags ({event.tag}) are not allowed", problem_mark=event.start_mark)
        return super().compose_node(parent, index)

    def construct_scalar(self, node: Any) -> Any:
        value: Any = super().construct_scalar(node)
        if isinstance(value, str) and not value.isascii():
            # JSON writes a rare character as two escapes, "\\ud83d\\ude00"; YAML would keep them as two halves.
            return value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
        return value

    def construct_number(self, node: yaml.ScalarNode) -> int | float:
        if len(node.value) > _LONGEST_NUMBER:
            return 2 * LARGEST_INTEGER  # refused at its field
        kind = "float" if node.tag.endswith("float") else "int"
        number: int | float = getattr(self, f"construct_yaml_{kind}")(node)
        return number

    def construct_plain_mapping(self, node: yaml.MappingNode) -> dict[Any, Any]:
        seen: set[Any] = set()
        for key_node, _ in node.value:
            key = self.construct_object(key_node, deep=True)
            if not isinstance(key, str | int | float | bool):
                raise yaml.MarkedYAMLError(problem="a field name must be plain text", problem_mark=key_node.start_mark)
            if key in seen:
                raise yaml.MarkedYAMLError(problem=f"{key!r} is given twice", problem_mark=key_node.start_mark)
            seen.add(key)
        return self.construct_mapping(node, deep=True)


_Loader.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, _Loader.construct_plain_mapping)
for _kind in ("int", "float"):
    _Loader.add_constructor(f"tag:yaml.org,2002:{_kind}", _Loader.construct_number)


class YamlDocument:
    """A parsed document. Raise InvalidSpec, with the line, for other text."""

    data: Any

    def __init__(self, text: str, most: int = MAX_BYTES) -> None:
        if len(text) > most:
            raise InvalidSpec([FieldError("", f"larger than {most} characters")])
        try:
            self._root, self.data = _read(text)
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            line = mark.line + 1 if mark else None
            raise InvalidSpec([FieldError("", f"not valid YAML: {error.problem or error.context}", line)]) from None
        except RecursionError:
            raise InvalidSpec([FieldError("", "not valid YAML: nested too deeply")]) from None
        except (yaml.YAMLError, ValueError) as error:
            raise InvalidSpec([FieldError("", f"not valid YAML: {error}")]) from None

    def line(self, path: str) -> int | None:
        """Return the 1-based line of the field, or of its nearest written parent."""
        return None if self._root is None else self._nearest(self._root, path)[0]

    def words(self, path: str) -> list[str]:
        """Return a field's value, or each of its list, as written, without quotes."""
        if self._root is None:
            return []
        _, node = self._nearest(self._root, path)
        return [str(item.value) for item in (node.value if isinstance(node, yaml.SequenceNode) else [node])]

    def _nearest(self, root: yaml.Node, path: str) -> tuple[int, yaml.Node]:
        """Return line and node of a field, or of its nearest written parent."""
        line, node, rest = 1, root, path
        while rest and (step := self._step(node, rest)) is not None:
            line, node, rest = step
        return line, node

    @staticmethod
    def _step(node: yaml.Node, rest: str) -> tuple[int, yaml.Node, str] | None:
        """Follow the longest key of ``rest``: keys such as ``link.delay`` have dots."""
        if isinstance(node, yaml.SequenceNode):
            index, _, tail = rest.partition(".")
            if index.isdecimal() and int(index) < len(node.value):
                child = node.value[int(index)]
                return child.start_mark.line + 1, child, tail
        elif isinstance(node, yaml.MappingNode):
            matches = [
                (k, v)
                for k, v in node.value
                if isinstance(k.value, str) and (rest == k.value or rest.startswith(f"{k.value}."))
            ]
            if matches:
                key, value = max(matches, key=lambda pair: len(pair[0].value))
                return key.start_mark.line + 1, value, rest[len(key.value) + 1 :]
        return None


def _read(text: str) -> tuple[yaml.Node | None, Any]:
    loader = _Loader(text)
    try:
        root = loader.get_single_node()
        return root, None if root is None else loader.construct_document(root)
    finally:
        loader.dispose()
