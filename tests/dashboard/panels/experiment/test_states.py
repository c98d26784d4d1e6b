"""One word for each state: of trials, of experiments as a whole, and of captures."""

from django.urls import reverse
from lxml.html import fromstring

from dashboard.states import CHIPS, chip_of
from experiments.models import Cluster, State, Status, Trial
from experiments.selectors.diagnosis import diagnosis_of

FAILURE = "It exited with status 1."


def fail_next(trials: int = 1) -> None:
    for _ in range(trials):
        trial = Trial.claim_next(Cluster.objects.get(slug="testbed"), "tests:1:1")
        trial.start_running(command=["lmp"], conditions={})
        trial.fail(FAILURE)


def test_it_calls_captures_flagged_and_never_an_experiment_with_failed_trials(page, submit, run):
    experiment = submit(repetitions=1)
    fail_next()
    run()
    context = page.get(experiment.get_absolute_url()).context
    assert chip_of(context["state"]).word == "Finished with failures"
    assert context["state_words"] == "Finished, 1 trial failed"
    (row,) = page.get(reverse("experiments"), {"source": "own"}).context["rows"]
    assert (row.state, row.words) == (context["state"], context["state_words"])
    assert "flagged" not in row.state


def test_each_trial_without_a_result_has_a_line_of_its_own(page, submit):
    experiment = submit(repetitions=1)
    fail_next(2)
    table = fromstring(page.get(experiment.get_absolute_url()).content.decode()).get_element_by_id("table")
    lines = [[a.get("href") for a in line.iter("a")] for line in table.iterfind(".//details//li")]
    failed = experiment.trials.filter(state=State.FAILED)
    assert sorted(lines) == sorted([trial.get_absolute_url()] for trial in failed)
    assert len(lines) == 2


def test_it_has_a_chip_for_every_state_of_trials_and_experiments(page, submit):
    assert {*State.values, *map(str, Status)} <= CHIPS.keys()
    experiment = submit(repetitions=1)
    assert chip_of(page.get(experiment.get_absolute_url()).context["state"]).word == "Queued"
    fail_next(3)
    assert chip_of(page.get(experiment.get_absolute_url()).context["state"]).word == "Failed"


def test_it_offers_the_words_of_the_chips_as_filters(page):
    fields = page.get(reverse("explore")).context["filters"].fields
    assert [words for _, words in fields["state"].choices] == [chip_of(state).word for state in State]
    assert [words for _, words in fields["trust"].choices] == ["Good", "Estimated", "Degraded", "Unusable"]


def test_an_experiment_with_cancelled_trials_is_not_just_finished(page, submit, run, empty_redis):
    experiment = submit(repetitions=1)
    run(1)
    experiment.cancel()
    context = page.get(experiment.get_absolute_url()).context
    assert (context["state"], context["state_words"]) == ("partial", "Finished, 2 trials cancelled")
    made = diagnosis_of(experiment)
    measured = experiment.trials.get(state=State.FINISHED).configuration.hosts
    assert {parameters["hosts"] for parameters, _ in made.suggested} == {1, 2, 4} - {measured}
    assert not any(fact.rule == "left_out" for fact in made.facts)
