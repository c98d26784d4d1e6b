"""The page of an ended experiment is computed again if and only if a row changes."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from dashboard.pages import experiment as pages
from experiments.models import Cluster, Configuration, Experiment, Measurement, State, Trial
from experiments.selectors import page_cache
from experiments.selectors.diagnosis import diagnosis_of, forget_diagnosis


@pytest.fixture
def ended(submit, empty_redis) -> Experiment:
    """An experiment with a current diagnosis."""
    experiment = submit(repetitions=3)
    experiment.trials.update(state=State.FINISHED, conditions={"cores": 2}, trust="good")
    for trial in experiment.trials.select_related("configuration"):
        for metric in ("elapsed_s", "packets"):
            Measurement.objects.create(trial=trial, metric=metric, value=9.0 / trial.configuration.hosts)
    diagnosis_of(experiment)
    return experiment


@pytest.fixture
def computed(monkeypatch) -> list[str]:
    """Slugs of the experiments whose results were computed."""
    slugs: list[str] = []
    compute = pages.results_of

    def recorded(experiment, **options):
        slugs.append(experiment.slug)
        return compute(experiment, **options)

    monkeypatch.setattr(pages, "results_of", recorded)
    return slugs


def content(page, experiment: Experiment, query: str = "") -> str:
    """Return the page without its head and the values that are new in each form."""
    html = page.get(f"{experiment.get_absolute_url()}{query}").content.decode().partition("<main")[2]
    return re.sub(r'name="(csrfmiddlewaretoken|once)" value="[^"]+"', r"\1", html)


def test_the_second_view_equals_the_first_with_a_third_fewer_queries(
    page, ended, computed, django_assert_max_num_queries
):
    first = content(page, ended)
    with django_assert_max_num_queries(14):
        second = content(page, ended)
    assert computed == [ended.slug]
    assert first == second


def _first_trial(experiment: Experiment) -> object:
    return Trial.objects.filter(pk=experiment.trials.earliest("pk").pk)


def _published(values: dict[str, object]) -> Callable[[Experiment], object]:
    return lambda experiment: Experiment.objects.filter(published=True).update(**values)


CHANGES: dict[str, Callable[[Experiment], object]] = {
    "state of a trial": lambda e: _first_trial(e).update(state=State.FAILED),
    "trust of a trial": lambda e: _first_trial(e).update(trust="degraded"),
    "message of a trial": lambda e: _first_trial(e).update(message="No memory."),
    "conditions of a trial": lambda e: _first_trial(e).update(conditions={"oversubscription": "2 on 1"}),
    "replaced trial": lambda e: _first_trial(e).update(superseded=True),
    "removed trial": lambda e: _first_trial(e).delete(),
    "value": lambda e: Measurement.objects.filter(trial__experiment=e, metric="packets").update(value=7.0),
    "further value": lambda e: Measurement.objects.create(trial=e.trials.earliest("pk"), metric="energy_j", value=1.0),
    "removed values": lambda e: Measurement.objects.filter(trial__experiment=e, metric="packets").delete(),
    "design": lambda e: Configuration.objects.filter(experiment=e, hosts=1).update(in_design=False),
    "name": lambda e: Experiment.objects.filter(pk=e.pk).update(name="Other"),
    "cluster": lambda e: Cluster.objects.filter(pk=e.cluster_id).update(facts={"link_bandwidth_bps": 1e9}),
    "name of a published study": _published({"name": "Other"}),
    "value of a published study": lambda e: Measurement.objects.filter(trial__experiment__published=True).update(
        value=2
    ),
    "forgotten diagnosis": forget_diagnosis,
    "start of the server": lambda e: setattr(page_cache, "_RUN", "another"),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_any_change_computes_the_page_again(page, ended, computed, monkeypatch, change):
    monkeypatch.setattr(page_cache, "_RUN", page_cache._RUN)  # restored after the test
    content(page, ended)
    content(page, ended)
    assert len(computed) == 1
    change(ended)
    content(page, ended)
    assert len(computed) == 2


def test_a_changed_program_computes_the_page_again(page, ended, computed, monkeypatch):
    content(page, ended)
    monkeypatch.setattr(page_cache.registered, "state", lambda: [(1, "changed")])
    content(page, ended)
    assert len(computed) == 2


def test_pages_of_the_table_running_experiments_and_old_diagnoses_are_not_cached(page, ended, computed):
    for _ in range(2):
        content(page, ended, "?from=1")
    _first_trial(ended).update(state=State.QUEUED)
    for _ in range(2):
        content(page, ended)
    _first_trial(ended).update(state=State.FAILED)
    for _ in range(2):
        content(page, ended)
    assert len(computed) == 6


def test_the_cached_page_has_the_controls_of_the_user_role(page, ended, computed):
    """The cache holds results only: rights are those of each request."""
    first = content(page, ended)
    assert "repeat-dialog" in first
    ended.project.memberships.update(role="viewer")
    assert "repeat-dialog" not in content(page, ended)
    assert len(computed) == 1
