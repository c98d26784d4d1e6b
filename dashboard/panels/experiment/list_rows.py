"""Experiments in lists: sweep, sparkline, progress, in few queries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from analysis.conclusions import Answer
from analysis.conclusions.wording import lower_first
from analysis.numbers import plural
from dashboard.charts.marks import Spark, sparkline
from dashboard.labels import parameter_label, value_words, workload_title
from dashboard.panels.new.draft import holds_text
from dashboard.states import BEST
from experiments.metrics import deciding_metric, described
from experiments.models import Experiment, Status, Summary
from experiments.selectors import Progress, progress_of
from experiments.selectors.diagnosis import last_strengths
from experiments.specification.ranges import expand_values

# More points are not readable at 112 pixels.
MOST_SPARK_POINTS = 60
_ELAPSED: Final = "elapsed_s"


@dataclass(frozen=True, slots=True)
class ExperimentRow:
    """One row of a list of experiments."""

    experiment: Experiment
    progress: Progress
    sweep: str
    spark: Spark | None
    answer: Answer | None = None
    """The answer; None if the list shows none, or the experiment has none yet."""

    @property
    def workload(self) -> str:
        return workload_title(self.experiment.workload)

    @property
    def state(self) -> str:
        """Return the state of the chip; failures come first."""
        return "published" if self.experiment.published else chip_state(self.progress)

    @property
    def words(self) -> str:
        return chip_words(self.progress) if not self.experiment.published else ""


def chip_state(progress: Progress) -> str:
    """Return the chip of an experiment as a whole (dashboard.states)."""
    if _is_incomplete(progress):
        return "incomplete"
    if progress.status == Status.RUNNING and progress.queued and not progress.active:
        return Status.WAITING
    return "partial" if _is_partial(progress) else progress.status


def chip_words(progress: Progress) -> str:
    """Return the words of the chip if its state needs more than one."""
    if progress.paused and progress.active:
        return "Running, then paused"
    if _is_partial(progress):
        return f"Finished, {plural(progress.stopped, 'trial')} cancelled"
    if not _is_incomplete(progress):
        return ""
    return f"Finished, {plural(progress.failed, 'trial')} failed"


def _is_incomplete(progress: Progress) -> bool:
    return progress.status == Status.FINISHED and progress.failed > 0


def _is_partial(progress: Progress) -> bool:
    return progress.status == Status.FINISHED and progress.stopped > 0 and not progress.failed


def experiment_rows(
    experiments: Sequence[Experiment], answers: Mapping[int, Answer] | None = None
) -> list[ExperimentRow]:
    """Return rows in the given order, with their ``answers``; two queries.

    The best point of a curve is marked if the answer names one.
    """
    progress = progress_of(experiments)
    # One line would join curves of several factors.
    drawn = [e for e in experiments if len(e.specification.get("sweep", {})) <= 1 or e.specification.get("zip")]
    curves = _deciding_curves(drawn)
    strengths = last_strengths(experiments) if answers is None else {pk: a.strength for pk, a in answers.items()}
    rows = []
    for e in experiments:
        metric, values = curves.get(e.pk, ("", []))
        drawn_values, is_marked = values[:MOST_SPARK_POINTS], e.published or strengths.get(e.pk) in BEST
        spark = sparkline(drawn_values, of=_spark_title(metric), highest=_is_rate(metric), is_marked=is_marked)
        rows.append(ExperimentRow(e, progress[e.pk], sweep_words(e), spark, (answers or {}).get(e.pk)))
    return rows


def _deciding_curves(experiments: Sequence[Experiment]) -> dict[int, tuple[str, list[float]]]:
    """Return the deciding metric, or the elapsed time, and its medians."""
    deciding = {e.pk: deciding_metric(e.workload, e.specification) for e in experiments}
    rows = Summary.objects.filter(
        configuration__experiment__in=list(deciding),
        configuration__in_design=True,
        metric__in={_ELAPSED, *deciding.values()},
        scope="all",
    ).order_by("configuration__experiment", "configuration__position", "configuration")
    curves: dict[tuple[int, str], list[float]] = {}
    for experiment, metric, median in rows.values_list("configuration__experiment_id", "metric", "median"):
        curves.setdefault((experiment, metric), []).append(median)
    return {
        pk: (name, curves[pk, name])
        for pk, metric in deciding.items()
        if (name := metric if (pk, metric) in curves else _ELAPSED if (pk, _ELAPSED) in curves else "")
    }


def _is_rate(metric: str) -> bool:
    return bool(metric) and described(metric).direction == "higher"


def _spark_title(metric: str) -> str:
    return lower_first(described(metric).label) if metric else ""


def sweep_words(experiment: Experiment) -> str:
    """Return the sweep: 'hosts 1–4', 'hosts 2–12 × MTU 1500, 9000'."""
    written = _published_sweep(experiment) if experiment.published else experiment.specification.get("sweep", {})
    parts = [
        f"{_short_label(name)} {_values(name, values, text=holds_text(experiment.specification, name))}"
        for name, values in written.items()
    ]
    return " × ".join(parts) or "one configuration"


def _published_sweep(experiment: Experiment) -> dict[str, list[Any]]:
    sweep: dict[str, list[Any]] = {}
    rows = [row for table in experiment.specification.get("tables", []) for row in table.get("rows", [])]
    for row in rows:
        for name, value in row.get("parameters", {}).items():
            if value not in sweep.setdefault(name, []):
                sweep[name].append(value)
    # The database does not store the order of names: those with the most values come first.
    varying = sorted((item for item in sweep.items() if len(item[1]) > 1), key=lambda item: -len(item[1]))
    return dict(varying[:2])


def _short_label(name: str) -> str:
    label = parameter_label(name)
    return label if label.isupper() else label.lower()


def _values(name: str, written: Any, *, text: bool) -> str:
    if isinstance(written, list) and len(written) > 4 and not all(isinstance(v, int | float) for v in written):
        return f"in {len(written)} steps"
    try:
        # A zip repeats values: the others would hide behind them.
        values = list(dict.fromkeys(expand_values(written, text=text)))
    except ValueError:
        return str(written)
    if len(values) <= 2 or not all(isinstance(v, int | float) for v in values):
        return ", ".join(value_words(name, v) for v in values[:4]) + ("…" if len(values) > 4 else "")
    return f"{value_words(name, min(values))}\u2013{value_words(name, max(values))}"
