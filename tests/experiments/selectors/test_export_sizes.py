"""Tables of any content are written in bounded memory."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from experiments.errors import CannotExplore
from experiments.models import Configuration, Experiment, Measurement, Trial, TrialResult
from experiments.selectors.export.trials import TrialTable
from tests.experiments import factories


@pytest.fixture
def measured(db: None, session_directory: Path) -> Experiment:
    """Four trials with three values each, and a parameter of 500 characters."""
    experiment = factories.experiment()
    for _ in range(experiment.trials.count()):
        factories.analysing().finish(TrialResult({"all": {"elapsed_s": 1.0, "packets": 2.0, "flows": 3.0}}, {}, "good"))
    for row in experiment.configurations.all():
        Configuration.objects.filter(pk=row.pk).update(parameters={**row.parameters, "text": "x" * 500})
    return experiment


@pytest.mark.parametrize("long", [False, True])
def test_frames_of_long_parameters_are_short(measured: Experiment, monkeypatch: pytest.MonkeyPatch, long: bool) -> None:
    """One trial of 2000 values with a text of 390 kB took 2.4 GB of a web process."""
    trials = Trial.objects.filter(experiment=measured)
    (whole,) = TrialTable(trials, long=long).pieces()
    monkeypatch.setattr("experiments.selectors.export.trials._FRAME_BYTES", 2000)
    pieces = list(TrialTable(trials, long=long).pieces())
    assert max(piece.height for piece in pieces) <= 3
    assert pieces[0].vstack(pieces[1]).equals(whole.head(pieces[0].height + pieces[1].height))
    assert sum(piece.height for piece in pieces) == whole.height


def test_imported_metrics_with_names_of_columns_are_in_no_table_of_trials(measured: Experiment) -> None:
    """One ended the export of every table of trials with its project's experiments."""
    trial = Trial.objects.order_by("pk").first()
    assert trial is not None
    odd = {"experiment": 7.0, "superseded": 7.0, "parameter.text": 7.0, "elapsed_s@mpi": 7.0}
    measurements: dict[str, dict[str, float]] = {"all": odd, "mpi": {"elapsed_s": 8.0}}
    Measurement.objects.bulk_create(Measurement.rows(trial.pk, measurements)[0])
    (wide,) = TrialTable(Trial.objects.all()).pieces()
    assert set(wide["experiment"]) == {measured.slug}
    assert wide.filter(pl.col("trial") == trial.pk)["superseded"].to_list() == [7.0]
    assert set(wide["parameter.text"]) == {"x" * 500}
    (long,) = TrialTable(Trial.objects.all(), long=True).pieces()
    assert odd.keys() <= set(long["metric"])


@pytest.mark.parametrize("long", [False, True])
def test_few_trials_of_many_cells_are_read_at_once(
    measured: Experiment, monkeypatch: pytest.MonkeyPatch, long: bool
) -> None:
    table = TrialTable(Trial.objects.all(), long=long)
    monkeypatch.setattr("experiments.selectors.export.trials._MOST_CELLS", 2 * len(table.columns) * (3 if long else 1))
    assert {piece.height for piece in table.pieces()} == {6 if long else 2}


@pytest.mark.parametrize("long", [False, True])
def test_table_has_a_bounded_number_of_columns(
    measured: Experiment, monkeypatch: pytest.MonkeyPatch, long: bool
) -> None:
    limit = "_MOST_LONG" if long else "_MOST_COLUMNS"
    monkeypatch.setattr(f"experiments.selectors.export.trials.{limit}", 9)
    with pytest.raises(CannotExplore, match="more than 9 columns"):
        TrialTable(Trial.objects.all(), long=long)
