"""JSON schemas with their parts written in place: OpenAPI has no ``$defs``."""

from __future__ import annotations

from typing import Any, Final

from pydantic import BaseModel, TypeAdapter

_BOUNDS: Final = {"gt": "exclusiveMinimum", "ge": "minimum", "lt": "exclusiveMaximum", "le": "maximum"}


def in_place(model: type[BaseModel]) -> dict[str, Any]:
    """Return a model's JSON schema with its parts written in place."""
    return _resolved(model.model_json_schema())


def told(kind: Any) -> dict[str, Any]:
    """Return the JSON schema, with its parts in place, of what ``dataclasses.asdict`` makes of a class that does not contain itself."""
    schema = TypeAdapter(kind).json_schema(mode="serialization")
    for part in (schema, *schema.get("$defs", {}).values()):
        part["required"] = list(part["properties"])  # those that have a default are told too
    whole: dict[str, Any] = _without_places(_resolved(schema))
    return whole


def _without_places(node: Any) -> Any:
    """Say of tuples what any of their items may be: few programs that read schemas know items by place."""
    if isinstance(node, list):
        return [_without_places(item) for item in node]
    if not isinstance(node, dict):
        return node
    told = {name: _without_places(value) for name, value in node.items() if name != "prefixItems"}
    items = node.get("prefixItems", [])
    kinds = [kind for place, kind in enumerate(items) if kind not in items[:place]]
    if not kinds:
        return told
    return {**told, "items": _without_places(kinds[0] if len(kinds) == 1 else {"anyOf": kinds})}


def _resolved(schema: dict[str, Any]) -> dict[str, Any]:
    parts = schema.pop("$defs", {})
    whole: dict[str, Any] = _in_place(schema, parts)
    return whole


def _in_place(node: Any, parts: dict[str, Any]) -> Any:
    if isinstance(node, dict):
        reference = node.get("$ref")
        if isinstance(reference, str):
            rest = {name: value for name, value in node.items() if name != "$ref"}
            return _in_place({**parts[reference.rpartition("/")[2]], **rest}, parts)
        return _bounded({name: _in_place(value, parts) for name, value in node.items()})
    if isinstance(node, list):
        return [_in_place(item, parts) for item in node]
    return node


def _bounded(node: dict[str, Any]) -> dict[str, Any]:
    """Return a schema with its bounds in the words of JSON schemas: pydantic leaves those of a number that may also be text as its own."""
    bounds = {_BOUNDS[name]: node.pop(name) for name in _BOUNDS if name in node}
    if not bounds:
        return node
    kinds = [
        {**kind, **bounds} if kind.get("type") in ("number", "integer") else kind for kind in node.get("anyOf", ())
    ]
    return {**node, "anyOf": kinds} if kinds else {**node, **bounds}
