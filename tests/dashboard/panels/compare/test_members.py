"""Members of a comparison: pairing, permissions and selection."""

import json
from dataclasses import replace

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from dashboard.panels.compare.charts import charts
from experiments.errors import CannotCompare
from experiments.library import load_defaults
from experiments.models import Configuration, Experiment, Project, Trial
from experiments.selectors import compared_members
from experiments.selectors.compared_members import point_of
from experiments.selectors.comparison import compare
from tests.dashboard.api.clients import client_of
from tests.dashboard.laboratory import laboratory_with, run_waiting, submitted
from tests.experiments import factories

ADDRESS = "/compare/"


def run_two(library: Project, person: User) -> None:
    submitted(library, person, name="Plain", repetitions=5)
    submitted(library, person, name="Jumbo", repetitions=5, link={"mtu": 9000})
    run_waiting()


LABORATORY = laboratory_with(run_two)


@pytest.fixture
def library(db) -> Project:
    LABORATORY.restore()
    return load_defaults()


@pytest.fixture
def person(library) -> User:
    return User.objects.get(username="okafor")


@pytest.fixture
def two(library) -> tuple[Experiment, Experiment]:
    return Experiment.objects.get(slug="plain"), Experiment.objects.get(slug="jumbo")


def tokens(*experiments: Experiment) -> list[str]:
    return [f"e:{experiment.slug}" for experiment in experiments]


def test_it_pairs_experiments_by_what_they_sweep(two, person):
    compared = compare(person, tokens(*two), at="2")
    assert compared.names == ("hosts",)
    assert compared.points == [(1,), (2,), (4,)]
    assert [d.name for d in compared.settings if d.differs] == ["link.mtu"]
    assert [len(m.trials_at(compared.names, compared.at)) for m in compared.members] == [5, 5]
    elapsed = next(row for row in compared.rows if row.metric == "elapsed_s")
    assert elapsed.against[0] is None
    assert elapsed.against[1].verdict == "no clear change"


def test_it_looks_up_points_without_reading_the_design_for_each(two, person, monkeypatch):
    """The time would grow with the square of the points."""
    read = []

    def counted(row, names):
        read.append(row)
        return point_of(row, names)

    monkeypatch.setattr(compared_members, "point_of", counted)
    compared = compare(person, tokens(*two))
    designs = sum(len(member.configurations) for member in compared.members)
    assert len(read) <= 3 * designs


def test_charts_search_no_point_in_the_list_of_all(two, person):
    class Points(list):
        def index(self, *_):
            raise AssertionError("one search for each point, side and metric")

    compared = compare(person, tokens(*two))
    drawn = charts(replace(compared, points=Points(compared.points)))
    assert [chart.element for chart in drawn] == [chart.element for chart in charts(compared)]


def test_it_lists_transports_that_differ_by_the_clusters_too(two, person):
    for experiment, transport in zip(two, ("native", "tcp"), strict=True):
        for trial in Trial.objects.filter(experiment=experiment):
            Trial.objects.filter(pk=trial.pk).update(conditions={**trial.conditions, "transport": transport})
    compared = compare(person, tokens(*two), at="2")
    differing = {d.name: d.values for d in compared.settings if d.differs}
    assert differing["transport"] == ("native", "tcp")


def test_it_calls_configurations_better_only_where_a_direction_exists(two, person):
    one, four = (Configuration.objects.get(experiment=two[0], hosts=hosts) for hosts in (2, 4))
    compared = compare(person, [f"c:{one.pk}", f"c:{four.pk}"]).to_dict()
    words = {row["metric"]: row["comparisons"][1]["words"] for row in compared["metrics"]}
    assert (words["cpu_mean_rank_s"], words["interarrival_mean_s"]) == ("better", "less")
    ratio = next(r for r in compared["metrics"] if r["metric"] == "packets")["comparisons"][1]
    assert ratio["ratio"] == pytest.approx(4, rel=0.01)
    assert ratio["ratio_interval"]["low"] < 4 < ratio["ratio_interval"]["high"]


def test_it_calls_single_trials_too_few(two, person):
    pks = Trial.objects.filter(configuration__hosts=2).values_list("pk", flat=True)[:2]
    compared = compare(person, [f"t:{pk}" for pk in pks])
    assert {c.verdict for row in compared.rows for c in row.against if c} == {"too few repetitions"}


@pytest.mark.parametrize(
    "chosen",
    [[], ["e:no"], ["t:1"], ["e:plain", "x:1"], ["e:plain", "c:99999999"], ["e:plain"] * 9, ["e:plain", "e:no"]],
)
def test_it_says_why_something_cannot_be_compared(two, person, page, chosen):
    with pytest.raises(CannotCompare):
        compare(person, chosen)
    answer = page.get(ADDRESS, {"of": chosen})
    assert answer.status_code == 400


@pytest.mark.parametrize("chosen", ["e:plain", "e:jumbo"])
def test_one_experiment_is_offered_its_relatives_and_others_of_its_workload(two, page, chosen):
    plain, jumbo = two
    Experiment.objects.filter(pk=jumbo.pk).update(cloned_from=plain)
    factories.experiment(slug="newest")
    context = page.get(ADDRESS, {"of": chosen}).context
    offered = [row.experiment.slug for row in context["rows"]]
    links = {row.experiment.slug: link for row, link in context["choices"]}
    assert links.get("jumbo", "MTU 9 000 B").replace("\u202f", " ").endswith("MTU 9 000 B")
    assert context["chosen"].slug == chosen.removeprefix("e:")
    assert set(offered[:2]) == {"newest", "plain", "jumbo"} - {chosen.removeprefix("e:")}
    assert offered[0] == ("jumbo" if chosen == "e:plain" else "plain")
    link = "of=e:plain,e:jumbo"  # the older one is the baseline
    assert link in page.get(ADDRESS, {"of": chosen}).content.decode()
    assert page.get(f"{ADDRESS}?{link}").context["compared"].baseline.token == "e:plain"


def test_an_experiment_alone_in_its_workload_is_offered_those_of_other_workloads(two, page):
    alone = factories.experiment(slug="alone")
    Experiment.objects.filter(pk=alone.pk).update(workload="pingpong")
    Experiment.objects.filter(workload="pingpong").exclude(pk=alone.pk).update(archived_at=timezone.now())
    context = page.get(ADDRESS, {"of": "e:alone"}).context
    assert context["is_other_work"]
    assert {"plain", "jumbo"} <= {row.experiment.slug for row in context["rows"]}
    assert not page.get(ADDRESS, {"of": "e:plain"}).context["is_other_work"]


def test_compare_pairs_no_truth_with_a_number(two, person):
    for experiment, values in zip(two, ((True, False, True), (1, 0, 1)), strict=True):
        for configuration, value in zip(experiment.configurations.all(), values, strict=True):
            configuration.parameters |= {"flag": value}
            configuration.save()
    with pytest.raises(CannotCompare, match="flag is true or false in some members and a number in others"):
        compare(person, tokens(*two))


def test_it_does_not_show_experiments_of_others(two, person, page):
    Experiment.objects.filter(pk=two[1].pk).update(project=Project.objects.create(slug="theirs", name="Theirs"))
    assert page.get(ADDRESS, {"of": ",".join(tokens(*two))}).status_code == 400


def test_it_answers_the_page_with_a_fixed_number_of_queries(two, page, django_assert_num_queries):
    address = f"{ADDRESS}?of={','.join(tokens(*two))}"
    with django_assert_num_queries(9):
        html = page.get(address).content.decode()
    assert "Make baseline" in html
    assert "9\u202f000\u202fB" in html
    other = page.get(f"{address}&baseline=e:jumbo&at=1&scope=mpi")
    assert other.status_code == 200
    assert other.context["compared"].baseline.label == "B"


def test_it_gives_rest_the_same_numbers(two, person, page):
    query = {"of": ",".join(tokens(*two)), "at": "1"}
    reported = client_of(person).get("/api/v1/compare/", query).json()
    context = page.get(ADDRESS, query).context["compared"].to_dict()
    assert reported == json.loads(json.dumps(context))
    assert reported["at"] == {"hosts": 2}
    wrong = client_of(person).get("/api/v1/compare/", {**query, "ofs": "1"})
    assert wrong.status_code == 400


def test_it_names_what_is_not_found(page):
    assert "e:nosuch" in page.get(ADDRESS, {"of": "e:nosuch"}).context["why"]
