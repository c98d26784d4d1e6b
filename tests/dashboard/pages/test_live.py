"""Pages ask again only while something runs."""

import json
import re
from datetime import timedelta

from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from lxml.html import fromstring

from experiments.models import Cluster, Trial
from experiments.models.states import NOT_REQUESTED
from experiments.selectors.diagnosis import diagnosis_of

HTMX = {"HX-Request": "true"}


def polls(html: str) -> bool:
    return "every 2s" in html.partition('id="now"')[2].partition(">")[0]


def test_home_polls_while_trials_are_unfinished(page, submit, run):
    submit(repetitions=1)
    assert polls(page.get(reverse("home"), headers=HTMX).content.decode())
    Trial.claim_next(Cluster.objects.get(slug="testbed"), "tests:1:1")
    now = page.get(reverse("home"), {"part": "now"}, headers=HTMX).content.decode()
    assert polls(now)
    assert 'id="happened"' not in now
    Trial.objects.update(state="finished")
    assert not polls(page.get(reverse("home"), {"part": "now"}, headers=HTMX).content.decode())


def test_header_shows_progress_and_notifies_pages(page, submit, run):
    query = page.get(reverse("pulse"), {"seen": "0-0"}, headers=HTMX)
    assert "HX-Trigger" not in query.headers
    submit(repetitions=1)
    run(most=1)
    Trial.claim_next(Cluster.objects.get(slug="testbed"), "tests:1:1")
    query = page.get(reverse("pulse"), {"seen": "0-0"}, headers=HTMX)
    assert "rankwire:work" in query.headers["HX-Trigger"]
    words = re.sub(r"<[^>]*>", "", query.content.decode())
    assert re.search(r"1 of \d trials, \S+.* left|1 of \d trials, finishing", words)
    seen = re.search(r'name="seen" value="([^"]+)"', query.content.decode())[1]
    assert "HX-Trigger" not in page.get(reverse("pulse"), {"seen": seen}, headers=HTMX).headers


def test_trials_that_were_not_started_are_no_progress(page, submit):
    experiment = submit(repetitions=3)
    first = experiment.trials.order_by("position")[0]
    experiment.trials.exclude(pk=first.pk).update(state="cancelled", message=NOT_REQUESTED)
    query = page.get(reverse("pulse"), {"seen": "0-0"}, headers=HTMX)
    assert (query.context["over"], query.context["total"]) == (0, 1)
    assert page.get(experiment.get_absolute_url()).context["shares"] == []


def test_an_experiment_whose_remaining_trials_wait_is_queued(page, submit, run):
    experiment = submit(repetitions=1)
    run(most=1)
    assert page.get(experiment.get_absolute_url()).context["state"] == "waiting"
    Trial.claim_next(Cluster.objects.get(slug="testbed"), "tests:1:1")
    assert page.get(experiment.get_absolute_url()).context["state"] == "running"


def test_an_answer_of_no_trial_leaves_once_one_has_finished(page, submit, run):
    experiment = submit(repetitions=1)
    diagnosis_of(experiment)
    assert page.get(experiment.get_absolute_url()).context["diagnosis"] is not None
    run(most=1)
    context = page.get(experiment.get_absolute_url()).context
    assert (context["diagnosis"], context["fresh"]) == (None, False)


def test_a_notice_of_queued_trials_leaves_once_one_has_ended(page, submit, run):
    experiment = submit(repetitions=1)
    run(most=1)
    empties = 'id="queued-notice" hx-swap-oob="true"></div>'
    address = reverse("experiment-live", args=[experiment.slug])
    assert empties in page.get(address, {"seen": "0"}).content.decode()
    assert empties not in page.get(address, {"seen": "1"}).content.decode()


def test_notices_of_queued_trials_are_apart_from_others(page, submit):
    experiment = submit(repetitions=1)
    page.post(reverse("experiment-repeat", args=[experiment.slug]), {"count": "1"})
    page.post(reverse("experiment-repeat", args=[experiment.slug]), {"count": "0"})
    document = fromstring(page.get(experiment.get_absolute_url()).content.decode())
    queued, notices = document.get_element_by_id("queued-notice"), document.get_element_by_id("notices")
    assert (len(queued.find_class("note")), len(notices.find_class("note"))) == (1, 2)


def test_header_is_current_and_per_user(page, submit, run):
    def header(reader):
        return re.sub(r"<[^>]*>", "", reader.get(reverse("pulse"), headers=HTMX).content.decode())

    submit(name="First", repetitions=1)
    assert "0 of 3 trials" in header(page)
    submit(name="Second", repetitions=1)
    assert "0 of 6 trials of 2 experiments" in header(page), "not those of some seconds ago"
    run(most=1)
    assert "1 of 6 trials" in header(page)
    stranger = Client()
    stranger.force_login(User.objects.create_user("stranger"))
    assert "trials" not in header(stranger)
    run()
    assert "trials" not in header(page)


def test_ended_reports_finished_and_hidden_experiments(page, submit, run):
    ended, waits = submit(name="Ended", repetitions=1), None
    run()
    waits = submit(name="Waits", repetitions=1)
    query = f"of={ended.slug}&of={waits.slug}&of=nowhere"
    data = {row["slug"]: row["words"] for row in page.get(f"{reverse('ended')}?{query}").json()["ended"]}
    assert set(data) == {ended.slug, "nowhere"}
    assert "trials finished" in data[ended.slug]
    assert data["nowhere"] == ""


def test_a_running_trial_has_charts_that_grow(page, submit):
    submit(repetitions=1)
    trial = Trial.claim_next(Cluster.objects.get(slug="testbed"), "tests:1:1")
    trial.start_running(command=["mpirun"], conditions={})
    history = {"t_s": [1.0, 2.0], "Bps": [1e6, 2e6], "pps": [100.0, 200.0]}
    trial.beat({"elapsed_s": 2.0, "history": history, "ranks": [[0, "n01", 1.5], [1, "n02", 0.5]]})
    html = page.get(reverse("trial-live", args=[trial.pk]), {"length_s": "7200"}, headers=HTMX).content.decode()
    rate, ranks = (_figure(html, name) for name in ("live-rate", "live-ranks"))
    assert (rate["x"], rate["y"]) == ([1, 2], [1, 2])
    assert (ranks["x"], ranks["y"], ranks["text"]) == (["0", "1"], [1.5, 0.5], ["n01", "n02"])
    assert re.search(r"about [12]\u202fh.* left", html)
    assert 'id="figure-live-rate-2"' in html
    assert page.get(reverse("trial-live", args=[trial.pk]), {"length_s": "soon"}).status_code == 200


def _figure(html, name):
    return json.loads(re.search(rf'id="figure-{name}"[^>]*>(.*?)</script>', html, re.DOTALL)[1])["data"][0]


def test_duration_excludes_the_pause_before_added_trials(page, submit, run):
    experiment = submit(repetitions=2, sweep={"hosts": [2]})
    run()
    began = timezone.now() - timedelta(days=2)
    for trial, hours in zip(experiment.trials.order_by("pk"), (0, 30), strict=True):
        start = began + timedelta(hours=hours)
        Trial.objects.filter(pk=trial.pk).update(preparing_at=start, ended_at=start + timedelta(minutes=2))
    context = page.get(experiment.get_absolute_url()).context
    assert context["took_s"] == 240
    assert context["repeatable"]["choices"][:2] == [(1, 1, 120), (2, 2, 240)]


def test_more_repetitions_count_their_control_runs_and_their_duration(page, submit, run):
    experiment = submit(repetitions=1, sweep={"hosts": [1, 2]}, control="each")
    before = page.get(experiment.get_absolute_url()).context["repeatable"]
    assert before["choices"][0] == (1, 4, None)
    page.post(reverse("experiment-repeat", args=[experiment.slug]), {"count": "1"})
    assert experiment.trials.count() == 8


def test_a_running_page_gets_the_subtitle_of_every_chart(page, submit, run):
    experiment = submit(repetitions=2)
    run(most=1)
    context = page.get(experiment.get_absolute_url()).context
    subtitles = {chart.element: chart.subtitle for section in context["sections"] for chart in section.charts}
    live = page.get(reverse("experiment-live", args=[experiment.slug]), {"complete": "0"}, headers=HTMX)
    spans = fromstring(live.content).xpath("//span[@hx-swap-oob and starts-with(@id, 'sub-')]")
    assert {span.get("id").removeprefix("sub-"): span.text_content().strip() for span in spans} == subtitles
    assert any(subtitles.values())
