"""Changes of an experiment: edit, repeat, run again, suggested points."""

import re
from html import unescape

import pytest
from django.urls import reverse
from django.utils import timezone

from experiments.models import Experiment, Hold, Measurement, State, Trial
from experiments.selectors import progress_of
from experiments.selectors.diagnosis import diagnosis_of
from experiments.specification import design

ELAPSED = {1: (10.0, 10.2, 9.8, 10.1, 9.9), 2: (5.6, 5.5, 5.4, 5.5, 5.6), 4: (7.9, 8.1, 8.0, 8.2, 7.9)}


@pytest.fixture(autouse=True)
def _quiet(empty_redis):
    """Give wake-ups and diagnoses a Redis of their own."""


@pytest.fixture
def experiment(submit) -> Experiment:
    """Three sizes, five repetitions each, all finished."""
    experiment = submit(repetitions=5)
    for trial in experiment.trials.select_related("configuration"):
        value = ELAPSED[trial.configuration.hosts][trial.repetition - 1]
        Measurement.objects.create(trial=trial, metric="elapsed_s", value=value)
    experiment.trials.update(state=State.FINISHED)
    return experiment


def form(experiment: Experiment, hosts: str, **changes: str) -> dict[str, object]:
    return {
        "editing": experiment.slug,
        "name": experiment.name,
        "workload": "water",
        "parameters.molecules": "216",
        "parameters.steps": "50",
        "sweep_name": ["hosts"],
        "sweep_values": [hosts],
        "cluster": "testbed",
        "repetitions": "5",
        "capture.enabled": "on",
        "capture.keep_shown": "1",
        "capture.keep": "on",
        **changes,
    }


def test_edit_form_shows_the_effects_of_the_change(page, experiment):
    html = page.post(reverse("new-preview"), form(experiment, "1, 2, 8")).content.decode()
    assert "<b>5</b> trials will be queued; 1 configuration new" in html
    assert "<b>1</b> configuration leaves the design" in html
    assert "<b>5</b> trials become stale" in html
    assert re.search(r"sweep.hosts</span>: 1, 2, 4 → <b>1, 2, 8", html)


def test_it_makes_the_design_once_for_a_preview_and_not_at_all_for_the_page(page, experiment, monkeypatch):
    made, expand = [], design.expand
    monkeypatch.setattr(design, "expand", lambda spec, *chosen: made.append(spec) or expand(spec, *chosen))
    page.post(reverse("new-preview"), form(experiment, "1, 2, 8"))
    assert [spec.values()["hosts"] for spec in made] == [[1, 2, 8]]
    page.get(experiment.get_absolute_url())
    assert len(made) == 1


def test_it_saves_an_edit_as_a_new_version_and_sets_stale_points_aside(page, experiment):
    answer = page.post(reverse("experiment-edit", args=[experiment.slug]), form(experiment, "1, 2, 8"))
    assert answer.status_code == 302
    experiment.refresh_from_db()
    assert experiment.version == 2
    assert experiment.trials.filter(state=State.QUEUED).count() == 5
    html = page.get(experiment.get_absolute_url()).content.decode()
    versions, apart = html.partition('id="versions"')[2], html.partition('id="apart"')[2]
    assert "1, 2, 4 → <b>1, 2, 8" in versions
    assert apart.count("revision 2 does not contain its point") == 5
    table = html.partition('id="table"')[2].partition("</table>")[0]
    assert "4 hosts" not in table
    heads = re.findall(r"<th[^>]*>\s*(?:<[^>]*>)?\s*([^<]*?)\s*<", table)
    assert heads.index("Counted") == heads.index("Trials") - 1 < heads.index("Elapsed time")
    counts = re.findall(r'<td class="num">(\d+)</td>\s*<td>\s*<span\s+class="strip"', table)
    assert counts
    assert sum(map(int, counts)) == len(Trial.objects.counted().filter(experiment=experiment))


@pytest.mark.parametrize("count", ["", "0", "-1", "1000", "²", "x"])
def test_it_refuses_a_bad_number_of_repetitions(page, experiment, count):
    page.post(reverse("experiment-repeat", args=[experiment.slug]), {"count": count})
    assert not experiment.trials.filter(state=State.QUEUED).exists()


def test_it_runs_failed_trials_again_and_names_their_number(page, experiment):
    failed = experiment.trials.filter(repetition__in=[1, 2], configuration__hosts=4)
    failed.update(state=State.FAILED)
    page.post(reverse("experiment-rerun", args=[experiment.slug]))
    assert experiment.trials.filter(state=State.QUEUED, attempt=2).count() == 2
    html = page.get(experiment.get_absolute_url()).content.decode()
    assert html.partition('id="apart"')[2].count("attempt 2 replaces it") == 2


def test_it_runs_one_trial_again(page, experiment):
    trial = experiment.trials.first()
    answer = page.post(reverse("trial-again", args=[trial.pk]))
    attempt = Trial.objects.get(pk=int(answer.url.strip("/").split("/")[-1]))
    assert (attempt.attempt, attempt.state, attempt.repetition) == (2, State.QUEUED, trial.repetition)
    page.post(reverse("trial-again", args=[trial.pk]))
    assert experiment.trials.filter(state=State.QUEUED).count() == 1


def test_it_runs_the_first_trial_alone_and_holds_the_others_back(page, experiment):
    page.post(reverse("new"), form(experiment, "1, 2", name="Try", warmups="1", first_only="1"))
    tried = Experiment.objects.get(name="Try")
    waiting = tried.trials.get(state=State.QUEUED)
    assert (waiting.kind, waiting.configuration.hosts, waiting.repetition) == ("measured", 1, 1)
    assert tried.trials.filter(state=State.CANCELLED).count() == 11
    assert (progress_of([tried])[tried.pk].not_started, progress_of([tried])[tried.pk].stopped) == (11, 0)
    context = page.get(tried.get_absolute_url()).context
    assert (context["without_result"], context["none_started"]) == (11, True)


def test_a_failed_first_trial_names_its_reason(page, experiment):
    page.post(reverse("new"), form(experiment, "1, 2", name="Try", first_only="1"))
    tried = Experiment.objects.get(name="Try")
    trial = tried.trials.get(state=State.QUEUED)
    tried.trials.filter(pk=trial.pk).update(state=State.FAILED, message="No such file: /opt/absent")
    answer = page.get(tried.get_absolute_url())
    html = answer.content.decode()
    assert progress_of([tried])[tried.pk].status == "failed"
    assert answer.context["failure"] == trial
    assert "No such file: /opt/absent" in html.partition('aria-label="Reason of failure"')[2].partition("</section>")[0]
    (link,) = re.findall(r'href="([^"]+)"\s*>1 failed</a>', html)
    assert [row["trial"] for row in page.get(unescape(link)).context["rows"]] == [trial]


def test_the_notice_of_queued_trials_leaves_if_they_are_on_hold(page, submit):
    held = submit(repetitions=2)
    Experiment.objects.filter(pk=held.pk).update(hold=Hold.HELD)
    answer = page.get(reverse("experiment-live", args=[held.slug]), {"complete": "0"}).content.decode()
    assert '<div id="queued-notice" hx-swap-oob="true"></div>' in answer


def test_the_first_finished_trial_alone_updates_the_answer(page, submit):
    running = submit(repetitions=5)
    before = diagnosis_of(running).stamp
    trial = running.trials.filter(kind="measured").first()
    Trial.objects.filter(pk=trial.pk).update(state=State.FINISHED, ended_at=timezone.now())
    Measurement.objects.create(trial=trial, metric="elapsed_s", value=10.0)
    answer = page.get(reverse("experiment-live", args=[running.slug]), {"seen": "0", "complete": "0"})
    assert "rankwire:diagnose" in answer.headers["HX-Trigger"]
    after = diagnosis_of(running)
    assert after.stamp != before
    assert after.answer.sentence != "No trial has finished."


STILL_FALLING = {1: (10.0, 10.2, 9.8, 10.1, 9.9), 2: (5.6, 5.5, 5.9, 5.5, 5.2), 4: (4.9, 4.1, 4.6, 4.2, 4.5)}


def test_it_queues_exactly_as_many_suggested_points_as_it_says(page, experiment):
    for measurement in Measurement.objects.filter(trial__experiment=experiment).select_related("trial__configuration"):
        trial = measurement.trial
        measurement.value = STILL_FALLING[trial.configuration.hosts][trial.repetition - 1]
        measurement.save()
    html = page.get(reverse("experiment-diagnosis", args=[experiment.slug])).content.decode()
    text = int(re.search(r"Queue (\d+) trial", html)[1])
    stamp = re.search(r'name="stamp" value="(\w+)"', html)[1]
    page.post(reverse("experiment-next", args=[experiment.slug]), {"stamp": stamp})
    assert experiment.trials.filter(state=State.QUEUED).count() == text > 0
    page.post(reverse("experiment-next", args=[experiment.slug]), {"stamp": stamp})
    assert experiment.trials.filter(state=State.QUEUED).count() == text


def edited(page, experiment: Experiment, hosts: str, **changes: str) -> None:
    answer = page.post(reverse("experiment-edit", args=[experiment.slug]), form(experiment, hosts, **changes))
    assert answer.status_code == 302


def reasons(page, experiment: Experiment) -> list[str]:
    """The last column of what is set aside, on each row."""
    rows = page.get(experiment.get_absolute_url()).content.decode().partition('id="apart"')[2].partition("</table>")[0]
    return re.findall(r">([^<>]+)</td></tr>", rows)


def test_excluded_trials_have_the_true_reason(page, experiment):
    page.post(reverse("trial-again", args=[experiment.trials.get(configuration__hosts=1, repetition=1).pk]))
    experiment.trials.filter(state=State.QUEUED).update(state=State.FINISHED)
    edited(page, experiment, "1, 2")
    assert sorted(reasons(page, experiment)) == [
        "attempt 2 replaces it",
        *["revision 2 does not contain its point"] * 5,
    ]
    edited(page, experiment, "1, 2", **{"capture.snap_length": "96"})
    assert sorted(reasons(page, experiment)) == [
        "attempt 2 replaces it",
        *["revision 3 changed the capture after it"] * 15,
    ]
    experiment.trials.filter(state=State.QUEUED).update(state=State.FINISHED)
    edited(page, experiment, "1", cluster="local", **{"capture.snap_length": "96"})
    assert reasons(page, experiment).count("revision 3 changed the capture after it") == 15
    assert reasons(page, experiment).count("revision 4 changed the cluster after it") == 10


def test_stale_trial_is_marked_on_its_page_and_in_rest(page, experiment):
    stale, counted = (experiment.trials.filter(configuration__hosts=hosts).first() for hosts in (4, 2))
    edited(page, experiment, "1, 2, 8")
    html = page.get(stale.get_absolute_url()).content.decode()
    assert re.search(r">Excluded trial</a>\s*</span>", html)
    assert "Excluded trial" not in page.get(counted.get_absolute_url()).content.decode()
    data = {trial.pk: page.get(f"/api/v1/trials/{trial.pk}/").json() for trial in (stale, counted)}
    assert (data[stale.pk]["in_design"], data[stale.pk]["apart"]) == (False, "revision 2 does not contain its point")
    assert (data[counted.pk]["in_design"], data[counted.pk]["apart"]) == (True, None)
    listed = page.get("/api/v1/trials/", {"experiment": experiment.slug}).json()["results"]
    assert sum(not row["in_design"] for row in listed) == 5
