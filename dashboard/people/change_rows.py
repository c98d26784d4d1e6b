"""Entries of the change log in words: each changed setting by its label."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import cache
from itertools import takewhile
from typing import Any, Final

from django.db.models import BooleanField, Q, QuerySet
from django.urls import reverse
from django.utils.text import Truncator

from dashboard.requests.lookup import MOST_WORDS
from experiments import cluster_kinds
from experiments.cluster_kinds import facts as cluster_facts
from experiments.cluster_kinds.form import form_of
from experiments.models import Cluster, Experiment, Project
from experiments.models.changes import mask

_UNSET: Final = "not set"
_EMPTY: Final = {"None": _UNSET}
_SWITCH: Final = {**_EMPTY, "True": "yes", "False": "no"}
_TITLES: Final = {
    "enabled": "accepts experiments",
    "staff status": "access to /admin/",
    "superuser status": "superuser",
    "most queued trials": "quota of queued trials",
    "most machine hours": "quota of machine-hours",
    "most disk gib": "quota of files, GiB",
    "most capture gib": "quota of captures, GiB",
}
"""Labels of fields whose names in the database are not those of the pages."""


_KINDS: Final = {"notice choices": "mails", "api token": "token", "user": "account"}
"""Words of kinds whose names in the database are not those of the pages."""
_REPEATED: Final = {"notice choices": "notices"}
"""Words that begin the names of things of a kind, if they are not those of the kind."""
_HIDDEN: Final = mask("secret")
_FIRST: Final = frozenset({"cluster"})
"""Kinds whose entries list the first values."""
_LONGEST: Final = 60
"""Characters of a value that a page shows."""


def change_row(entry: Any) -> dict[str, Any]:
    """Return an entry, the word of its kind, and the parts of fields that differ."""
    kind, is_new = entry.content_type.name, entry.action == entry.Action.CREATE
    fields = [] if is_new and kind not in _FIRST else changed_fields(entry)
    if is_new:
        fields = [(label, "", after) for label, _, after in fields if label not in _OF_ROWS and after != _UNSET]
    else:
        fields = [(label, *_differing(before, after)) for label, before, after in fields]
    words = [sentence(*field) for field in fields]
    return {
        "entry": entry,
        "kind": _KINDS.get(kind, kind),
        "name": entry.object_repr.removeprefix(f"{_REPEATED.get(kind, kind)} "),
        "fields": fields,
        "words": words,
    }


def sentence(label: str, before: str, after: str) -> str:
    """Return a changed field in words: 'quota of queued trials set to 10'."""
    if before == after == _HIDDEN:
        return f"{label} changed"
    before, after = (Truncator(value).chars(_LONGEST) for value in (before, after))
    if after == _UNSET and not before:  # an action without a value
        return label
    if after == _UNSET:
        return f"{label} removed, was {before}"
    if not before:
        return f"{label}: {after}"
    return f"{label} set to {after}" if before == _UNSET else f"{label} changed from {before} to {after}"


_OF_ROWS: Final = frozenset({"id", "slug", "created at", "elsewhere"})


def _differing(before: str, after: str) -> tuple[str, str]:
    """Leave out the common beginning of two long texts."""
    if max(len(before), len(after)) <= _LONGEST:
        return before, after
    shared = takewhile(lambda letters: letters[0] == letters[1], zip(before, after, strict=False))
    begin = max(len(list(shared)) - 20, 0)
    return (f"…{before[begin:]}", f"…{after[begin:]}") if begin else (before, after)


def changed_fields(entry: Any) -> list[tuple[str, str, str]]:
    """Return (label, before, after) of each changed field, or key of an object."""
    stored = {name: [str(value) for value in values] for name, values in entry.changes_dict.items() if name in _OBJECTS}
    rows = [
        (label, before, after)
        for name, values in stored.items()
        for label, before, after in _changed_keys(
            *map(_as_object, values), choices=_choices() if name == "settings" else {}
        )
    ]
    labels = {name.replace("_", " ") for name in stored}
    model = entry.content_type.model_class()
    fields = model._meta.concrete_fields if model else ()
    # Relations of other models to this one, which the log of a new row lists.
    relations = {field.name for field in model._meta.related_objects} if model else set()
    switches = {str(field.verbose_name).lower() for field in fields if isinstance(field, BooleanField)}
    for title, values in entry.changes_display_dict.items():
        label = title.lower()
        if label not in labels and label not in relations and label != "changed at":  # the time of the entry
            words = _SWITCH if label in switches else _EMPTY
            before, after = (words.get(value, value) for value in values)
            rows.append((_TITLES.get(label, label), before, after or _UNSET))
    return rows


def with_words(entries: QuerySet[Any], words: str) -> QuerySet[Any]:
    """Filter changes by words of the user, the changed thing, its kind or the change."""
    for word in words.split()[:MOST_WORDS]:
        matches = Q(content_type__model__icontains=word) | Q(object_repr__icontains=word)
        matches |= Q(actor__username__icontains=word) | Q(changes__icontains=word)
        for label, title in _TITLES.items():
            if word.casefold() in title.casefold():
                name = f"is_{label.removesuffix(' status')}" if label.endswith(" status") else label.replace(" ", "_")
                matches |= Q(changes__has_key=name)
        entries = entries.filter(matches)
    return entries


_OBJECTS: Final = frozenset({"settings", "facts", "definition"})
"""Fields of clusters and programs that hold a JSON object."""


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


def _changed_keys(
    before: Mapping[str, Any], after: Mapping[str, Any], *, choices: Mapping[str, Mapping[str, str]]
) -> Iterator[tuple[str, str, str]]:
    for name in dict.fromkeys([*before, *after]):
        if before.get(name) != after.get(name):
            label = _labels().get(name) or name.replace("_", " ").replace(".", ": ")
            words = choices.get(name, {})
            old, new = (
                words.get(str(value)) or _in_words(name, value) for value in (before.get(name), after.get(name))
            )
            yield label, old, new


def _in_words(name: str, value: Any) -> str:
    """Return a setting or fact as users write it."""
    if value is None:
        return _UNSET
    if isinstance(value, bool):
        return _SWITCH[str(value)]
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return ", ".join(value)
    return cluster_facts.written(name, value) if isinstance(value, str | int | float) else json.dumps(value)


@cache
def _choices() -> dict[str, dict[str, str]]:
    """Return the words of the choices of all settings of clusters by name."""
    settings = [setting for kind in cluster_kinds.registry() for setting in form_of(kind) if setting.choices]
    return {name: {value: words for setting in settings if setting.path == name for value, words in setting.choices}
            for name in {setting.path for setting in settings}}  # fmt: skip


def with_addresses(rows: list[dict[str, Any]], *, of_users: bool) -> list[dict[str, Any]]:
    """Add the addresses of existing clusters, projects, experiments and accounts.

    At most three queries.
    """
    models = {"cluster": Cluster, "project": Project, "experiment": Experiment}
    keys = {kind: {row["entry"].object_pk for row in rows if row["kind"] == kind} for kind in models}
    slugs = {(kind, str(pk)): slug for kind, pks in keys.items() if pks
             for pk, slug in models[kind]._default_manager.filter(pk__in=pks).values_list("pk", "slug")}  # fmt: skip
    for row in rows:
        key = row["kind"], row["entry"].object_pk
        if key in slugs:
            row["address"] = reverse(row["kind"], args=[slugs[key]])
        elif of_users and row["kind"] == "account":
            row["address"] = reverse("person", args=[row["entry"].object_pk])
    return rows


@cache
def _labels() -> dict[str, str]:
    """Return the labels of all settings and facts of clusters by name."""
    settings = {setting.path: setting.title for kind in cluster_kinds.registry() for setting in form_of(kind)}
    return settings | {name: info.title or name for name, info in cluster_facts.fields().items()}
