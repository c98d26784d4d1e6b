"""Bundle writer: experiments in a zip archive that needs no Rankwire to be read."""

from __future__ import annotations

import hashlib
import json
import zipfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import IO, Any, Final

from django.db.models import QuerySet
from django.utils import timezone

from analysis.capture.anonymised import MOST_ADDRESSES, TooManyAddresses
from experiments.errors import CannotExport
from experiments.exchange import rows
from experiments.exchange.archive import MANIFEST
from experiments.exchange.crate import METADATA, Description, Run, WrittenFile, metadata
from experiments.exchange.exporting import BundleOptions, FileExporter
from experiments.exchange.records import FORMAT, Contents, InstallationRecord
from experiments.models import Experiment, Installation, Trial
from experiments.selectors.diagnosis import answers_of
from experiments.selectors.export import frames
from experiments.selectors.export.columns import dimensions
from experiments.selectors.export.trials import TrialTable
from experiments.selectors.quotas import export_limits
from experiments.specification.yaml_lines import dump

CONTENTS: Final = "rankwire.json"
MOST_TRIALS: Final = 10_000
NO_LICENCE: Final = "No licence was stated: ask who made this bundle before you use it in public."
_COMPRESSED: Final = (".zst", ".gz", ".zip", ".xz", ".parquet")
_ABOUT: Final = {
    "specification.yaml": "The specification of the experiment.",
    "trials.csv": "A row for each trial with every parameter and everything measured; trials.csv-metadata.json says what "
    "the columns mean, with units.",
    "answer.json": "The answer to the question that the design asks.",
}


@dataclass(frozen=True, slots=True)
class ChosenTrials:
    """An experiment for a bundle, or (``trials``) some of its trials."""

    experiment: Experiment
    trials: tuple[int, ...] = ()

    def rows(self) -> QuerySet[Trial]:
        """Return its trials that can be exported."""
        of_it = Trial.objects.filter(experiment=self.experiment)
        return rows.over(of_it.filter(pk__in=self.trials) if self.trials else of_it)


@dataclass(slots=True)
class BundleCounts:
    """Counts of a written bundle."""

    experiments: int = 0
    trials: int = 0
    files: int = 0
    left_out: int = 0
    """Files of trials that are not in it: captures that were not asked for, what retention took, what was changed."""


class Writer:
    """An archive with the list of its files; ``exporter`` changes their texts."""

    def __init__(self, stream: IO[bytes], exporter: FileExporter) -> None:
        self.exporter = exporter
        self._zip = zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED, compresslevel=6)
        self.written: list[WrittenFile] = []

    def add(self, name: str, content: bytes, about: str = "") -> None:
        """Add a file with this content."""
        self.stream(name, [self.exporter.text(content)], about)

    def stream(self, name: str, pieces: Iterable[bytes], about: str = "") -> WrittenFile:
        """Add a file whose content comes in pieces."""
        member = zipfile.ZipInfo(name, date_time=timezone.now().timetuple()[:6])
        member.compress_type = zipfile.ZIP_STORED if name.endswith(_COMPRESSED) else zipfile.ZIP_DEFLATED
        member.external_attr = 0o100644 << 16
        digest, size = hashlib.sha256(), 0
        with self._zip.open(member, "w", force_zip64=True) as target:
            for piece in pieces:
                self.exporter.check()
                digest.update(piece)
                size += len(piece)
                target.write(piece)
        self.written.append(WrittenFile(name, size, digest.hexdigest(), about))
        return self.written[-1]

    def close(self, description: bytes) -> None:
        """Add the description and the list of hashes, which ``sha256sum -c`` reads."""
        self.add(METADATA, description)
        listed = "".join(f"{file.sha256}  {file.name}\n" for file in self.written)
        self._zip.writestr(MANIFEST, listed)
        self._zip.close()


def _nothing() -> None:
    """Do nothing."""


def write_bundle(
    stream: IO[bytes], chosen: Sequence[ChosenTrials], options: BundleOptions, *, alive: Callable[[], object] = _nothing
) -> BundleCounts:
    """Write a bundle. Raise CannotExport if it would be empty or too large.

    That of a user (``options.by``) has limits of processor time and of the disk, and calls ``alive`` at least every few seconds.
    """
    check: Callable[[], object] = export_limits(stream, options.by, alive) if options.by else _nothing
    try:
        return _write(stream, chosen, options, check)
    except TooManyAddresses:
        raise CannotExport(f"It has more than {MOST_ADDRESSES} addresses to replace. Choose fewer trials.") from None


def _write(
    stream: IO[bytes], chosen: Sequence[ChosenTrials], options: BundleOptions, check: Callable[[], object]
) -> BundleCounts:
    count = sum(selection.rows().count() for selection in chosen)
    if not count:
        raise CannotExport("No trial of it has ended: there is nothing to take away yet.")
    if count > MOST_TRIALS:
        raise CannotExport(f"{count} trials are more than the {MOST_TRIALS} that one bundle may hold.")
    writer, counts, runs = Writer(stream, FileExporter(options, check)), BundleCounts(), []
    installation, now = Installation.current(), timezone.now()
    directories = [f"experiments/{selection.experiment.slug}" for selection in chosen]
    description = _description(chosen, options, now)
    environments: set[str] = set()
    for selection, directory in zip(chosen, directories, strict=True):
        runs += _experiment(writer, selection, directory, counts, environments)
        description.experiments.append(_about(selection.experiment, directory))
    contents = Contents(
        format=FORMAT,
        installation=InstallationRecord(uid=installation.uid, name=installation.name),
        written_at=now,
        written_by=options.by,
        licence=options.licence or NO_LICENCE,
        captures=options.captures,
        anonymised=options.anonymise,
        experiments=directories,
    )
    writer.add(CONTENTS, _json(contents), "What is in the bundle, for programs.")
    writer.add("README.md", _readme(description).encode(), "What is in the bundle, for people.")
    counts.experiments, counts.files = len(chosen), len(writer.written)
    writer.close(metadata(description, writer.written, runs))
    return counts


def _experiment(
    writer: Writer, chosen: ChosenTrials, directory: str, counts: BundleCounts, environments: set[str]
) -> list[Run]:
    experiment, trials = chosen.experiment, chosen.rows()
    specification = f"{directory}/specification.yaml"
    writer.add(specification, dump(experiment.specification).encode(), _ABOUT["specification.yaml"])
    runs: list[Run] = []
    directories: list[str] = []
    for trial, measured, artifacts in rows.with_artifacts(trials):
        trial_directory = f"{directory}/trials/{len(directories) + 1:05}"
        first = len(writer.written)
        ordered = writer.exporter.in_order(artifacts)
        files = [writer.exporter.artifact(writer, item, trial, f"{trial_directory}/files") for item in ordered]
        counts.left_out += sum(bool(item.left_out) for item in files)
        environment = _environment(writer, trial, environments)
        writer.add(f"{trial_directory}/trial.json", _json(rows.trial_record(trial, measured, environment, files)))
        results = [item.name for item in writer.written[first:] if item.name.startswith(trial_directory)]
        runs.append(_run(trial, specification, results))
        directories.append(trial_directory)
    counts.trials += len(directories)
    clusters = rows.clusters_of(experiment, trials)
    writer.add(f"{directory}/experiment.json", _json(rows.experiment_record(experiment, clusters, directories)))
    answer = answers_of([experiment]).get(experiment.pk)
    if answer is not None:
        writer.add(f"{directory}/answer.json", json.dumps(answer.to_dict()).encode(), _ABOUT["answer.json"])
    _table(writer, trials, directory)
    return runs


def _table(writer: Writer, trials: QuerySet[Trial], directory: str) -> None:
    """Write all measurements as a table, with the meaning of its columns."""
    table = TrialTable(trials)
    pieces = map(writer.exporter.text, frames.as_csv(table.pieces(), table.columns))
    writer.stream(f"{directory}/trials.csv", pieces, _ABOUT["trials.csv"])
    meaning = {**dimensions(table.columns), "url": "trials.csv"}
    writer.add(f"{directory}/trials.csv-metadata.json", json.dumps(meaning, indent=1).encode())


def _environment(writer: Writer, trial: Trial, written_hashes: set[str]) -> str | None:
    if trial.environment is None:
        return None
    written = json.dumps(trial.environment.facts, indent=1).encode()
    masked = writer.exporter.text(written)
    # Other facts are another environment, and imports identify it by its hash.
    digest = trial.environment.hash if masked == written else hashlib.sha256(masked).hexdigest()
    if digest not in written_hashes:
        written_hashes.add(digest)
        writer.add(f"environments/{digest}.json", masked)
    return digest


def _run(trial: Trial, specification: str, results: Sequence[str]) -> Run:
    return Run(
        uid=str(rows.uid_of(trial)),
        name=f"{trial.get_kind_display()} trial, {trial.configuration.hosts} hosts, repetition {trial.repetition}",
        state=trial.state,
        started=trial.running_at.isoformat() if trial.running_at else None,
        ended=trial.ended_at.isoformat() if trial.ended_at else None,
        specification=specification,
        results=results,
        error=trial.message.partition("\n")[0] if trial.state != "finished" else "",
    )


def _about(experiment: Experiment, directory: str) -> dict[str, Any]:
    return {
        "directory": directory,
        "name": _line(experiment.name),
        "uid": experiment.uid,
        "workload": experiment.workload,
        "repeat": f"script/run {directory}/specification.yaml",
    }


def _description(chosen: Sequence[ChosenTrials], options: BundleOptions, now: Any) -> Description:
    names = ", ".join(_line(selection.experiment.name) for selection in chosen)
    cited = "; ".join(_line(_citation(selection.experiment)) for selection in chosen)
    return Description(
        title=names,
        about=f"What was measured in: {names}. Specification, environment, measurements with their units, outputs and captures.",
        licence=options.licence or NO_LICENCE,
        citation=cited,
        by=options.by,
        when=now.date().isoformat(),
        software="Rankwire",
    )


def _line(text: str) -> str:
    """Return a text of users in one line, which begins no paragraph of the README."""
    return " ".join(text.split())


def _citation(experiment: Experiment) -> str:
    source = experiment.source
    if source.get("title"):
        return f"{source.get('authors', '')} ({source.get('year', '')}): {source['title']}".strip()
    who = experiment.owner.get_username() if experiment.owner else experiment.origin.get("owner", "")
    return f"{who + ': ' if who else ''}{experiment.name}. {experiment.created_at:%Y}. urn:uuid:{experiment.uid}"


def _readme(description: Description) -> str:
    listed = [
        f"- `{experiment['directory']}`: {experiment['name']}. To repeat it: `{experiment['repeat']}`"
        for experiment in description.experiments
    ]
    experiments = "\n".join(listed)
    return f"""# {description.title}

{description.about}

{experiments}

Cite as: {description.citation}

Licence: {description.licence}

`sha256sum -c {MANIFEST}` checks that every file is as it was written, `{METADATA}` describes all of them
(https://w3id.org/ro/crate), and `script/manage import FILE` brings them into another Rankwire.
"""


def _json(record: Any) -> bytes:
    return record.model_dump_json(indent=1).encode()  # type: ignore[no-any-return]
