"""Records of a bundle, checked one by one before they are used."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from pydantic import ValidationError

from experiments import cluster_kinds
from experiments.common import budget, plain_files
from experiments.errors import BadBundle, InvalidSpec
from experiments.exchange.archive import MANIFEST, Archive, is_safe_path
from experiments.exchange.records import ExperimentRecord, FileRecord, TrialRecord, checked, trial_uid
from experiments.library.studies import PublishedStudy
from experiments.specification import design
from experiments.specification.validation import restore

BAD: Final = "is not as it should be"


def digest_of(path: Path) -> str:
    """Return the hash of the archive, or of the list of a directory."""
    with plain_files.opened(path / MANIFEST if path.is_dir() else path) as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()  # type: ignore[arg-type]


def experiment_of(archive: Archive, directory: str) -> ExperimentRecord:
    """Return the experiment in a directory of a bundle. Raise BadBundle."""
    name = f"{directory}/experiment.json"
    record = checked(ExperimentRecord, archive.json(name), f"{name} {BAD}")
    slugs = {cluster.slug for cluster in record.clusters}
    if record.cluster is not None and record.cluster not in slugs:
        raise BadBundle(f"{name} does not say what the cluster {record.cluster} is.")
    for cluster in record.clusters:
        if cluster.kind not in dict(cluster_kinds.choices()):
            raise BadBundle(f"{name}: clusters of the kind {cluster.kind!r} are not known here.")
    if len({configuration.hash for configuration in record.configurations}) < len(record.configurations):
        raise BadBundle(f"{name} has a configuration twice.")
    _require_specification(record, name)
    _require_points(record, name)
    return record


def _require_specification(record: ExperimentRecord, name: str) -> None:
    """Refuse a bad specification: it would break all lists of experiments."""
    if record.published:
        checked(PublishedStudy, record.specification, f"{name}: the specification {BAD}")
        return
    try:
        restore(record.specification)
    except InvalidSpec as error:
        first = error.errors[0]
        path = first.path or "as a whole"
        raise BadBundle(f"{name}: the specification {BAD}: {path}: {first.message}.") from None


def _require_points(record: ExperimentRecord, name: str) -> None:
    """Refuse points with impossible links, or with lists among the varied parameters."""
    points = [configuration.parameters for configuration in record.configurations]
    links = {repr(link): (number, link) for number, point in enumerate(points) if (link := _link(point))}
    for number, link in links.values():
        budget.check()
        try:
            design.link_of(link)
        except (ValueError, TypeError, ArithmeticError) as error:  # pydantic's are ValueErrors
            reason = error.errors()[0]["msg"] if isinstance(error, ValidationError) else str(error)
            raise BadBundle(f"{name} {BAD}: configurations.{number}: its link: {reason}.") from None
    lists = {key for point in points for key, value in point.items() if isinstance(value, list | dict)}
    for key in sorted(lists):
        if len({repr(point.get(key)) for point in points}) > 1:
            raise BadBundle(f"{name} {BAD}: a list cannot be swept over, as the parameter {key!r} is.")


def _link(parameters: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in parameters.items() if name.startswith("link.")}


def trials_of(archive: Archive, record: ExperimentRecord) -> Iterator[tuple[str, TrialRecord]]:
    """Yield the trials of an experiment with their directories. Raise BadBundle."""
    configurations, clusters = {c.hash for c in record.configurations}, {c.slug for c in record.clusters}
    for directory in record.trials:
        name = f"{directory}/trial.json"
        trial = checked(TrialRecord, archive.json(name), f"{name} {BAD}")
        identity = trial_uid(record.uid, trial.configuration, trial.kind, trial.repetition, trial.attempt)
        if trial.uid != identity:
            raise BadBundle(f"{name} is a trial of another experiment.")
        if trial.configuration not in configurations or (trial.cluster is not None and trial.cluster not in clusters):
            raise BadBundle(f"{name} names a configuration or a cluster that its experiment does not have.")
        if len({file.path for file in trial.files}) < len(trial.files):
            raise BadBundle(f"{name} has a file twice.")
        for file in trial.files:
            if not is_safe_path(file.path) or not is_safe_path(file.name):
                raise BadBundle(f"{name} names a file {file.path[:100]!r} that would lie outside of its trial.")
            if not file.left_out:
                _require_file(archive, f"{directory}/files/{file.path}", file)
        yield directory, trial


def _require_file(archive: Archive, name: str, file: FileRecord) -> None:
    if archive.hashes.get(name) != file.sha256 or archive.size(name) != file.size_bytes:
        raise BadBundle(f"{name} is missing from the bundle, or is not the file that its trial left.")
