"""Built-in experiments and published results, for ``manage.py load_library``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.db import transaction

from experiments import cluster_kinds
from experiments.library.studies import PublishedStudy, published_studies
from experiments.models import Cluster, Configuration, Experiment, Measurement, Network, Project, State, Trial
from experiments.models.people.project import DEFAULT_PROJECT
from experiments.specification.design import configuration_hash

LIBRARY = Path(__file__).parent
PUBLISHED_PROJECT = "published"
FIRST_STUDY = LIBRARY / "water-quick.yaml"
"""What a new user runs: queued at the first start, opened by the tour and by the form of a new experiment."""


def built_in() -> list[Path]:
    """Return the specifications that come with Rankwire."""
    return sorted(LIBRARY.glob("*.yaml"))


def load_defaults() -> Project:
    """Create the default project, the usual clusters and networks; return the project."""
    project, _ = Project.objects.get_or_create(slug=DEFAULT_PROJECT, defaults={"name": "Laboratory"})
    for kind in cluster_kinds.registry():
        if kind.exists_everywhere:
            Cluster.objects.get_or_create(slug=kind.name, defaults={"name": kind.title, "kind": kind.name})
    Network.load_defaults()
    return project


def load_published() -> int:
    """Store published results that are new or changed; return how many. Idempotent."""
    project, _ = Project.objects.get_or_create(slug=PUBLISHED_PROJECT, defaults={"name": "Published results"})
    loaded = 0
    for study in published_studies():
        specification = study.model_dump(mode="json")
        digest = configuration_hash(study.slug, specification)
        if Experiment.objects.filter(slug=study.slug, published=True, specification_hash=digest).exists():
            continue
        with transaction.atomic():
            Experiment.objects.filter(slug=study.slug, published=True).delete()
            _store(study, specification, project)
        loaded += 1
    return loaded


def _store(study: PublishedStudy, specification: dict[str, Any], project: Project) -> None:
    experiment = Experiment.objects.create(
        project=project,
        slug=study.slug,
        name=study.name,
        workload=study.workload,
        specification=specification,
        specification_hash=configuration_hash(study.slug, specification),
        published=True,
        source={**specification["source"], "notes": study.notes, "statements": study.statements},
    )
    points = list(study.points())
    configurations = Configuration.objects.bulk_create(
        Configuration(
            experiment=experiment,
            hash=point.hash,
            parameters=point.parameters,
            hosts=point.hosts,
            ranks=point.ranks,
            position=position,
        )
        for position, point in enumerate(points)
    )
    trials = Trial.objects.bulk_create(
        Trial(
            experiment=experiment,
            configuration=configuration,
            position=configuration.position,
            state=State.FINISHED,
            conditions=point.conditions,
        )
        for configuration, point in zip(configurations, points, strict=True)
    )
    Measurement.objects.bulk_create(
        Measurement(trial=trial, metric=metric, value=value)
        for trial, point in zip(trials, points, strict=True)
        for metric, value in point.values.items()
    )
