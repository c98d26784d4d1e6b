"""The comparison page: differences with intervals, the answer first."""

import itertools
import re

import pytest
from lxml.html import fromstring

from analysis.catalogue import METRICS
from analysis.mpi.profile import CLASS_METRICS
from experiments.models import Environment, Experiment, Trial
from experiments.models.states import DISTURBANCES
from tests.dashboard.studies_measured import measured

ADDRESS = "/compare/"
WATER = {"workload": "water", "sweep": {"hosts": [2, 4]}, "repetitions": 5}
PUBLISHED = "e:guster-2007-water"


def tokens(*experiments: Experiment) -> list[str]:
    return [f"e:{experiment.slug}" for experiment in experiments]


def seconds(factor: float, **more: float):
    """A run whose elapsed time falls with the hosts, `factor` times as long."""
    return lambda parameters: {"elapsed_s": factor * 4.0 / parameters["hosts"], "packets": 1000.0, **more}


def opened(page, *of: str, **query: str):
    response = page.get(ADDRESS, {"of": ",".join(of), **query})
    assert response.status_code == 200
    return response


def test_it_says_what_decides_then_draws_it_and_then_lists_the_rest(library, page):
    slow = measured(library, {"name": "Slow", **WATER}, seconds(1.2))
    fast = measured(library, {"name": "Fast", **WATER}, seconds(1.0))
    answer = opened(page, *tokens(fast, slow))
    verdict = "Against A, elapsed time of B is higher at both common points (+20\u202f%; 95\u202f% intervals +20\u202f% to +20\u202f%)."
    assert answer.context["answer"].verdict == verdict
    html = answer.content.decode()
    places = [html.index(mark) for mark in (verdict, 'id="charts"', 'id="metrics"', 'id="configuration"')]
    assert places == sorted(places)
    assert "At 2 hosts: 2.4\u202fs against 2\u202fs (+20\u202f%; 95\u202f% interval" in html
    turned = opened(page, *tokens(fast, slow), baseline="e:slow").context["answer"].verdict
    assert turned.startswith(
        "Against B, elapsed time of A is lower at both common points (\u221216.7\u202f%; 95\u202f%"
    )


def test_it_sets_two_configurations_side_by_side_each_in_its_own_colour(library, page):
    experiment = measured(library, {"name": "Own", **WATER}, seconds(1.0))
    pair = [f"c:{pk}" for pk in experiment.configurations.order_by("hosts").values_list("pk", flat=True)]
    context = opened(page, *pair).context
    assert context["answer"].verdict == (
        "Elapsed time of B is lower than that of A: 1\u202fs against 2\u202fs "
        "(\u221250\u202f%; 95\u202f% interval \u221250\u202f% to \u221250\u202f%)."
    )
    (elapsed,) = context["charts"]
    medians = [trace for trace in elapsed.figure["data"] if trace.get("showlegend", True)]
    assert [(trace["x"], trace["y"]) for trace in medians] == [(["A"], [2.0]), (["B"], [1.0])]
    assert len({trace["marker"]["color"] for trace in medians}) == 2
    assert {trace["mode"] for trace in elapsed.figure["data"]} == {"markers"}


def disturb(experiment: Experiment, count: int) -> None:
    chosen = experiment.trials.order_by("pk")[:count].values_list("pk", flat=True)
    conditions = {DISTURBANCES: ["other programs took 80 % of the cores"]}
    Trial.objects.filter(pk__in=list(chosen)).update(trust="degraded", conditions=conditions)


@pytest.mark.parametrize(
    ("factor", "count", "word"), [(1.2, 0, "Conclusive"), (1.2, 10, "Tentative"), (1.0, 0, "Inconclusive")]
)
def test_the_strength_of_a_comparison_follows_its_intervals_and_its_trials(library, page, factor, count, word):
    steady = itertools.cycle((0.99, 1.0, 1.01, 1.0, 0.995))
    runs = [
        measured(library, {"name": n, **WATER}, lambda p, f=f: seconds(f * next(steady))(p))
        for n, f in (("P", 1.0), ("Q", factor))
    ]
    disturb(runs[1], count)
    answer = opened(page, *tokens(*runs)).context["answer"]
    assert answer.strength[1] == word
    assert ("10 of 10 trials of B" in answer.caution) is bool(count)
    assert "of A" not in answer.caution


def test_different_work_gets_no_verdict(library, page):
    """Two programs, or one with other steps: a longer time is no slower one."""
    short = measured(library, {"name": "Short", **WATER, "parameters": {"steps": 8}}, seconds(1.0))
    long = measured(library, {"name": "Long", **WATER, "parameters": {"steps": 800}}, seconds(90.0))
    warm = measured(library, {"name": "Warm", **WATER, "parameters": {"steps": 8, "temperature": 310}}, seconds(1.2))
    linpack = measured(library, {"name": "Linpack", **WATER, "workload": "hpl"}, seconds(2.0))

    for other, work in ((long, "steps 8 (A), 800 (B)"), (linpack, "workload TIP4P water (A), HPL (B)")):
        context = opened(page, *tokens(short, other)).context
        answer = context["answer"]
        (fold,) = [fold for fold in context["table"].folded if fold.element == "different-work"]
        assert answer.verdict == f"Different work, not comparable: {work}."
        assert (answer.strength, answer.caution) == (("", ""), "")
        assert answer.against[0].sentences == []
        assert not context["table"].rows
        assert "change" not in {chart.element for chart in context["charts"]}
        assert {row["against"][0][1][name] for row in fold.rows for name in ("words", "p", "effect", "arrow")} == {""}
        assert not re.search("worse|more|less", answer.against[0].counted)
    assert opened(page, *tokens(short, warm)).context["answer"].strength[1] == "Conclusive"


def test_no_member_is_best_without_a_clear_difference(library, page):
    steady = itertools.cycle((0.98, 1.0, 1.02, 1.01, 0.99, 1.03))
    runs = [measured(library, {"name": n, **WATER}, lambda p: seconds(next(steady))(p)) for n in "PQR"]
    verdict = opened(page, *tokens(*runs)).context["answer"].verdict
    assert "show no clear difference" in verdict
    assert "is that of" not in verdict


def test_each_of_several_members_has_its_own_strength(library, page):
    runs = [measured(library, {"name": n, **WATER}, seconds(f)) for n, f in (("P", 1.0), ("Q", 0.5), ("R", 1.0))]
    answer = opened(page, *tokens(*runs)).context["answer"]
    assert [row.strength[1] for row in answer.against] == ["Conclusive", "Inconclusive"]
    assert answer.strength == ("", "")


def test_it_distinguishes_points_of_different_verdicts(library, page):
    first = measured(library, {"name": "First", **WATER}, seconds(1.0))
    other = measured(
        library, {"name": "Other", **WATER}, lambda p: {"elapsed_s": 2.0 if p["hosts"] == 2 else 0.5, "packets": 1.0}
    )
    verdict = opened(page, *tokens(first, other)).context["answer"].verdict
    assert verdict.startswith("Against A, elapsed time of B is lower at 4 hosts (\u221250\u202f%; 95")
    assert "and shows no clear change at 2 hosts (0\u202f%; 95" in verdict


def test_a_point_has_the_same_verdict_in_the_answer_and_in_the_table(library, page):
    """Four against four: p = 2/70, which six headline metrics would reject."""
    four = {**WATER, "repetitions": 4}
    headline = {"cpu_total_s": 1.0, "throughput_Bps": 1.0}
    runs = [measured(library, {"name": n, **four}, seconds(f, **headline)) for n, f in (("First", 1.0), ("Other", 1.2))]
    context = opened(page, *tokens(*runs), at="1").context
    assert "is higher at both common points" in context["answer"].verdict
    elapsed, *others = context["compared"].rows
    assert (elapsed.metric, elapsed.against[1].metric, elapsed.against[1].verdict) == (
        "elapsed_s",
        "elapsed_s",
        "higher",
    )
    assert elapsed.against[1].p_adjusted == pytest.approx(2 / 70)
    assert {row.against[1].verdict for row in others} == {"no clear change"}
    reported = page.get("/api/v1/compare/", {"of": ",".join(tokens(*runs)), "at": "1"}).json()["metrics"][0]
    assert (reported["metric"], reported["comparisons"][1]["words"]) == ("elapsed_s", "worse")


def test_three_trials_that_take_ten_times_as_long_are_a_verdict_with_its_interval(library, page):
    trials = iter((1.0, 1.02, 0.98, 10.0, 10.3, 9.9))
    three = {"workload": "water", "parameters": {"hosts": 2}, "repetitions": 3}
    runs = [measured(library, {"name": name, **three}, lambda _: {"elapsed_s": next(trials)}) for name in ("P", "Q")]
    data = page.get("/api/v1/compare/", {"of": ",".join(tokens(*runs))}).json()
    (change,) = [c for row in data["metrics"] if row["metric"] == "elapsed_s" for c in row["comparisons"] if c]
    assert (change["verdict"], change["words"], change["ratio_interval"]["level"]) == ("higher", "worse", 0.95)
    assert change["ratio_interval"]["low"] < 10 < change["ratio_interval"]["high"]


def test_it_begins_where_what_decides_changed_most(library, page):
    first = measured(library, {"name": "First", **WATER}, seconds(1.0))
    other = measured(library, {"name": "Other", **WATER}, lambda p: seconds(0.25 if p["hosts"] == 4 else 1.1)(p))
    chosen = opened(page, *tokens(first, other)).context
    assert chosen["compared"].at == (4,)
    assert [(point["words"], point["on"], "at=" in point["query"]) for point in chosen["points"]] == [
        ("2", False, True),
        ("4", True, True),
    ]
    assert opened(page, *tokens(first, other), at="0").context["compared"].at == (2,)
    alike = measured(library, {"name": "Alike", **WATER}, seconds(1.0, throughput_Bps=2.0))
    assert opened(page, *tokens(first, alike)).context["compared"].at == (2,)


def test_it_names_the_best_of_more_than_two(library, page):
    runs = [measured(library, {"name": n, **WATER}, seconds(f)) for n, f in (("P", 1.0), ("Q", 0.5), ("R", 2.0))]
    answer = opened(page, *tokens(*runs), at="1").context["answer"]
    assert (
        answer.verdict == "The lowest median of elapsed time at 4 hosts is that of B: 500\u202fms (B) to 2\u202fs (C)."
    )
    assert [row.member.label for row in answer.against] == ["B", "C"]
    assert answer.against[1].sentences[0].startswith("Against A, elapsed time of C is higher at both common points")


def test_it_answers_with_what_a_workload_is_decided_by(library, page):
    experiment = measured(
        library,
        {
            "name": "Wide",
            "workload": "pingpong",
            "parameters": {"hosts": 2, "message_bytes": "4 MiB"},
            "sweep": {"link.delay": ["0 ms", "16 ms"]},
        },
        lambda parameters: {"elapsed_s": 9.0, "pingpong.transfer_time_s": 0.7 + 60 * parameters["link.delay"]},
    )
    context = opened(page, f"e:{experiment.slug}", "e:pinning-2007-wan").context
    assert context["compared"].deciding == "pingpong.transfer_time_s"
    assert [chart.element for chart in context["charts"]] == ["overlay-pingpong.transfer_time_s", "change"]
    assert context["charts"][0].metric == "pingpong.transfer_time_s"  # a figure may share its name with another term


def test_it_folds_away_what_one_side_alone_measured(library, page):
    experiment = measured(library, {"name": "Mini", **WATER}, seconds(0.5, cpu_s=1.0, wire_bytes=3.0))
    context = opened(page, f"e:{experiment.slug}", PUBLISHED).context
    table, compared = context["table"], context["compared"]
    assert table.folded[-1].element == "one-sided"
    assert {"cpu_s", "wire_bytes"} <= {line["row"].metric for line in table.folded[-1].rows}
    assert not table.rows, "they are of different work"
    listed = [line["row"].metric for lines in (table.rows, *(fold.rows for fold in table.folded)) for line in lines]
    assert sorted(listed) == sorted(row.metric for row in compared.rows)


def test_it_does_not_draw_numbers_that_never_vary(library, page):
    runs = [measured(library, {"name": name, **WATER}, seconds(factor)) for name, factor in (("P", 1.0), ("Q", 1.1))]
    response = opened(page, *tokens(*runs))
    assert [chart.element for chart in response.context["charts"]] == ["overlay-elapsed_s", "change"]


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
    assert fold.title == "No clear change, or too few trials for a verdict: 1 metric"


def test_it_compares_a_miniature_with_its_full_size_study_on_a_logarithmic_axis(library, page):
    experiment = measured(library, {"name": "Mini", **WATER}, seconds(0.5))
    response = opened(page, f"e:{experiment.slug}", PUBLISHED)
    elapsed, _ = response.context["charts"]
    assert elapsed.log_first
    panel = response.content.decode().split('id="c-overlay-elapsed_s"')[1].split("</section>")[0]
    assert re.search(r'data-scale="log" aria-pressed="true"', panel)
    answer = response.context["answer"]
    assert answer.verdict == "Different work, not comparable: steps 300 (A), 10\u202f000 (B)."


def test_metrics_of_different_work_are_folded(library, page):
    sides = [
        measured(library, {**WATER, "name": name, "parameters": {"molecules": 216, "steps": steps}}, seconds(factor))
        for name, steps, factor in (("Short", 50, 1.0), ("Long", 500, 9.0))
    ]
    table = opened(page, *tokens(*sides)).context["table"]
    assert not table.rows
    folded = next(fold for fold in table.folded if fold.element == "different-work")
    assert {"elapsed_s", "packets"} <= {line["row"].metric for line in folded.rows}


def test_long_facts_are_folded(library, page):
    runs = [measured(library, {"name": name, **WATER}, seconds(1.0)) for name in ("P", "Q")]
    for run, names in zip(runs, (["libc.so.6"], [f"lib{n}.so.{n}" for n in range(60)]), strict=True):
        environment = Environment.objects.create(hash=f"libraries-{run.pk}", facts={"program": {"libraries": names}})
        run.trials.update(environment=environment)
    document = fromstring(opened(page, *tokens(*runs)).content.decode())
    (fold,) = document.xpath("//*[@id='environment']//td/details")
    assert len(fold.findtext("summary").strip().split("≠")[0].strip()) < 70
    assert "lib59.so.59" in fold.text_content()
    assert "lib59.so.59" not in document.get_element_by_id("answer").text_content()


@pytest.mark.parametrize("delay", ["0 ms", "5 ms"])
def test_facts_of_an_interface_follow_a_link_that_differs(library, page, delay):
    pair = [
        measured(library, {"name": name, **WATER, "link": {"delay": value}}, seconds(1.0))
        for name, value in (("Plain", "0 ms"), ("Other", delay))
    ]
    for experiment, driver in zip(pair, ("veth", "tun"), strict=True):
        key = Environment.objects.create(hash=driver * 16, facts={"interface": {"driver": driver}}).pk
        Trial.objects.filter(experiment=experiment).update(environment=key)
    assert opened(page, *tokens(*pair)).context["follows_link"] == (delay != "0 ms")


def test_long_facts_that_differ_at_their_ends_are_not_cut(library, page):
    runs = [measured(library, {"name": name, **WATER}, seconds(1.0)) for name in ("P", "Q")]
    common = [f"lib{n}.so.{n}" for n in range(20)]
    for run, last in zip(runs, ("libm.so.6", "libz.so.1"), strict=True):
        facts = {"program": {"libraries": [*common, last]}}
        run.trials.update(environment=Environment.objects.create(hash=f"libraries-{run.pk}", facts=facts))
    ((_, values),) = opened(page, *tokens(*runs)).context["environment"]["brief"]["rows"]
    assert [("libm" in value, "libz" in value) for _, value in values] == [(True, False), (False, True)]


def test_it_does_not_call_different_what_a_publication_does_not_state(library, page):
    experiment = measured(library, {"name": "Mini", **WATER}, seconds(0.5))
    response = opened(page, f"e:{experiment.slug}", PUBLISHED)
    settings = response.context["settings"]
    apart, stated = {row["name"] for row in settings["apart"]}, dict(settings["partly"])
    assert {"Steps", "Ranks per host"} <= apart
    assert "Molecules" in {row["name"] for row in stated["A (Mini)"]}
    assert not apart & {row["name"] for row in stated["A (Mini)"]}
    assert "Stated for A (Mini) only" in response.content.decode()


def test_it_states_the_answer_of_each_experiment_and_the_points_of_one_side(library, page, empty_redis):
    def sized(name: str, hosts: list[int], molecules: int) -> Experiment:
        steady = itertools.cycle((0.99, 1.0, 1.01, 1.0, 0.995))
        spec = {**WATER, "name": name, "sweep": {"hosts": hosts}, "parameters": {"molecules": molecules, "steps": 50}}
        return measured(library, spec, lambda p: seconds(next(steady) * molecules / 216)(p))

    context = opened(page, *tokens(sized("Large", [1, 2, 4], 1000), sized("Small", [1, 2, 3], 216))).context
    answers = context["experiment_answers"]
    assert [row.member.label for row in answers] == ["A", "B"]
    assert ["4 hosts" in row.verdict or "3 hosts" in row.verdict for row in answers] == [True, True]
    assert context["unpaired"] == "Not compared, as not all sides measured it: 4 hosts (A) and 3 hosts (B)."
    assert ", with different molecules, " in context["answer"].against[0].counted


def test_it_states_no_answers_beside_each_other_of_single_configurations(library, page):
    experiment = measured(library, {"name": "Own", **WATER}, seconds(1.0))
    pair = [f"c:{pk}" for pk in experiment.configurations.order_by("hosts").values_list("pk", flat=True)]
    context = opened(page, *pair).context
    assert (context["experiment_answers"], context["unpaired"]) == ([], "")


def test_it_lists_the_traffic_of_flagged_trials_as_excluded(library, page):
    more = {"captured": 1000.0, "super_segments": 5.0}
    runs = [measured(library, {"name": n, **WATER}, seconds(f, **more)) for n, f in (("P", 1.0), ("Q", 1.1))]
    Trial.objects.filter(experiment__in=runs).update(trust="unusable")
    response = opened(page, *tokens(*runs))
    fold = response.context["table"].folded[-1]
    assert fold.title == "Excluded, as the captures of these trials are flagged: 2 metrics"
    assert [line["row"].metric for line in fold.rows] == ["packets", "captured"]
    assert "super_segments" in {row.metric for row in response.context["compared"].rows}
    assert "traffic of flagged trials is excluded" in response.content.decode()


def test_counts_of_trials_name_their_points(library, page):
    runs = [measured(library, {"name": n, **WATER}, seconds(f)) for n, f in (("P", 1.0), ("Q", 1.1))]
    disturb(runs[0], 10)
    response = opened(page, *tokens(*runs))
    assert "10 of 10 trials of A at both common points." in response.context["answer"].caution
    assert "Trials at the chosen common point." in response.content.decode()


def test_a_trivial_change_is_no_effect(library, page):
    steady = itertools.cycle((2.0, 2.00001, 1.99999, 2.00002, 1.99998))
    runs = [
        measured(library, {"name": n, **WATER}, lambda p, f=f: seconds(1.0, cpu_s=f * next(steady))(p))
        for n, f in (("P", 1.0), ("Q", 1.001))
    ]
    table = opened(page, *tokens(*runs)).context["table"]
    assert "cpu_s" not in {line["row"].metric for line in table.rows}
    (line,) = next(fold.rows for fold in table.folded if fold.element == "trivial")
    assert (line["row"].metric, line["against"][0][1]["effect"]) == ("cpu_s", "")


def test_an_interval_with_no_change_from_too_few_trials_is_no_difference(library, page):
    """Two trials of each side: one point changed clearly, the other may have."""
    values = {"One": itertools.cycle([1.0, 1.4]), "Two": itertools.cycle([1.1, 1.7])}
    few = WATER | {"repetitions": 2}
    one, two = (
        measured(library, {"name": name, **few}, lambda _, of=of: {"elapsed_s": next(of)})
        for name, of in values.items()
    )
    verdict = opened(page, *tokens(one, two)).context["answer"].verdict
    assert "elapsed time of B shows no clear change at both common points (" in verdict
    assert verdict.endswith(", with no verdict below 3 trials of a side.")


@pytest.mark.parametrize(("hosts", "is_stated"), [([1, 2], True), ([2, 4], False)])
def test_a_change_at_one_host_is_not_of_the_link(library, page, hosts, is_stated):
    sweep = WATER | {"sweep": {"hosts": hosts}}
    one = measured(library, {"name": "One", **sweep}, seconds(1.0))
    two = measured(library, {"name": "Two", **sweep, "link": {"bandwidth": "100 Mbit/s"}}, seconds(2.0))
    (against,) = opened(page, *tokens(one, two)).context["answer"].against
    assert any(sentence.startswith("One host sends no packets") for sentence in against.sentences) is is_stated


def test_changes_without_an_interval_are_apart_from_those_with_one(library, page):
    few = WATER | {"repetitions": 2}
    one = measured(library, {"name": "One", **few}, seconds(1.0))
    two = measured(library, {"name": "Two", **few}, lambda p: {"elapsed_s": {2: 1.0, 4: 0.9}[p["hosts"]]})
    single = two.trials.filter(configuration__hosts=4).order_by("-pk")[:1]
    Trial.objects.filter(pk__in=single).update(state="failed")
    verdict = opened(page, *tokens(one, two)).context["answer"].verdict
    with_interval, _, without = verdict.partition(", and differs by ")
    assert "95\u202f% interval \u221250\u202f% to \u221250\u202f%" in with_interval
    assert without == "\u221210\u202f% at 4 hosts, with too few trials for an interval."


def test_a_heading_of_many_verdicts_counts_points_and_lists_intervals_below(library, page):
    """Two sizes changed clearly, in both directions; a third did not."""
    noise = itertools.cycle((1.0, 1.01, 0.99, 1.02, 0.98))
    factors = {"One": {}, "Two": {1: 0.5, 2: 2.0}}
    sizes = {**WATER, "sweep": {"hosts": [1, 2, 3]}}
    one, two = (
        measured(
            library, {"name": name, **sizes}, lambda p, of=of: {"elapsed_s": next(noise) * of.get(p["hosts"], 1.0)}
        )
        for name, of in factors.items()
    )
    answer = opened(page, *tokens(one, two)).context["answer"]
    assert answer.verdict.endswith(
        "is lower at 1 of 3 common points, is higher at 1 of 3 common points, and shows no clear change at 1 point."
    )
    *clauses, _ = answer.against[0].sentences
    assert [clause.split(" at ")[0] for clause in clauses] == ["Is lower", "Is higher", "Shows no clear change"]


def test_shares_of_kinds_of_calls_have_no_better_direction():
    kinds = [metric for metric in METRICS.values() if metric.id in CLASS_METRICS.values()]
    assert {metric.direction for metric in kinds} == {"neutral"}
    assert len(kinds) == 6


def test_a_row_of_two_trials_has_one_unit_and_names_the_trials_of_a_verdict(library, page):
    values = {"One": itertools.cycle([1.0, 1.4]), "Two": itertools.cycle([4.0, 6.0])}
    one, two = (
        measured(library, {"name": n, **WATER, "repetitions": 2}, lambda _, of=of: {"elapsed_s": next(of)})
        for n, of in values.items()
    )
    context = opened(page, *tokens(one, two)).context
    table = context["table"]
    lines = [*table.rows, *(row for fold in table.folded for row in fold.rows)]
    cell = next(line["against"][0][1] for line in lines if line["row"].metric == "elapsed_s")
    assert (cell["change"], cell["ratio"]) == ("4.17×", "")
    assert [end[-1] for end in cell["interval"].split(" to ")] == ["×", "×"]
    assert cell["words"] == "no verdict below 3 trials of a side"
    assert "\u202f%" not in context["answer"].verdict.partition("95\u202f% ")[2]
