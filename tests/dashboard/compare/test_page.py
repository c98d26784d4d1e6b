"""Comparison: what differs, by how much, and how sure; the answer first, and nothing that says nothing."""

import json
import re

import pytest
from django.urls import reverse

from experiments.errors import CannotCompare
from experiments.models import Configuration, Experiment, Project, Trial
from experiments.selectors.comparison import compare
from tests.dashboard.api.clients import client_of
from tests.dashboard.studies_measured import measured

ADDRESS = "/compare/"


@pytest.fixture
def two(submit, run):
    first = submit(name="Plain", repetitions=5)
    second = submit(name="Jumbo", repetitions=5, parameters={"molecules": 216, "steps": 50}, link={"mtu": 9000})
    run()
    return first, second


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


def test_it_calls_configurations_better_only_where_a_direction_exists(two, person):
    one, four = (Configuration.objects.get(experiment=two[0], hosts=hosts) for hosts in (2, 4))
    compared = compare(person, [f"c:{one.pk}", f"c:{four.pk}"]).to_dict()
    words = {row["metric"]: row["comparisons"][1]["words"] for row in compared["metrics"]}
    assert (words["cpu_mean_rank_s"], words["interarrival_mean_s"]) == ("better", "less")
    ratio = next(r for r in compared["metrics"] if r["metric"] == "packets")["comparisons"][1]
    assert ratio["ratio"] == pytest.approx(4, rel=0.01)
    assert ratio["ratio_interval"]["low"] < 4 < ratio["ratio_interval"]["high"]


WATER = {"workload": "water", "sweep": {"hosts": [2, 4]}, "repetitions": 5}
PUBLISHED = "e:guster-2007-water"


def seconds(factor: float, **more: float):
    """A run whose elapsed time falls with the hosts, `factor` times as long."""
    return lambda parameters: {"elapsed_s": factor * 4.0 / parameters["hosts"], "packets": 1000.0, **more}


def opened(page, *of: str, **asked: str):
    response = page.get(ADDRESS, {"of": ",".join(of), **asked})
    assert response.status_code == 200
    return response


def test_it_says_what_decides_then_draws_it_and_then_lists_the_rest(library, page):
    slow = measured(library, {"name": "Slow", **WATER}, seconds(1.2))
    fast = measured(library, {"name": "Fast", **WATER}, seconds(1.0))
    answer = opened(page, *tokens(fast, slow))
    verdict = "Against A, elapsed time of B is higher at both common points (+20\u202f%)."
    assert answer.context["answer"].verdict == verdict
    html = answer.content.decode()
    places = [html.index(mark) for mark in (verdict, 'id="charts"', 'id="metrics"', 'id="configuration"')]
    assert places == sorted(places)
    assert "At 2 hosts: 2.4\u202fs against 2\u202fs (+20\u202f%)." in html
    turned = opened(page, *tokens(fast, slow), baseline="e:slow").context["answer"].verdict
    assert turned == "Against B, elapsed time of A is lower at both common points (\u221216.7\u202f%)."


def test_it_sets_two_configurations_side_by_side_each_in_its_own_colour(library, page):
    own = measured(library, {"name": "Own", **WATER}, seconds(1.0))
    pair = [f"c:{pk}" for pk in own.configurations.order_by("hosts").values_list("pk", flat=True)]
    shown = opened(page, *pair).context
    assert shown["answer"].verdict == (
        "Elapsed time of B is lower than that of A: 1\u202fs against 2\u202fs (\u221250\u202f%)."
    )
    (elapsed,) = shown["charts"]
    medians = [trace for trace in elapsed.figure["data"] if trace.get("showlegend", True)]
    assert [(trace["x"], trace["y"]) for trace in medians] == [(["A"], [2.0]), (["B"], [1.0])]
    assert len({trace["marker"]["color"] for trace in medians}) == 2
    assert {trace["mode"] for trace in elapsed.figure["data"]} == {"markers"}


def test_it_distinguishes_points_of_different_verdicts(library, page):
    first = measured(library, {"name": "First", **WATER}, seconds(1.0))
    other = measured(
        library, {"name": "Other", **WATER}, lambda p: {"elapsed_s": 2.0 if p["hosts"] == 2 else 0.5, "packets": 1.0}
    )
    words = "is lower at 1 of 2 common points (\u221250\u202f%), and shows no clear change at 1 (0\u202f%)."
    verdict = opened(page, *tokens(first, other)).context["answer"].verdict
    assert verdict == f"Against A, elapsed time of B {words}"


def test_it_names_the_best_of_more_than_two(library, page):
    runs = [measured(library, {"name": n, **WATER}, seconds(f)) for n, f in (("P", 1.0), ("Q", 0.5), ("R", 2.0))]
    answer = opened(page, *tokens(*runs), at="1").context["answer"]
    assert (
        answer.verdict == "The lowest median of elapsed time at 4 hosts is that of B: 500\u202fms (B) to 2\u202fs (C)."
    )
    assert [each.member.label for each in answer.against] == ["B", "C"]
    assert answer.against[1].sentences[0].startswith("Against A, elapsed time of C is higher at both common points")


def test_it_answers_with_what_a_workload_is_decided_by(library, page):
    own = measured(
        library,
        {
            "name": "Wide",
            "workload": "pingpong",
            "parameters": {"hosts": 2, "message_bytes": "4 MiB"},
            "sweep": {"link.delay": ["0 ms", "16 ms"]},
        },
        lambda parameters: {"elapsed_s": 9.0, "pingpong.transfer_time_s": 0.7 + 60 * parameters["link.delay"]},
    )
    shown = opened(page, f"e:{own.slug}", "e:pinning-2007-wan").context
    assert shown["compared"].deciding == "pingpong.transfer_time_s"
    assert [chart.element for chart in shown["charts"]] == ["overlay-pingpong.transfer_time_s", "change"]


def test_it_folds_away_what_one_side_alone_measured_under_its_name(library, page):
    own = measured(library, {"name": "Mini", **WATER}, seconds(0.5, cpu_s=1.0, wire_bytes=3.0))
    response = opened(page, f"e:{own.slug}", PUBLISHED)
    table, compared = response.context["table"], response.context["compared"]
    (only_a, only_b) = table.one_sided
    assert only_a.title == "Measured on A (Mini) only: 2 metrics"
    assert [line["row"].metric for line in only_a.rows] == ["cpu_s", "wire_bytes"]
    assert only_b.element == "only-b"
    assert {line["row"].metric for line in table.rows} == {"elapsed_s", "packets"}
    folds = [*table.folded, *table.one_sided]
    listed = [line["row"].metric for lines in (table.rows, *(fold.rows for fold in folds)) for line in lines]
    assert sorted(listed) == sorted(row.metric for row in compared.rows)
    html = response.content.decode()
    assert "not measured on both sides" not in html
    assert html.index('id="only-a"') > html.index("<summary>Measured on A (Mini) only")


def test_it_does_not_draw_numbers_that_never_vary(library, page):
    runs = [measured(library, {"name": name, **WATER}, seconds(factor)) for name, factor in (("P", 1.0), ("Q", 1.1))]
    response = opened(page, *tokens(*runs))
    assert [chart.element for chart in response.context["charts"]] == ["overlay-elapsed_s", "change"]
    assert response.context["not_drawn"] == ["Packets (1\u202f000)"]
    assert "Not drawn, because every counted trial of every side gave the same number: Packets" in (
        response.content.decode()
    )


def test_it_folds_away_what_is_unclear_and_what_every_trial_has_the_same(library, page):
    runs = [
        measured(library, {"name": n, **WATER}, seconds(f, retransmitted_segments=0.0, cpu_s=c, wire_bytes=w))
        for n, f, c, w in (("P", 1.0, 2.0, 5.0), ("Q", 1.1, 2.0, 9.0))
    ]
    table = opened(page, *tokens(*runs)).context["table"]
    assert {line["row"].metric for line in table.rows} == {"elapsed_s", "packets", "wire_bytes"}
    assert [(fold.element, fold.title) for fold in table.folded] == [
        ("same", "The same number in every counted trial: 2 metrics")
    ]
    few = [
        measured(library, {"name": n, **WATER, "repetitions": 2}, seconds(f, cpu_s=f)) for n, f in (("R", 1), ("S", 2))
    ]
    (fold,) = opened(page, *tokens(*few)).context["table"].folded
    assert fold.title == "No clear change, or too few repetitions: 1 metric"


def test_it_shows_a_study_in_miniature_beside_its_full_size_on_a_logarithmic_axis(library, page):
    own = measured(library, {"name": "Mini", **WATER}, seconds(0.5))
    response = opened(page, f"e:{own.slug}", PUBLISHED)
    elapsed, change, _ = response.context["charts"]
    assert elapsed.log_first
    assert change.figure["layout"]["yaxis"]["type"] == "log"
    (trace,) = change.figure["data"]
    assert trace["y"] == pytest.approx([245.99 / 1.0, 200.4 / 0.5])
    panel = response.content.decode().split('id="c-overlay-elapsed_s"')[1].split("</section>")[0]
    assert re.search(r'data-scale="log" aria-pressed="true"', panel)
    assert response.context["answer"].verdict == (
        "Against A, elapsed time of B differs by 246× to 401× at both common points, from too few trials for a test."
    )


def test_it_does_not_call_different_what_a_publication_does_not_state(library, page):
    own = measured(library, {"name": "Mini", **WATER}, seconds(0.5))
    response = opened(page, f"e:{own.slug}", PUBLISHED)
    settings = response.context["settings"]
    apart, stated = {row["name"] for row in settings["apart"]}, dict(settings["partly"])
    assert {"Steps", "Ranks per host"} <= apart
    assert "Molecules" in {row["name"] for row in stated["A (Mini)"]}
    assert not apart & {row["name"] for row in stated["A (Mini)"]}
    assert "Stated for A (Mini) only" in response.content.decode()


def test_it_calls_single_trials_too_few(two, person):
    pks = Trial.objects.filter(configuration__hosts=2).values_list("pk", flat=True)[:2]
    compared = compare(person, [f"t:{pk}" for pk in pks])
    assert {c.verdict for row in compared.rows for c in row.against if c} == {"too few repetitions"}


@pytest.mark.parametrize(
    "chosen", [[], ["e:plain"], ["e:plain", "x:1"], ["e:plain", "c:99999999"], ["e:plain"] * 9, ["e:plain", "e:no"]]
)
def test_it_says_why_something_cannot_be_compared(two, person, page, chosen):
    with pytest.raises(CannotCompare):
        compare(person, chosen)
    answer = page.get(ADDRESS, {"of": chosen})
    assert answer.status_code == 400
    assert "Nothing to compare" in answer.content.decode()


def test_it_does_not_show_experiments_of_others(two, person, page):
    Experiment.objects.filter(pk=two[1].pk).update(project=Project.objects.create(slug="theirs", name="Theirs"))
    assert page.get(ADDRESS, {"of": ",".join(tokens(*two))}).status_code == 400


def test_it_answers_the_page_with_a_fixed_number_of_queries(two, page, django_assert_num_queries):
    address = f"{ADDRESS}?of={','.join(tokens(*two))}"
    with django_assert_num_queries(8):
        html = page.get(address).content.decode()
    assert "no clear change" in html
    assert "Make baseline" in html
    assert "9\u202f000 B" in html
    other = page.get(f"{address}&baseline=e:jumbo&at=1&scope=mpi")
    assert other.status_code == 200
    assert other.context["compared"].baseline.label == "B"


def test_it_gives_rest_the_same_numbers(two, person, page):
    asked = {"of": ",".join(tokens(*two)), "at": "1"}
    told = client_of(person).get("/api/v1/compare/", asked).json()
    shown = page.get(ADDRESS, asked).context["compared"].to_dict()
    assert told == json.loads(json.dumps(shown))
    assert told["at"] == {"hosts": 2}
    wrong = client_of(person).get("/api/v1/compare/", {**asked, "ofs": "1"})
    assert wrong.status_code == 400


def test_it_offers_experiments_of_the_list_to_compare(two, page):
    html = page.get(reverse("experiments")).content.decode()
    assert 'value="e:plain"' in html
    assert 'value="e:jumbo"' in html
    assert f'<form id="compare-form" action="{ADDRESS}">' in html
    assert 'name="of"' not in page.get(reverse("home")).content.decode()


def test_it_offers_configurations_to_compare_on_the_experiment_page(two, page):
    html = page.get(two[0].get_absolute_url()).content.decode()
    key = Configuration.objects.filter(experiment=two[0]).first().pk
    assert f'value="c:{key}"' in html
    assert reverse("compare") in html
