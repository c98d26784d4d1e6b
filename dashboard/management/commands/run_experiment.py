"""Run an experiment from a YAML file and print its results."""

from __future__ import annotations

import argparse
import json
import signal
import time
from functools import partial
from pathlib import Path
from typing import Any, Final

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from analysis.conclusions import render
from analysis.numbers import plural
from dashboard.panels.experiment.text_report import configurations_table, failures
from dashboard.panels.new.preview import forecast_words
from experiments import selectors
from experiments.errors import InvalidSpec
from experiments.library import load_defaults
from experiments.models import Experiment, State
from experiments.selectors.diagnosis import diagnosis_of
from experiments.specification import design, parse_yaml
from workers import preview, queue

POLL_S: Final = 0.3
REPORT_WIDTH: Final = 140
"""Columns of the report in a log file."""


class Command(BaseCommand):
    """``manage.py run_experiment SPEC.yaml``: 0 if all trials in the budget finished."""

    help = __doc__
    requires_system_checks = ()  # they import all pages, which the first trial would wait for

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("specification", type=Path, help="a YAML file")
        parser.add_argument(
            "--go-on", action="store_true", help="run all trials even if the first of a new program fails"
        )
        parser.add_argument("--json", type=Path, metavar="FILE", help="write the full result to FILE")

    def handle(
        self, *args: Any, specification: Path, json: Path | None = None, go_on: bool = False, **options: Any
    ) -> None:
        _require_writable(json)
        experiment = _submit(specification, whatever_fails=go_on)
        console = Console()
        if not console.is_terminal:
            console.width = REPORT_WIDTH
        console.print(f"{experiment.name} ({experiment.slug})")
        if (spec := experiment.spec).goal is not None:
            plan = design.expand(spec)
            for line in forecast_words(spec, preview.forecast_of(spec, plan, preview.estimates(spec, plan))):
                console.print(line, markup=False, highlight=False)
        # SIGTERM cancels the trials, as Ctrl-C does.
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        try:
            _wait(experiment, console)
        except KeyboardInterrupt:
            cancelled = experiment.cancel()
            raise CommandError(
                f"interrupted: {plural(cancelled, 'trial')} cancelled; finished trials stay", returncode=130
            ) from None
        experiment.refresh_from_db()
        if experiment.why_held:
            raise CommandError(_held(experiment, specification))
        console.print(configurations_table(experiment))
        diagnosis = diagnosis_of(experiment)
        for line in render(diagnosis.answer, diagnosis.facts, diagnosis.study.report.cannot_tell):
            console.print(line, markup=False, highlight=False)
        if json is not None:
            _write(json, experiment)
        problems = failures(experiment)
        for line in problems:
            console.print(line, markup=False)
        if problems:
            raise CommandError(
                f"{len(problems)} of {plural(experiment.trials.current().count(), 'trial')} did not finish"
            )


def _held(experiment: Experiment, file: Path) -> str:
    queued = plural(experiment.trials.filter(state=State.QUEUED).count(), "trial")
    return (
        f"{queued} on hold: trials failed, and the others would probably fail for the same reason.\n"
        f"{experiment.why_held}\n\n"
        f"Fix the program or the specification and run it again, or run all trials with script/run --go-on {file}. "
        f"Resume or cancel the trials on hold on the page {experiment.get_absolute_url()}, or resume them with "
        f"script/manage resume {experiment.slug}."
    )


def _submit(file: Path, *, whatever_fails: bool) -> Experiment:
    try:
        text = file.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise CommandError(f"{file}: {getattr(error, 'strerror', None) or 'is not text'}", returncode=2) from None
    try:
        spec = parse_yaml(text, max_trials=settings.MAX_TRIALS)
        return queue.submit(spec, project=load_defaults(), slug=file.stem, whatever_fails=whatever_fails)
    except InvalidSpec as error:
        raise CommandError("\n".join(f"{file}: {e}" for e in error.errors), returncode=2) from None


def _require_writable(file: Path | None) -> None:
    """Raise CommandError before the run instead of after it."""
    if file is not None and not file.absolute().parent.is_dir():
        raise CommandError(f"--json {file}: the directory does not exist", returncode=2)


def _wait(experiment: Experiment, console: Console) -> None:
    if console.is_terminal:
        _show_bar(experiment, console)
    else:
        _print_steps(experiment, console)


def _print_steps(experiment: Experiment, console: Console) -> None:
    """Print a line per finished trial, for log files."""
    printed, reported = -1, 0
    while True:
        progress = _progress(experiment)
        reported = _print_rounds(experiment, console, reported)
        if progress.over != printed:
            printed = progress.over
            console.print(
                f"{progress.over} of {plural(progress.total, 'trial')} ended, {progress.failed} without a result"
            )
        if progress.is_over or progress.is_held:
            return
        time.sleep(POLL_S)


def _print_rounds(experiment: Experiment, console: Console, reported: int) -> int:
    """Print each decided round with its reason; return how many are printed."""
    for row in experiment.rounds.exclude(outcome="").filter(number__gt=reported):
        words = f"round {row.number}, {plural(row.queued, 'trial')}: {row.get_outcome_display().lower()}. {row.reason}"
        console.print(words, markup=False, highlight=False)
        reported = row.number
    return reported


def _progress(experiment: Experiment) -> selectors.Progress:
    experiment.refresh_from_db(fields=["hold"])
    return selectors.progress_of([experiment])[experiment.pk]


def _show_bar(experiment: Experiment, console: Console) -> None:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console) as bar:
        progress = _progress(experiment)
        task = bar.add_task("queued", total=progress.total)
        reported = 0
        while not (progress.is_over or progress.is_held):
            time.sleep(POLL_S)
            progress = _progress(experiment)
            reported = _print_rounds(experiment, console, reported)
            bar.update(task, completed=progress.over, total=progress.total, description=_now(experiment))


def _now(experiment: Experiment) -> str:
    trial = experiment.trials.active().select_related("configuration").first()
    if trial is None:
        return "queued"
    hosts = trial.configuration.hosts
    return f"{State(trial.state).label.lower()}: {plural(hosts, 'host')}, repetition {trial.repetition}"


def _write(file: Path, experiment: Experiment) -> None:
    from dashboard.api.experiments.result import result_text  # loads REST, which the first trial must not wait for

    temporary = file.with_name(f".{file.name}.part")
    with temporary.open("w") as stream:
        stream.writelines(result_text(experiment, partial(json.dumps, indent=1), indent=1))
    temporary.replace(file)
