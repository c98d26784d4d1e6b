"""Adding and changing a cluster in a form, with permission."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client
from django.urls import reverse
from lxml import html

from experiments.cluster_kinds import registry
from experiments.cluster_kinds.form import form_of
from experiments.models import Cluster, ClusterTest
from tests.dashboard.texts import text_of

RACK = {"name": "Bench rack", "kind": "ssh", "enabled": "on", "hosts": "n[1-3]", "user": "bench", "capture": "every"}


@pytest.fixture
def set_up(page: Client, person: User) -> Client:
    """Signed in with the administration's permission to set clusters up."""
    names = ("add_cluster", "change_cluster")
    User.objects.filter(pk=person.pk).update(is_staff=True)
    person.user_permissions.set(Permission.objects.filter(codename__in=names))
    return page


def at_field(response: Any, field: str) -> str:
    mark = f'id="err-{field.replace(".", "-")}">'
    return str(response.content.decode().split(mark)[1].split("</p>")[0])


@pytest.mark.parametrize("kind", [kind.name for kind in registry()])
def test_it_asks_for_every_setting_of_the_kind(set_up: Client, kind: str) -> None:
    text = text_of(set_up.get(reverse("cluster-new"), {"kind": kind}))
    (chosen,) = [row for row in registry() if row.name == kind]
    for setting in form_of(chosen):
        assert f'name="{setting.path}"' in text
    assert "{" not in text.partition("<main")[2].partition("</main>")[0]


@pytest.mark.parametrize(
    ("kind", "first"),
    [
        ("ssh", ["hosts", "user", "key"]),
        ("slurm", ["login.host", "login.user", "login.key", "partition", "account"]),
        ("gridengine", ["login.host", "login.user", "login.key", "parallel_environment", "queue"]),
        ("local", []),
    ],
)
def test_form_shows_few_settings_and_the_others_with_their_defaults(
    set_up: Client, kind: str, first: list[str]
) -> None:
    page = html.fromstring(set_up.get(reverse("cluster-new"), {"kind": kind}).content)
    (advanced,) = page.xpath("//details[@class='advanced']")
    folded = {field.get("name"): field for field in advanced.xpath(".//*[@name]")}
    assert "open" not in advanced.attrib
    (chosen,) = [row for row in registry() if row.name == kind]
    settings = form_of(chosen)
    assert [setting.path for setting in settings if setting.path not in folded] == first
    for setting in settings:
        if setting.shape in ("text", "words") and setting.path in folded:
            assert folded[setting.path].get("placeholder") == setting.usual


def test_form_names_changed_advanced_settings_and_opens_at_their_errors(set_up: Client) -> None:
    set_up.post(reverse("cluster-new"), {**RACK, "port": "2222"})
    edit = reverse("cluster-edit", args=["bench-rack"])
    assert set_up.get(edit).context["form"].changed == ["Port"]
    page = html.fromstring(set_up.post(edit, {**RACK, "port": "many"}).content)
    assert "open" in page.xpath("//details[@class='advanced']")[0].attrib


def test_a_box_that_is_checked_by_default_can_be_unchecked(set_up: Client) -> None:
    form = {"name": "Bare", "kind": "local", "enabled": "on"}
    form_page = html.fromstring(set_up.get(reverse("cluster-new"), {"kind": "local"}).content)
    assert "checked" in form_page.xpath("//*[@name='confined']")[0].attrib
    set_up.post(reverse("cluster-new"), form)
    assert Cluster.objects.get(slug="bare").settings == {"confined": False}


def test_it_stores_a_cluster_and_shows_it(set_up: Client) -> None:
    response = set_up.post(reverse("cluster-new"), RACK)
    assert response.url == "/clusters/bench-rack/"
    cluster = Cluster.objects.get(slug="bench-rack")
    assert (cluster.kind, cluster.enabled, cluster.most_hosts) == ("ssh", True, 3)
    assert cluster.settings == {"hosts": ["n1", "n2", "n3"], "user": "bench", "capture": "every"}
    text = text_of(set_up.get(response.url))
    assert "every host" in text
    assert "bench" in text
    assert response.url in text_of(set_up.get(reverse("clusters")))


def test_settings_can_be_tested_before_the_cluster_takes_experiments(set_up: Client) -> None:
    assert 'name="test"' in text_of(set_up.get(reverse("cluster-new"), {"kind": "ssh"}))
    wrong = set_up.post(reverse("cluster-new"), {**RACK, "hosts": "-x", "test": "on"})
    assert (wrong.status_code, Cluster.objects.filter(slug="bench-rack").exists()) == (422, False)
    assert wrong.context["form"].enabled, "the box stays checked"
    response = set_up.post(reverse("cluster-new"), {**RACK, "test": "on"})
    cluster = Cluster.objects.get(slug="bench-rack")
    assert not cluster.enabled
    assert not ClusterTest.objects.get(cluster=cluster).is_over
    text_of(set_up.get(response.url))
    edit = reverse("cluster-edit", args=[cluster.slug])
    set_up.post(edit, {**RACK, "enabled": "on"})
    cluster.refresh_from_db()
    assert cluster.enabled


def test_switching_on_after_a_failed_check_asks_and_the_preview_names_it(set_up: Client) -> None:
    rack = Cluster.objects.create(slug="rack", name="Rack", kind="ssh", settings={"hosts": ["n1"]}, enabled=False)
    address, switch_on = reverse("cluster", args=["rack"]), "//button[@name='on']"
    assert not html.fromstring(set_up.get(address).content).xpath("//dialog[@id='switch-on']")
    ClusterTest.ask(rack)
    test = ClusterTest.begin(rack, "host:1:1")
    assert test is not None
    step = {"name": "Reach", "state": "problem", "value": "", "seen": "", "remedy": "", "commands": []}
    test.end([step])
    (button,) = html.fromstring(set_up.get(address).content).xpath(switch_on)
    (dialog,) = button.xpath("ancestor::dialog")
    assert "failed: Reach." in dialog.text_content()
    polled = html.fromstring(set_up.get(reverse("cluster-test", args=["rack"])).content)
    assert polled.xpath("//*[@id='switch' and @hx-swap-oob]//dialog//button[@name='on']"), "without a reload"
    assert "failed: Reach." in text_of(set_up.get(reverse("cluster-edit", args=["rack"])))
    set_up.post(reverse("cluster-switch", args=["rack"]), {"on": "1"})
    rack.refresh_from_db()
    assert rack.enabled
    form = {
        "name": "N",
        "workload": "pingpong",
        "cluster": "rack",
        "parameters.hosts": "1",
        "parameters.ranks_per_host": "2",
    }
    answer = set_up.post(reverse("new-preview"), form)
    assert "The last check of Rack failed: Reach." in answer.context["preview"].notes
    assert html.fromstring(answer.content).xpath(f"//a[@href='{address}#test']"), "the check explains the fault"


def test_a_cluster_of_slurm_takes_its_login_from_fields_of_its_own(set_up: Client) -> None:
    form = {"name": "Big", "kind": "slurm", "partition": "short", "login.host": "gate", "login.port": "2222"}
    set_up.post(reverse("cluster-new"), form)
    cluster = Cluster.objects.get(slug="big")
    assert cluster.settings == {"partition": "short", "login": {"host": "gate", "port": 2222}}
    assert not cluster.enabled
    assert 'placeholder="86400"' in text_of(set_up.get(reverse("cluster-edit", args=["big"])))


@pytest.mark.parametrize(
    ("field", "text", "words"),
    [
        ("hosts", "", "is missing"),
        ("hosts", "n1 n1", "named more than once"),
        ("port", "many", "must be a whole number"),
        ("key", "-----BEGIN OPENSSH PRIVATE KEY-----", "is the key itself"),
        ("name", "…", "needs letters or digits"),
        ("name", "New", "is in use"),
        ("name", "Testbed", "is in use"),
    ],
)
def test_it_shows_an_error_at_its_field_keeps_what_was_written_and_stores_nothing(
    set_up: Client, field: str, text: str, words: str
) -> None:
    response = set_up.post(reverse("cluster-new"), {**RACK, field: text})
    assert response.status_code == 422
    assert words in at_field(response, field)
    assert 'value="bench"' in response.content.decode()
    assert not Cluster.objects.filter(kind="ssh").exists()


def test_it_changes_a_cluster_and_keeps_its_kind_and_slug(set_up: Client) -> None:
    set_up.post(reverse("cluster-new"), RACK)
    address = reverse("cluster-edit", args=["bench-rack"])
    assert 'value="bench"' in text_of(set_up.get(address))
    set_up.post(address, {**RACK, "kind": "slurm", "name": "Rack 2", "hosts": "a b", "user": "", "enabled": ""})
    cluster = Cluster.objects.get(slug="bench-rack")
    assert (cluster.name, cluster.kind, cluster.enabled) == ("Rack 2", "ssh", False)
    assert cluster.settings == {"hosts": ["a", "b"], "capture": "every"}


def test_renamed_cluster_keeps_its_own_name_and_takes_none_of_another(set_up: Client) -> None:
    set_up.post(reverse("cluster-new"), RACK)
    address = reverse("cluster-edit", args=["bench-rack"])
    taken = Cluster.objects.get(slug="testbed").name.upper()
    assert "name of another cluster" in at_field(set_up.post(address, {**RACK, "name": taken}), "name")
    assert set_up.post(address, RACK).status_code == 302


@pytest.mark.parametrize("role", ["viewer", "submitter", "maintainer"])
def test_others_see_the_cluster_and_not_its_settings(page: Client, person: User, role: str) -> None:
    person.memberships.update(role=role)
    secret = {"hosts": ["n1"], "environment": {"LICENCE": "s3cret"}}
    Cluster.objects.create(slug="rack", name="Rack", kind="ssh", settings=secret)
    text = text_of(page.get(reverse("cluster", args=["rack"])))
    assert "Rack" in text
    assert "s3cret" not in text
    for address in (reverse("cluster-new"), reverse("cluster-edit", args=["rack"])):
        assert page.get(address).status_code == 403
        assert page.post(address, RACK).status_code == 403
        assert address not in text + text_of(page.get(reverse("clusters")))
    assert Cluster.objects.get(slug="rack").settings == secret


def test_the_administration_refuses_settings_that_the_kind_does_not_take(client: Client, library: object) -> None:
    client.force_login(User.objects.create_superuser("root"))
    form = {"slug": "rack", "name": "Rack", "kind": "ssh", "settings": '{"host": ["n1"]}', "facts": "{}"}
    client.post("/admin/experiments/cluster/add/", form)
    assert not Cluster.objects.filter(slug="rack").exists()


def test_edited_settings_are_checked_with_one_button(set_up: Client, empty_redis: object) -> None:
    set_up.post(reverse("cluster-new"), RACK)
    rack = Cluster.objects.get(slug="bench-rack")
    edit = reverse("cluster-edit", args=["bench-rack"])
    set_up.post(edit, {**RACK, "user": "ada"})
    assert not ClusterTest.objects.filter(cluster=rack).exists()
    set_up.post(edit, {**RACK, "user": "mia", "test": "on"})
    rack.refresh_from_db()
    assert (rack.settings["user"], rack.enabled) == ("mia", True)
    assert ClusterTest.objects.get(cluster=rack).is_waiting
