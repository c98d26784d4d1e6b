"""Transfer and serialisation efficiency from ideal-network runs."""

from __future__ import annotations

import pytest

from experiments.errors import InvalidSpec
from experiments.library import load_defaults
from experiments.metrics import FROM_TWINS
from experiments.models import Kind, Project, State, Summary, Trial, TrialValues
from experiments.models.experiment import cluster_for
from experiments.selectors.study import study_of
from experiments.specification import design, parse
from experiments.specification.parameters import Link
from tests.experiments.selectors.twins import SPEC, committed, submitted


@pytest.fixture
def library(db: None) -> Project:
    return load_defaults()


def efficiencies(trial: Trial) -> list[float]:
    values = dict(trial.measurements.filter(metric__in=FROM_TWINS).values_list("metric", "value"))
    return [values[name] for name in FROM_TWINS if name in values]


def test_a_configuration_gets_one_twin_after_its_first_trial() -> None:
    kinds = [trial.kind for trial in design.expand(parse({**SPEC, "control": True})).trials]
    assert kinds == ["measured", "control", "ideal", "control", "measured"]


def test_an_ideal_link_costs_nothing_and_keeps_frames_and_tcp() -> None:
    requested_link = Link(
        bandwidth=1e8, delay=0.01, loss=0.1, queue=100_000, mtu=9000, tcp_buffer=1 << 20, topology="two sites"
    )
    ideal = requested_link.ideal()
    assert (ideal.bandwidth, ideal.delay, ideal.loss, ideal.queue, ideal.topology) == (None, 0, 0, None, "one site")
    assert (ideal.mtu, ideal.tcp_buffer) == (9000, 1 << 20)


def test_every_measured_trial_has_both_efficiencies_and_so_have_points_and_summaries(library: Project) -> None:
    experiment = submitted(library)
    by_kind = {kind: [efficiencies(trial) for trial in experiment.trials.filter(kind=kind)] for kind in Kind}
    assert by_kind[Kind.MEASURED] == [pytest.approx([0.8, 0.5])] * 2
    assert by_kind[Kind.IDEAL] == [[]]
    (point,) = study_of(experiment, with_traffic=False).points
    assert list(point.values["mpi_transfer_efficiency"]) == [0.5, 0.5]
    assert point.values["mpi_serialisation_efficiency"] == pytest.approx([0.8, 0.8])
    assert list(point.values["elapsed_s"]) == [11.0, 11.0], "ideal-network runs are not repetitions"
    assert point.lost == 0
    summary = Summary.objects.get(configuration__experiment=experiment, metric="mpi_transfer_efficiency")
    assert (summary.n, summary.median) == (2, 0.5)


@pytest.mark.parametrize(("ideal_s", "serialisation", "transfer"), [(12.0, 0.4, 1.0), (3.0, 1.0, 0.4)])
def test_a_noisy_twin_keeps_both_within_one(
    ideal_s: float, serialisation: float, transfer: float, library: Project
) -> None:
    trial = submitted(library, ideal_s).trials.filter(kind=Kind.MEASURED).first()
    assert trial is not None
    assert efficiencies(trial) == pytest.approx([serialisation, transfer])


def test_they_go_with_the_twin_and_come_back_with_the_next(library: Project) -> None:
    experiment = submitted(library)
    twin = experiment.trials.get(kind=Kind.IDEAL)
    twin.queue_attempt()
    committed()
    trials = experiment.trials.filter(kind=Kind.MEASURED)
    assert [efficiencies(trial) for trial in trials] == [[], []]
    assert not Summary.objects.filter(metric__in=FROM_TWINS).exists()
    experiment.trials.filter(pk=twin.pk).update(superseded=False)
    committed()
    assert [len(efficiencies(trial)) for trial in trials] == [2, 2]
    assert TrialValues.wrong() == []
    experiment.trials.filter(pk=twin.pk).update(state=State.FAILED)
    committed()
    assert [efficiencies(trial) for trial in trials] == [[], []]


def test_a_cluster_that_takes_its_network_as_it_is_refuses_twins(library: Project) -> None:
    spec = parse({**SPEC, "cluster": "local", "sweep": {}, "parameters": {"hosts": 1, "ranks_per_host": 2}})
    with pytest.raises(InvalidSpec, match="can make an ideal network"):
        cluster_for(spec, design.expand(spec))
