"""Trials whose executable or script changed: never pooled in silence."""

from __future__ import annotations

from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.test import Client
from django.urls import reverse

from dashboard.panels.experiment.diagnosis import diagnosis_context
from dashboard.panels.experiment.results import Results
from experiments.models import Experiment
from experiments.selectors.changed_programs import changed_programs, last_program, replaced_file
from experiments.selectors.diagnosis import diagnosis_of
from experiments.selectors.study import study_of
from tests.experiments import factories


def facts(digest: str, path: str = "/opt/halo", **more: Any) -> dict[str, Any]:
    return {"kernel": "6.1", "program": {"path": path, "sha256": digest, **more}}


def ended(*environments: dict[str, Any]) -> Experiment:
    experiment = factories.experiment(sweep={"hosts": [1, 2]}, repetitions=len(environments) // 2, warmups=0)
    for number, environment in enumerate(environments):
        trial = factories.analysing()
        elapsed_s = 10 / trial.configuration.hosts * (1 + 0.01 * (number // 2 * 3 % 5))
        values = {"all": {"elapsed_s": elapsed_s}, "mpi": {}}
        trial.finish(replace(factories.RESULT, measurements=values, environment=environment))
    return experiment


@pytest.mark.django_db
def test_an_answer_from_two_executables_is_tentative_and_states_counts_and_dates() -> None:
    same, mixed = [facts("a" * 64)] * 10, [facts("a" * 64)] * 8 + [facts("b" * 64)] * 2
    assert diagnosis_of(ended(*same)).answer.strength == "firm"
    experiment = ended(*mixed)
    diagnosis = diagnosis_of(experiment)
    assert diagnosis.answer.strength == "moderate"
    (fact,) = (fact for fact in diagnosis.facts if fact.rule == "changed_program")
    files = study_of(experiment).changed_programs[0]
    assert [(file.sha256[0], file.trials) for file in files] == [("a", 8), ("b", 2)]
    assert fact.statement == (
        f"Trials ran 2 different files /opt/halo: 8 trials from {files[0].first} and 2 trials from {files[1].first}."
    )
    assert fact.statement in diagnosis_context(diagnosis, Results(experiment), {})["reason"]


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("environments", "paths"),
    [
        ([facts("a"), facts("b"), facts("b"), facts("a")], ["/opt/halo"]),
        ([facts("a", "/opt/a"), facts("b", "/opt/b"), facts("b", "/opt/b"), facts("a", "/opt/a")], []),
        ([facts("a"), facts("a", cpu="another")] * 2, []),
        ([facts("a", "/opt/v1"), facts("a", "/opt/v1"), facts("b", "/opt/v2"), facts("b", "/opt/v2")], ["/opt/v2"]),
        (
            [facts("a", script={"path": "/opt/a.py", "sha256": digest}) for digest in ("c", "c", "d", "d")],
            ["/opt/a.py"],
        ),
        ([{"kernel": "6.1"}, facts("a"), {"program": None}, facts("a")], []),
    ],
)
def test_a_program_is_what_a_configuration_runs_under_any_path(
    environments: list[dict[str, Any]], paths: list[str]
) -> None:
    assert [files[-1].path for files in study_of(ended(*environments)).changed_programs] == paths


def test_one_environment_reads_no_facts() -> None:
    assert changed_programs([(1, 7, None), (2, 7, None), (3, None, None)]) == ()


@pytest.mark.django_db
def test_a_file_that_was_replaced_after_the_last_trial_is_named_before_more_are_queued(
    tmp_path: Path, client: Client
) -> None:
    program = tmp_path / "halo"
    program.write_bytes(b"first")
    experiment = ended(*[facts(sha256(b"first").hexdigest(), str(program))] * 2)
    client.force_login(get_user_model().objects.create_superuser("admin"))
    assert replaced_file(experiment, last_program(experiment.trials.current())) is None
    assert str(program) not in client.get(experiment.get_absolute_url()).text
    program.write_bytes(b"rebuilt")
    changed = replaced_file(experiment, last_program(experiment.trials.current()))
    assert changed is not None
    assert changed[0] == str(program)
    assert str(program) in client.get(experiment.get_absolute_url()).text
    disturbed = reverse("experiment-disturbed", args=[experiment.slug])
    refused = client.post(disturbed, {"idempotency_key": "a" * 32}, follow=True)
    assert str(program) in next(iter(refused.context["messages"])).message
    assert not experiment.trials.filter(state="queued").exists()
    program.unlink()
    assert replaced_file(experiment, last_program(experiment.trials.current())) is None
