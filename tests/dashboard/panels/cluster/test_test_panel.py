"""The page of a cluster starts a test, polls it, and shows its results."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse
from lxml.html import fromstring

from experiments.models import Cluster, ClusterTest, Experiment, Project
from tests.dashboard.texts import text_of
from tests.experiments import factories

pytestmark = pytest.mark.usefixtures("empty_redis")
STEPS = [
    {"name": "Python", "state": "ok", "value": "3.11.2", "seen": "On n1.", "remedy": "", "commands": []},
    {
        "name": "Reach",
        "state": "problem",
        "value": "1 of 2 failed",
        "seen": "Host <n2> cannot be used.",
        "remedy": "Check it.",
        "commands": ["ssh n2"],
    },
]


@pytest.fixture
def rack(page: Client, person: User) -> Cluster:
    person.memberships.update(role="maintainer")
    return Cluster.objects.create(slug="rack", name="Rack", kind="ssh", settings={"hosts": ["n1", "n2"]})


def test_it_asks_for_a_test_and_follows_it(page: Client, rack: Cluster) -> None:
    address = reverse("cluster-test", args=["rack"])
    assert page.post(address).url == "/clusters/rack/"
    page.post(address)
    test = ClusterTest.begin(rack, "host:1:1")
    assert test is not None
    test.tell("to reach the hosts", STEPS[:1])
    fragment = text_of(page.get(address))
    assert "3.11.2" in fragment
    assert "every 2s" in fragment


def test_it_shows_results_with_fixes_and_stops_polling(page: Client, rack: Cluster) -> None:
    ClusterTest.ask(rack)
    test = ClusterTest.begin(rack, "host:1:1")
    assert test is not None
    test.end(STEPS)
    text = text_of(page.get(reverse("cluster", args=["rack"])))
    assert "1 ok" in text
    assert "1 problem" in text
    assert "<pre>ssh n2</pre>" in text
    assert "every 2s" not in text.partition("<main")[2]  # the counters above ask for ever
    rack.set_up(name="Rack", settings={"hosts": ["n1"]}, enabled=True)


@pytest.mark.parametrize("after", ["skipped", "ok", "warning"])
def test_state_shows_a_check_with_a_problem_until_one_without(page: Client, rack: Cluster, after: str) -> None:
    state = "check-failed"
    ClusterTest.ask(rack)
    test = ClusterTest.begin(rack, "host:1:1")
    assert test is not None
    test.end([*STEPS, {**STEPS[0], "state": after}])
    assert page.get("/clusters/rack/").context["row"].state == state
    assert page.get("/api/v1/clusters/rack/").json()["state"] == state
    Cluster.objects.filter(pk=rack.pk).update(enabled=False)
    assert "Check failed" in text_of(page.get("/clusters/"))
    Cluster.objects.filter(pk=rack.pk).update(enabled=True)
    assert state in [row.state for row in page.get("/").context["clusters"]]
    rack.set_up(name="Rack", settings={"hosts": ["n1"]}, enabled=True)
    ClusterTest.ask(rack)
    assert page.get("/clusters/rack/").context["row"].state == state
    again = ClusterTest.begin(rack, "host:1:1")
    assert again is not None
    again.end(STEPS[:1])
    assert page.get("/clusters/rack/").context["row"].state == "ready"


def test_users_who_may_not_check_a_cluster_see_no_login_of_its_hosts(page: Client, rack: Cluster, person: User) -> None:
    ClusterTest.ask(rack)
    test = ClusterTest.begin(rack, "host:1:1")
    assert test is not None
    login = {"seen": "Key /srv/key of bench.", "remedy": "Log in as bench.", "commands": ["ssh bench@n1"]}
    test.end([*STEPS, {"name": "Capture permission", "state": "problem", "value": "Missing", **login}])
    assert "bench" in text_of(page.get(reverse("cluster", args=["rack"])))
    person.memberships.all().delete()
    for address in (reverse("cluster", args=["rack"]), reverse("cluster-test", args=["rack"])):
        text = text_of(page.get(address))
        assert "bench" not in text
        assert "ssh n2" not in text
        assert "1 of 2 failed" in text


def test_steps_that_were_not_tried_for_one_reason_are_one_row(page: Client, rack: Cluster) -> None:
    ClusterTest.ask(rack)
    test = ClusterTest.begin(rack, "host:1:1")
    assert test is not None
    untried = {"state": "skipped", "value": "", "seen": "Because no host can be used.", "remedy": "", "commands": []}
    test.end(
        [
            STEPS[1],
            {**STEPS[1], "state": "problem"},
            {**STEPS[1], "state": "problem"},
            *({"name": name, **untried} for name in ("Link", "Clocks")),
            {"name": "GPU", **untried, "seen": "No."},
        ]
    )
    response = page.get(reverse("cluster", args=["rack"]))
    assert [step["name"] for step in response.context["steps"]] == [*3 * ["Reach"], "Link, Clocks", "GPU"]
    assert response.context["counts"] == [("problem", "3 problems"), ("skipped", "3 without result")]
    terms = fromstring(response.content.decode()).xpath("//ol[@class='test-steps']/li/div/b/a/@href")
    assert [address.partition("#")[2] for address in terms] == [*3 * ["check.reach"], "check.link", "check.clocks"]


def test_waiting_check_names_the_other_cluster_of_the_trial(page: Client, rack: Cluster) -> None:
    factories.experiment()
    factories.claimed()
    address = reverse("cluster-test", args=["testbed"])
    page.post(address)
    assert "shares hosts" not in text_of(page.get(address))
    Cluster.objects.filter(slug="rack").update(settings={"hosts": ["127.0.0.1"]})
    address = reverse("cluster-test", args=["rack"])
    page.post(address)
    assert "on Virtual test-bed, which shares hosts with this cluster" in " ".join(text_of(page.get(address)).split())


def test_waiting_check_names_the_trial_and_can_be_cancelled(page: Client, rack: Cluster) -> None:
    factories.experiment()
    trial = factories.claimed()
    local, address = Cluster.objects.get(slug="local"), reverse("cluster-test", args=["local"])
    page.post(address)
    assert f'href="/trials/{trial.pk}/"' in text_of(page.get(address))
    Experiment.objects.update(project=Project.objects.create(slug="secret", name="Secret"))
    assert f'href="/trials/{trial.pk}/"' not in text_of(page.get(address))
    page.post(address, {"cancel": "1"})
    assert not ClusterTest.objects.filter(cluster=local).exists()
