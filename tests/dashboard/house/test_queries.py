"""Lists cost the same number of queries whatever they hold."""

import pytest
from django.urls import reverse

from experiments.models import Cluster, Experiment, Trial

# Session and user take two of each page's queries; saved views and the number of deleted ones two of the experiments'.
PAGES = {
    "home": 26,
    "experiments": 9,
    "clusters": 4,
    "workloads": 4,
}


@pytest.mark.parametrize(("name", "queries"), PAGES.items())
def test_it_answers_a_list_page_with_a_fixed_number_of_queries(
    page, submit, run, django_assert_num_queries, name, queries
):
    for number in range(3):
        submit(name=f"Study {number}")
    run(most=8)
    Trial.claim_next(Cluster.objects.get(slug="testbed"), "tests:1:1")
    page.get(reverse(name))  # which caches the answers of finished experiments
    with django_assert_num_queries(queries):
        page.get(reverse(name))
    for number in range(3, 7):
        submit(name=f"Study {number}", tags=["more"])
    with django_assert_num_queries(queries):
        page.get(reverse(name))


def test_the_header_costs_one_query_besides_session_and_user(page, submit, run, django_assert_num_queries):
    """Every open page asks for it every two seconds on the machine that measures."""
    with django_assert_num_queries(3):
        page.get(reverse("pulse"))
    for number in range(3):
        submit(name=f"Study {number}")
    run(most=4)
    Trial.claim_next(Cluster.objects.get(slug="testbed"), "tests:1:1")
    page.get(reverse("pulse"))  # which caches the data of all users for some seconds
    with django_assert_num_queries(3):
        html = page.get(reverse("pulse")).content.decode()
    assert "4 of 18 trials" in html


def test_it_answers_an_experiment_with_a_fixed_number_of_queries(page, submit, run, django_assert_num_queries):
    small, large = submit(), submit(name="Large", sweep={"hosts": [1, 2, 4], "link.mtu": [1500, 9000]}, repetitions=6)
    run()
    with django_assert_num_queries(20):
        page.get(small.get_absolute_url())
    with django_assert_num_queries(20):
        page.get(large.get_absolute_url())


def test_it_answers_the_poll_of_an_experiment_with_a_fixed_number_of_queries(
    page, submit, run, django_assert_num_queries
):
    """Polled every two seconds on the measuring machine: user, state, and heartbeats."""
    first, second = submit(), submit(name="Large", sweep={"hosts": [1, 2, 4], "link.mtu": [1500, 9000]}, repetitions=6)
    run(most=4)
    Trial.claim_next(Cluster.objects.get(slug="testbed"), "tests:1:1")
    for experiment, seen, ahead in ((first, 4, 0), (second, 0, 1)):
        # Two of them for sizes without past trials, one for the user's role.
        with django_assert_num_queries(14 + 2 * ahead):
            page.get(reverse("experiment-live", args=[experiment.slug]), {"seen": seen})


def test_it_pages_the_list(page, submit):
    for number in range(26):
        submit(name=f"Study {number}", repetitions=1, sweep={"hosts": [1]})
    first = page.get(reverse("experiments") + "?source=own").content.decode()
    assert "Study 25" in first
    second = page.get(reverse("experiments") + "?source=own&page=2").content.decode()
    assert "Study 0" in second
    assert "source=own&amp;page=1" in second


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("q=alpha", {"Alpha"}),
        ("q=night", {"Beta"}),
        ("state=failed", {"Beta"}),
        ("state=unfinished", {"Beta"}),
        ("state=over&source=own", {"Alpha"}),
        ("workload=water&source=own", {"Alpha", "Beta"}),
        ("source=published&q=tip4p", {"TIP4P water on 2 to 12 virtual hosts, as published in 2007"}),
        ("q=%3Cb%3E", set()),
    ],
)
def test_it_filters_the_list(page, submit, run, query, names):
    submit(name="Alpha", repetitions=1)
    run()
    beta = submit(name="Beta", repetitions=1, tags=["night"])
    Experiment.objects.get(pk=beta.pk).trials.filter(pk=beta.trials.first().pk).update(state="failed")
    html = page.get(reverse("experiments") + f"?{query}").content.decode()
    table = html.partition('id="list"')[2]
    listed = {e.name for e in Experiment.objects.all() if e.get_absolute_url() in table}
    assert listed == names


@pytest.mark.parametrize("text", ["trial {pk}", "#{pk}", "{pk}"])
def test_it_finds_a_trial_by_number_in_the_search_box(page, submit, text):
    trial = submit().trials.first()
    response = page.get(reverse("search"), {"q": text.format(pk=trial.pk)})
    assert response.url == trial.get_absolute_url()


def test_it_finds_an_experiment_by_name_in_the_search_box_and_lists_by_words(page, submit):
    experiment = submit(name="Night run")
    assert page.get(reverse("search"), {"q": "night run"}).url == experiment.get_absolute_url()
    assert page.get(reverse("search"), {"q": "night"}).url.endswith("?q=night")
