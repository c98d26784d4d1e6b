"""Validation of JSON against the OpenAPI document; unnamed fields are errors."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import jsonschema


def errors(value: Any, schema: dict[str, Any]) -> list[str]:
    """Return the errors of ``value``; ``schema`` includes ``components``."""
    judge = jsonschema.Draft202012Validator(schema, format_checker=jsonschema.FormatChecker())
    data = [f"{error.json_path}: {error.message}" for error in judge.iter_errors(value)]
    return [*data, *(f"{name} is not in the schema" for name in _unknown(value, schema, schema["components"]))]


def sent(schema: dict[str, Any]) -> dict[str, Any]:
    """A schema for who sends: what is only read need not be there."""
    part = copy.deepcopy(schema)
    for each in part["components"]["schemas"].values():
        only_read = {name for name, member in each.get("properties", {}).items() if member.get("readOnly")}
        each["required"] = [name for name in each.get("required", ()) if name not in only_read]
    return part


def _unknown(value: Any, schema: Any, components: dict[str, Any], at: str = "$") -> Iterator[str]:
    """Return members of ``value`` that a schema with members does not name."""
    if "$ref" in schema:
        schema = components["schemas"][schema["$ref"].rpartition("/")[2]]
    for part in (*schema.get("allOf", ()), *(part for part in schema.get("anyOf", ()) if part.get("type") != "null")):
        yield from _unknown(value, part, components, at)
    if isinstance(value, list):
        for place, item in enumerate(value):
            yield from _unknown(item, schema.get("items") or {}, components, f"{at}[{place}]")
    elif isinstance(value, dict) and "properties" in schema:
        for name, member in value.items():
            if name in schema["properties"]:
                yield from _unknown(member, schema["properties"][name], components, f"{at}.{name}")
            elif not schema.get("additionalProperties"):
                yield f"{at}.{name}"
