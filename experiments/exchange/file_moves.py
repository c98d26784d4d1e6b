"""Files of imported trials: unpacked beside the directories of trials, given to the store as the last step before the commit."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath

from django.conf import settings
from django.db import transaction

from experiments import store
from experiments.common import plain_files
from experiments.models import Trial


@contextmanager
def files_with_rows() -> Iterator[Path]:
    """A transaction, and a directory for its files, in which each lies as it will in the store: both come to stay, or neither."""
    above = Path(settings.VAR) / store.TRIALS
    with plain_files.private():
        above.mkdir(parents=True, exist_ok=True)
        # Beside the directories of trials: what an interrupted import leaves, the sweep of files without a row takes.
        scratch = Path(tempfile.mkdtemp(prefix="import-", dir=above))
        taken: list[str] = []
        try:
            with transaction.atomic():
                yield scratch
                # The last that can go wrong before the commit; a crash behind it leaves directories that no row names.
                store.current().take_in(scratch, taken)
        except BaseException:
            store.current().give_back(taken)
            raise
        finally:
            shutil.rmtree(scratch, ignore_errors=True)


def place_of(trial: Trial, scratch: Path) -> tuple[Path, str]:
    """Where files of a new trial wait for their move, and where they will be in the store."""
    place = store.current().place_of(trial.pk)
    return scratch / PurePosixPath(place).relative_to(store.TRIALS), place
