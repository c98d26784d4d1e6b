"""The table behind every chart of an experiment's page, for REST and the command line."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dashboard.charts import Figure
from dashboard.charts.panel import Chart
from dashboard.charts.table import Row, as_csv, table_of
from dashboard.experiment.results import Results
from experiments.models import Experiment
from experiments.selectors.diagnosis import kept_diagnosis


@dataclass(frozen=True, slots=True)
class ChartTable:
    """A chart's numbers as they stand: of the view that it opens with, or of another."""

    name: str
    title: str
    view: str | None
    columns: Sequence[str]
    rows: Sequence[Row]

    def csv(self) -> str:
        return as_csv(self.columns, self.rows)


class Charts:
    """The charts of an experiment's page by the names that reports pin them under."""

    def __init__(self, experiment: Experiment) -> None:
        kept, _ = kept_diagnosis(experiment)
        sections = Results(experiment, kept.study if kept else None).sections()
        self._of = experiment
        self._charts = {chart.element: (section.title, chart) for section in sections for chart in section.charts}

    def listed(self) -> list[dict[str, object]]:
        """Return name, title, section and views of each."""
        return [
            {"name": name, "title": chart.title, "section": section, "views": [view for view, _ in chart.views]}
            for name, (section, chart) in self._charts.items()
        ]

    def table(self, name: str, view: str | None = None) -> ChartTable:
        """Return the table behind a chart. Raise LookupError in words where there is no such chart or view."""
        if name not in self._charts:
            raise LookupError(
                f"{self._of.slug} has no chart {name!r}; it has {', '.join(self._charts) or 'none so far'}"
            )
        _, chart = self._charts[name]
        shown, figure = _view(chart, view)
        return ChartTable(name, chart.title, shown, *table_of(figure))


def _view(chart: Chart, wanted: str | None) -> tuple[str | None, Figure]:
    views = dict(chart.views)
    if wanted is None:
        return (next(iter(views)), chart.figure) if views else (None, chart.figure)
    if wanted not in views:
        raise LookupError(f"{chart.element} has no view {wanted!r}; it has {', '.join(views) or 'one only'}")
    return wanted, views[wanted]
