"""Transfer and serialisation from twins on an ideal network."""

from __future__ import annotations

import pytest

from experiments.errors import InvalidSpec
from experiments.library import load_defaults
from experiments.models import Cluster, Experiment, Kind, Project, Trial, TrialResult
from experiments.models.experiment import cluster_for
from experiments.selectors.ideal import against_twins, ideal_windows
from experiments.selectors.study import study_of
from experiments.spec import design, parse
from experiments.spec.parameters import Link

SPEC = {"name": "twins", "workload": "pingpong", "sweep": {"hosts": [2]}, "repetitions": 2, "ideal": True}


@pytest.fixture
def library(db: None) -> Project:
    return load_defaults()


def submitted(library: Project) -> Experiment:
    experiment = Experiment.submit(parse(SPEC), project=library)
    while (trial := Trial.claim_next(Cluster.objects.get(slug="testbed"), "tests:1:1")) is not None:
        trial.start_running(command=["mpirun"], conditions={})
        trial.start_analysing()
        window = 5.0 if trial.kind == Kind.IDEAL else 10.0
        values = {"elapsed_s": window + 1, "mpi_window_s": window, "mpi_useful_max_rank_s": 4.0}
        trial.finish(TrialResult({"all": values}, {}, "good"))
    return experiment


def test_a_configuration_gets_one_twin_after_its_first_trial() -> None:
    kinds = [trial.kind for trial in design.expand(parse({**SPEC, "control": True})).trials]
    assert kinds == ["measured", "control", "ideal", "measured"]


def test_an_ideal_link_costs_nothing_and_keeps_frames_and_tcp() -> None:
    asked = Link(bandwidth=1e8, delay=0.01, loss=0.1, queue=100_000, mtu=9000, tcp_buffer=1 << 20, topology="two sites")
    ideal = asked.ideal()
    assert (ideal.bandwidth, ideal.delay, ideal.loss, ideal.queue, ideal.topology) == (None, 0, 0, None, "one site")
    assert (ideal.mtu, ideal.tcp_buffer) == (9000, 1 << 20)


def test_it_measures_both_efficiencies_from_the_twins(library: Project) -> None:
    experiment = submitted(library)
    assert list(ideal_windows(experiment).values()) == [5.0]
    (point,) = study_of(experiment, with_traffic=False).points
    assert point.values["mpi_transfer_efficiency"] == [0.5, 0.5]
    assert point.values["mpi_serialisation_efficiency"] == pytest.approx([0.8, 0.8])
    assert point.values["elapsed_s"] == [11.0, 11.0], "twins are no repetitions"
    assert point.lost == 0


def test_there_is_nothing_without_a_twin_or_a_profile() -> None:
    assert against_twins({"mpi_window_s": [1.0], "mpi_useful_max_rank_s": [0.5]}, None) == {}
    assert against_twins({"elapsed_s": [1.0]}, 0.5) == {}


def test_a_cluster_that_takes_its_network_as_it_is_refuses_twins(library: Project) -> None:
    spec = parse({**SPEC, "cluster": "local", "sweep": {}, "parameters": {"hosts": 1, "ranks_per_host": 2}})
    with pytest.raises(InvalidSpec, match="can make an ideal network"):
        cluster_for(spec, design.expand(spec))
