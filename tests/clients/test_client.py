"""Python client and command with a real server, or a broken transport."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from django.contrib.auth.models import User
from django.test import Client as Browser
from django.urls import reverse
from rankwire_client import Client, NotReached, Refused, TimeLimit
from rankwire_client.command import main

from config.services.lease import ROOT
from experiments.models import ApiToken, Experiment, Membership, Project, State
from experiments.selectors.history_list import histories, with_histories
from tests.workers.simulated_rounds import end_trials, run_to_end

WATER = "name: Water\nworkload: water\nsweep:\n  hosts: 1..4 x2\n"


def test_submit_returns_the_stored_experiment(client: Client) -> None:
    experiment = client.submit(WATER)
    assert (experiment["slug"], experiment["trials"]["queued"]) == ("water", 9)
    assert client.submit({"name": "Water", "workload": "water"})["slug"] == "water-2"
    assert [experiment["slug"] for experiment in client.experiments()] == ["water-2", "water"]
    assert client.experiment("water")["specification"] == experiment["specification"]
    assert len(list(client.trials(experiment="water"))) == 9
    assert len(client.result("water")["trials"]) == 9


@pytest.mark.usefixtures("client")
def test_nights_of_the_guide_are_one_history(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a token for one project, which is not the default one."""
    project = Project.objects.create(slug="cluster-watch", name="Cluster watch")
    Membership.objects.create(user=User.objects.get(), project=project, role="submitter")
    monkeypatch.setenv("RANKWIRE_TOKEN", ApiToken.issue(User.objects.get(), "night", project=project)[1])
    guide = (ROOT / "docs" / "how-to" / "follow-histories.md").read_text()
    blocks = re.search(r"```yaml nightly.yaml\n(.+?)```.+? rankwire (submit [^\n]+)", guide, re.DOTALL)
    assert blocks is not None
    yaml, command = blocks.groups()
    (tmp_path / "nightly.yaml").write_text(yaml)
    monkeypatch.chdir(tmp_path)
    command = command.replace("--project default", "--project cluster-watch")
    for _ in range(2):
        assert main(command.split()) == 0
        end_trials(project.experiments.latest("pk"))
    (listed,), _ = histories(with_histories(User.objects.get(username="ada")))
    assert (listed.trials, listed.experiments) == (6, 2)


def test_a_downloaded_file_names_the_command_for_its_project(
    client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = Project.objects.create(slug="cluster-watch", name="Cluster watch")
    ada = User.objects.get()
    member = Membership.objects.create(user=ada, project=project, role="submitter")
    client.submit(WATER, project="cluster-watch")
    page = Browser()
    page.force_login(ada)
    address = reverse("experiment-yaml", args=[project.experiments.get().slug])
    yaml = page.get(address).content.decode()
    (tmp_path / f"{project.experiments.get().slug}.yaml").write_text(yaml)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RANKWIRE_TOKEN", ApiToken.issue(ada, "night", project=project)[1])
    assert main(yaml.splitlines()[0].removeprefix("# rankwire ").split()) == 0
    assert project.experiments.count() == 2
    member.role = "viewer"
    member.save()
    assert "cluster-watch" not in page.get(address).content.decode()


def test_rounds_are_read_with_their_decisions(client: Client) -> None:
    goal = {"until": "0.5 %", "budget": {"trials": 9}}
    client.submit({"name": "Goal", "workload": "water", "sweep": {"hosts": [1, 2, 4]}, "goal": goal})
    run_to_end(Experiment.objects.get(), sd=0.1)
    (row,) = client.rounds("goal")
    assert (row["number"], row["outcome"], row["queued"]) == (1, "budget", 9)
    assert {number["where"]["hosts"] for number in row["numbers"]} == {1, 2, 4}


def test_it_turns_pages(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rankwire_client.client.PAGE", 4)
    client.submit(WATER)
    assert len({trial["id"] for trial in client.trials(experiment="water")}) == 9


def test_a_refusal_has_field_and_line(client: Client) -> None:
    with pytest.raises(Refused) as refused:
        client.submit("name: Water\nworkload: water\nparameters:\n  steps: -3\n")
    assert refused.value.status == 400
    assert [(problem.path, problem.line) for problem in refused.value.problems] == [("parameters.steps", 4)]
    with pytest.raises(Refused) as hidden:
        client.experiment("nowhere")
    assert (hidden.value.status, hidden.value.title) == (404, "Not Found")
    assert hidden.value.detail == "This does not exist, or you do not have access to it."
    assert not Experiment.objects.exists()


def test_it_says_what_a_specification_would_do(
    client: Client, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert client.validate(WATER)["trials"] == 9
    (tmp_path / "water.yaml").write_text(WATER)
    assert main(["validate", str(tmp_path / "water.yaml")]) == 0
    assert capsys.readouterr().out.startswith("9 trials of 3 configurations, about ")
    with pytest.raises(Refused):
        client.validate({"name": "Water", "workload": "watre"})
    assert not Experiment.objects.exists()


@pytest.mark.parametrize("limit", ["nan", "-1", "inf", "soon"])
def test_the_command_takes_no_time_limit_that_is_none(limit: str) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["submit", "water.yaml", "--wait", "--time-limit", limit])


def test_it_queues_once_though_the_answer_is_lost(client: Client, live_server: Any) -> None:
    class LosesTheFirstAnswer(httpx.HTTPTransport):
        lost = 0

        def handle_request(self, request: httpx.Request) -> httpx.Response:
            answer = super().handle_request(request)
            if not self.lost:
                self.lost = 1
                answer.read()
                raise httpx.ReadError("the connection was lost")
            return answer

    transport = LosesTheFirstAnswer()
    with Client(transport=transport, sleep=lambda _: None) as careless:
        assert careless.submit(WATER)["slug"] == "water"
    assert transport.lost == 1
    assert Experiment.objects.count() == 1


def test_it_waits_until_no_trial_is_left(client: Client) -> None:
    client.submit(WATER)
    seen: list[str] = []

    def end(pause_s: float) -> None:
        Experiment.objects.get().trials.update(state=State.CANCELLED)

    with pytest.raises(TimeLimit, match="water was not finished"):
        client.wait("water", time_limit_s=0)
    client._sleep = end
    assert client.wait("water", progress=lambda experiment: seen.append(experiment["status"]))["status"] == "cancelled"
    assert seen == ["waiting", "cancelled"]


def faulty(answer: Callable[[httpx.Request], httpx.Response], pauses: list[float]) -> Client:
    return Client("http://server", "key", transport=httpx.MockTransport(answer), sleep=pauses.append)


def test_it_comes_back_when_the_server_says_so() -> None:
    answers = iter([httpx.Response(503, headers={"Retry-After": "7"}), httpx.Response(200, json={"slug": "water"})])
    pauses: list[float] = []
    assert faulty(lambda _: next(answers), pauses).experiment("water") == {"slug": "water"}
    assert pauses == [7.0]


def test_it_gives_up_after_a_few_attempts() -> None:
    def refuse(request: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError("connection refused")

    pauses: list[float] = []
    with pytest.raises(NotReached, match="5 attempts: connection refused"):
        faulty(refuse, pauses).experiment("water")
    assert pauses == [1.0, 2.0, 4.0, 8.0]


@pytest.mark.parametrize("slug", ["", "..", "a/b", "a?b"])
def test_it_sends_no_slug_that_leads_elsewhere(slug: str) -> None:
    with pytest.raises(ValueError, match="short name"):
        faulty(lambda _: httpx.Response(200, json={}), []).experiment(slug)


def test_the_command_submits_and_shows(client: Client, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "water.yaml").write_text(WATER)
    assert main(["submit", str(tmp_path / "water.yaml")]) == 0
    assert capsys.readouterr() == ("water: waiting, 0 of 9 trials finished\n", "")
    Experiment.objects.get().trials.update(state=State.FAILED)
    assert main(["status", "water", "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["trials"]["failed"] == 9
    assert main(["result", "water"]) == 0
    assert len(json.loads(capsys.readouterr().out)["trials"]) == 9


def test_the_command_says_what_is_wrong(
    client: Client, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "bad.yaml").write_text("name: Water\nworkload: fire\n")
    assert main(["submit", str(tmp_path / "bad.yaml")]) == 2
    assert capsys.readouterr().err.startswith("rankwire: workload: ")
    assert main(["submit", str(tmp_path / "none.yaml")]) == 2
    monkeypatch.delenv("RANKWIRE_TOKEN")
    assert main(["status", "water"]) == 2
    assert "RANKWIRE_TOKEN" in capsys.readouterr().err
