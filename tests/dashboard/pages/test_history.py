"""Histories: steps, explanations and expected steps."""

import re
from datetime import datetime, timedelta
from html import unescape

import pytest
from django.db import connection
from django.utils import timezone

from dashboard.charts.history import over_time
from experiments.metrics import described
from experiments.models import Cluster, Configuration, Environment, ExpectedChange, Measurement, Trial, TrialResult
from tests.dashboard.api.clients import client_of
from tests.experiments import factories


@pytest.fixture
def stepped(submit):
    """Twelve trials of one configuration, 20 % longer with the later kernel."""
    submit(name="Nightly", repetitions=12, sweep={"hosts": [2]})
    for number in range(12):
        later = number >= 6
        value = (2.4 if later else 2.0) * (1 + 0.002 * (number % 3))
        environment = {"kernel": {"release": "6.8.0-47" if later else "6.8.0-45"}}
        trial = measured(value, environment=environment)
        ended = timezone.now() - timedelta(days=12 - number)
        Trial.objects.filter(pk=trial.pk).update(ended_at=ended)
    connection.check_constraints()  # as a commit does: triggers write what each configuration adds to a history
    assert Environment.objects.count() == 2
    return trial.configuration


def measured(elapsed_s: float, trust: str = "good", **result) -> Trial:
    """The next queued trial, ended with this result."""
    trial = Trial.claim_next(Cluster.objects.get(slug="testbed"), "tests:1:1")
    assert trial is not None
    trial.start_running(command=["mpirun"], conditions={})
    trial.start_analysing()
    trial.finish(TrialResult({"all": {"elapsed_s": elapsed_s}}, {}, trust, **result))
    return trial


def address(configuration, end: str = "") -> str:
    return f"/history/{configuration.hash}/testbed/{end}"


def test_it_finds_a_step_and_explains_it(stepped, page, person):
    answer = page.get(address(stepped))
    record = answer.context["found"]
    assert [change.index for change in record.history.changes] == [6]
    html = answer.content.decode()
    assert "kernel.release (6.8.0-45 to 6.8.0-47)" in html
    assert "Unexpected step" in html
    data = client_of(person).get(f"/api/v1{address(stepped)}").json()
    assert data["flagged"]
    assert data["changes"][0]["ratio"] == pytest.approx(1.2, rel=0.01)
    assert len(data["trials"]) == 12


def test_the_axis_of_a_history_has_the_dates_of_its_trials(stepped, page):
    answer = page.get(address(stepped))
    axis = answer.context["chart"].figure["layout"]["xaxis"]
    entries = answer.context["found"].entries
    assert axis["tickvals"][-1] == 12
    days = [entries[at - 1].ended_at for at in axis["tickvals"]]
    assert [f"{day:%d %b}" in text for day, text in zip(days, axis["ticktext"], strict=True)] == [True] * 6


def test_the_axis_of_one_day_has_times_and_the_date_in_its_title():
    ends = [datetime(2026, 11, 28, hour, 5) for hour in (7, 9, 12)]
    axis = over_time([1.0, 2.0, 3.0], ["", "", ""], [], quantity="Elapsed time", unit="s", ends=ends)["layout"]["xaxis"]
    assert axis["ticktext"] == ["07:05", "09:05", "12:05"]
    assert "28 Nov 2026" in str(axis["title"])


@pytest.mark.parametrize(
    ("ends", "ticks"),
    [
        ([datetime(2026, 11, 28, 7, 5, second) for second in (9, 30, 50)], ["07:05:09", "07:05:30", "07:05:50"]),
        ([datetime(2026, 11, day, hour) for day, hour in ((28, 1), (28, 9), (29, 1))], ["28 Nov", "29 Nov"]),
    ],
)
def test_no_tick_of_the_axis_repeats(ends, ticks):
    axis = over_time([1.0, 2.0, 3.0], ["", "", ""], [], quantity="Elapsed time", unit="s", ends=ends)["layout"]["xaxis"]
    assert axis["ticktext"] == ticks
    assert [
        f"{ends[at - 1]:%H:%M:%S}".startswith(tick) or f"{ends[at - 1]:%d %b}" == tick
        for at, tick in zip(axis["tickvals"], ticks, strict=True)
    ] == [True] * len(ticks)


def test_a_history_has_no_step_of_trials_that_other_load_slowed(stepped, page, person):
    later = sorted(stepped.trials.values_list("pk", flat=True))[6:]
    Trial.objects.filter(pk__in=later).update(trust="degraded", conditions={"disturbances": ["other load"]})
    answer = page.get(address(stepped))
    record = answer.context["found"]
    assert (len(record.entries), list(record.history.changes), record.excluded) == (6, [], 6)
    (trials,) = re.findall(r'href="(/trials/[^"]*configuration=[^"]*)"', answer.content.decode())
    assert len(page.get(unescape(trials)).context["rows"]) == 12
    (row,) = page.get("/history/").context["rows"]
    assert (row["kept"].trials, row["kept"].excluded) == (6, 6)
    (listed,) = client_of(person).get("/api/v1/history/").json()["results"]
    assert (listed["steps"], listed["trials"]) == (0, 6)


def test_a_history_counts_the_trials_that_other_load_slowed_and_names_the_rows_of_its_table(stepped, page):
    stepped.trials.update(trust="degraded", conditions={"disturbances": ["other load"]})
    context = page.get(address(stepped)).context
    assert (len(context["found"].entries), context["load"][:36]) == (12, "Other load slowed 12 of 12 trials, w")
    named = context["chart"].figure["data"][-1]["rows"]
    entry = context["found"].entries[0]
    assert (len(named), named[0]) == (12, f"trial {entry.trial}, {timezone.localtime(entry.ended_at):%Y-%m-%d %H:%M}")


def test_a_step_of_trials_that_other_load_slowed_names_the_load(stepped, submit, page):
    submit(name="A night of load", repetitions=12, sweep={"hosts": [2]})
    for _ in range(12):
        slowed = {"conditions": {"disturbances": ["other load"]}, "environment": {"kernel": {"release": "6.8.0-47"}}}
        measured(8.0, "degraded", **slowed)
    connection.check_constraints()
    first, last = page.get(address(stepped)).context["found"].history.changes
    assert (first.slowed, first.load) == (0, "")
    assert last.slowed == 12
    assert last.explanation == last.load != ""


def test_a_history_does_not_mix_transports(submit, page, person):
    submit(name="Nightly", repetitions=8, sweep={"hosts": [2]})
    for number in range(8):
        environment = {"kernel": "6.8", "transport": "native" if number >= 4 else "tcp"}
        trial = measured(2.0 * (1 + 0.002 * (number % 3)), environment=environment)
        Trial.objects.filter(pk=trial.pk).update(ended_at=timezone.now() - timedelta(days=8 - number))
    connection.check_constraints()
    history = page.get(address(trial.configuration)).context["found"].history
    assert [(change.index, change.environment) for change in history.changes] == [(4, {"transport": ("tcp", "native")})]
    assert history.baseline.first == 4
    assert not history.flagged
    (listed,) = client_of(person).get("/api/v1/history/").json()["results"]
    assert listed["steps"] == 1


def test_expected_step_is_not_flagged(stepped, page):
    first = page.get(address(stepped)).context["found"].entries[6].trial
    query = {"metric": "elapsed_s", "trial": first}
    page.post(address(stepped, "mark/"), {**query, "reason": "New kernel"})
    answer = page.get(address(stepped))
    assert not answer.context["found"].history.flagged
    assert "New kernel" in answer.content.decode()
    page.post(address(stepped, "mark/"), {**query, "remove": "1"})
    assert not ExpectedChange.objects.exists()
    assert page.get(address(stepped)).context["found"].history.flagged


def test_only_submitters_mark_steps(stepped, client, library):
    viewer = factories.person("bell", "viewer", library)
    client.force_login(viewer)
    trial = Trial.objects.filter(configuration=stepped).first()
    query = {"metric": "elapsed_s", "trial": trial.pk, "reason": "because"}
    assert client.post(address(stepped, "mark/"), query).status_code == 403
    client.force_login(factories.person("stranger"))
    assert client.get(address(stepped)).status_code == 404
    assert client.post(address(stepped, "mark/"), query).status_code == 404


def test_metric_is_found_by_its_label_and_an_unknown_one_is_refused(stepped, page):
    assert page.get(address(stepped), {"metric": "elapsed TIME"}).url == f"{address(stepped)}?metric=elapsed_s"
    assert "Elapsed time" in page.get(address(stepped)).context["metrics"]
    answer = page.get(address(stepped), {"metric": "nonsense"}, follow=True)
    assert answer.context["found"].metric == "elapsed_s"
    assert "nonsense" in " ".join(map(str, answer.context["messages"]))


def test_recorded_name_that_is_no_metric_any_more_leads_to_a_choice(stepped, page):
    trial = Trial.objects.filter(configuration=stepped).latest("pk")
    Measurement.objects.create(trial=trial, metric="removed.rate", scope="all", value=3.0)
    for name in ("removed.rate", described("removed.rate").label):
        response = page.get(address(stepped), {"metric": name}, follow=True)
        assert [to for to, _ in response.redirect_chain] == [address(stepped)]
        assert [str(message) for message in response.context["messages"]] == [
            f"“{name}” is no longer a metric of any program. Choose a metric of the list."
        ]
        assert response.context["metrics"] == ["Elapsed time"]


def test_settings_are_grouped_and_swept_ones_come_first(stepped, page):
    settings = dict(page.get(address(stepped)).context["settings"])
    assert list(settings) == ["Swept", "Size", "Program", "Link"]
    assert settings["Swept"] == [("Hosts", "2")]
    assert sum(map(len, settings.values())) == len(stepped.parameters)
    assert [label for label, _ in settings["Link"][:2]] == ["Bandwidth", "Delay"]
    assert [label for label, _ in settings["Program"]] == ["Molecules", "Steps", "Temperature"]
    Configuration.objects.filter(pk=stepped.pk).update(parameters=stepped.parameters | {"link.mtu": 9000})
    assert dict(page.get(address(stepped)).context["settings"])["Link"][0] == ("MTU", "9\u202f000 B")


@pytest.mark.parametrize("wrong", ["/history/none/testbed/", "/history/none/testbed/?metric=nonsense"])
def test_unknown_histories_are_not_found(stepped, page, wrong):
    assert page.get(wrong.format(address(stepped))).status_code == 404
