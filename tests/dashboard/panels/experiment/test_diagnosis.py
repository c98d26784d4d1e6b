"""The diagnosis of an experiment: computed lazily, cached, and linked."""

import re
import time
from dataclasses import replace
from datetime import timedelta

import pytest
from django.core.cache import caches
from django.urls import reverse
from django.utils import timezone

from analysis.conclusions import Answer, ChangePart
from analysis.conclusions.answer import Figure
from analysis.conclusions.answering import SLOWED
from analysis.numbers import amount
from dashboard.background import diagnoses, tasks
from dashboard.panels.experiment.diagnosis import MOST_FINDINGS, change_by_part, diagnosis_context
from dashboard.panels.experiment.results import Results
from experiments.models import Experiment, Measurement, State, Trial
from experiments.selectors.diagnosis import answers_of, cached_diagnosis, diagnosis_of, forget_diagnosis
from experiments.selectors.question import question_of
from experiments.selectors.study import study_of
from tests.dashboard.api.clients import client_of
from workers import queue

# Clearly best at two hosts; control runs without capture are a little faster.
ELAPSED = {1: (10.0, 10.2, 9.8, 10.1, 9.9), 2: (5.6, 5.5, 5.4, 5.5, 5.6), 4: (7.9, 8.1, 8.0, 8.2, 7.9)}


@pytest.fixture
def measured(submit, empty_redis) -> Experiment:
    experiment = submit(repetitions=5, control=True)
    for trial in experiment.trials.select_related("configuration"):
        hosts = trial.configuration.hosts
        Trial.objects.filter(pk=trial.pk).update(state=State.FINISHED, conditions={"cores": 2})
        elapsed = 0.98 * ELAPSED[hosts][0] if trial.kind == "control" else ELAPSED[hosts][trial.repetition - 1]
        values = {"elapsed_s": elapsed, "cpu_mean_rank_s": 9.0 / hosts}
        if trial.kind != "control":
            values |= {"packets": 1000.0 * hosts**2}
        Measurement.objects.bulk_create(Measurement(trial=trial, metric=m, value=v) for m, v in values.items())
    return experiment


def with_times(experiment: Experiment) -> Experiment:
    """Finish all trials with an elapsed time alone."""
    for trial in experiment.trials.select_related("configuration"):
        Trial.objects.filter(pk=trial.pk).update(state=State.FINISHED, conditions={"cores": 2})
        elapsed = ELAPSED[trial.configuration.hosts][trial.repetition - 1]
        Measurement.objects.create(trial=trial, metric="elapsed_s", value=elapsed)
    return experiment


def test_a_conclusive_answer_recommends_no_repetitions(submit, empty_redis):
    experiment = with_times(submit(repetitions=2))
    diagnosis = diagnosis_of(experiment)
    assert diagnosis.answer.strength == "firm"
    assert {parameters["hosts"] for parameters, _ in diagnosis.study.suggested} > {3}
    assert {parameters["hosts"] for parameters, _ in diagnosis.suggested} <= {3}


def test_the_context_names_gaps_and_missing_intervals(submit, empty_redis):
    experiment = with_times(submit(repetitions=2))
    diagnosis = diagnosis_of(experiment)
    context = diagnosis_context(diagnosis, Results(experiment), {})
    assert context["next_title"].endswith("the answer is about the measured ones")
    assert context["predicts"] is any(fit["chosen"] for model in context["models"] for fit in model["fits"])
    parts = tuple(replace(part, low_s=None, high_s=None) for part in diagnosis.answer.parts)
    without = replace(diagnosis, answer=replace(diagnosis.answer, parts=parts))
    assert diagnosis_context(without, Results(experiment), {})["parts_have_intervals"] is False


def test_control_runs_of_each_repetition_give_the_capture_overhead_an_interval(measured):
    effects = [row.effect for row in diagnosis_of(measured).observer]
    assert [effect.controls for effect in effects] == [5, 5, 5]
    assert all(effect.low < effect.relative < effect.high for effect in effects)


@pytest.fixture
def fragment(page, measured) -> str:
    return page.get(reverse("experiment-diagnosis", args=[measured.slug])).content.decode()


def test_it_does_not_let_the_page_wait_for_models(page, measured, monkeypatch):
    monkeypatch.setattr("experiments.selectors.diagnosis.diagnose", lambda *_: pytest.fail("computed in the page"))
    html = page.get(measured.get_absolute_url()).content.decode()
    assert 'aria-busy="true"' in html
    assert 'hx-trigger="load, rankwire:diagnose' in html


def test_it_shows_a_kept_diagnosis_on_the_page_at_once(page, measured, fragment, django_assert_max_num_queries):
    with django_assert_max_num_queries(24):  # one less if another test of the process asked before
        html = page.get(measured.get_absolute_url()).content.decode()
    assert 'hx-trigger="rankwire:diagnose' in html


def test_it_shows_the_change_by_part(fragment):
    table = fragment[fragment.index('id="change-by-part"') :].split("</table>")[0]
    names = [re.sub(r"<[^>]+>", "", name) for name in re.findall(r'<th scope="row">(.*?)</th>', table)]
    assert names == ["On the CPU", "Off the CPU", "Difference of medians", "Sum: elapsed time"]
    assert 'difference-of-medians"' in table
    heads = re.findall(r'<th scope="col"[^>]*>(.*?)</th>', table)
    assert heads[1:3] == ["2 hosts", "4 hosts"]


def test_parts_of_the_programs_own_time_name_what_is_subtracted():
    parts = [
        ChangePart(name, 1.0, 2.0, 1.0) for name in ("elapsed_s_of_loop", "computing", "descheduled", "communication")
    ]
    answer = Answer("scale", "", "firm", parts=(*parts, ChangePart("unexplained", -2.0, -4.0, -2.0)))
    rows = {row["name"]: row["before"] for row in change_by_part(answer)}
    assert set(rows) > {
        "Waiting for a CPU core to compute",
        "In MPI, busiest rank, excluding waits for descheduled ranks",
        "Sum: elapsed_s_of_loop",
    }
    assert rows["Outside the program's own time, subtracted"] == amount(-2.0, "s")


@pytest.mark.parametrize(("largest_s", "speaks"), [(5.51, True), (7.9, False)], ids=["as good", "worse"])
def test_a_visible_finding_speaks_of_the_step_beyond_the_recommended_size(submit, empty_redis, largest_s, speaks):
    """Causes explain 2 hosts if 4 hosts are as good, and 4 hosts if they are worse."""
    experiment = submit(repetitions=5)
    for trial in experiment.trials.select_related("configuration"):
        hosts, slower = trial.configuration.hosts, 1 + 0.005 * (trial.repetition - 3)
        Trial.objects.filter(pk=trial.pk).update(state=State.FINISHED, conditions={"cores": 2})
        elapsed = {1: 10.0, 2: 5.5, 4: largest_s}[hosts] * slower
        values = {"elapsed_s": elapsed, "cpu_mean_rank_s": 4.5 * slower}
        Measurement.objects.bulk_create(Measurement(trial=trial, metric=m, value=v) for m, v in values.items())
    made, results = diagnosis_of(experiment), Results(experiment)
    assert made.answer.figure("enough").value == 2

    context = diagnosis_context(made, results, {})

    parts = [find.href for find in context["causes"] if not find.term]
    assert parts
    assert ("#change-by-part" in parts) == speaks  # the larger sizes explain themselves by the chart
    visible = [find.term for find in context["causes"]]
    assert len(visible) <= MOST_FINDINGS
    assert ("finding.oversubscribed" in visible) == speaks
    stated = [find for _, finds in context["more"] for find in finds if find.statement]
    assert not {find.statement for find in stated} & {find.statement for find in context["causes"]}
    assert {find.term for find in context["causes"] if find.next_step} <= {
        find.term for title, finds in context["more"] if title == "Suggested fixes" for find in finds
    }
    folded = [find.term for find in stated]
    assert ("finding.oversubscribed" in folded) != speaks


def test_it_splits_the_time_of_every_size_as_pop_does(fragment):
    table = fragment.partition('id="c-breakdown"')[2].partition("</section>")[0]
    cells = [re.sub(r"<[^>]+>", "", cell).strip() for cell in re.findall(r"<td[^>]*>(.*?)</td>", table)]
    one = cells[: len(cells) // 3]  # of 10 s elapsed, each of the ranks computes 9 s
    assert one[0] == "1"
    assert one[1].endswith("10\u202f%")
    assert one[4] == "90\u202f%"


def test_it_explains_time_by_the_network(page, measured):
    for trial in measured.trials.filter(kind="measured").select_related("configuration"):
        wire = {"throughput_bps": 2e8, "chain_volume_s": 0.7, "chain_latency_s": 0.025, "chain_retransmission_s": 0.4}
        wire |= {
            "retransmitted_segments": 4.0,
            "small_packet_share": 0.4,
            "payload_bytes": 1e6,
            "retransmitted_bytes": 1e3,
        }
        Measurement.objects.bulk_create(Measurement(trial=trial, metric=m, value=v) for m, v in wire.items())
    html = page.get(reverse("experiment-diagnosis", args=[measured.slug])).content.decode()
    table = html.partition('id="c-wire"')[2].partition("</section>")[0]
    cells = [re.sub(r"<[^>]+>", "", cell).strip() for cell in re.findall(r"<td[^>]*>(.*?)</td>", table)]
    assert [cell.replace("\u202f", " ") for cell in cells[:7]] == [
        *("1", "200 Mbit/s", "–", "700 ms†", "25 ms", "400 ms", "40 %")
    ]
    assert "The sum exceeds the time off the CPU" in table, "1.1 s, where 10 % of 10 s are off the CPU"


def test_it_points_every_finding_to_something_on_the_page(page, measured, fragment):
    html = page.get(measured.get_absolute_url()).content.decode()
    targets = re.findall(r'href="#([^"]+)"', fragment)
    assert len(targets) >= 3
    assert all(f'id="{target}"' in html for target in targets)


def speed_up_of(page, slug: str) -> str:
    html = page.get(reverse("experiment-diagnosis", args=[slug])).content.decode()
    return html.partition('id="figure-speedup"')[2].partition("</script>")[0].replace("\\u0026", "&")


def test_it_brings_a_model_that_predicts_into_the_charts(page, submit, empty_redis):
    experiment = submit(sweep={"hosts": [1, 2, 3, 4, 6, 8, 10, 12]}, repetitions=2)
    for trial in experiment.trials.select_related("configuration"):
        n = trial.configuration.hosts
        elapsed = 10 * (1 + 0.05 * (n - 1) + 0.03 * n * (n - 1)) / n * (1 + 0.01 * (-1) ** trial.repetition)
        Trial.objects.filter(pk=trial.pk).update(state=State.FINISHED)
        Measurement.objects.create(trial=trial, metric="elapsed_s", value=elapsed)
    speed_up = speed_up_of(page, experiment.slug)
    assert "USL, chosen" in speed_up


def test_it_chooses_no_model_of_the_published_water_that_predicts_worse_than_the_mean(page, empty_redis):
    assert "chosen" not in speed_up_of(page, "guster-2007-water")


def test_it_is_made_again_only_when_a_configuration_completed(page, measured, fragment):
    address = reverse("experiment-live", args=[measured.slug])
    again = measured.trials.filter(kind="measured", repetition=5, configuration__hosts=4)
    again.update(state=State.RUNNING)
    rounds = Results(measured).complete
    answer = page.get(address, {"seen": "17", "complete": rounds})
    assert "HX-Trigger" not in answer.headers
    again.update(state=State.FAILED)
    answer = page.get(address, {"seen": "16", "complete": rounds})
    assert "rankwire:diagnose" in answer.headers["HX-Trigger"]


def test_all_pages_show_one_answer_that_advances_with_each_round(page, submit, empty_redis):
    """All sizes wait for repetitions until the end: slowed trials run again."""
    experiment = submit(sweep={"hosts": [1, 2]}, repetitions=4)

    def finish(hosts: int, repetition: int, seconds: float) -> tuple[str, bool, str]:
        trial = experiment.trials.get(configuration__hosts=hosts, repetition=repetition)
        Trial.objects.filter(pk=trial.pk).update(state=State.FINISHED)
        Measurement.objects.create(trial=trial, metric="elapsed_s", value=seconds)
        (listed,) = answers_of([experiment]).values()
        _, is_fresh = cached_diagnosis(experiment)
        made = diagnosis_of(experiment)
        assert listed.sentence == made.answer.sentence == answers_of([experiment])[experiment.pk].sentence
        return listed.sentence, is_fresh, Results(experiment).complete

    rounds = [[finish(1, number, 10 + number / 10), finish(2, number, 5 + number / 10)] for number in range(1, 4)]

    assert [[complete for _, _, complete in members] for members in rounds] == [
        ["first", "0-1.1"],
        ["0-1.1", "0-2.2"],
        ["0-2.2", "0-3.3"],
    ]
    assert [[is_fresh for _, is_fresh, _ in members] for members in rounds] == [
        [False, False],
        [True, False],
        [True, False],
    ]
    assert len({sentence for members in rounds for sentence, *_ in members}) == 4
    html = page.get(experiment.get_absolute_url()).content.decode()
    assert "as of 6 counted trials, renewed every 2; charts and rounds follow every trial" in html
    assert "computing a newer answer" not in html

    for trial in experiment.trials.filter(repetition=4):
        Trial.objects.filter(pk=trial.pk).update(state=State.FINISHED)
        Measurement.objects.create(trial=trial, metric="elapsed_s", value=7)
    assert "computing a newer answer" in page.get(experiment.get_absolute_url()).content.decode()


def test_subtitles_name_the_drift_of_values_and_up_to_two_slowed_configurations(measured):
    made = diagnosis_of(measured)
    slowed = tuple(Figure(SLOWED, 3, where={"hosts": hosts}) for hosts in (1, 2))
    answer = replace(made.answer, is_without_drift=True, figures=slowed)
    subtitles = {c.element: c.subtitle for s in Results(measured, made.study, answer).sections() for c in s.charts}
    assert "elapsed, as measured, with drift, against 1 host; other load slowed" in subtitles["speedup"]
    assert subtitles["speedup"].endswith("every counted trial at 1 host; 2 hosts")
    assert {name for name, words in subtitles.items() if "with drift" in words} == {"time", "speedup", "efficiency"}


def test_answer_is_renewed_while_one_configuration_waits_until_the_end(page, submit, empty_redis):
    """All configurations are open, as repeats come last, and one has not begun."""
    experiment = submit(sweep={"hosts": [1, 2, 4]}, repetitions=6)
    address, counts = reverse("experiment-diagnosis", args=[experiment.slug]), []
    trials = experiment.trials.filter(configuration__hosts__in=[1, 2], repetition__lt=6)
    for trial in trials.select_related("configuration").order_by("repetition", "pk"):
        before = Results(experiment).complete
        Trial.objects.filter(pk=trial.pk).update(state=State.FINISHED)
        Measurement.objects.create(trial=trial, metric="elapsed_s", value=10 / trial.configuration.hosts)
        if Results(experiment).complete != before:  # the open page asks again
            counts.append(page.get(address).context["diagnosis"]["trials"])
    assert counts == [1, 3, 6, 9]
    answered = answers_of([experiment])[experiment.pk]
    assert answered.sentence == diagnosis_of(experiment).answer.sentence


def test_recommended_trials_follow_those_that_are_queued(page, submit, empty_redis):
    experiment, start = submit(repetitions=2), timezone.now()
    for number, trial in enumerate(experiment.trials.select_related("configuration")):
        ended = start + timedelta(seconds=(number + 1) * 15)  # 10 s each, 5 s between two trials
        spans = {"preparing_at": ended - timedelta(seconds=10), "ended_at": ended}
        Trial.objects.filter(pk=trial.pk).update(state=State.FINISHED, **spans)
        value = ELAPSED[trial.configuration.hosts][2 * trial.repetition - 2] * (1 + trial.repetition / 4)
        Measurement.objects.create(trial=trial, metric="elapsed_s", value=value)
    address = reverse("experiment-diagnosis", args=[experiment.slug])
    answer = page.get(address)
    assert 'id="next-dialog"' in answer.content.decode()
    assert "Load of this machine now" in answer.content.decode()
    made = diagnosis_of(experiment)
    suggested = {parameters["hosts"] for parameters, _ in made.suggested}
    assert (suggested, answer.context["diagnosis"]["adds_sizes"]) == ({3}, True)
    _, trials, seconds = page.get(experiment.get_absolute_url()).context["repeatable"]["choices"][0]
    question = question_of(experiment, study_of(experiment))
    assert seconds / trials == question.trial_s == pytest.approx((6 * 10 + 5 * 5) / 6)  # pauses below a minute count

    experiment.add_repetitions(2)

    html = page.get(address).content.decode()
    assert "Some trials have not ended." in " ".join(html.split())
    assert 'id="next-dialog"' not in html


@pytest.mark.parametrize("scatter", [4, 4000])
def test_recommended_trials_of_a_goal_lead_to_its_next_round_new_sizes_to_a_clone(page, submit, empty_redis, scatter):
    """A round repeats the sizes of the design: it measures no other one."""
    experiment = submit(repetitions=2, goal={"until": "answered", "budget": {"trials": 60}})
    for trial in experiment.trials.select_related("configuration"):
        Trial.objects.filter(pk=trial.pk).update(state=State.FINISHED)
        value = ELAPSED[trial.configuration.hosts][0] * (1 + trial.repetition / scatter)
        Measurement.objects.create(trial=trial, metric="elapsed_s", value=value)

    html = page.get(reverse("experiment-diagnosis", args=[experiment.slug])).content.decode()

    settles = "more repetition" in html
    assert ('<a href="#rounds-title">Run one more round</a>' in html) is settles is (scatter == 4)
    assert ("Clone the experiment" in html) is not settles
    assert 'id="next-dialog"' not in html


def test_the_rate_of_hpl_gets_no_cause_from_the_tests_of_hpc_challenge(submit, empty_redis):
    """HPL takes 2.3 s of the 54 s that HPC Challenge runs on two hosts."""
    experiment = submit(workload="hpl", parameters={}, sweep={"hosts": [1, 2]}, repetitions=3)
    for trial in experiment.trials.select_related("configuration"):
        Trial.objects.filter(pk=trial.pk).update(state=State.FINISHED)
        elapsed, hpl, rate = {1: (17.0, 0.8, 0.8), 2: (54.0, 2.3, 0.3)}[trial.configuration.hosts]
        cpu = {1: 16.0, 2: 20.0}[trial.configuration.hosts]
        values = {"elapsed_s": elapsed, "hpl.time_s": hpl, "hpl.gflops": rate, "cpu_mean_rank_s": cpu}
        scale = 1 + trial.repetition / 100
        Measurement.objects.bulk_create(Measurement(trial=trial, metric=m, value=v * scale) for m, v in values.items())

    made = diagnosis_of(experiment).answer

    assert made.parts == ()
    assert [(cause.part, cause.explains) for cause in made.causes] == [("", None)]
    assert "no cause visible, as HPL time is 4" in made.sentence
    (time,) = [c for section in Results(experiment).sections() for c in section.charts if c.element == "time"]
    assert not time.figure["layout"].get("annotations"), "the fastest run is not the one of the best rate"


def test_it_gives_rest_the_numbers_behind_the_page(measured, person):
    reported = client_of(person).get(f"/api/v1/experiments/{measured.slug}/diagnosis/").json()
    (part,) = reported["slices"]
    assert [row["size"] for row in part["rows"]] == [row["size"] for row in part["time"]] == [1, 2, 4]
    assert part["rows"][1]["speedup"]["value"] == pytest.approx(10.0 / 5.5, rel=0.01)
    model = part["models"]["elapsed_s"]
    assert (model["chosen"], model["curves"], model["extrapolated"]) == (None, [], False)
    assert [fit["model"] for fit in model["fits"]] == ["constant", "amdahl", "usl"]
    assert reported["report"]["verdict"]["best_size"] == 2


@pytest.mark.parametrize("slug", ["guster-2007-water", "eadline-2006-hpl", "monarc-1999-readers", "pinning-2007-wan"])
def test_it_diagnoses_published_results(page, person, empty_redis, slug):
    rest = client_of(person).get(f"/api/v1/experiments/{slug}/diagnosis/")
    assert rest.status_code == 200
    assert "NaN" not in rest.content.decode()
    assert 'class="verdict"' in page.get(reverse("experiment-diagnosis", args=[slug])).content.decode()


@pytest.fixture
def woken(monkeypatch) -> list[tuple[object, ...]]:
    """Messages to the background worker, for which every experiment is large."""
    sent: list[tuple[object, ...]] = []
    monkeypatch.setattr(diagnoses, "LARGE", 0)
    monkeypatch.setattr(queue, "_send", lambda *message: sent.append(message))
    return sent


def test_a_large_experiment_is_diagnosed_in_the_background_with_progress(page, measured, woken):
    address, shares = reverse("experiment-diagnosis", args=[measured.slug]), []

    assert 'aria-valuenow="0"' in page.get(address).content.decode()
    assert 'aria-valuenow="0"' in page.get(address).content.decode()
    assert woken == [(queue.DIAGNOSE, measured.pk)]
    assert cached_diagnosis(measured) == (None, False)

    caches["default"].set(f"diagnosing:{measured.pk}", (0.4, time.time()))
    assert 'aria-valuenow="40"' in page.get(address).content.decode()
    diagnosis_of(measured, progress=shares.append)
    forget_diagnosis(measured)
    assert shares == sorted(shares)
    assert 0 < shares[0] < shares[-1] <= 1

    tasks.diagnose(measured.pk)
    assert cached_diagnosis(measured)[1]
    assert "best" in page.get(address).content.decode()
    assert len(woken) == 1


def test_a_large_experiment_keeps_its_last_answer_until_the_next_one_is_made(page, measured, woken):
    address = reverse("experiment-diagnosis", args=[measured.slug])
    tasks.diagnose(measured.pk)
    Trial.objects.filter(pk=measured.trials.latest("pk").pk).update(state=State.FAILED)

    answer = page.get(address)

    assert (answer.status_code, answer["HX-Trigger"]) == (204, '{"rankwire:diagnosing": {}}')
    assert woken == [(queue.DIAGNOSE, measured.pk)]
    tasks.diagnose(measured.pk)
    assert page.get(address).status_code == 200


def test_a_silent_background_worker_leaves_the_diagnosis_to_the_request(page, measured, woken):
    caches["default"].set(f"diagnosing:{measured.pk}", (0.4, time.time() - 30))

    page.get(reverse("experiment-diagnosis", args=[measured.slug]))

    assert cached_diagnosis(measured)[1]
    assert woken == []


def test_page_without_an_answer_gets_the_last_one_while_trials_end(page, measured, woken):
    address = reverse("experiment-diagnosis", args=[measured.slug])
    tasks.diagnose(measured.pk)
    Trial.objects.filter(pk=measured.trials.latest("pk").pk).update(state=State.FAILED)

    html = page.get(address, {"empty": "1"}).content.decode()

    assert "best" in html
    assert 'hx-trigger="load' in html, "the page asks again for the next answer"
