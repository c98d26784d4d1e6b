"""Import by file name: bundle, description, table or report of another tool."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import Any, Final

from django.conf import settings

from experiments.common import budget
from experiments.common.strict_json import MOST_VALUES
from experiments.errors import BadBundle
from experiments.exchange.archive import (
    ELSEWHERE,
    JSON_BYTES,
    MANIFEST,
    OF_COMMAND,
    Limits,
    ZipContainer,
    is_safe_path,
    pieces_of,
    write_new,
)
from experiments.exchange.external_results import import_description, import_report
from experiments.exchange.import_plan import ImportResult, import_bundle
from experiments.models import Project
from experiments.selectors.quotas import quotas_of

DESCRIPTIONS: Final = (".yaml", ".yml")
TABLE: Final = ".csv"
REPORT: Final = ".json"
_ALONE: Final = (*DESCRIPTIONS, TABLE, REPORT)
_FILES: Final = 20_000
"""Most files of an upload: they are read within one request."""
_CLUSTERS: Final = 50


def import_file(
    path: Path, *, project: Project, owner: Any = None, dry_run: bool = False, limits: Limits = OF_COMMAND
) -> ImportResult:
    """Import the file at ``path`` by its name, with the files that it names.

    Raise BadBundle, InvalidSpec at fields and lines, or OSError if it is missing.
    """
    options: dict[str, Any] = {"project": project, "owner": owner, "dry_run": dry_run}
    if path.suffix in (*DESCRIPTIONS, TABLE):
        plan = import_description(path, **options, content_bytes=limits.content_bytes)
        return ImportResult(path.name, None, "", "", [plan], "description")
    if path.suffix == REPORT:
        plans, left_out = import_report(path, **options, most_values=limits.json_values)
        return ImportResult(path.name, None, "", "", plans, "report", left_out)
    return import_bundle(path, **options, limits=limits)


def import_received_file(file: Path, name: str, *, project: Project, owner: Any, dry_run: bool) -> ImportResult:
    """Import an uploaded file, which can name no other file of this machine.

    A description or a table with files comes in a zip archive, at its top. Raise BadBundle or InvalidSpec.
    """
    files = next(quota for quota in quotas_of([project])[project.pk] if quota.name == "disk_gib")
    if files.is_used_up and not dry_run:
        words = "; ".join(filter(None, (f"{files.words} of files", files.trash_words)))
        raise BadBundle(f"The project {project.name} has used up its quota: {words}.")
    options: dict[str, Any] = {"project": project, "owner": owner, "dry_run": dry_run}
    limits = upload_limits()
    plain = PurePosixPath(name.replace("\\", "/")).name[-100:]
    if Path(plain).suffix in _ALONE:
        with tempfile.TemporaryDirectory(prefix="rankwire-import-") as directory:
            path = Path(directory) / (plain if is_safe_path(plain) else f"sent{Path(plain).suffix}")
            shutil.copyfile(file, path)
            return import_file(path, **options, limits=limits)
    try:
        with _unpacked(file, limits) as described:
            if described is not None:
                return import_file(described, **options, limits=limits)
        return import_bundle(file, **options, name=name, limits=limits)
    except budget.Exhausted:
        raise BadBundle(f"Reading it takes longer than a request may. {ELSEWHERE}") from None


def upload_limits() -> Limits:
    """Return the limits of an upload, which grow with `RANKWIRE_IMPORT_LIMIT_MIB`."""
    most = int(settings.IMPORT_LIMIT_BYTES)
    return Limits(
        files=_FILES,
        content_bytes=4 * most,
        expanded_bytes=16 * most,
        description_bytes=2 * JSON_BYTES,
        trial_bytes=8 * JSON_BYTES,
        json_values=MOST_VALUES,
        clusters=_CLUSTERS,
    )


@contextmanager
def _unpacked(file: Path, limits: Limits) -> Iterator[Path | None]:
    """Unpack an archive that is not a bundle; give its description, or None."""
    archive = ZipContainer(file, limits)
    try:
        top = [name for name in archive.sizes if "/" not in name and name.endswith((*DESCRIPTIONS, TABLE))]
        if MANIFEST in archive.sizes or not top:
            yield None
            return
        chosen = _described_by(top)
        with tempfile.TemporaryDirectory(prefix="rankwire-import-") as directory:
            for name in archive.sizes:
                write_new(Path(directory) / name, pieces_of(archive, name))
            yield Path(directory) / chosen
    finally:
        archive.close()


def _described_by(top: list[str]) -> str:
    """Return the file that describes the archive. Raise BadBundle for several."""
    tables = [name for name in top if name.endswith(TABLE)]
    descriptions = [name for name in top if not name.endswith(TABLE)]
    if len(tables) > 1 or len(descriptions) > 1:
        raise BadBundle("Several descriptions or tables lie at the top of the archive: send one, with its files.")
    return (tables or descriptions)[0]
