"""Import of a bundle: checked as a whole, then stored in one transaction.

An experiment keeps its identity (``Experiment.uid``), so that it is not stored twice: of an experiment that was imported before, new
trials are imported; of one that was measured here, none are.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import zstandard
from django.utils.text import slugify

from analysis.numbers import plural
from experiments.access import may_cancel
from experiments.common import budget, strict_json
from experiments.common.storable import storable
from experiments.errors import BadBundle
from experiments.exchange.archive import ELSEWHERE, JSON_BYTES, OF_COMMAND, Archive, Limits, in_pieces
from experiments.exchange.bundle import CONTENTS
from experiments.exchange.file_moves import (
    IN_TRASH,
    begin_import,
    cluster_elsewhere,
    files_with_rows,
    imported_by,
    is_in_trash,
    place_of,
)
from experiments.exchange.incoming import BAD, digest_of, experiment_of, trials_of
from experiments.exchange.records import (
    TRIAL_FIELDS,
    ClusterRecord,
    Contents,
    EnvironmentRecord,
    ExperimentRecord,
    FileRecord,
    TrialRecord,
    checked,
)
from experiments.models import (
    Artifact,
    Cluster,
    Configuration,
    Environment,
    Experiment,
    ExperimentVersion,
    Measurement,
    Project,
    Round,
    Trial,
)
from experiments.models.experiment import free_slug
from experiments.selectors.diagnosis import forget_diagnosis
from experiments.specification.validation import in_todays_words

_UNPACKED_BYTES: Final = 1 << 30
"""Unpacked size of a compressed analysis, profile or trace that a page may read."""


@dataclass(slots=True)
class ImportPlan:
    """The import of one experiment of a bundle."""

    name: str
    uid: uuid.UUID
    note: str = ""
    """Reason why nothing of it is imported, or the part that is here already."""
    trials: int = 0
    """New ones."""
    files: int = 0
    size_bytes: int = 0
    existing: Experiment | None = None
    stored: Experiment | None = None

    def __post_init__(self) -> None:
        self.name = storable(self.name)

    @property
    def words(self) -> str:
        """Return the same as a sentence."""
        if not self.trials:
            return f"{self.name}: {self.note or 'nothing in it is new'}."
        what = f"{plural(self.trials, 'trial')} with {plural(self.files, 'file')}"
        return f"{self.name}: {what}{f'; {self.note}' if self.note else ''}."


@dataclass(slots=True)
class ImportResult:
    """The import of a whole file: a bundle, or (``kind``) external results."""

    installation: str
    """Installation of a bundle; otherwise the file or tool of the results."""
    written_at: Any
    """None if the file does not state it."""
    written_by: str
    licence: str
    arrivals: list[ImportPlan] = field(default_factory=list)
    kind: str = "bundle"
    """``bundle``, ``description`` (a table too) or ``report``, of another tool."""
    left_out: list[str] = field(default_factory=list)
    """A sentence for each excluded run or figure of a report."""

    def __post_init__(self) -> None:
        self.left_out = storable(self.left_out)

    @property
    def trials(self) -> int:
        return sum(plan.trials for plan in self.arrivals)


@dataclass(slots=True)
class _Bundle:
    archive: Archive
    contents: Contents
    sha256: str
    name: str
    limits: Limits
    environments: dict[str, int] = field(default_factory=dict)
    """Keys by their names in the bundle, each read once."""
    expanded_bytes: int = 0
    """Unpacked size of the compressed files that were read so far."""


def import_bundle(
    path: Path,
    *,
    project: Project,
    owner: Any = None,
    dry_run: bool = False,
    name: str = "",
    limits: Limits = OF_COMMAND,
) -> ImportResult:
    """Import the bundle at ``path``; with ``dry_run`` only report the result.

    Every file is compared with its hash before anything is stored. Raise BadBundle, or OSError if the file is missing.
    """
    with Archive.opened(path, limits) as archive:
        archive.verify()
        contents = checked(Contents, archive.json(CONTENTS), f"{CONTENTS} {BAD}")
        bundle = _Bundle(archive, contents, digest_of(path), name or path.name, limits)
        result = ImportResult(contents.installation.name, contents.written_at, contents.written_by, contents.licence)
        records = _experiments(archive, contents, limits)
        if len({record.uid for record in records}) < len(records):
            raise BadBundle("An experiment is in the bundle twice.")
        if sum(len(record.clusters) for record in records) > limits.clusters:
            raise BadBundle(f"Its experiments ran on more than {limits.clusters} clusters. {ELSEWHERE}")
        for record in records:
            result.arrivals.append(_compared(archive, record, project, owner))
        if not dry_run and result.trials:
            _store_all(bundle, records, result, project, owner)
    return result


def _experiments(archive: Archive, contents: Contents, limits: Limits) -> list[ExperimentRecord]:
    """Return all experiments, which are in memory at once. Raise BadBundle."""
    most = limits.description_bytes
    names = {f"{directory}/experiment.json" for directory in contents.experiments}
    if sum(archive.size(name) for name in names & archive.hashes.keys()) > most:
        raise BadBundle(f"Its experiments are described in more than {most >> 20} MiB. {ELSEWHERE}")
    records = [experiment_of(archive, directory) for directory in contents.experiments]
    trials = {f"{directory}/trial.json" for record in records for directory in record.trials} & archive.hashes.keys()
    if sum(map(archive.size, trials)) > limits.trial_bytes:
        raise BadBundle(f"Its trials are described in more than {limits.trial_bytes >> 20} MiB. {ELSEWHERE}")
    return records


def _key(trial: TrialRecord) -> tuple[str, str, int, int]:
    return trial.configuration, trial.kind, trial.repetition, trial.attempt


def _known_trials(experiment: Experiment) -> set[tuple[str, str, int, int]]:
    return set(experiment.trials.values_list("configuration__hash", "kind", "repetition", "attempt"))


def _compared(archive: Archive, record: ExperimentRecord, project: Project, owner: Any) -> ImportPlan:
    """Return the new trials of an experiment that ``owner`` may change."""
    plan = ImportPlan(record.name, record.uid)
    plan.existing = existing = Experiment.objects.filter(uid=record.uid).first()
    is_of_others = existing is not None and owner is not None and not may_cancel(owner, existing)
    blocked = existing is not None and (not existing.is_imported or existing.project_id != project.pk or is_of_others)
    if existing is None and is_in_trash(record.uid):
        blocked, plan.note = True, IN_TRASH
    elif existing is not None and not existing.is_imported:
        plan.note = "it was measured here, and is not imported"
    elif existing is not None and existing.project_id != project.pk:
        plan.note = "another project of this installation has it already"
    elif blocked:
        plan.note = "another user imported it: that user and maintainers of the project may add to it"
    known_trials = _known_trials(existing) if existing is not None else set()
    seen: set[tuple[str, str, int, int]] = set()
    here = 0
    for _, trial in trials_of(archive, record):
        if _key(trial) in seen:
            raise BadBundle(f"{record.name}: a trial is in the bundle twice.")
        seen.add(_key(trial))
        if blocked:
            continue
        if _key(trial) in known_trials:
            here += 1
            continue
        plan.trials += 1
        plan.files += sum(not file.left_out for file in trial.files)
        plan.size_bytes += sum(file.size_bytes for file in trial.files if not file.left_out)
    if here:
        plan.note = f"{plural(here, 'trial')} of it {'is' if here == 1 else 'are'} here already"
    return plan


def _store_all(
    bundle: _Bundle, records: Sequence[ExperimentRecord], result: ImportResult, project: Project, owner: Any
) -> None:
    with files_with_rows() as scratch:
        for record, plan in zip(records, result.arrivals, strict=True):
            if plan.trials:
                _store(bundle, record, plan, project, owner, scratch)
    for plan in result.arrivals:
        if plan.stored is not None:
            forget_diagnosis(plan.stored)


def _store(
    bundle: _Bundle, record: ExperimentRecord, plan: ImportPlan, project: Project, owner: Any, scratch: Path
) -> None:
    begin_import(project, record.uid, existing=plan.existing)
    experiment = plan.existing
    if experiment is not None:
        experiment.wait_for_others()
    clusters = {cluster.slug: _cluster(cluster, bundle.contents, project) for cluster in record.clusters}
    cluster = clusters[record.cluster] if record.cluster is not None else None
    origin = _origin(bundle, record, owner)
    if experiment is None:
        experiment = Experiment(uid=record.uid, project=project, owner=owner, slug=_free_slug(record.slug, project))
        _describe(experiment, record, cluster, origin)
        experiment.save(force_insert=True)
        Experiment.objects.filter(pk=experiment.pk).update(created_at=record.created_at)
    elif record.version >= experiment.version:
        _describe(experiment, record, cluster, origin)
        experiment.save()
    newest = record.version >= experiment.version
    _versions(experiment, record)
    _rounds(experiment, record)
    configurations = _configurations(experiment, record, newest=newest)
    known_trials = _known_trials(experiment)
    for directory, trial in trials_of(bundle.archive, record):
        if _key(trial) in known_trials:
            if newest:
                same = {"configuration": configurations[trial.configuration], "kind": trial.kind}
                same_trials = experiment.trials.filter(**same, repetition=trial.repetition, attempt=trial.attempt)
                same_trials.exclude(superseded=trial.superseded).update(superseded=trial.superseded)
            continue
        row = _trial(bundle, experiment, trial, configurations, clusters)
        _files(bundle, f"{directory}/files", row, trial, scratch)
    plan.stored = experiment
    experiment.note_imported()


def _free_slug(slug: str, project: Project) -> str:
    # Without the project's name that another installation put before it.
    return free_slug(slugify(slug.rpartition("--")[2]) or "imported", project)


def _describe(
    experiment: Experiment, record: ExperimentRecord, cluster: Cluster | None, origin: Mapping[str, Any]
) -> None:
    experiment.name, experiment.workload, experiment.cluster = storable(record.name), storable(record.workload), cluster
    experiment.version, experiment.tags = record.version, storable(record.tags)
    experiment.specification = storable(in_todays_words(record.specification))
    experiment.specification_hash = record.specification_hash
    experiment.source, experiment.origin = storable(record.source), storable(origin)


def _origin(bundle: _Bundle, record: ExperimentRecord, owner: Any) -> dict[str, Any]:
    """Return the origin of an experiment; an earlier one is kept below ``before``."""
    contents = bundle.contents
    return {
        "kind": "bundle",
        "installation": contents.installation.name,
        "installation_uid": str(contents.installation.uid),
        "slug": record.slug,
        "owner": record.owner,
        "written_at": contents.written_at.isoformat(),
        **contents.model_dump(include={"written_by", "licence", "captures", "anonymised"}),
        **imported_by(owner),
        "file": bundle.name,
        "sha256": bundle.sha256,
        **({"before": record.origin} if record.origin else {}),
    }


def _cluster(record: ClusterRecord, contents: Contents, project: Project) -> Cluster:
    """Return the row of a cluster of another installation."""
    if record.elsewhere:
        slug, name = record.slug, record.name
    else:
        uid = f"{contents.installation.uid.hex[:8]}"
        slug, name = f"{record.slug[:70]}-{uid}", f"{record.name} of {contents.installation.name}"
    return cluster_elsewhere(slug, name, record.kind, record.facts, project)


def _versions(experiment: Experiment, record: ExperimentRecord) -> None:
    numbers_here = set(experiment.versions.values_list("number", flat=True))
    numbers = [version.number for version in record.versions]
    if len(set(numbers)) < len(numbers):
        raise BadBundle(f"{record.name}: a version is in the bundle twice.")
    for version in record.versions:
        if version.number not in numbers_here:
            row = experiment.versions.create(
                number=version.number,
                specification=storable(in_todays_words(version.specification)),
                hash=version.hash,
            )
            ExperimentVersion.objects.filter(pk=row.pk).update(created_at=version.created_at)


def _rounds(experiment: Experiment, record: ExperimentRecord) -> None:
    numbers = [row.number for row in record.rounds]
    if len(set(numbers)) < len(numbers):
        raise BadBundle(f"{record.name}: a round is in the bundle twice.")
    numbers_here = set(experiment.rounds.values_list("number", flat=True))
    Round.objects.bulk_create(
        Round(experiment=experiment, **storable(row.model_dump()))
        for row in record.rounds
        if row.number not in numbers_here
    )


def _configurations(experiment: Experiment, record: ExperimentRecord, *, newest: bool) -> dict[str, int]:
    rows = {row.hash: row for row in experiment.configurations.all()}
    new = [
        Configuration(experiment=experiment, **storable(configuration.model_dump()))
        for configuration in record.configurations
        if configuration.hash not in rows
    ]
    Configuration.objects.bulk_create(new, batch_size=2000)
    if newest:
        for configuration in record.configurations:
            if (row := rows.get(configuration.hash)) is not None:
                row.position, row.in_design = configuration.position, configuration.in_design
        Configuration.objects.bulk_update(rows.values(), ["position", "in_design"], batch_size=2000)
    return dict(experiment.configurations.values_list("hash", "pk"))


def _trial(
    bundle: _Bundle,
    experiment: Experiment,
    record: TrialRecord,
    configurations: Mapping[str, int],
    clusters: Mapping[str, Cluster],
) -> Trial:
    row = Trial.objects.create(
        experiment=experiment,
        configuration_id=configurations[record.configuration],
        cluster=clusters[record.cluster] if record.cluster is not None else None,
        environment_id=_environment(bundle, record),
        **{name: storable(getattr(record, name)) for name in TRIAL_FIELDS},
    )
    Measurement.objects.bulk_create(Measurement.rows(row.pk, {**record.measurements})[0])  # type: ignore[dict-item]
    return row


def _environment(bundle: _Bundle, record: TrialRecord) -> int | None:
    if record.environment is None:
        return None
    if record.environment not in bundle.environments:
        name = f"environments/{record.environment}.json"
        facts = checked(EnvironmentRecord, bundle.archive.json(name), f"{name} {BAD}").root
        bundle.environments[record.environment] = Environment.store(storable(facts)).pk
    return bundle.environments[record.environment]


def _files(bundle: _Bundle, directory: str, trial: Trial, record: TrialRecord, scratch: Path) -> None:
    """Unpack the files of a trial to wait for their move, and store their rows."""
    waiting, place_in_store = place_of(trial, scratch)
    rows = []
    for file in record.files:
        if file.left_out:
            continue
        target = waiting / file.path
        bundle.archive.unpack(f"{directory}/{file.path}", target)
        bundle.expanded_bytes += _readable_bytes(target, f"{directory}/{file.path}", file, bundle.limits)
        if bundle.expanded_bytes > (most := bundle.limits.expanded_bytes):
            raise BadBundle(f"Its compressed files become more than {most >> 20} MiB when they are unpacked.")
        path = f"{place_in_store}/{file.path}"
        fields = {"name": file.name, "size_bytes": file.size_bytes, "sha256": file.sha256}
        rows.append(Artifact(trial=trial, kind=file.kind, path=path, **fields))
    names = [row.name for row in rows]
    if len(set(names)) < len(names):
        raise BadBundle(f"{directory} has two files of one name.")
    Artifact.objects.bulk_create(rows)


def _readable_bytes(target: Path, name: str, file: FileRecord, limits: Limits) -> int:
    """Return the unpacked size of a file that pages read. Raise BadBundle.

    Its name or kind decides, not its path.
    """
    is_json = file.kind == "analysis" or file.name.endswith(".json.zst")
    if not is_json and (file.kind == "capture" or not (file.name.endswith(".zst") or file.path.endswith(".zst"))):
        return 0
    size, last = 0, b""
    most_json = JSON_BYTES if file.kind == "analysis" else 2 * JSON_BYTES
    try:
        with target.open("rb") as stream, zstandard.ZstdDecompressor().stream_reader(stream) as reader:
            for piece in in_pieces(reader):
                budget.check()
                size += len(piece)
                if size > _UNPACKED_BYTES:
                    raise BadBundle(f"{name} becomes more than {_UNPACKED_BYTES >> 20} MiB when it is unpacked.")
                if is_json and size <= most_json:
                    last += piece
        strict_json.require_few_values(last, limits.json_values)
        if is_json and (size > most_json or not isinstance(json.loads(last), dict)):
            what = "analysis of a capture" if file.kind == "analysis" else "table of a trial"
            raise BadBundle(f"{name} is no {what}.")
    except (zstandard.ZstdError, ValueError, RecursionError) as error:
        raise BadBundle(f"{name} cannot be read: {error}.") from None
    return size
