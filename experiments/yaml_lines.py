"""YAML with line numbers: the data of a document and the line on which each field stands. Pure."""

from __future__ import annotations

from typing import Any

import yaml

from experiments.errors import FieldError, InvalidSpec

MAX_BYTES = 1_000_000


class _StrictLoader(yaml.SafeLoader):
    """Safe loader that refuses duplicate keys, which YAML would silently let the last one win."""


def _mapping(loader: _StrictLoader, node: yaml.MappingNode) -> dict[Any, Any]:
    seen: set[Any] = set()
    for key_node, _ in node.value:
        key = loader.construct_object(key_node, deep=True)
        if not isinstance(key, str | int | float | bool):
            raise yaml.MarkedYAMLError(problem="a field name must be plain text", problem_mark=key_node.start_mark)
        if key in seen:
            raise yaml.MarkedYAMLError(problem=f"{key!r} stands twice", problem_mark=key_node.start_mark)
        seen.add(key)
    return loader.construct_mapping(node, deep=True)


_StrictLoader.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, _mapping)


class YamlDocument:
    """A parsed document. Raise InvalidSpec, with the line, when the text is no YAML."""

    def __init__(self, text: str) -> None:
        if len(text.encode()) > MAX_BYTES:
            raise InvalidSpec([FieldError("", f"larger than {MAX_BYTES} bytes")])
        try:
            self._root = yaml.compose(text, Loader=_NoAliases)
            self.data: Any = yaml.load(text, Loader=_StrictLoader)  # noqa: S506 (a subclass of SafeLoader)
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            raise InvalidSpec(
                [FieldError("", f"no valid YAML: {error.problem}", mark.line + 1 if mark else None)]
            ) from None
        except (yaml.YAMLError, RecursionError, ValueError) as error:
            raise InvalidSpec([FieldError("", f"no valid YAML: {error}")]) from None

    def line(self, path: str) -> int | None:
        """Return the 1-based line of the field, or of its nearest parent that is written down."""
        node, line = self._root, 1
        rest = path
        while rest and node is not None:
            step = self._step(node, rest)
            if step is None:
                break
            key_line, node, rest = step
            line = key_line
        return line if self._root is not None else None

    @staticmethod
    def _step(node: yaml.Node, rest: str) -> tuple[int, yaml.Node, str] | None:
        """Follow the longest key that ``rest`` starts with: keys such as ``link.delay`` hold dots themselves."""
        if isinstance(node, yaml.SequenceNode):
            index, _, tail = rest.partition(".")
            if index.isdigit() and int(index) < len(node.value):
                child = node.value[int(index)]
                return child.start_mark.line + 1, child, tail
        elif isinstance(node, yaml.MappingNode):
            matches = [(k, v) for k, v in node.value if rest == k.value or rest.startswith(f"{k.value}.")]
            if matches:
                key, value = max(matches, key=lambda pair: len(pair[0].value))
                return key.start_mark.line + 1, value, rest[len(key.value) + 1 :]
        return None


class _NoAliases(yaml.SafeLoader):
    """Refuses aliases: a few lines of them can expand to gigabytes."""

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        if self.check_event(yaml.AliasEvent):
            event = self.peek_event()  # type: ignore[no-untyped-call]
            raise yaml.MarkedYAMLError(problem="aliases (*name) are not allowed", problem_mark=event.start_mark)
        return super().compose_node(parent, index)
