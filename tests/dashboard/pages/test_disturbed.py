"""Pages and REST mark the repeat of a disturbed, excluded trial."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from dashboard.reports.markdown import parts_of
from dashboard.reports.parts import Source
from dashboard.templatetags.rankwire import repeat_outlook
from experiments.models import Cluster, Experiment, Membership, Trial
from tests.dashboard.texts import plain_text, text_of
from tests.experiments import factories

REASON = "disturbed by other load"


@pytest.fixture
def trials(page: Any) -> tuple[Trial, Trial]:
    """A disturbed trial and its clean repeat."""
    factories.experiment(sweep={"hosts": [1]}, repetitions=1)
    disturbed = factories.analysing()
    slowed = replace(factories.RESULT, trust="degraded", conditions={"disturbances": ["the clock was set"]})
    disturbed.finish(slowed, may_repeat=True)
    return disturbed, factories.finished()


def test_rest_gives_reason_and_mark_of_each_trial(page: Any, trials: tuple[Trial, Trial]) -> None:
    params = [page.get(f"/api/v1/trials/{trial.pk}/").json() for trial in trials]
    assert [(param["apart"], param["repeats_disturbed"]) for param in params] == [(REASON, False), (None, True)]
    whole = page.get(f"/api/v1/experiments/{trials[0].experiment.slug}/result/").json()["trials"]
    assert [(row["apart"], row["repeats_disturbed"]) for row in whole] == [(REASON, False), (None, True)]


def test_pages_list_the_excluded_trial_and_name_the_repeat(page: Any, trials: tuple[Trial, Trial]) -> None:
    disturbed, repeat = trials
    experiment = Experiment.objects.get(pk=disturbed.experiment_id)
    listed = page.get(experiment.get_absolute_url()).context["apart"]
    assert [(row["trial"].pk, row["why"]) for row in listed] == [(disturbed.pk, REASON)]
    assert page.get(disturbed.get_absolute_url()).context["apart"] == REASON
    title = page.get(repeat.get_absolute_url()).context["title"]
    assert page.get(experiment.get_absolute_url()).context["repeats"] == 1
    Trial.objects.filter(pk=disturbed.pk).update(superseded=True)
    assert not experiment.trials.current().repeats().exists()
    assert title.endswith("attempt 2, repeated after a disturbed trial")


def test_page_states_other_load_below_the_verdict_and_once(page: Any, person: Any) -> None:
    experiment = factories.experiment(owner=person, sweep={"hosts": [1, 2]}, repetitions=2)
    for _ in range(4):
        factories.analysing().finish(
            replace(factories.RESULT, trust="degraded", conditions={"disturbances": ["the clock was set"]})
        )
    diagnosis = page.get(reverse("experiment-diagnosis", args=[experiment.slug])).context["diagnosis"]
    assert "Other load slowed 4 of 4 trials." in diagnosis["reason"]
    assert not [find for _, finds in diagnosis["more"] for find in finds if "Other load" in find.statement]
    address = reverse("experiment-disturbed", args=[experiment.slug])
    assert (diagnosis["to_repeat"], experiment.trials.unfinished().count()) == (4, 0)
    assert "Load of this machine now" in repeat_outlook(experiment, 4)
    Cluster.objects.filter(pk=experiment.cluster_id).update(kind="ssh")
    assert "Load of this machine now" not in repeat_outlook(Experiment.objects.get(pk=experiment.pk), 4)
    assert f'action="{address}"' in page.get(experiment.get_absolute_url()).content.decode()
    (chart,) = parts_of(f"{{{{ chart {experiment.slug} time }}}}")
    source = Source(page.get(experiment.get_absolute_url()).context["user"])
    assert source.body(chart)["note"] == "Other load slowed 4 of 4 counted trials: their points have no clean trial."
    with CaptureQueriesContext(connection) as queries:
        source.body(chart)
    assert not [query for query in queries if "experiments_trial" in query["sql"]], "read once for all charts"


def test_one_press_repeats_each_slowed_repetition_once_and_keeps_the_slowed_trials(page: Any, person: Any) -> None:
    slowed = replace(factories.RESULT, trust="degraded", conditions={"disturbances": ["the clock was set"]})
    experiment = factories.experiment(owner=person, sweep={"hosts": [1, 2]}, repetitions=2)
    while experiment.trials.filter(state="queued").exists():
        factories.analysing().finish(slowed, may_repeat=True)
    answer = page.get(reverse("experiment-diagnosis", args=[experiment.slug]))
    assert experiment.trials.counted().count() == 8
    assert "Run 4 disturbed repetitions again" in plain_text(text_of(answer)), "not trials: there are 8"
    address = reverse("experiment-disturbed", args=[experiment.slug])
    for _ in range(2):  # the second press finds unfinished trials
        page.post(address)
        assert experiment.trials.filter(state="queued", attempt=3, superseded=False).count() == 4
    while experiment.trials.filter(state="queued").exists():
        factories.finished()
    counted = experiment.trials.counted()
    assert (counted.count(), counted.filter(attempt=3).count()) == (4, 4), "the slowed trials are excluded now"
    assert experiment.trials.filter(superseded=True).count() == 0
    diagnosis = page.get(reverse("experiment-diagnosis", args=[experiment.slug])).context["diagnosis"]
    assert diagnosis["to_repeat"] == 0


def test_a_user_who_may_not_repeat_gets_a_clone(page: Any, client: Any, person: Any) -> None:
    experiment = factories.experiment(owner=person, sweep={"hosts": [1, 2]}, repetitions=2)
    slowed = replace(factories.RESULT, trust="degraded", conditions={"disturbances": ["the clock was set"]})
    for _ in range(4):
        factories.analysing().finish(slowed)
    of_clean = factories.experiment(sweep={"hosts": [1, 2]}, repetitions=2)
    for _ in range(4):
        factories.finished()
    members = {"of": f"e:{experiment.slug},e:{of_clean.slug}"}
    (side,) = page.get("/compare/", members).context["slowed"]
    assert (side["count"], side["may_repeat"], side["label"]) == (4, True, " of A")
    viewer = factories.person("viewer", Membership.Role.VIEWER)
    client.force_login(viewer)
    content = client.get(reverse("experiment-diagnosis", args=[experiment.slug])).content.decode()
    assert f"?from={experiment.slug}" in content
    assert reverse("experiment-disturbed", args=[experiment.slug]) not in content


def test_the_answer_and_a_comparison_name_disturbed_trials_and_repeats_among_the_counted(
    page: Any, person: Any
) -> None:
    slowed = replace(
        factories.RESULT,
        measurements={"all": {"elapsed_s": 1.8}},
        trust="degraded",
        conditions={"disturbances": ["the clock was set"]},
    )
    slow = factories.experiment(sweep={"hosts": [1, 2]}, repetitions=2)
    while slow.trials.filter(state="queued").exists():
        factories.analysing().finish(slowed, may_repeat=True)
    clean = factories.experiment(sweep={"hosts": [1, 2]}, repetitions=2)
    for _ in range(4):
        factories.finished()
    assert (slow.trials.counted().count(), clean.trials.counted().count()) == (8, 4)
    of_trials = [
        page.get(reverse("experiment-diagnosis", args=[experiment.slug])).context["diagnosis"]["of_trials"]
        for experiment in (slow, clean)
    ]
    assert of_trials == ["8 were disturbed by other load and 4 repeat disturbed ones", ""]
    compared = page.get("/compare/", {"of": f"e:{slow.slug},e:{clean.slug}"}).context
    heads = [(head["trials"], head["disturbed"], head["repeats"]) for head in compared["members"]]
    assert heads == [(4, 4, 2), (2, 0, 0)]
    caution = compared["answer"].caution
    assert "8 of 8 trials of A (4 repeat another) at both common points." in caution
    (pinned,) = parts_of(f"{{{{ compare of=e:{slow.slug},e:{clean.slug} {compared['charts'][0].element} }}}}")
    (whole,) = parts_of(f"{{{{ compare {slow.slug} {clean.slug} }}}}")
    assert Source(person).body(pinned)["note"].endswith(caution)
    assert Source(person).body(whole)["sentences"][0] == caution


def test_charts_name_the_size_whose_counted_trials_were_all_slowed(page: Any, person: Any) -> None:
    slowed = replace(factories.RESULT, trust="degraded", conditions={"disturbances": ["the clock was set"]})
    experiment = factories.experiment(owner=person, sweep={"hosts": [1, 2]}, repetitions=2)
    for _ in range(4):
        trial = factories.analysing()
        trial.finish(slowed if trial.configuration.hosts == 1 else factories.RESULT)
    page.get(reverse("experiment-diagnosis", args=[experiment.slug]))
    sections = page.get(experiment.get_absolute_url()).context["sections"]
    subtitles = {chart.element: chart.subtitle for section in sections for chart in section.charts}
    named = {element for element, words in subtitles.items() if "slowed every counted trial at 1 host" in words}
    assert {"speedup", "efficiency"} <= named <= {"speedup", "efficiency", "time", "elapsed", "deciding"}
