"""Registered programs: workloads as rows, in versions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Final

from django.apps import apps
from django.conf import settings
from django.db import models, transaction
from pydantic import ValidationError

from analysis.numbers import plural
from experiments import registered, workloads
from experiments.common.storable import problems
from experiments.errors import FieldError, InvalidSpec, ProgramInUse
from experiments.models.ordered_json import OrderedJSONField
from experiments.models.serialised import lock_name
from experiments.specification.parameters import sentence
from experiments.workloads.definition import ProgramDefinition

_TAKEN: Final = frozenset({"new"})
"""Addresses below /workloads/ that no program can have."""
_INDEPENDENT: Final = frozenset(
    {"name", "title", "summary", "retired", "threads", "modules", "container", "success", "failure", "keep"}
)
"""Fields that no other field refers to."""


class Program(models.Model):
    """One version of a registered program; ``definition`` is a ``ProgramDefinition``."""

    slug = models.SlugField(max_length=40)
    version = models.PositiveIntegerField()
    definition: models.JSONField[dict[str, Any], dict[str, Any]] = OrderedJSONField()
    author = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, blank=True, related_name="+"
    )
    created_at = models.DateTimeField(auto_now_add=True)
    changed_at = models.DateTimeField(auto_now=True)

    class Meta:
        ordering: ClassVar = ["slug", "version"]
        constraints: ClassVar = [models.UniqueConstraint(fields=["slug", "version"], name="one_program_per_version")]

    def __str__(self) -> str:
        return f"{self.slug} version {self.version}"

    @property
    def title(self) -> str:
        return str(self.definition.get("title") or self.slug)

    @classmethod
    def latest(cls, slug: str) -> Program | None:
        """Return the latest version of a program, or None."""
        return cls.objects.filter(slug=slug).order_by("-version").first()

    @classmethod
    def register(cls, data: Any, *, author: Any = None) -> tuple[Program, bool]:
        """Store a definition; return its version, and whether parsing has changed.

        A changed run creates a new version, changed parsing alters the latest one. Raise InvalidSpec.
        """
        definition = read_definition(data)
        with transaction.atomic():
            lock_name(f"program:{definition.name}")
            latest = cls.objects.select_for_update().filter(slug=definition.name).order_by("-version").first()
            before = None if latest is None else ProgramDefinition.model_validate(latest.definition)
            if latest is not None and before is not None and before.runs_like(definition):
                latest.definition = definition.to_dict()
                latest.save()
                program = latest
            else:
                number = 1 if latest is None else latest.version + 1
                program = cls.objects.create(
                    slug=definition.name, version=number, definition=definition.to_dict(), author=author
                )
        registered.forget()
        return program, before is not None and not before.reads_like(definition)

    @classmethod
    def describe(cls, slug: str, **changes: Any) -> Program:
        """Change ``title``, ``summary`` or ``retired``: no new version. Raise InvalidSpec."""
        with transaction.atomic():
            latest = cls.objects.select_for_update().filter(slug=slug).latest("version")
            latest.definition = read_definition({**latest.definition, **changes}).to_dict()
            latest.save()
        registered.forget()
        return latest

    @classmethod
    def remove(cls, slug: str) -> None:
        """Delete all versions. Raise ProgramInUse if experiments use them.

        Those in the trash count: they can be restored.
        """
        with transaction.atomic():
            versions = cls.objects.select_for_update().filter(slug=slug)
            len(versions)  # takes the locks
            if used := cls.uses(slug):
                title = versions[len(versions) - 1].title
                raise ProgramInUse(
                    f"{title} cannot be deleted: {plural(used, 'experiment uses', 'experiments use')} it."
                )
            for version in versions:  # each is noted in the change log
                version.delete()
        registered.forget()

    @classmethod
    def lock(cls, slug: str) -> None:
        """Prevent removal of a registered program until the caller's transaction ends.

        Raise InvalidSpec if it was removed meanwhile: processes cache programs.
        """
        workload = workloads.find(slug)
        versions = cls.objects.select_for_update(no_key=True).filter(slug=slug)
        if workload is not None and workload.registered and not versions:
            raise InvalidSpec([FieldError("workload", f"{workload.title} was deleted: choose another workload")])

    @staticmethod
    def uses(slug: str) -> int:
        """Return how many experiments use a program, those in the trash included."""
        kinds = (apps.get_model("experiments", name) for name in ("Experiment", "Deleted"))
        return sum(kind.objects.filter(workload=slug).count() for kind in kinds)


def read_definition(data: Any) -> ProgramDefinition:
    """Return a checked definition. Raise InvalidSpec."""
    if not isinstance(data, dict):
        raise InvalidSpec([FieldError("", "a program is a mapping of fields, such as name: and program:")])
    if odd := list(problems(data)):
        raise InvalidSpec(odd[:100])
    errors = list(_errors_in(data))
    name = data.get("name")
    workload = workloads.find(name) if isinstance(name, str) else None
    if workload is not None and not workload.registered:
        errors.append(FieldError("name", f"a workload {name!r} exists already"))
    if name in _TAKEN:
        errors.append(FieldError("name", f"{name!r} is the address of a page of Rankwire: choose another name"))
    if errors:
        raise InvalidSpec(errors[:100])
    return ProgramDefinition.model_validate(data)


def _errors_in(data: Mapping[str, Any]) -> Iterator[FieldError]:
    """Yield all errors: pydantic checks fields together only if each is valid."""
    failing = set()
    try:
        ProgramDefinition.model_validate(data)
    except ValidationError as error:
        for problem in error.errors():
            failing |= set(map(str, problem["loc"][:1]))
            yield from _field_errors(problem)
    if failing and failing <= _INDEPENDENT:
        others = {name: value for name, value in data.items() if name not in failing}
        yield from _errors_in({**others, "name": "any-name"})


def _field_errors(error: Any) -> Iterator[FieldError]:
    path, message = ".".join(map(str, error["loc"])), sentence(error)
    for line in [message] if path else message.splitlines():
        field, colon, rest = line.partition(": ")
        yield FieldError(field, rest) if colon and not path else FieldError(path, line)
