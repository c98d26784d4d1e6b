"""REST: concurrent changes of one experiment, and changes by former maintainers."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.urls import reverse

from experiments.models import Experiment, State, Trial
from tests.dashboard.api.clients import EXPERIMENTS, TRIALS, client_of
from tests.dashboard.reader import Reader
from tests.experiments import factories
from tests.experiments.races import at_once
from tests.experiments.specifications import specification

COMMAND = {"workload": "command", "parameters": {"program": ["true"]}, "sweep": {"hosts": [1, 2]}}


@pytest.fixture
def experiment(transactional_db: None, empty_redis: object) -> Experiment:
    experiment = factories.experiment(owner=factories.person("ada", "submitter"))
    experiment.trials.update(state=State.FAILED)
    return experiment


def post(experiment: Experiment, change: str, body: Any = None) -> Any:
    client = client_of(experiment.owner)
    return client.post(f"{EXPERIMENTS}{experiment.slug}/{change}/", json.dumps(body), "application/json")


def test_it_applies_every_one_of_many_repetitions_at_once(experiment: Experiment) -> None:
    before, version = experiment.spec.repetitions, experiment.version
    answers = at_once(lambda _: post(experiment, "repetitions", {"count": 1}), 6)
    assert [answer.status_code for answer in answers] == [200] * 6
    experiment.refresh_from_db()
    assert (experiment.spec.repetitions, experiment.version) == (before + 6, version + 6)
    assert {answer.json()["queued"] > 0 for answer in answers} == {True}


def test_it_runs_the_failed_trials_again_once_however_often_it_is_asked_at_once(experiment: Experiment) -> None:
    failed = experiment.trials.count()
    answers = at_once(lambda _: post(experiment, "rerun-failed"), 6)
    assert [answer.status_code for answer in answers] == [200] * 6
    assert sorted(answer.json()["queued"] for answer in answers) == [0] * 5 + [failed]
    assert experiment.trials.filter(state=State.QUEUED, attempt=2).count() == failed


def test_rerun_of_a_superseded_trial_answers_409(experiment: Experiment, monkeypatch: pytest.MonkeyPatch) -> None:
    Trial.objects.filter(pk=experiment.trials.values("pk")[:1]).update(superseded=True)
    everything = Trial.objects.filter(experiment=experiment)
    monkeypatch.setattr(type(everything), "without_result", lambda _: everything)
    answer = post(experiment, "rerun-failed")
    assert answer.status_code == 409
    assert not experiment.trials.filter(state=State.QUEUED).exists()


def test_it_asks_few_queries_however_many_trials_run_again(
    experiment: Experiment, django_assert_max_num_queries: Any
) -> None:
    experiment.add_repetitions(20)
    experiment.trials.update(state=State.FAILED)
    with django_assert_max_num_queries(9):  # the last is the note in the log of changes
        assert experiment.rerun_failed() == experiment.trials.filter(attempt=1).count()


@pytest.mark.parametrize("change", ["rerun-failed", "repetitions", "resume-rounds"])
@pytest.mark.parametrize(("role", "status"), [("maintainer", 200), ("submitter", 403)])
def test_a_command_is_repeated_by_maintainers_of_today(db: None, change: str, role: str, status: int) -> None:
    experiment = factories.experiment(owner=factories.person("ada", "maintainer"), **COMMAND)
    experiment.trials.update(state=State.FAILED)
    experiment.owner.memberships.update(role=role)
    assert post(experiment, change, {"count": 1}).status_code == status


def test_pages_refuse_a_command_of_a_former_maintainer(db: None, empty_redis: object) -> None:
    experiment = factories.experiment(owner=factories.person("ada", "maintainer"), **COMMAND)
    experiment.trials.update(state=State.FAILED)
    experiment.owner.memberships.update(role="submitter")
    page, trial = Reader(), experiment.trials.first()
    page.force_login(experiment.owner)
    addresses = [
        reverse("experiment-repeat", args=[experiment.slug]),
        reverse("experiment-rerun", args=[experiment.slug]),
        reverse("experiment-rounds-resume", args=[experiment.slug]),
        reverse("experiment-rounds-more", args=[experiment.slug]),
        reverse("trial-again", args=[trial.pk]),
    ]
    assert [page.post(address, {"count": "1"}).status_code for address in addresses] == [403] * 5
    assert page.get(experiment.get_absolute_url()).status_code == 200
    assert client_of(experiment.owner).post(f"{TRIALS}{trial.pk}/cancel/").status_code == 200


def test_a_harmless_version_does_not_free_a_command_of_a_former_maintainer(db: None, empty_redis: object) -> None:
    transports = ["tcp", "own: LD_PRELOAD=/tmp/own.so --mca pml ucx"]
    experiment = factories.experiment(
        owner=factories.person("ada", "maintainer"), sweep={"hosts": [1], "transport": transports}
    )
    experiment.trials.update(state=State.FAILED)
    experiment.owner.memberships.update(role="submitter")
    harmless = specification(sweep={"hosts": [1]}).to_dict()
    address = f"{EXPERIMENTS}{experiment.slug}/"
    answer = client_of(experiment.owner).put(address, json.dumps(harmless), "application/json")
    assert answer.status_code == 403
    experiment.revise(specification(sweep={"hosts": [1], "transport": ["tcp"]}))  # by a maintainer
    page = Reader()
    page.force_login(experiment.owner)
    preloaded, tcp = (
        experiment.trials.filter(configuration__parameters__transport=name)[0] for name in transports[::-1]
    )
    answers = {trial: page.post(reverse("trial-again", args=[trial.pk])).status_code for trial in (preloaded, tcp)}
    assert answers == {preloaded: 403, tcp: 302}
    page.post(reverse("trials-chosen", args=["again"]), {"of": f"t:{preloaded.pk}"})
    assert not experiment.trials.filter(configuration=preloaded.configuration, state=State.QUEUED).exists()
