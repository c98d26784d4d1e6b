"""Experiments are put away and brought back, and are given and lose tags. Nothing measured changes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from django.db import transaction
from django.utils import timezone

from experiments.errors import ReadOnly, StaleTrial
from experiments.models.experiment import Experiment, specification_hash

LONGEST_TAG: Final = 40
"""As the specification has it."""


def archive(experiment: Experiment) -> None:
    """Take an experiment out of the lists; it stays under its address, and its trials go on counting.

    Raise ReadOnly for published results, StaleTrial while trials wait or run: nobody would see them.
    """
    if experiment.published:
        raise ReadOnly(f"{experiment.name} holds published results, which stay where they are")
    with transaction.atomic():
        experiment.wait_for_others()
        if experiment.trials.unfinished().exists():
            raise StaleTrial(f"Trials of {experiment.name} wait or run: it can be archived when they are over.")
        experiment.archived_at = timezone.now()
        experiment.save(update_fields=["archived_at"])


def restore(experiment: Experiment) -> None:
    """Bring an archived experiment back into the lists."""
    experiment.archived_at = None
    experiment.save(update_fields=["archived_at"])


def retag(experiment: Experiment, add: Sequence[str] = (), remove: Sequence[str] = (), *, author: Any = None) -> bool:
    """Add and remove tags, as a new version that asks for no other trial; return whether anything was to be changed.

    Raise ReadOnly for what is published or was imported.
    """
    experiment.require_editable()
    with transaction.atomic():
        experiment.wait_for_others()
        kept = [tag for tag in experiment.tags if tag not in remove]
        tags = list(dict.fromkeys([*kept, *add]))
        if tags == experiment.tags:
            return False
        spec = experiment.spec.model_copy(update={"tags": tuple(tags)})
        experiment.tags, experiment.version = tags, experiment.version + 1
        experiment.specification = {**experiment.specification, "tags": tags}
        experiment.specification_hash = specification_hash(spec)
        experiment.save(update_fields=["tags", "version", "specification", "specification_hash"])
        experiment.versions.create(
            number=experiment.version,
            specification=experiment.specification,
            hash=experiment.specification_hash,
            author=author,
        )
        return True
