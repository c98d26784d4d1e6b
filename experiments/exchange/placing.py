"""Files of imported trials: unpacked beside the directories of trials, moved there as the last step before the commit."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from django.conf import settings
from django.db import transaction

from experiments.pure import plain_files


@contextmanager
def files_with_rows() -> Iterator[Path]:
    """A transaction, and a directory for its files, a subdirectory for each new trial: both come to stay, or neither."""
    above = Path(settings.VAR) / "trials"
    with plain_files.private():
        above.mkdir(parents=True, exist_ok=True)
        # Beside the directories of trials: what an interrupted import leaves, the sweep of files without a row takes.
        scratch = Path(tempfile.mkdtemp(prefix="import-", dir=above))
        moved: list[Path] = []
        try:
            with transaction.atomic():
                yield scratch
                # The last that can go wrong before the commit; a crash behind it leaves directories that no row names.
                move_files(scratch, moved)
        except BaseException:
            for directory in moved:
                shutil.rmtree(directory, ignore_errors=True)
            raise
        finally:
            shutil.rmtree(scratch, ignore_errors=True)


def move_files(scratch: Path, moved: list[Path]) -> None:
    """Give every directory of ``scratch`` its place, and note it in ``moved``."""
    for directory in sorted(scratch.iterdir()):
        target = scratch.parent / directory.name
        shutil.rmtree(target, ignore_errors=True)  # of a transaction that was never committed
        directory.rename(target)
        moved.append(target)
