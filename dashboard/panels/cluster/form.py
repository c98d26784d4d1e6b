"""The form of a cluster: its name, and the settings of its kind."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from django.utils.text import slugify

from dashboard.panels.new.form import Field
from experiments.cluster_kinds import ClusterKind
from experiments.cluster_kinds.form import Setting, checked, form_of, settings_from, texts_of
from experiments.errors import FieldError, InvalidSpec
from experiments.models import Cluster

_PURPOSES: Final = {
    "Hosts": "Machines, in the order of use.",
    "Login": "Access for the worker: the same account on every host.",
    "Queue": "Options of every job.",
    "MPI": "Programs that trials start.",
    "Network": "The measured interface.",
}
_TAKEN: Final = frozenset({"new"})
"""Addresses of pages, which no cluster can have."""
_LONGEST_NAME: Final = 120


@dataclass(frozen=True, slots=True)
class SettingField(Field):
    """An input of the form; ``shape`` is its type."""

    shape: str = "text"
    usual: str = ""

    @property
    def is_long(self) -> bool:
        return self.shape in ("names", "pairs")

    @property
    def rows(self) -> int:
        """Return the number of lines of the input for its value."""
        return min(max(self.value.count("\n") + 2, 2), 12)


@dataclass(frozen=True, slots=True)
class Group:
    """Fields under one heading."""

    title: str
    purpose: str
    fields: list[SettingField]


class ClusterForm:
    """The form of a new cluster of ``kind``, or of a stored ``cluster``."""

    def __init__(
        self, kind: ClusterKind, *, cluster: Cluster | None = None, texts: Mapping[str, str] | None = None
    ) -> None:
        self.kind = kind
        self.cluster = cluster
        self.texts = dict(texts) if texts is not None else self._stored()
        self.errors: dict[str, list[str]] = {}

    @property
    def name(self) -> Field:
        """Return the field of the name, from which the slug of a new cluster is made."""
        hint = "Shown in experiments and reports."
        if self.cluster is None:
            hint += " Determines the name in YAML and REST, which never changes."
        return Field("name", "Name", self.texts.get("name", ""), hint=hint, errors=self.errors.get("name", ()))

    @property
    def enabled(self) -> bool:
        return bool(self.texts.get("enabled"))

    @property
    def groups(self) -> list[Group]:
        """Return the settings that are required or usually set, by heading."""
        return self._groups(first=True)

    @property
    def advanced(self) -> list[Group]:
        """Return the other settings, by heading."""
        return self._groups(first=False)

    @property
    def changed(self) -> list[str]:
        """Return the labels of advanced settings that differ from their default."""
        fields = (field for group in self.advanced for field in group.fields)
        return [
            field.label for field in fields if field.value != field.usual and (field.value or field.shape == "check")
        ]

    @property
    def advanced_count(self) -> int:
        return sum(len(group.fields) for group in self.advanced)

    @property
    def has_advanced_errors(self) -> bool:
        return any(field.errors for group in self.advanced for field in group.fields)

    def _groups(self, *, first: bool) -> list[Group]:
        groups: dict[str, Group] = {}
        above = () if first else {setting.group for setting in form_of(self.kind) if setting.first}
        for setting in (setting for setting in form_of(self.kind) if setting.first is first):
            purpose = "" if setting.group in above else _PURPOSES.get(setting.group, "")
            group = groups.setdefault(setting.group, Group(setting.group, purpose, []))
            group.fields.append(self._field(setting))
        return list(groups.values())

    @property
    def other_errors(self) -> list[str]:
        """Return errors without a field, as stored settings may have."""
        fields = {"name", *(setting.path for setting in form_of(self.kind))}
        return [f"{path}: {text}" for path, texts in self.errors.items() if path not in fields for text in texts]

    def save(self) -> Cluster:
        """Store and return the cluster. Raise InvalidSpec, and keep its errors."""
        try:
            return self._save()
        except InvalidSpec as error:
            self.errors = error.by_path()
            raise

    def note_stored_errors(self) -> None:
        """Show errors of the stored settings at their fields."""
        if self.cluster is not None:
            self.errors = InvalidSpec(self.cluster.settings_errors).by_path()

    def _save(self) -> Cluster:
        name, errors = " ".join(self.texts.get("name", "").split()), []
        slug = self.cluster.slug if self.cluster else slugify(name)[:80]
        if not slug or len(name) > _LONGEST_NAME:
            errors.append(FieldError("name", f"needs letters or digits, and at most {_LONGEST_NAME} characters"))
        elif slug in _TAKEN or (self.cluster is None and Cluster.objects.filter(slug=slug).exists()):
            errors.append(FieldError("name", f"is in use: choose another name than {slug}"))
        elif (self.cluster is None or name != self.cluster.name) and (
            Cluster.objects.filter(name__iexact=name).exclude(slug=slug).exists()
        ):
            errors.append(FieldError("name", "is the name of another cluster"))
        settings: dict[str, Any] = {}
        try:
            settings = settings_from(self.kind, self.texts)
        except InvalidSpec as error:
            errors += error.errors
        if errors:
            raise InvalidSpec(errors)
        if self.cluster is None:
            return Cluster.objects.create(
                slug=slug,
                name=name,
                kind=self.kind.name,
                settings=settings,
                enabled=self.enabled and "test" not in self.texts,
            )
        self.cluster.set_up(name=name, settings=settings, enabled=self.enabled)
        return self.cluster

    def _stored(self) -> dict[str, str]:
        if self.cluster is None:
            return {**checked(self.kind), "enabled": "on"}
        texts = checked(self.kind) | texts_of(self.kind, self.cluster.settings)
        return {**texts, "name": self.cluster.name, "enabled": "on" if self.cluster.enabled else ""}

    def _field(self, setting: Setting) -> SettingField:
        return SettingField(
            path=setting.path,
            label=setting.title,
            value=self.texts.get(setting.path, setting.usual if setting.shape == "choice" else ""),
            hint=setting.hint,
            errors=self.errors.get(setting.path, ()),
            choices=setting.choices,
            shape=setting.shape,
            usual=setting.usual,
        )
