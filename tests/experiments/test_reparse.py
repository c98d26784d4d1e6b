"""Parsing stored outputs again: figures and tables change, all else stays."""

from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from django.db import connection

from experiments.common import plain_files
from experiments.files import MEASURED_NAME, write_measured
from experiments.models import Artifact, Summary, Trial, TrialResult, TrialValues
from experiments.reparse import candidates, reparse
from experiments.selectors.diagnosis import cached_diagnosis, diagnosis_of
from tests.experiments import factories
from tests.experiments.workloads.samples import sample

OLD = {"elapsed_s": 3.0, "packets": 1200.0, "water.loop_time_s": 99.0, "water.of_an_old_parser": 1.0}
OUTPUT = sample("lammps-water-stdout.txt").encode()


@pytest.fixture
def trial(db, session_directory) -> Trial:
    """A finished trial with figures of an older parser, and its real output."""
    factories.experiment(parameters={"molecules": 512, "steps": 100}, sweep={"hosts": [4]})
    trial = factories.analysing()
    files = [factories.stored_file(trial, content=OUTPUT)]
    result = TrialResult({"all": OLD, "mpi": {"packets": 7.0}}, {}, "good", artifacts=files, tables={"Old": [{"a": 1}]})
    trial.finish(result)
    return trial


def values(trial, scope="all"):
    return dict(trial.measurements.filter(scope=scope).values_list("metric", "value"))


def test_it_replaces_figures_and_tables_and_leaves_what_was_measured(trial):
    counts = reparse([trial])
    stored = values(trial)
    assert (counts.changed, counts.trials) == (1, 1)
    assert stored["elapsed_s"] == 3.0
    assert stored["packets"] == 1200.0
    assert stored["water.loop_time_s"] not in (99.0, 0)
    assert "water.of_an_old_parser" not in stored
    assert TrialValues.wrong() == []
    assert values(trial, "mpi") == {"packets": 7.0}
    trial.refresh_from_db()
    assert (list(trial.tables), trial.state) == (["MPI task timing breakdown"], "finished")
    before = sorted(trial.measurements.values_list("pk", flat=True))
    assert reparse([trial]).unchanged == 1
    assert sorted(trial.measurements.values_list("pk", flat=True)) == before


def test_start_up_and_end_follow_the_program_s_own_time(trial):
    reparse([trial])
    assert "start_end_s" not in values(trial), "the launch cannot be shorter than its loop"
    trial.measurements.filter(metric="elapsed_s").update(value=10.0)
    trial.measurements.filter(metric="water.loop_time_s").update(value=99.0)
    reparse([trial])
    stored = values(trial)
    assert stored["start_end_s"] == pytest.approx(10.0 - stored["water.loop_time_s"])
    assert stored["start_end_share"] == pytest.approx(stored["start_end_s"] / 10.0)


def test_it_updates_summaries_and_findings(trial, empty_redis):
    diagnosis_of(trial.experiment)
    reparse([trial])
    diagnosis, fresh = cached_diagnosis(trial.experiment)
    assert not (diagnosis and fresh)
    summary = Summary.objects.get(configuration=trial.configuration, metric="water.loop_time_s", scope="all")
    assert summary.median == values(trial)["water.loop_time_s"]
    assert not Summary.objects.filter(metric="water.of_an_old_parser").exists()


def test_it_leaves_an_output_that_the_parser_refuses_alone(trial):
    factories.store_again(trial.artifacts.get(), b"something else")
    counts = reparse([trial])
    assert "printed no loop time" in counts.refused[trial.pk]
    assert values(trial)["water.loop_time_s"] == 99.0


@pytest.fixture
def refused(db, session_directory) -> Trial:
    """A trial that failed by its parser only, with its measurements."""
    factories.experiment(parameters={"molecules": 512, "steps": 100}, sweep={"hosts": [4]})
    trial = factories.analysing()
    output = factories.stored_file(trial, content=OUTPUT)
    measured = output.file.with_name(MEASURED_NAME)
    write_measured(measured, factories.RESULT)
    trial.fail("LAMMPS printed no loop time.", [output, Artifact.describe(trial.pk, "other", measured)])
    return trial


def test_it_finishes_a_failed_trial_whose_output_can_be_read_now(refused):
    counts = reparse(candidates())
    assert (counts.finished, counts.trials) == (1, 1)
    refused.refresh_from_db()
    assert refused.state == "finished"
    assert refused.trust == "good"
    assert refused.environment.facts == {"kernel": "6.1"}
    assert "at first: LAMMPS printed no loop time" in refused.message
    stored = values(refused)
    assert stored["elapsed_s"] == 1.5
    assert stored["water.loop_time_s"] > 0
    assert values(refused, "mpi") == {"packets": 1000.0}
    with connection.cursor() as cursor:
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
    assert Summary.objects.filter(configuration=refused.configuration, metric="water.loop_time_s").exists()
    assert reparse(candidates()).unchanged == 1


def test_it_reads_no_other_file_than_the_parser(trial, monkeypatch):
    """A program may keep gigabytes, all of which were in memory together."""
    factories.stored_file(trial, "states.bin", b"x" * 5000, "other").save()
    monkeypatch.setattr(
        plain_files, "decoded", lambda content: pytest.fail("read") if len(content) == 5000 else OUTPUT.decode()
    )
    assert reparse([trial]).changed == 1
    monkeypatch.setattr("experiments.reparse.MOST_READ_BYTES", len(OUTPUT) - 1)
    assert reparse([trial]).without_output == 1


def test_it_does_not_read_a_file_that_was_changed_since(trial):
    trial.artifacts.get().file.write_bytes(b"something else")
    counts = reparse([trial])
    assert counts.refused == {}
    assert values(trial)["water.loop_time_s"] == 99.0


def test_it_leaves_a_failed_trial_failed_when_its_output_is_refused_again(refused):
    factories.store_again(refused.artifacts.get(kind="stdout"), b"something else")
    counts = reparse(candidates())
    assert list(counts.refused) == [refused.pk]
    refused.refresh_from_db()
    assert refused.state == "failed"
    assert not refused.measurements.exists()


def test_it_leaves_a_trial_that_failed_otherwise_alone(db):
    factories.experiment(parameters={"molecules": 512, "steps": 100}, sweep={"hosts": [4]})
    trial = factories.analysing()
    trial.fail("It exited with status 1.", [factories.stored_file(trial, content=OUTPUT)])
    assert not candidates().exists()
    assert reparse([trial]).trials == 0


def test_it_counts_files_that_retention_took(trial):
    trial.artifacts.get().file.unlink()
    assert reparse([trial]).without_output == 1


def test_the_command_it_prints_counts(trial):
    out = StringIO()
    call_command("reparse", trial.experiment.slug, stdout=out)
    assert (
        out.getvalue() == "1 trial: 1 changed, 0 unchanged, 0 finished after all, 0 without their output, 0 refused\n"
    )
    call_command("reparse", workload="water", stdout=out)
    assert "0 changed, 1 unchanged" in out.getvalue()


@pytest.mark.parametrize("arguments", [[], ["a", "--workload", "water"], ["nowhere"]])
def test_it_refuses_what_names_no_trials(trial, arguments):
    with pytest.raises(CommandError):
        call_command("reparse", *arguments)
