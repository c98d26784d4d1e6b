"""Built-in experiments and published results, loaded into the repository by ``manage.py load_library``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from django.db import transaction

from experiments.design import configuration_hash
from experiments.metrics import find
from experiments.models import Cluster, Configuration, Experiment, Measurement, Project, State, Trial

LIBRARY = Path(__file__).parent
PUBLISHED_PROJECT = "published"
DEFAULT_PROJECT = "default"


def built_in() -> list[Path]:
    """Return the specifications that come with Rankwire."""
    return sorted(LIBRARY.glob("*.yaml"))


def load_defaults() -> Project:
    """Make the default project and the clusters that every machine has; return the project. Idempotent."""
    project, _ = Project.objects.get_or_create(slug=DEFAULT_PROJECT, defaults={"name": "Laboratory"})
    for kind in (Cluster.Kind.TESTBED, Cluster.Kind.LOCAL):
        Cluster.objects.get_or_create(slug=kind.value, defaults={"name": kind.label, "kind": kind})
    return project


def load_published() -> int:
    """Store the published results that are not stored yet or have changed; return how many. Idempotent."""
    project, _ = Project.objects.get_or_create(slug=PUBLISHED_PROJECT, defaults={"name": "Published results"})
    loaded = 0
    for file in sorted((LIBRARY / "published").glob("*.json")):
        study = json.loads(file.read_text())
        if Experiment.objects.filter(slug=study["slug"], published=True, specification=study).exists():
            continue
        with transaction.atomic():
            Experiment.objects.filter(slug=study["slug"], published=True).delete()
            _store(study, project)
        loaded += 1
    return loaded


def _store(study: dict[str, Any], project: Project) -> None:
    experiment = Experiment.objects.create(
        project=project,
        slug=study["slug"],
        name=study["name"],
        workload=study["workload"],
        specification=study,
        specification_hash=configuration_hash(study["slug"], study),
        published=True,
        source={**study["source"], "notes": study["notes"]},
    )
    for metric in study["printed_as"]:
        find(metric)  # a misspelt metric must not be loaded
    for position, row in enumerate(study["rows"]):
        parameters = {**study["constants"], **row["parameters"]}
        hosts = parameters["hosts"]
        configuration = Configuration.objects.create(
            experiment=experiment,
            hash=configuration_hash(study["workload"], parameters),
            parameters=parameters,
            hosts=hosts,
            ranks=hosts * parameters.get("ranks_per_host", 1),
            position=position,
        )
        trial = Trial.objects.create(
            experiment=experiment, configuration=configuration, position=position, state=State.FINISHED
        )
        Measurement.objects.bulk_create(
            Measurement(trial=trial, metric=metric, value=value) for metric, value in row["values"].items()
        )
