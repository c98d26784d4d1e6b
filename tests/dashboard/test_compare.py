"""Comparison: what differs, by how much, and how sure."""

import json

import pytest
from django.urls import reverse

from experiments.comparison import compare
from experiments.errors import CannotCompare
from experiments.models import Configuration, Experiment, Project, Trial
from tests.dashboard.test_api_access import client_of

ADDRESS = "/compare/"


@pytest.fixture
def two(submit, run):
    first = submit(name="Plain", repetitions=5)
    second = submit(name="Jumbo", repetitions=5, parameters={"molecules": 216, "steps": 50}, link={"mtu": 9000})
    run()
    return first, second


def tokens(*experiments: Experiment) -> list[str]:
    return [f"e:{experiment.slug}" for experiment in experiments]


def test_experiments_it_pairs_by_what_they_sweep(two, person):
    found = compare(person, tokens(*two), at="2")
    assert found.names == ("hosts",)
    assert found.points == [(1,), (2,), (4,)]
    assert [d.name for d in found.settings if d.differs] == ["link.mtu"]
    assert [len(m.trials_at(found.names, found.at)) for m in found.members] == [5, 5]
    elapsed = next(row for row in found.rows if row.metric == "elapsed_s")
    assert elapsed.against[0] is None
    assert elapsed.against[1].verdict == "no clear change"


def test_configurations_it_says_better_only_where_a_direction_exists(two, person):
    one, four = (Configuration.objects.get(experiment=two[0], hosts=hosts) for hosts in (2, 4))
    found = compare(person, [f"c:{one.pk}", f"c:{four.pk}"]).to_dict()
    words = {row["metric"]: row["comparisons"][1]["words"] for row in found["metrics"]}
    assert (words["cpu_mean_rank_s"], words["interarrival_mean_s"]) == ("better", "less")
    ratio = next(r for r in found["metrics"] if r["metric"] == "packets")["comparisons"][1]
    assert ratio["ratio"] == pytest.approx(4, rel=0.01)
    assert ratio["ratio_interval"]["low"] < 4 < ratio["ratio_interval"]["high"]


def test_single_trials_it_calls_too_few(two, person):
    pks = Trial.objects.filter(configuration__hosts=2).values_list("pk", flat=True)[:2]
    found = compare(person, [f"t:{pk}" for pk in pks])
    assert {c.verdict for row in found.rows for c in row.against if c} == {"too few repetitions"}


@pytest.mark.parametrize(
    "chosen", [[], ["e:plain"], ["e:plain", "x:1"], ["e:plain", "c:99999999"], ["e:plain"] * 9, ["e:plain", "e:no"]]
)
def test_what_cannot_be_compared_it_says_why(two, person, page, chosen):
    with pytest.raises(CannotCompare):
        compare(person, chosen)
    answer = page.get(ADDRESS, {"of": chosen})
    assert answer.status_code == 400
    assert "Nothing to compare" in answer.content.decode()


def test_experiments_of_others_it_does_not_show(two, person, page):
    Experiment.objects.filter(pk=two[1].pk).update(project=Project.objects.create(slug="theirs", name="Theirs"))
    assert page.get(ADDRESS, {"of": ",".join(tokens(*two))}).status_code == 400


def test_the_page_it_answers_with_a_fixed_number_of_queries(two, page, django_assert_num_queries):
    address = f"{ADDRESS}?of={','.join(tokens(*two))}"
    with django_assert_num_queries(7):
        html = page.get(address).content.decode()
    assert "no clear change" in html
    assert "Make baseline" in html
    assert "9000" in html
    other = page.get(f"{address}&baseline=e:jumbo&at=1&scope=mpi")
    assert other.status_code == 200
    assert other.context["compared"].baseline.label == "B"


def test_rest_it_gives_the_same_numbers(two, person, page):
    asked = {"of": ",".join(tokens(*two)), "at": "1"}
    told = client_of(person).get("/api/v1/compare/", asked).json()
    shown = page.get(ADDRESS, asked).context["compared"].to_dict()
    assert told == json.loads(json.dumps(shown))
    assert told["at"] == {"hosts": 2}
    wrong = client_of(person).get("/api/v1/compare/", {**asked, "ofs": "1"})
    assert wrong.status_code == 400


def test_the_list_of_experiments_it_offers_them_to_compare(two, page):
    html = page.get(reverse("experiments")).content.decode()
    assert 'value="e:plain"' in html
    assert 'value="e:jumbo"' in html
    assert f'<form id="compare-form" action="{ADDRESS}">' in html
    assert 'name="of"' not in page.get(reverse("home")).content.decode()


def test_the_experiment_page_it_offers_configurations_to_compare(two, page):
    html = page.get(two[0].get_absolute_url()).content.decode()
    key = Configuration.objects.filter(experiment=two[0]).first().pk
    assert f'value="c:{key}"' in html
    assert reverse("compare") in html
