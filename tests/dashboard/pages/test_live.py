"""Pages ask again only while something runs."""

import pytest
from django.urls import reverse

from experiments.models import Cluster, Trial

HTMX = {"HX-Request": "true"}


def polls(html: str) -> bool:
    return "every 5s" in html.partition('id="lab"')[2].partition(">")[0]


def test_it_polls_home_while_a_trial_waits_or_runs(page, submit, run):
    assert not polls(page.get(reverse("home")).content.decode())
    submit(repetitions=1)
    assert polls(page.get(reverse("home"), headers=HTMX).content.decode())
    Trial.claim_next(Cluster.objects.get(slug="testbed"), "tests:1:1")
    assert polls(page.get(reverse("home"), headers=HTMX).content.decode())
    Trial.objects.update(state="finished")
    assert not polls(page.get(reverse("home"), headers=HTMX).content.decode())


@pytest.mark.parametrize(("waiting", "status"), [(True, 200), (False, 286)])
def test_it_asks_for_the_counters_again_only_while_there_is_something_to_count(page, submit, waiting, status):
    if waiting:
        submit(repetitions=1)
    assert page.get(reverse("pulse"), headers=HTMX).status_code == status


def test_it_stops_asking_when_an_experiment_is_over(page, submit, run):
    experiment = submit(repetitions=1)
    live = reverse("experiment-live", args=[experiment.slug])
    assert 'hx-trigger="every 2s"' in page.get(live).content.decode()
    run()
    assert 'hx-trigger="every 2s"' not in page.get(live).content.decode()
