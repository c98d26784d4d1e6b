"""Threads of a command's ranks: in the job, the dry run, and the cores."""

from pathlib import Path

import pytest

from experiments.models import Configuration
from experiments.selectors.study import study_of
from experiments.specification import design, parse
from experiments.specification.launch_plan import plan_launch
from tests.experiments import factories
from workers import launchers, preview
from workers.launchers.job import job_of

HYBRID = {
    "name": "Hybrid",
    "workload": "command",
    "parameters": {"program": ["solver"], "hosts": 2},
    "sweep": {"threads": [1, 4]},
}
OWN = {"program": ["solver", "{threads}"], "placeholders": {"threads": {"default": 8}}}


def jobs(**changes):
    plan = design.expand(parse({**HYBRID, **changes}))
    named = {"hosts": ["n1", "n2"], "directory": Path("TRIAL")}
    return [job_of(plan_launch("command", point.parameters), **named) for point in plan.configurations]


def test_job_sets_the_number_of_threads():
    assert [job.environment["OMP_NUM_THREADS"] for job in jobs()] == ["1", "4"]


def test_placeholder_of_that_name_sets_the_number_of_threads():
    (job,) = jobs(parameters=OWN, sweep={"hosts": [2]})
    assert (job.program, job.threads) == (("solver", "8"), 8)


def test_threads_are_no_part_of_a_stored_configuration_that_has_none():
    stored = {"program": ["solver"], "hosts": 2}
    assert design.configuration_hash("command", {**stored, "threads": 1}) == design.configuration_hash(
        "command", stored
    )
    assert design.threads_of("command", stored) == 1
    one = {**OWN, "threads": 1}
    assert design.configuration_hash("command", one) != design.configuration_hash("command", OWN)


def test_open_mpi_does_not_bind_a_rank_with_several_threads_to_one_core():
    launcher = launchers.get("ssh", {"hosts": ["n1", "n2"]})
    one, four = (launcher.argv(job) for job in jobs())
    assert "--bind-to" not in one
    assert four[four.index("--bind-to") + 1] == "none"


@pytest.mark.django_db
def test_dry_run_shows_the_total_number_of_threads():
    factories.load_defaults()
    spec = parse(HYBRID)
    plan = design.expand(spec)
    dry = preview.dry_run(spec, plan, 1)
    assert "2 ranks with 4 threads each (OMP_NUM_THREADS): 8 threads in all." in dry.notes
    assert "OMP_NUM_THREADS=4" in dry.argv
    assert not any("threads" in note for note in preview.dry_run(spec, plan, 0).notes)


@pytest.mark.django_db
def test_ranks_times_threads_are_held_against_the_cores():
    experiment = factories.experiment(**HYBRID)
    assert Configuration.objects.filter(experiment=experiment).count() == 2
    one, four = sorted(study_of(experiment).points, key=lambda point: point.threads)
    assert (one.outnumbers(2), four.outnumbers(2), four.outnumbers(8), four.outnumbers(None)) == (
        False,
        True,
        False,
        False,
    )
