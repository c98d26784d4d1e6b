"""The migration that states by which transport earlier trials of real hosts ran."""

from importlib import import_module

from django.apps import apps

from experiments.models import Cluster, Environment, Trial, TrialResult
from tests.experiments import factories

MIGRATION = import_module("experiments.migrations.0035_transports")


def finished_on(cluster: Cluster, mpi: str) -> int:
    trial = factories.finished(TrialResult({"all": {"elapsed_s": 1.0}}, {}, "good", environment={"mpi": mpi}))
    Trial.objects.filter(pk=trial.pk).update(cluster=cluster)
    return trial.pk


def test_earlier_trials_of_real_hosts_state_their_transport(db: None) -> None:
    rack = Cluster.objects.create(slug="rack", name="Rack", kind="ssh", settings={"hosts": ["n1"]})
    factories.experiment(repetitions=3)
    open_mpi, hydra = finished_on(rack, "mpirun (Open MPI) 4.1.4"), finished_on(rack, "Hydra 4.0.2")
    here = finished_on(Cluster.objects.get(slug="testbed"), "mpirun (Open MPI) 4.1.4")
    for _ in range(2):  # a second time changes nothing
        MIGRATION.state_transports(apps, None)
    stated = {
        trial.pk: trial.environment.facts.get("transport") for trial in Trial.objects.filter(environment__isnull=False)
    }
    assert stated == {open_mpi: "tcp", hydra: "native", here: None}
    fact = Environment.objects.get(trials=open_mpi)
    assert Environment.store(dict(fact.facts)) == fact, "its hash is that of its facts"
