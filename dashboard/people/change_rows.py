"""Entries of the change log in words: each changed setting by its label."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, Final

from experiments import cluster_kinds
from experiments.cluster_kinds import facts as cluster_facts
from experiments.cluster_kinds.form import form_of

_UNSET: Final = "not set"


def changed_fields(entry: Any) -> list[tuple[str, str, str]]:
    """Return (label, before, after) of each changed field, or key of an object."""
    stored = {name: [str(value) for value in values] for name, values in entry.changes_dict.items() if name in _OBJECTS}
    rows = [
        (label, before, after)
        for name, values in stored.items()
        for label, before, after in _changed_keys(*map(_as_object, values))
    ]
    labels = {name.replace("_", " ") for name in stored}
    for label, values in entry.changes_display_dict.items():
        if label.lower() not in labels:
            rows.append((label.lower(), values[0], values[1]))
    return rows


_OBJECTS: Final = frozenset({"settings", "facts"})
"""Fields of clusters that hold a JSON object."""


def _as_object(text: str) -> dict[str, Any]:
    """Return the keys of a logged JSON object by dotted name; none of a missing one."""
    try:
        value = json.loads(text)
    except ValueError:
        return {}
    return dict(_flat(value)) if isinstance(value, dict) else {}


def _flat(value: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, inner in value.items():
        if isinstance(inner, Mapping):
            yield from _flat(inner, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", inner


def _changed_keys(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    for name in dict.fromkeys([*before, *after]):
        if before.get(name) != after.get(name):
            label = _labels().get(name) or name.replace("_", " ").replace(".", ": ")
            yield label, _in_words(before.get(name)), _in_words(after.get(name))


def _in_words(value: Any) -> str:
    if value is None:
        return _UNSET
    return value if isinstance(value, str) else json.dumps(value)


@cache
def _labels() -> dict[str, str]:
    """Return the labels of all settings and facts of clusters by name."""
    settings = {setting.path: setting.title for kind in cluster_kinds.registry() for setting in form_of(kind)}
    return settings | {name: info.title or name for name, info in cluster_facts.fields().items()}
