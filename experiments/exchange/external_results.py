"""Import of external results: workloads parse outputs, the decoder reads captures."""

from __future__ import annotations

import hashlib
import json
import uuid
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final

from django.conf import settings
from django.db import transaction
from django.utils.text import slugify

import analysis
from analysis import numbers
from analysis.catalogue import METRICS
from experiments import workloads
from experiments.common import budget, plain_files
from experiments.common.storable import storable
from experiments.common.strict_json import MOST_VALUES
from experiments.errors import BadBundle, FieldError, InvalidSpec, NotPlain, OutputError
from experiments.exchange.archive import ELSEWHERE, JSON_BYTES, OF_COMMAND, write_new
from experiments.exchange.exporting import pieces_of
from experiments.exchange.file_moves import (
    IN_TRASH,
    begin_import,
    cluster_elsewhere,
    files_with_rows,
    imported_by,
    is_in_trash,
    place_of,
)
from experiments.exchange.import_plan import ImportPlan
from experiments.exchange.importers import read_report
from experiments.exchange.measured import DescribedRuns, DescribedTrial, checked, ranks_of, read_measured
from experiments.exchange.table import read_table
from experiments.files import ANALYSIS_NAME, write_analysis
from experiments.models import (
    Artifact,
    Cluster,
    Configuration,
    Experiment,
    Measurement,
    Project,
    State,
    Trial,
)
from experiments.models.experiment import free_slug
from experiments.specification.design import configuration_hash
from experiments.workloads.base import Contradiction

_NAMESPACE: Final = uuid.UUID("7b0e3c52-3d0c-5b8e-9a64-2f1d0c6f4e11")
_FROM_PACKETS: Final = ("volume", "interarrival", "tcp")
_NO_CAPTURE: Final = "it was imported without a capture"
_DESCRIPTION_BYTES: Final = 200_000
_TABLE_BYTES: Final = 2_000_000
_REPORT_BYTES: Final = JSON_BYTES


@dataclass(slots=True)
class _Read:
    """Results of one trial."""

    figures: dict[str, float] = field(default_factory=dict)
    of_mpi: dict[str, float] = field(default_factory=dict)
    tables: Mapping[str, Any] = field(default_factory=dict)
    not_available: dict[str, str] = field(default_factory=dict)
    trust: str = ""
    trust_reasons: Sequence[str] = ()
    capture: analysis.CaptureAnalysis | None = None


def import_description(
    path: Path,
    *,
    project: Project,
    owner: Any = None,
    dry_run: bool = False,
    content_bytes: int = OF_COMMAND.content_bytes,
) -> ImportPlan:
    """Import a description with its files; with ``dry_run`` only report the result.

    ``path`` may be a table (.csv, one row a trial); its description is the .yaml of the same name. The same description with the same
    files is one experiment, however often it is imported. Raise InvalidSpec at its fields, BadBundle, or OSError if ``path`` is missing.
    """
    text, table = _texts(path)
    described, points = read_measured(text, table)
    try:
        whole = text if table is None else f"{text}\0{table}"
        return _import(path, whole, described, points, project, owner, dry_run, content_bytes=content_bytes)
    except InvalidSpec as error:
        if table is None:
            raise
        rows = read_table(table)
        raise InvalidSpec(map(rows.placed, error.errors)) from None


def import_report(
    path: Path, *, project: Project, owner: Any = None, dry_run: bool = False, most_values: int = MOST_VALUES
) -> tuple[list[ImportPlan], list[str]]:
    """Import a result file of another tool; return plans and exclusions."""
    try:
        content = plain_files.read_utf8(path, limit_bytes=_REPORT_BYTES)
    except NotPlain as error:
        raise BadBundle(f"{error}.") from None
    report = read_report(content, most_values)
    provenance = {"tool": report.tool, "sha256": hashlib.sha256(content.encode()).hexdigest()}
    described = []
    for data in report.sets:
        try:
            described.append((json.dumps(data, sort_keys=True), *checked(data)))
        except InvalidSpec as error:
            raise BadBundle(f"{data['name']}: {error}.") from None
    with transaction.atomic():
        plans = [
            _import(path, text, runs, points, project, owner, dry_run, provenance) for text, runs, points in described
        ]
    return plans, report.left_out.sentences()


def _import(
    path: Path,
    text: str,
    described: DescribedRuns,
    points: Sequence[dict[str, Any]],
    project: Project,
    owner: Any,
    dry_run: bool,
    provenance: Mapping[str, Any] | None = None,
    content_bytes: int = 0,
) -> ImportPlan:
    digest = _digest(text, described, path.parent, content_bytes)
    plan = ImportPlan(described.name, uuid.uuid5(_NAMESPACE, digest))
    plan.existing = Experiment.objects.filter(uid=plan.uid).first()
    if plan.existing is not None:
        plan.note = "it is here already"
        return plan
    if is_in_trash(plan.uid):
        plan.note = IN_TRASH
        return plan
    # Everything is read before anything is stored: one unreadable output refuses all of it.
    read = [_read(described, number, points[number], path.parent) for number in range(len(points))]
    plan.trials = len(read)
    plan.files = sum(len(trial.places) for trial in described.trials)
    origin = {**_origin(described, path, digest, owner), **(provenance or {})}
    rows = partial(_store, described, points, read, plan.uid, origin, project, owner)
    if dry_run:
        with transaction.atomic():
            rows()  # whatever the database refuses is refused now
            transaction.set_rollback(True)
        return plan
    with files_with_rows() as scratch:
        plan.stored = rows()
        _place_files(plan.stored, described, read, path.parent, scratch)
    return plan


def _texts(path: Path) -> tuple[str, str | None]:
    """Return the description and the table, if any. Raise BadBundle or OSError."""
    try:
        if path.suffix != ".csv":
            return plain_files.read_utf8(path, limit_bytes=_DESCRIPTION_BYTES), None
        table = plain_files.read_utf8(path, limit_bytes=_TABLE_BYTES)
        description = path.with_suffix(".yaml")
        try:
            return plain_files.read_utf8(description, limit_bytes=_DESCRIPTION_BYTES), table
        except FileNotFoundError:
            words = f"A table needs {description.name} in its directory, with at least name, workload and cluster; it is missing."
            raise BadBundle(words) from None
    except NotPlain as error:
        raise BadBundle(f"{error}.") from None


def _digest(text: str, described: DescribedRuns, directory: Path, content_bytes: int) -> str:
    """Return the hash of the description and its files. Raise InvalidSpec, BadBundle.

    A file that many trials name is stored for each of them, so that its bytes count as often.
    """
    digest = hashlib.sha256(text.encode())
    remaining = content_bytes
    for number, trial in enumerate(described.trials):
        for field_name, file in trial.places:
            try:
                for piece in pieces_of(directory / file):
                    budget.check()
                    remaining -= len(piece)
                    if remaining < 0:
                        raise BadBundle(f"Its trials have more than {content_bytes >> 20} MiB of files. {ELSEWHERE}")
                    digest.update(piece)
            except (NotPlain, OSError) as error:
                why = error.strerror if isinstance(error, OSError) else error
                raise InvalidSpec([FieldError(f"trials.{number}.{field_name}", f"{file}: {why}")]) from None
    return digest.hexdigest()


def _read(described: DescribedRuns, number: int, point: Mapping[str, Any], directory: Path) -> _Read:
    budget.check()
    trial = described.trials[number]
    read = _Read(figures=dict(trial.figures))
    if trial.output is not None:
        _read_output(described, number, point, directory, read)
    if trial.capture is None:
        read.not_available = {m.id: _NO_CAPTURE for m in METRICS.values() if m.section in _FROM_PACKETS}
        return read
    try:
        # In this thread: a second one's processor time would not count as the request's.
        read.capture = analysis.analyse(directory / trial.capture, progress=lambda *_: budget.check(), one_thread=True)
    except analysis.CaptureError as error:
        why = str(error).replace(str(directory / trial.capture), trial.capture)  # a path of this machine
        raise InvalidSpec([FieldError(f"trials.{number}.capture", why)]) from None
    read.figures, read.of_mpi = {**read.capture.metrics, **read.figures}, dict(read.capture.mpi.metrics)
    read.not_available = dict(read.capture.not_available)
    read.trust, read.trust_reasons = read.capture.trust.verdict, read.capture.trust.reasons
    return read


def _read_output(described: DescribedRuns, number: int, point: Mapping[str, Any], directory: Path, read: _Read) -> None:
    trial, at = described.trials[number], f"trials.{number}.output"
    limit = int(settings.OUTPUT_LIMIT_BYTES)
    try:
        texts = {
            file: plain_files.read_text(directory / file, limit_bytes=limit)
            for file in [trial.output or "", *trial.files]
        }
        printed = texts.pop(trial.output or "")
        by_name = {file.rpartition("/")[2]: text for file, text in texts.items()}
        requested = {**point, "ranks": ranks_of(dict(point))}
        parsed = workloads.get(described.workload, point).read(printed, by_name, requested)
    except Contradiction as error:
        raise InvalidSpec([_contradicted(described, number, error)]) from None
    except (OutputError, NotPlain) as error:
        raise InvalidSpec([FieldError(at, str(error))]) from None
    for name, value in parsed.figures.items():
        if name in trial.figures and trial.figures[name] != value:
            values = numbers.significant(value), numbers.significant(trial.figures[name])
            words = f"the output says {values[0]}, not {values[1]}: leave the figure out, or the output"
            raise InvalidSpec([FieldError(f"trials.{number}.figures.{name}", words)])
    read.figures |= parsed.figures
    read.tables = parsed.tables


def _contradicted(described: DescribedRuns, number: int, error: Contradiction) -> FieldError:
    """Return the error at the parameter that the output contradicts."""
    trial, name = described.trials[number], error.name
    at = f"trials.{number}.output"
    if name in trial.parameters:
        at = f"trials.{number}.parameters.{name}"
    elif name in described.parameters:
        at = f"parameters.{name}"
    how = "" if name in {**described.parameters, **trial.parameters} else "; ranks are hosts times ranks_per_host"
    return FieldError(at, f"{trial.output} says that {error.words}{how}")


def _origin(described: DescribedRuns, path: Path, digest: str, owner: Any) -> dict[str, Any]:
    return {
        "kind": "description",
        "file": path.name,
        "source": described.source,
        "licence": described.licence,
        "sha256": digest,
        **imported_by(owner),
    }


def _store(
    described: DescribedRuns,
    points: Sequence[dict[str, Any]],
    read: Sequence[_Read],
    uid: uuid.UUID,
    origin: Mapping[str, Any],
    project: Project,
    owner: Any,
) -> Experiment:
    begin_import(project, uid, existing=None)
    # Real hosts, of which nothing else is known.
    slug = f"{slugify(described.cluster)[:60] or 'cluster'}-elsewhere"
    cluster = cluster_elsewhere(slug, described.cluster, "ssh", {}, project)
    specification = _specification(described, points, cluster)
    digest = configuration_hash(described.workload, specification)
    experiment = Experiment.objects.create(
        uid=uid,
        project=project,
        owner=owner,
        slug=free_slug(slugify(described.name) or "imported", project),
        name=storable(described.name),
        workload=described.workload,
        cluster=cluster,
        specification=specification,
        specification_hash=digest,
        tags=described.tags,
        origin=storable(dict(origin)),
    )
    experiment.versions.create(number=1, specification=specification, hash=digest, author=owner)
    hashes = [configuration_hash(described.workload, point) for point in points]
    rows: dict[str, Configuration] = {}
    repetitions: Counter[str] = Counter()
    for number, (trial, key, point) in enumerate(zip(described.trials, hashes, points, strict=True), start=1):
        if key not in rows:
            fields = {"parameters": storable(dict(point)), "hosts": point["hosts"], "ranks": ranks_of(point)}
            rows[key] = experiment.configurations.create(hash=key, position=len(rows), **fields)
        repetitions[key] += 1
        _store_trial(experiment, rows[key], trial, read[number - 1], repetitions[key], number)
    experiment.note_imported()
    return experiment


def _specification(described: DescribedRuns, points: Sequence[Mapping[str, Any]], cluster: Cluster) -> dict[str, Any]:
    """Return constant and varied parameters in the shape of a specification."""
    names = list(dict.fromkeys(name for point in points for name in point))
    # By their JSON: true is not 1, and lists are no keys.
    by_name = {name: {json.dumps(point[name]): point[name] for point in points if name in point} for name in names}
    values = {name: list(distinct.values()) for name, distinct in by_name.items()}
    return storable(  # type: ignore[no-any-return]
        {
            "name": described.name,
            "workload": described.workload,
            "parameters": {name: distinct[0] for name, distinct in values.items() if len(distinct) == 1},
            "sweep": {name: distinct for name, distinct in values.items() if len(distinct) > 1},
            "cluster": cluster.slug,
            "tags": described.tags,
        }
    )


def _store_trial(
    experiment: Experiment,
    configuration: Configuration,
    trial: DescribedTrial,
    read: _Read,
    repetition: int,
    position: int,
) -> None:
    row = Trial.objects.create(
        experiment=experiment,
        configuration=configuration,
        cluster=experiment.cluster,
        repetition=repetition,
        position=position,
        state=State.FINISHED,
        ended_at=trial.ended_at,
        command=storable(trial.command),
        trust=read.trust,
        trust_reasons=list(read.trust_reasons),
        not_available={name: why for name, why in read.not_available.items() if name not in read.figures},
        tables=storable(dict(read.tables)),
    )
    measured = {"all": read.figures, "mpi": read.of_mpi}
    Measurement.objects.bulk_create(Measurement.rows(row.pk, measured)[0])


def _place_files(
    experiment: Experiment, described: DescribedRuns, read: Sequence[_Read], directory: Path, scratch: Path
) -> None:
    """Copy the files of every trial, analyse captures, and store the rows."""
    kinds = {"output": Artifact.Kind.STDOUT, "capture": Artifact.Kind.CAPTURE}
    rows: list[Artifact] = []
    for trial, described_trial, result in zip(
        experiment.trials.order_by("position"), described.trials, read, strict=True
    ):
        waiting, final = place_of(trial, scratch)
        for field_name, file in described_trial.places:
            target = waiting / file.rpartition("/")[2]
            write_new(target, pieces_of(directory / file))
            rows.append(_moved(trial, kinds.get(field_name, Artifact.Kind.OTHER), target, final))
        if result.capture is not None:
            write_analysis(waiting / ANALYSIS_NAME, {**result.capture.to_dict(), "legacy_2011": None})
            rows.append(_moved(trial, Artifact.Kind.ANALYSIS, waiting / ANALYSIS_NAME, final))
    Artifact.objects.bulk_create(rows)


def _moved(trial: Trial, kind: str, file: Path, final: str) -> Artifact:
    """Return the row of a file as it will be after its move."""
    row = Artifact.describe(trial.pk, kind, file)
    row.path = f"{final}/{file.name}"
    return row
