"""Design sizes: written by triggers, used by the explorer's counts."""

from __future__ import annotations

from typing import Any

import pytest
from django.db.models import Count, Q

from experiments import deletion
from experiments.library import load_defaults, load_published
from experiments.models import Configuration, DesignSize, Experiment, Project, State
from experiments.selectors.explorer import counts
from experiments.specification import parse
from tests.dashboard.explorer import question
from tests.experiments import factories
from tests.experiments.races import at_once

BASE: dict[str, Any] = {
    "name": "Designed",
    "workload": "water",
    "parameters": {"molecules": 64},
    "sweep": {"hosts": [1, 2, 4]},
}


def submit(**changes: Any) -> Experiment:
    project = changes.pop("project", None) or load_defaults()
    experiment = Experiment.submit(parse(BASE | changes), project=project)
    experiment.trials.update(state=State.FINISHED)
    return experiment


def stored_sizes() -> dict[int, int]:
    return dict(DesignSize.objects.values_list("experiment", "configurations"))


def counted_anew() -> dict[int, int]:
    size = Count("configurations", filter=Q(configurations__in_design=True))
    rows = Experiment.objects.filter(configurations__isnull=False)
    return dict(rows.annotate(size=size).values_list("pk", "size"))


def test_they_follow_all_that_happens_to_designs(db: None) -> None:
    load_published()
    first, second = submit(), submit(name="Second")
    assert (stored_sizes()[first.pk], stored_sizes()[second.pk]) == (3, 3)
    assert stored_sizes() == counted_anew()

    first.revise(parse(BASE | {"sweep": {"hosts": [2, 8]}}))
    assert first.configurations.count() == 4
    assert stored_sizes()[first.pk] == 2
    first.trials.filter(state=State.QUEUED).update(state=State.FINISHED)
    first.revise(parse(BASE))
    assert stored_sizes()[first.pk] == 3
    assert stored_sizes() == counted_anew()

    second.configurations.filter(hosts=4).update(experiment=first, hash="moved")
    assert (stored_sizes()[first.pk], stored_sizes()[second.pk]) == (4, 2)
    second.configurations.filter(hosts=2).delete()
    assert stored_sizes()[second.pk] == 1
    assert stored_sizes() == counted_anew()


def test_they_go_and_come_back_with_their_experiment(db: None) -> None:
    experiment = submit()
    gone = deletion.delete(experiment, by=None)
    assert experiment.pk not in stored_sizes()
    back = deletion.restore_deleted(gone)
    assert stored_sizes()[back.pk] == 3
    assert stored_sizes() == counted_anew()


@pytest.mark.django_db(transaction=True)
def test_design_sizes_survive_concurrent_inserts() -> None:
    experiment = submit()

    def add(number: int) -> None:
        Configuration.objects.create(experiment=experiment, hash=f"{number}", parameters={}, hosts=1, ranks=1)

    at_once(add, 6)
    assert stored_sizes()[experiment.pk] == 9
    assert stored_sizes() == counted_anew()


@pytest.mark.parametrize(
    "query",
    [
        {},
        {"text": "Second"},
        {"workload": "water", "cluster": "local"},
        {"tag": "night"},
        {"project": "theirs"},
        {"text": "nothing of this name"},
        {"where": "hosts >= 2"},
        {"state": "finished", "project": "default"},
    ],
    ids=str,
)
def test_the_explorer_counts_by_them_what_it_would_count_one_by_one(query: dict[str, str], db: None) -> None:
    load_published()
    theirs = Project.objects.create(slug="theirs", name="Theirs")
    submit()
    submit(name="Second", sweep={"hosts": [1]}, cluster="local", tags=["night"])
    submit(name="Hidden", project=theirs)
    revised = submit(name="Revised")
    revised.revise(parse(BASE | {"name": "Revised", "sweep": {"hosts": [2]}}))
    member = factories.person("okafor", "viewer", load_defaults())
    for person in (member, factories.person("stranger"), factories.person("root", is_superuser=True)):
        result = question(person, **query)
        assert (result.filters.whole_designs is None) == bool({"where", "state"} & query.keys())
        assert result.counts() == counts(result.configurations)
        assert result.counts().total == result.configurations.count()
