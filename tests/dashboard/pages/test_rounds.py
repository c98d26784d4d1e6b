"""Goals in the form, and rounds on the page of an experiment."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from dashboard.panels.experiment.rounds import rounds_context
from dashboard.panels.new.draft import as_yaml, draft_from_post
from dashboard.panels.new.form import Form
from experiments.errors import InvalidSpec
from experiments.models import Experiment, Trial
from experiments.selectors.diagnosis import diagnosis_of
from experiments.selectors.goals import spent_of
from experiments.specification import parse, parse_yaml
from tests.dashboard.api.clients import EXPERIMENTS, client_of
from tests.dashboard.laboratory import specification
from tests.words import plain
from tests.workers.simulated_rounds import end_trials, run_to_end, submit
from workers import rounds

GOAL: dict[str, Any] = {"until": "0.5 %", "budget": {"trials": 9}}


@pytest.fixture
def ended(library: Any, person: Any) -> Experiment:
    """An experiment whose budget is spent after one round."""
    experiment = submit(GOAL)
    Experiment.objects.update(owner=person)
    run_to_end(experiment, sd=0.1)
    experiment.refresh_from_db()
    return experiment


def posted(*, hosts: str = "1, 2", **fields: str) -> dict[str, Any]:
    from django.http import QueryDict

    query = QueryDict(mutable=True)
    query.update({"name": "goal", "workload": "water", "goal.kind": "until", **fields})
    query.setlist("sweep_name", ["hosts"])
    query.setlist("sweep_values", [hosts])
    return draft_from_post(query)


def test_form_of_a_goal_is_its_specification() -> None:
    draft = posted(
        **{
            "goal.until": "precision",
            "goal.precision": "3 %",
            "goal.budget.time": "30 min",
            "goal.budget.host_hours": "1.5",
            "repetitions": "4",
            "repetitions.at_most": "20",
        }
    )

    spec = parse(draft)

    assert spec.goal is not None
    assert (spec.goal.precision, spec.goal.budget.time, spec.goal.budget.host_hours) == (0.03, 1800, 1.5)
    assert (spec.at_least, spec.at_most) == (4, 20)
    written = parse_yaml(as_yaml(draft))
    assert (written.goal, written.repetitions) == (spec.goal, spec.repetitions)


def test_form_of_explored_sizes_is_their_specification() -> None:
    draft = posted(**{"explore": "on", "goal.budget.trials": "50"})

    spec = parse(draft)

    assert spec.sweep == {"hosts": {"from": 1, "to": 2, "explore": True}}
    assert parse_yaml(as_yaml(draft)).sweep == spec.sweep
    row = Form(draft).sweep_rows[0]
    assert (row.values, row.count, row.explores) == ("1..2", 2, True)
    assert posted(**{"explore": "on", "goal.kind": "fixed"})["sweep"] == {"hosts": "1, 2"}


def test_form_keeps_the_step_of_explored_sizes() -> None:
    draft = posted(hosts="8..64 step 8", **{"explore": "on", "goal.budget.trials": "50"})

    assert draft["sweep"] == {"hosts": {"from": 8, "to": 64, "step": 8, "explore": True}}
    row = Form(draft).sweep_rows[0]
    assert (row.values, row.count, row.explores) == ("8..64 step 8", 8, True)


def test_form_refuses_explored_sizes_that_are_no_range() -> None:
    draft = posted(hosts="1, 2, 8", **{"explore": "on", "goal.budget.trials": "50"})

    with pytest.raises(InvalidSpec) as refused:
        parse(draft)
    assert list(refused.value.by_path()) == ["sweep.hosts"]
    assert (row := Form(draft).sweep_rows[0]).explores
    assert row.values == "1, 2, 8"


def test_form_of_a_search_is_its_specification() -> None:
    fields = {"goal.kind": "optimise", "goal.optimise": "elapsed_s", "goal.matters": "5 %", "goal.budget.trials": "50"}
    draft = posted(**fields)

    spec = parse(draft)

    assert spec.goal is not None
    assert (spec.optimised, spec.goal.matters, spec.goal.until) == ("elapsed_s", 0.05, None)
    form = Form(draft)
    assert (form.goal["searches"], form.goal["optimise"].value) == (True, "elapsed_s")
    assert parse_yaml(as_yaml(draft)).goal == spec.goal


def test_form_shows_the_goal_of_a_specification() -> None:
    spec = parse(
        {
            **specification(),
            "repetitions": {"at_least": 4, "at_most": 20},
            "goal": {"until": "answered", "budget": {"trials": 90}},
        }
    )

    form = Form(spec.to_dict())

    assert form.goal["chosen"]
    assert form["repetitions"].value == "4"
    assert form.goal["at_most"].value == "20"
    assert [field.value for field in form.goal["budget"]] == ["", "90", ""]


def test_numbers_of_a_goal_without_a_unit_show_what_they_mean_at_their_fields() -> None:
    form = Form(posted(**{"goal.budget.time": "5", "goal.matters": "0.25"}))
    assert [(entry.warnings, entry.tone) for entry in (form.goal["budget"][0], form.goal["matters"])] == [
        (("Time: 5 has no unit and means 5 s. Enter 5 min if you mean that.",), "warn"),
        (
            ("Smallest difference that matters: 0.25 has no unit and means 25 %. Enter 0.25 % if you mean that.",),
            "warn",
        ),
    ]
    for draft in (posted(**{"goal.budget.time": "5 min", "goal.matters": "25 %"}), {"goal": {"matters": 0.25}}):
        form = Form(draft)
        assert [entry.warnings for entry in (*form.goal["budget"], form.goal["matters"])] == [()] * 4


@pytest.mark.parametrize("matters", ["0.05 %", 0.0001, "60 %"])
def test_a_difference_that_matters_is_refused_in_percent(matters: Any) -> None:
    with pytest.raises(InvalidSpec, match=r"must be from 0\.1 % to 50 %"):
        parse({**specification(), "goal": {"until": "answered", "matters": matters, "budget": {"trials": 9}}})


def test_fixed_design_posts_no_goal() -> None:
    assert "goal" not in posted(**{"goal.kind": "fixed", "goal.budget.time": "30 min"})


def test_form_reports_a_goal_without_budget_at_the_goal(page: Client) -> None:
    answer = page.post(reverse("new-preview"), {"name": "goal", "workload": "water", "goal.kind": "until"})

    assert "set at least one" in answer.content.decode()


def test_page_lists_rounds_with_their_trials(page: Client, ended: Experiment) -> None:
    context = page.get(ended.get_absolute_url()).context

    assert [entry.row.outcome for entry in context["rounds"]] == ["budget"]
    assert [row["words"] for row in context["budget"]] == ["9 of 9 trials"] or context["budget"][0]["share"] == 100
    assert [len(row["marks"]) for row in context["squares"]] == [3, 3, 3]
    assert context["rounds"][0].bar is not None


def test_page_states_the_time_of_trials_and_with_waiting(page: Client, ended: Experiment) -> None:
    context = page.get(ended.get_absolute_url()).context
    assert context["trials_s"] == spent_of(ended).time_s
    assert context["with_waiting_s"] == sum(entry.took_s for entry in context["rounds"])


def test_open_page_receives_each_decision_and_the_next_round(page: Client, person: Any, library: Any) -> None:
    experiment = submit({"until": "0.5 %", "budget": {"trials": 60}})
    Experiment.objects.update(owner=person)
    end_trials(experiment, sd=0.1)
    assert rounds.decide_round(experiment.pk)

    answer = page.get(reverse("experiment-live", args=[experiment.slug]), {"seen": "9"})

    assert [entry.row.outcome for entry in answer.context["rounds"]] == ["", "continue"]
    assert answer.context["rounds"][1].bar is not None
    assert 'id="rounds" hx-swap-oob="true"' in answer.content.decode()


def test_page_names_the_number_of_an_interval(page: Client, ended: Experiment) -> None:
    (row,) = page.get(ended.get_absolute_url()).context["rounds"]
    named = {number["name"] for number in row.row.numbers}
    assert any(name in row.words for name in named)
    ended.rounds.update(
        numbers=[{"name": "times the best", "unit": "1", "value": 1.2, "low": 0.9, "high": 1.5, "where": {"hosts": 2}}]
    )
    (row,) = page.get(ended.get_absolute_url()).context["rounds"]
    assert row.words == "2 hosts: 1.2 times the best median (0.9 to 1.5)"
    Experiment.objects.filter(pk=ended.pk).update(specification={**ended.specification, "deciding": "water.ns_per_day"})
    (row,) = page.get(ended.get_absolute_url()).context["rounds"]
    assert row.words == "2 hosts: 0.833 times the best rate (0.667 to 1.11)"
    ended.rounds.update(
        numbers=[{"name": "efficiency", "unit": "1", "value": 0.7027, "low": 0.5561, "high": 1.008, "where": {}}]
    )
    (row,) = page.get(ended.get_absolute_url()).context["rounds"]
    assert plain(row.words) == "efficiency 70.3 % (55.6 to 101 %)"


def test_another_round_is_proposed_the_budget_of_the_recommended_trials(page: Client, ended: Experiment) -> None:
    budget = {"time": 300.0, "trials": 9}
    goal = {**ended.specification, "goal": {**ended.specification["goal"], "budget": budget}}
    Experiment.objects.filter(pk=ended.pk).update(specification=goal)
    answer = diagnosis_of(Experiment.objects.get(pk=ended.pk)).answer
    assert answer.missing is not None
    recommended = sum(more for _, more in answer.missing.points)
    proposed = {row["name"]: row["value"] for row in page.get(ended.get_absolute_url()).context["further"]}
    assert int(proposed["trials"]) == max(4, recommended)
    minutes = int(proposed["time"].removesuffix(" min"))
    assert 60 * minutes >= max(120, answer.missing.seconds or 0)


def test_page_counts_the_repeats_of_disturbed_trials_at_their_round(page: Client, ended: Experiment) -> None:
    first = ended.trials.filter(state="finished").order_by("position")[0]
    assert page.get(ended.get_absolute_url()).context["repeats_of_rounds"] == 0
    slowed = {"conditions": {"disturbances": {"cpu": "other load"}}, "trust": "degraded"}
    Trial.objects.filter(pk=first.pk).update(**slowed)
    first.pk, first.attempt, first.position = None, 2, 99
    first.save()
    Trial.objects.filter(pk=ended.trials.latest("position").pk - 1).update(trust="degraded")
    context = page.get(ended.get_absolute_url()).context
    (row,) = context["rounds"]
    assert (row.row.queued, row.repeats, context["repeats_of_rounds"]) == (9, 1, 1)
    marks = [look for squares in context["squares"] for _, *look in squares["marks"]]
    assert len(marks) == row.row.queued + row.repeats
    looks = {tuple(look) for look in marks}
    assert {tone for tone, _ in looks} == {"excluded", "ok", "warn"}
    assert ("warn", "Flagged") in looks
    assert [look for look in marks if look[1].startswith("Excluded")] == [
        ["excluded", "Excluded: disturbed by other load"]
    ]
    assert context["excluded_squares"] == row.excluded == 1


def test_a_round_is_queued_until_a_trial_of_it_starts(page: Client, person: Any, library: Any) -> None:
    experiment = submit(GOAL)
    assert rounds_context(person, experiment)["is_waiting"]
    (trials,) = rounds_context(person, experiment)["budget"]
    count = experiment.trials.count()
    assert (trials["words"].partition(" ")[0], str(count) in trials["words"], trials["share"]) == ("0", True, 0.0)
    end_trials(experiment, sd=0.1)
    assert not rounds_context(person, experiment)["is_waiting"]


def test_one_more_round_is_run_with_the_posted_budget(page: Client, ended: Experiment) -> None:
    answer = page.post(reverse("experiment-rounds-more", args=[ended.slug]), {"trials": "3"})

    assert answer.status_code == 302
    assert ended.trials.filter(state="queued").count() == 3
    context = rounds_context(ended.owner, Experiment.objects.get(pk=ended.pk))
    assert {number for row in context["squares"] for number, *_ in row["marks"]} == {1, 2}


def test_a_round_that_the_quota_refuses_leads_to_the_quotas(page: Client, ended: Experiment) -> None:
    submit(GOAL, name="waiting")
    ended.project.most_queued_trials = 1
    ended.project.save()

    answer = page.post(reverse("experiment-rounds-more", args=[ended.slug]), {"trials": "3"}, follow=True)

    notices = answer.content.decode().partition('id="notices"')[2].partition('id="queued-notice"')[0]
    assert f'href="{reverse("quotas")}"' in notices
    assert ended.rounds.count() == 1


def test_no_round_is_offered_if_each_configuration_has_the_most_repetitions(
    page: Client, person: Any, library: Any
) -> None:
    experiment = submit({"until": "0.5 %"}, repetitions={"at_least": 2, "at_most": 4})
    Experiment.objects.update(owner=person)
    run_to_end(experiment, sd=0.1)
    experiment.trials.update(trust="degraded", conditions={"disturbances": ["other load"]})  # which asks to repeat them
    diagnosis_of(Experiment.objects.get(pk=experiment.pk))

    context = page.get(experiment.get_absolute_url()).context
    assert (context["may_go_further"], context["most_repetitions"]) == (False, 4)
    assert context["diagnosis"]["most_repetitions"] == 4
    html = page.get(experiment.get_absolute_url()).content.decode()
    assert "more-dialog" not in html
    assert html.count(reverse("experiment-edit", args=[experiment.slug])) >= 3

    raised = experiment.specification | {"repetitions": {"at_least": 2, "at_most": 9}}
    Experiment.objects.get(pk=experiment.pk).revise(parse(raised))
    assert rounds.decide_round(experiment.pk)
    (following, edited, *_) = page.get(experiment.get_absolute_url()).context["rounds"]
    assert (edited.ran, edited.row.queued) == ("Decision of revision 2", 0)
    assert following.row.queued > 0


def test_a_round_counts_its_cancelled_trials(page: Client, person: Any, library: Any) -> None:
    experiment = submit({"until": "0.5 %"})
    Experiment.objects.update(owner=person)
    experiment.cancel()

    (row,) = page.get(experiment.get_absolute_url()).context["rounds"]

    assert (row.row.queued, row.cancelled) == (9, 9)


def test_an_edit_without_new_trials_states_that_the_goal_decides(page: Client, ended: Experiment) -> None:
    address = reverse("experiment-edit", args=[ended.slug])
    form = {
        "name": "goal",
        "workload": "water",
        "parameters.molecules": "64",
        "repetitions": "3",
        "editing": ended.slug,
    }
    form |= {"goal.kind": "until", "goal.until": "precision", "goal.precision": "0.5 %", "goal.budget.trials": "50"}
    form |= {"sweep_name": "hosts", "sweep_values": "1, 2, 4", "cluster": "testbed"}
    preview = page.post(reverse("new-preview"), form)
    assert preview.context["change"].queued == 0
    assert "queue 0 trials" not in " ".join(preview.content.decode().split())
    (message,) = page.post(address, form, follow=True).context["messages"]
    assert "0 trials" not in str(message)


def test_rounds_are_paused_and_resumed_on_the_page(page: Client, person: Any, library: Any) -> None:
    experiment = submit(GOAL)
    Experiment.objects.update(owner=person)

    page.post(reverse("experiment-rounds-pause", args=[experiment.slug]))
    assert Experiment.objects.get(pk=experiment.pk).hold == "paused"
    page.post(reverse("experiment-rounds-resume", args=[experiment.slug]))
    assert Experiment.objects.get(pk=experiment.pk).hold == ""


@pytest.mark.parametrize("text", ["a while", "", "-1"])
def test_a_refused_budget_opens_the_dialog_with_its_text_and_its_error(
    page: Client, ended: Experiment, text: str
) -> None:
    answer = page.post(reverse("experiment-rounds-more", args=[ended.slug]), {"trials": text}, follow=True)
    (row,) = [row for row in answer.context["further"] if row["name"] == "trials"]
    assert (row["value"], len(row["errors"]), answer.context["is_refused"]) == (text, 1, True)
    assert row["words"] == "9 of 9"
    assert not list(answer.context["messages"])
    assert ended.rounds.count() == len(page.get(ended.get_absolute_url()).context["rounds"])
    assert "data-open" not in page.get(ended.get_absolute_url()).content.decode().partition('id="more-dialog"')[2][:200]


def test_rest_lists_rounds_and_runs_one_more(person: Any, ended: Experiment) -> None:
    client, address = client_of(person), f"{EXPERIMENTS}{ended.slug}/"

    listed = client.get(f"{address}rounds/").json()
    assert [(row["number"], row["outcome"], row["queued"]) for row in listed] == [(1, "budget", 9)]
    refused = client.post(f"{address}one-more-round/", {}, "application/json")
    assert (refused.status_code, client.get(address).json()["status"]) == (400, "finished")
    answer = client.post(f"{address}one-more-round/", {"trials": 4}, "application/json")
    assert (answer.status_code, answer.json()) == (200, {"queued": 4})
    assert client.post(f"{address}pause-rounds/").json() == {"changed": True}
    assert client.get(address).json()["status"] == "paused"
    assert client.post(f"{address}resume-rounds/").json() == {"changed": True}
    end_trials(ended, sd=0.1)
    assert client.get(address).json()["status"] == "running"
    assert rounds.decide_round(ended.pk)
    assert client.get(address).json()["status"] == "finished"


@pytest.mark.parametrize(
    ("more", "question"),
    [
        ({}, "Where should I stop, and why? Loop time decides, lower is better."),
        ({"scaling": "weak", "grows_with_hosts": "molecules"}, "Does it keep its efficiency? "),
        ({"goal.kind": "optimise", "goal.optimise": "elapsed_s"}, "Which settings are best, and by how much? "),
        (
            {"sweep_name": "link.delay", "sweep_values": "0, 1 ms, 2 ms"},
            "What does the program need from the network? ",
        ),
    ],
)
def test_preview_states_the_question_and_the_deciding_metric(
    library: Any, page: Client, more: dict[str, str], question: str
) -> None:
    form = {"name": "goal", "workload": "water", "goal.kind": "until", "goal.budget.trials": "60", "repetitions": "3"}
    form |= {"sweep_name": "hosts", "sweep_values": "1, 2, 4", **more}
    if "scaling" in more:
        form |= {"sweep_name": ["hosts", "molecules"], "sweep_values": ["1, 2, 4", "64, 128, 256"], "combine": "zip"}
    response = page.post(reverse("new-preview"), form)
    assert response.context["preview"].question.startswith(question)
    assert response.context["preview"].capture_bytes is None


def test_preview_forecasts_rounds_from_the_scatter_of_past_trials(library: Any, page: Client) -> None:
    form = {"name": "goal", "workload": "water", "goal.kind": "until", "goal.budget.trials": "60", "repetitions": "3"}
    form |= {"sweep_name": "hosts", "sweep_values": "1, 2, 4", "parameters.molecules": "64"}
    address = reverse("new-preview")
    assert "No estimate yet" in page.post(address, form).context["preview"].goal[0]
    run_to_end(submit({"until": "3 %", "budget": {"trials": 12}}))

    likely, latest, *_ = page.post(address, form).context["preview"].goal

    assert likely.startswith("Likely ")
    assert latest == "Ends after 60 trials at the latest."
    data = {"name": "g", "workload": "water", "parameters": {"molecules": 64}, "sweep": {"hosts": [1, 2, 4]}}
    body = {**data, "goal": {"until": "answered", "budget": {"trials": 60}}}
    answer = page.post("/api/v1/validate/", body, content_type="application/json").json()
    assert 9 <= answer["forecast"]["trials"][0] <= answer["forecast"]["trials"][1] <= 60
