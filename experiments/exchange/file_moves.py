"""Rows and files of imported trials: both are stored, or neither."""

from __future__ import annotations

import tempfile
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import count
from pathlib import Path, PurePosixPath
from typing import Any, Final

from django.conf import settings
from django.db import OperationalError, transaction
from django.db.models import Q
from django.utils import timezone
from psycopg.errors import QueryCanceled

from experiments import store
from experiments.common import plain_files
from experiments.common.storable import storable
from experiments.errors import BadBundle
from experiments.models import Cluster, Deleted, Experiment, Project, Trial
from experiments.models.serialised import lock_name

MOST_CLUSTERS: Final = 200
"""Imported clusters of a project: pages list them all."""
IN_TRASH: Final = "it is in the trash of this installation: restore it there"


@contextmanager
def files_with_rows() -> Iterator[Path]:
    """Open a transaction and a directory whose files move to the store at its end."""
    above = Path(settings.VAR) / store.TRIALS
    with plain_files.private():
        above.mkdir(parents=True, exist_ok=True)
        # Among the directories of trials: the sweep of files without a row removes those of an interrupted import.
        scratch = Path(tempfile.mkdtemp(prefix="import-", dir=above))
        taken: list[str] = []
        try:
            with transaction.atomic():
                yield scratch
                # The last step before the commit; a crash after it leaves directories without rows.
                store.current().take_in(scratch, taken)
        except BaseException:
            store.current().give_back(taken)
            raise
        finally:
            plain_files.discard(scratch)


def begin_import(project: Project, uid: uuid.UUID, *, existing: Experiment | None) -> None:
    """Serialise imports of a project. Raise BadBundle if another stored this."""
    try:
        lock_name(f"import:{project.pk}")
        lock_name(f"import:{uid}")
    except OperationalError as error:
        if not isinstance(error.__cause__, QueryCanceled):  # after the time that a statement may take
            raise
        raise BadBundle(f"Other imports into the project {project.name} take long. Import it again later.") from None
    if existing is None and (Experiment.objects.filter(uid=uid).exists() or is_in_trash(uid)):
        raise BadBundle("Another request imported this at the same time. Import it again to add what is missing.")


def is_in_trash(uid: uuid.UUID) -> bool:
    """Return whether a deleted experiment needs this identity to be restored."""
    return Deleted.objects.filter(uid=uid).exists()


def place_of(trial: Trial, scratch: Path) -> tuple[Path, str]:
    """Return the waiting and the final directory of a new trial's files."""
    path = store.current().place_of(trial.pk)
    return scratch / PurePosixPath(path).relative_to(store.TRIALS), path


def cluster_elsewhere(slug: str, name: str, kind: str, facts: Mapping[str, Any], project: Project) -> Cluster:
    """Return the row of an unreachable cluster. Raise BadBundle if its name is taken.

    A cluster of the same slug that another project imported with another name, kind or other facts is another one.
    """
    described = {"name": storable(name)[:120], "kind": kind, "facts": storable(dict(facts))}
    for number in count(1):
        numbered = slug if number == 1 else f"{slug[:70]}-{number}"
        row = Cluster.objects.filter(slug=numbered).first()
        if row is None:
            _require_few_clusters(project)
            added = {**described, "enabled": False, "elsewhere": True}
            row, _ = Cluster.objects.get_or_create(slug=numbered, defaults=added)
        if not row.elsewhere:
            raise BadBundle(f"A cluster of this installation is called {numbered}: rename one of the two first.")
        is_same = (row.name, row.kind, row.facts) == tuple(described.values())
        if is_same or row.trials.filter(experiment__project=project).exists():
            return row
    raise AssertionError("numbers do not end")


def _require_few_clusters(project: Project) -> None:
    used = Q(trials__experiment__project=project) | Q(experiments__project=project)
    if Cluster.objects.filter(used, elsewhere=True).distinct().count() >= MOST_CLUSTERS:
        raise BadBundle(f"The project {project.name} has results of {MOST_CLUSTERS} other clusters, which is the most.")


def imported_by(owner: Any) -> dict[str, str]:
    """Return time and user of an import, for the origin of its experiments."""
    name = owner.get_username() if owner is not None else "the command line"
    return {"imported_at": timezone.now().isoformat(), "imported_by": name}
