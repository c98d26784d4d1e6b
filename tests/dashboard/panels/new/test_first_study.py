"""README, tutorial, first start, tour and form have one first study."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from django.core.management import call_command
from django.test import Client
from django.urls import reverse

from dashboard.labels import workload_title
from dashboard.panels.new.form import Form
from experiments.library import FIRST_STUDY
from experiments.models import Experiment
from experiments.specification import parse, parse_yaml

ROOT = Path(__file__).parents[4]
STUDY = parse_yaml(FIRST_STUDY.read_text())
WORDS = {"description", "tags"}
"""Fields in which the study describes itself, which the form leaves empty."""


def without_words(spec: Any) -> dict[str, Any]:
    return dict(spec.model_dump(mode="json", exclude=WORDS))


def test_the_readme_runs_it_and_shows_it() -> None:
    readme = (ROOT / "README.md").read_text()
    assert f"script/run {FIRST_STUDY.relative_to(ROOT)}\n" in readme
    blocks = re.findall(r"```yaml\n(.*?)```", readme, re.DOTALL)
    assert [without_words(parse(yaml.safe_load(text))) for text in blocks] == [without_words(STUDY)]


def test_the_tutorial_starts_its_trials() -> None:
    tutorial = (ROOT / "docs" / "tutorial" / "first-experiment.md").read_text()
    trials = STUDY.repetitions * len(STUDY.sweep["hosts"])
    assert f"**Start round 1: {trials} trials**" in tutorial
    assert str(FIRST_STUDY.relative_to(ROOT)) in tutorial


@pytest.mark.django_db
def test_the_first_start_queues_it() -> None:
    call_command("set_up")
    (experiment,) = Experiment.objects.filter(published=False)
    assert (experiment.slug, experiment.name) == (FIRST_STUDY.stem, STUDY.name)
    assert parse(experiment.specification) == STUDY


@pytest.mark.parametrize("query", [{}, {"tour": "1"}])
def test_form_and_tour_begin_with_it(page: Client, query: dict[str, str]) -> None:
    context = page.get(reverse("new"), query).context
    assert without_words(parse(yaml.safe_load(context["yaml"]))) == without_words(STUDY)


def test_home_and_help_lead_to_the_tour(page: Client) -> None:
    for name in ("home", "help"):
        assert f'href="{reverse("new")}?tour=1"' in page.get(reverse(name)).content.decode()


def test_another_workload_does_not_keep_its_link_unless_it_was_changed(page: Client) -> None:
    first = {name: value for name, value in _fields().items() if value}

    def chosen(**changes: Any) -> dict[str, Any]:
        context = page.post(reverse("new-fields"), first | {"workload": "pingpong"} | changes).context
        return dict(yaml.safe_load(context["yaml"]))

    wrong = chosen(repetitions="zwei")
    assert wrong["name"] == workload_title("pingpong")
    assert chosen(name="Mine", repetitions="7")["name"] == "Mine"
    assert "link" not in chosen()
    assert "link" not in chosen(repetitions="7")
    assert chosen(**{"link.bandwidth": "2 Gbit/s"})["link"] == {"bandwidth": "2 Gbit/s"}
    ring = chosen(workload="ring", name="Mine", **{"parameters.steps": "77"})
    assert (ring["name"], ring["parameters"]["steps"], ring["sweep"]) == ("Mine", 77, {"hosts": [2, 4]})
    assert "steps" not in chosen(workload="ring").get("parameters", {})
    was_ping_pong = {"previous": "pingpong", "name": workload_title("pingpong"), "parameters.steps": "2000"}
    again = chosen(
        workload="ring", sweep_name=["message_bytes"], sweep_values=["1 KiB, 64 KiB, 4 MiB"], **was_ping_pong
    )
    assert (again["name"], again["sweep"]) == (workload_title("ring"), {"hosts": [2, 4]})
    with_goal = chosen(
        **{"goal.kind": "until", "goal.until": "answered", "goal.matters": "25 %", "goal.budget.time": "5 min"}
    )
    assert "link" not in with_goal
    assert with_goal["goal"] == {"until": "answered", "matters": "25 %", "budget": {"time": "5 min"}}


def test_a_first_ping_pong_sweeps_sizes_between_two_hosts_and_leaves_with_it(page: Client) -> None:
    draft = yaml.safe_load(page.get(reverse("new"), {"workload": "pingpong"}).context["yaml"])
    assert draft["parameters"]["hosts"] == 2
    assert draft["sweep"] == {"message_bytes": ["1 KiB", "64 KiB", "4 MiB"]}
    fields = {"name": "Ping-pong", "sweep_name": ["message_bytes"], "sweep_values": ["1 KiB, 64 KiB"]}
    fields |= {"parameters.hosts": "2", "repetitions": "3", "previous": "pingpong"}

    def chosen(workload: str) -> Any:
        return parse(yaml.safe_load(page.post(reverse("new-fields"), fields | {"workload": workload}).context["yaml"]))

    assert chosen("ring").sweep.keys() == {"message_bytes"}
    assert chosen("water").sweep == {"hosts": [1, 2, 4]}
    goal = {"goal.kind": "until", "goal.until": "answered", "goal.matters": "25 %", "goal.budget.time": "5 min"}
    first = {name: value for name, value in _fields().items() if value} | goal | {"workload": "pingpong"}
    assert parse(yaml.safe_load(page.post(reverse("new-fields"), first).context["yaml"])).goal is not None


def _fields() -> dict[str, Any]:
    """Return the fields of the form as a browser sends them."""
    form = Form(yaml.safe_load(FIRST_STUDY.read_text()))
    fields = {field.path: str(field.value) for field in (*form.workload_fields, *form.link_fields)}
    sweep = {"sweep_name": ["hosts"], "sweep_values": ["1, 2, 4"], "capture.enabled": "on", "capture.keep": "on"}
    goal = {"goal.kind": "until", "goal.until": "answered", "goal.matters": "25 %", "goal.budget.time": "5 min"}
    others = {
        "name": STUDY.name,
        "workload": "water",
        "previous": "water",
        "repetitions": "3",
        "order": "interleaved",
        "time_limit_s": "60 s",
    }
    return {**fields, **sweep, **goal, **others}
