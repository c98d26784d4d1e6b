"""Every page answers, for every state of the laboratory."""

import html
import re
from datetime import timedelta

import pytest
from django.urls import reverse
from django.utils import timezone

from dashboard.labels import first_clause, sentence_and_rest
from dashboard.states import STRENGTH
from experiments.models import Cluster, Experiment, Project, Trial
from experiments.selectors.diagnosis import diagnosis_of
from tests.dashboard.texts import text_of

PLACES = ["home", "experiments", "new", "clusters", "workloads"]


@pytest.mark.parametrize("name", [*PLACES, "pulse", "search"])
def test_it_sends_a_stranger_to_sign_in(client, db, name):
    response = client.get(reverse(name))
    assert response.status_code == 302
    assert response.url.startswith(reverse("login"))


def test_it_shows_running_waiting_and_recent_at_home(page, submit, run):
    first, second = submit(name="First study"), submit(name="Second study")
    run(most=2)
    trial = Trial.claim_next(Cluster.objects.get(slug="testbed"), "tests:1:1")
    text = text_of(page.get(reverse("home")))
    assert f"{trial.get_absolute_url()}" in text
    assert "Second study" in text
    assert second.get_absolute_url() in text
    assert first.get_absolute_url() in text
    assert "9</b> trials queued" in text


def test_home_shows_start_times_of_waiting_experiments(page, submit, run):
    first, second = submit(name="First study"), submit(name="Second study")
    run(most=2)
    now = timezone.now()
    Trial.objects.filter(state="finished").update(preparing_at=now - timedelta(seconds=1000), ended_at=now)
    Trial.claim_next(Cluster.objects.get(slug="testbed"), "tests:1:1")
    Trial.objects.filter(state="preparing").update(preparing_at=now - timedelta(seconds=400))
    starts = {row["name"]: row["starts_in_s"] for row in page.get(reverse("home")).context["queue"]}
    assert starts["First study"] == pytest.approx(600, abs=60)
    assert starts["Second study"] - starts["First study"] == pytest.approx(3000, abs=60), "three trials are before it"
    assert first.pk < second.pk


def test_it_shows_a_finished_experiment_and_stops_asking(page, submit, run):
    experiment = submit()
    run()
    text = text_of(page.get(experiment.get_absolute_url()))
    assert 'hx-trigger="every 2s"' not in text
    assert 'id="figure-time"' in text
    assert "2 hosts: 2.163" in text_of(page.get(reverse("experiment-diagnosis", args=[experiment.slug])))
    assert "fastest" in text
    assert "data-published" in text
    assert text.count('class="ok" href="/trials/') == 6


def test_it_shows_a_published_experiment_read_only_with_its_source(page):
    published = Experiment.objects.get(slug="guster-2007-water")
    text = text_of(page.get(published.get_absolute_url()))
    assert "Published" in text
    assert reverse("experiment-cancel", args=[published.slug]) not in text
    page.post(reverse("experiment-cancel", args=[published.slug]))
    assert not published.trials.exclude(state="finished").exists()


def test_it_sends_charts_only_when_another_trial_ended(page, submit, run):
    experiment = submit()
    run(most=2)
    address = reverse("experiment-live", args=[experiment.slug])
    unchanged = text_of(page.get(f"{address}?seen=2"))
    assert "figure-time" not in unchanged
    assert 'id="live"' in unchanged
    assert "figure-time" in text_of(page.get(f"{address}?seen=1"))


def test_it_shows_a_finished_trial_with_tiles_and_dots(page, submit, run):
    experiment = submit()
    run()
    trial = experiment.trials.filter(configuration__hosts=4).last()
    text = text_of(page.get(trial.get_absolute_url()))
    assert "Trial at 4 hosts, repetition 2 of 2" in text
    assert text.count('class="tile"') == 6
    assert "from the median of 2" in text
    assert "mpirun -np 4 lmp" in text
    assert "no handshake captured" in text
    assert 'rel="prev"' in text
    experiment.trials.filter(pk=trial.pk).update(repetition=5)  # as of an added trial
    assert "repetition 5 of" not in text_of(page.get(trial.get_absolute_url()))


def test_trial_of_a_published_study_is_named_by_its_own_parameters(page, library):
    trials = Trial.objects.filter(experiment__published=True).order_by("experiment_id", "-pk").distinct("experiment_id")
    titles = [page.get(trial.get_absolute_url()).context["title"] for trial in trials]
    assert len(titles) == 5
    assert all(re.fullmatch(r"Trial at \w.*, repetition 1", title) for title in titles), titles


def test_it_polls_a_waiting_trial_and_reloads_once_it_is_over(page, submit, run):
    trial = submit().trials.first()
    assert 'hx-trigger="every 800ms"' in text_of(page.get(trial.get_absolute_url()))
    address = reverse("trial-live", args=[trial.pk])
    assert "Queued" in text_of(page.get(address))
    run()
    assert page.get(address)["HX-Refresh"] == "true"


def test_failed_trial_shows_its_reason(page, submit):
    experiment = submit()
    trial = Trial.claim_next(Cluster.objects.get(slug="testbed"), "tests:1:1")
    trial.fail("LAMMPS <stopped> with exit status 1.")
    text = text_of(page.get(trial.get_absolute_url()))
    assert "LAMMPS &lt;stopped&gt; with exit status 1." in text
    address = f'href="{reverse("cluster", args=["testbed"])}'
    assert f'{address}#test"' in text, "the check of its cluster may explain a trial that never ran"
    text = text_of(page.get(experiment.get_absolute_url()))
    assert "LAMMPS &lt;stopped&gt;" in text
    assert f'{address}"' in text
    Cluster.objects.filter(slug="testbed").update(elsewhere=True)
    assert f'{address}#test"' not in text_of(page.get(trial.get_absolute_url())), "an imported one has no check"


def test_it_escapes_names_of_people_in_pages_and_figures(page, submit, run):
    experiment = submit(name="</script><b>bold</b>", tags=["<i>x</i>"])
    run()
    text = text_of(page.get(experiment.get_absolute_url()))
    assert "<b>bold" not in text
    assert "<i>x" not in text


def test_it_hides_other_projects_everywhere(page, submit, run):
    hidden = submit(name="Secret study")
    run(most=1)
    hidden.project = Project.objects.create(slug="others", name="Others")
    hidden.save()
    trial = hidden.trials.first()
    for address in (
        hidden.get_absolute_url(),
        reverse("experiment-live", args=[hidden.slug]),
        reverse("experiment-yaml", args=[hidden.slug]),
        reverse("new") + f"?from={hidden.slug}",
        trial.get_absolute_url(),
        reverse("trial-live", args=[trial.pk]),
        reverse("artifact", args=[trial.pk, "stdout.txt"]),
    ):
        assert page.get(address).status_code == 404, address
    assert page.post(reverse("experiment-cancel", args=[hidden.slug])).status_code == 404
    assert page.post(reverse("trial-cancel", args=[trial.pk])).status_code == 404
    for name in ("home", "experiments"):
        assert "Secret study" not in text_of(page.get(reverse(name)))
    assert not page.get(reverse("search"), {"q": f"#{trial.pk}"}).url.startswith(trial.get_absolute_url())


def test_it_lets_a_viewer_read_only(page, person, submit):
    experiment = submit()
    person.memberships.update(role="viewer")
    assert "Cancel this experiment" not in text_of(page.get(experiment.get_absolute_url()))
    assert page.post(reverse("experiment-cancel", args=[experiment.slug])).status_code == 403
    assert page.post(reverse("trial-cancel", args=[experiment.trials.first().pk])).status_code == 403


def test_empty_lists_show_the_next_step(client, person):
    Experiment.objects.all().delete()
    Cluster.objects.all().delete()
    person.is_superuser = True
    person.save()
    client.force_login(person)
    for name, data, step in (
        ("home", "No experiments yet", reverse("new")),
        ("experiments", "No experiment yet", reverse("new")),
        ("trials", "No trials yet", reverse("new")),
        ("histories", "Add repetitions to an", reverse("experiments")),
        ("explore", "No configuration matches", reverse("new")),
        ("reports", "No reports yet", ""),
        ("clusters", "No clusters yet", reverse("cluster-new")),
    ):
        main = text_of(client.get(reverse(name))).partition("<main")[2]
        assert data in main, name
        assert f'href="{step}' in main, name


@pytest.mark.parametrize(("address", "tab"), [("", "answer"), ("?tab=setup", "setup"), ("?tab=nowhere", "answer")])
def test_query_string_selects_the_tab_of_an_experiment(page, submit, address, tab):
    text = page.get(submit().get_absolute_url() + address).content.decode()
    panels = re.findall(r'<div\s+id="(\w+)"\s+role="tabpanel"[^>]*?(hidden)?\s*>', text)
    assert [name for name, hidden in panels if not hidden] == [tab]
    assert len(panels) == 4
    assert re.findall(r'href="\?tab=(\w+)"\s+aria-controls="\w+"\s+aria-selected="true"', text) == [tab]


def test_home_shows_the_answer_of_the_experiment(page, submit, run):
    experiment = submit()
    run()
    answer = diagnosis_of(experiment).answer
    sentence, word = answer.sentence, STRENGTH[answer.strength][1]
    verdict, reason = sentence_and_rest(sentence)
    diagnosis = page.get(reverse("experiment-diagnosis", args=[experiment.slug])).context["diagnosis"]
    assert diagnosis["verdict"] == verdict
    assert diagnosis["reason"].startswith(reason)
    assert f"{verdict} {reason}" == sentence
    home = html.unescape(page.get(reverse("home")).content.decode())
    assert re.search(rf"{re.escape(first_clause(sentence))}\s*<span class=\"chip bare [a-z]*\">{word}</span>", home)
    assert reason not in home


@pytest.mark.parametrize(
    ("sentence", "clause"),
    [
        ("2 hosts are enough: 1.2 s (1.1 to 1.3 s); 4 hosts are slower.", "2 hosts are enough: 1.2 s"),
        ("256 points: not enough data yet; 1 024 points: 1 host is enough.",) * 2,
    ],
)
def test_lists_show_the_verdicts_of_all_groups_without_further_clauses(sentence: str, clause: str) -> None:
    assert first_clause(sentence) == clause.rstrip(".")


def test_it_shows_an_experiment_that_another_version_wrote(page, submit):
    experiment = submit()
    later = {**experiment.specification, "of_tomorrow": 1}
    type(experiment).objects.filter(pk=experiment.pk).update(specification=later)
    assert page.get(experiment.get_absolute_url()).status_code == 200
