"""The table behind every chart of an experiment's page, its result parts among them."""

from __future__ import annotations

from collections.abc import Sequence

from dashboard.charts.panel import Section
from dashboard.charts.tables import ChartTables
from dashboard.panels.experiment.results import Results
from dashboard.panels.parts.charts import part_sections
from experiments.models import Experiment
from experiments.selectors.diagnosis import kept_diagnosis


def charts_of(experiment: Experiment) -> ChartTables:
    """The charts of an experiment's page: those that reports pin, then those of the result parts, whose models take longer."""

    def sections() -> Sequence[Section]:
        kept, _ = kept_diagnosis(experiment)
        return Results(experiment, kept.study if kept else None).sections()

    return ChartTables(experiment.slug, sections, lambda: part_sections(experiment))
