"""The form of a cluster: its name, and the settings of its kind under their headings (experiments.cluster_kinds.form)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from django.utils.text import slugify

from dashboard.panels.new.form import Field
from experiments.cluster_kinds import ClusterKind
from experiments.cluster_kinds.form import Setting, form_of, settings_from, texts_of
from experiments.errors import FieldError, InvalidSpec
from experiments.models import Cluster

_PURPOSES: Final = {
    "Hosts": "Which machines, and in which order they are filled.",
    "Login": "How the worker reaches them; the same account on every host.",
    "Queue": "What is asked of sbatch for every job.",
    "MPI": "What trials start there.",
    "Network": "The wire to measure.",
}
_TAKEN: Final = frozenset({"new"})
"""Addresses of pages that are no cluster's."""
_LONGEST_NAME: Final = 120


@dataclass(frozen=True, slots=True)
class SettingField(Field):
    """An input of the form; ``shape`` says which."""

    shape: str = "text"
    usual: str = ""

    @property
    def rows(self) -> int:
        """Lines of the input that it needs for what stands in it."""
        return min(max(self.value.count("\n") + 2, 2), 12)


@dataclass(frozen=True, slots=True)
class Group:
    """Fields under one heading."""

    title: str
    purpose: str
    fields: list[SettingField]


class ClusterForm:
    """The form of a new cluster of ``kind``, or of ``cluster``; ``texts`` are what was sent, else what is stored."""

    def __init__(
        self, kind: ClusterKind, *, cluster: Cluster | None = None, texts: Mapping[str, str] | None = None
    ) -> None:
        self.kind = kind
        self.cluster = cluster
        self.texts = dict(texts) if texts is not None else self._stored()
        self.errors: dict[str, list[str]] = {}

    @property
    def name(self) -> Field:
        """What people call it; the slug of a new one follows from it."""
        hint = "Shown in experiments and reports."
        if self.cluster is None:
            hint += " The word for YAML and REST is made of it, and stays."
        return Field("name", "Name", self.texts.get("name", ""), hint=hint, errors=self.errors.get("name", ()))

    @property
    def enabled(self) -> bool:
        return bool(self.texts.get("enabled"))

    @property
    def groups(self) -> list[Group]:
        """The settings of the kind under their headings; none for kinds without settings."""
        groups: dict[str, Group] = {}
        for setting in form_of(self.kind):
            group = groups.setdefault(setting.group, Group(setting.group, _PURPOSES.get(setting.group, ""), []))
            group.fields.append(self._field(setting))
        return list(groups.values())

    @property
    def other_errors(self) -> list[str]:
        """Errors of no field of the form, as stored settings may have."""
        shown = {"name", *(setting.path for setting in form_of(self.kind))}
        return [f"{path}: {text}" for path, texts in self.errors.items() if path not in shown for text in texts]

    def save(self) -> Cluster:
        """Store what the form says and return the cluster. Raise InvalidSpec, and keep its errors for the fields."""
        try:
            return self._save()
        except InvalidSpec as error:
            self.errors = error.by_path()
            raise

    def note_stored_errors(self) -> None:
        """Show what is wrong with the stored settings at its field."""
        if self.cluster is not None:
            self.errors = InvalidSpec(self.cluster.settings_errors).by_path()

    def _save(self) -> Cluster:
        name, errors = " ".join(self.texts.get("name", "").split()), []
        slug = self.cluster.slug if self.cluster else slugify(name)[:80]
        if not slug or len(name) > _LONGEST_NAME:
            errors.append(FieldError("name", f"must have letters or digits, and at most {_LONGEST_NAME} characters"))
        elif slug in _TAKEN or (self.cluster is None and Cluster.objects.filter(slug=slug).exists()):
            errors.append(FieldError("name", f"is taken: there is a cluster or page {slug}"))
        settings: dict[str, Any] = {}
        try:
            settings = settings_from(self.kind, self.texts)
        except InvalidSpec as error:
            errors += error.errors
        if errors:
            raise InvalidSpec(errors)
        if self.cluster is None:
            return Cluster.objects.create(
                slug=slug, name=name, kind=self.kind.name, settings=settings, enabled=self.enabled
            )
        self.cluster.set_up(name=name, settings=settings, enabled=self.enabled)
        return self.cluster

    def _stored(self) -> dict[str, str]:
        if self.cluster is None:
            return {"enabled": "on"}
        texts = texts_of(self.kind, self.cluster.settings)
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
