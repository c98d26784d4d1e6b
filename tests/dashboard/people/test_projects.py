"""Maintainers change roles in their project; one maintainer stays."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.test import Client
from lxml.html import fromstring

from experiments.models import ApiToken, Invitation, Membership, Project, Webhook
from tests.dashboard.api.clients import client_of
from tests.dashboard.texts import text_of
from tests.experiments import factories


@pytest.fixture
def optics(db: None) -> Project:
    return Project.objects.create(slug="optics", name="Optics")


@pytest.fixture
def mia(optics: Project) -> Any:
    return factories.person("mia", "maintainer", optics)


@pytest.fixture
def browser(mia: Any) -> Client:
    client = Client()
    client.force_login(mia)
    return client


def roles(project: Project) -> dict[str, str]:
    return dict(project.memberships.values_list("user__username", "role"))


def member(project: Project, name: str) -> str:
    return f"/projects/optics/members/{project.memberships.get(user__username=name).pk}/"


def test_a_maintainer_adds_changes_and_removes_members(browser: Client, optics: Project) -> None:
    factories.person("ada")
    browser.post("/projects/optics/members/", {"member-name": "ada", "member-role": "viewer"})
    assert roles(optics) == {"mia": "maintainer", "ada": "viewer"}
    browser.post(member(optics, "ada"), {"role": "submitter"})
    assert roles(optics)["ada"] == "submitter"
    browser.post(member(optics, "ada"), {"remove": "1"})
    assert roles(optics) == {"mia": "maintainer"}


def test_adding_a_member_again_changes_no_role(browser: Client, optics: Project) -> None:
    factories.person("ada", "submitter", optics)
    answer = browser.post("/projects/optics/members/", {"member-name": "ada", "member-role": "maintainer"})
    assert answer.status_code == 422
    assert "is a member already" in answer.content.decode()
    assert roles(optics)["ada"] == "submitter"


def test_what_cannot_be_restored_is_deleted_after_a_dialog(browser: Client, optics: Project, mia: Any) -> None:
    factories.person("ada", "viewer", optics)
    Invitation.issue(optics, "viewer", by=mia)
    ApiToken.issue(mia, "laptop")
    Webhook.objects.create(project=optics, url="https://example.org/hook", ended=True)
    project, account = (text_of(browser.get(address)) for address in ("/projects/optics/", "/account/"))
    for page, kinds in ((project, ("member", "invitation", "webhook")), (account, ("token",))):
        for kind in kinds:
            buttons, dialogs = (set(re.findall(rf'{at}="ask-({kind}-\d+)"', page)) for at in ("data-dialog", "id"))
            assert buttons == dialogs != set(), kind
    for name in ("member", "invitation", "webhook"):
        [address, *_] = re.findall(rf'<dialog id="ask-{name}-\d+".*?action="([^"]+)"', project, re.DOTALL)
        browser.post(address, {"remove": "1"})
    [address] = re.findall(r'<dialog id="ask-token-\d+".*?action="([^"]+)"', account, re.DOTALL)
    browser.post(address)
    for model in (Invitation, Webhook, ApiToken):
        assert not model._default_manager.exists()


@pytest.mark.parametrize(("role", "words"), [("viewer", "<b>viewer</b>"), (None, "")])
def test_a_superuser_sees_the_role_of_the_list(optics: Project, role: str | None, words: str) -> None:
    root = factories.person("root", is_superuser=True)
    if role:
        optics.set_role(root, role)
    client = Client()
    client.force_login(root)
    answer = client.get("/projects/optics/")
    assert answer.context["own_role"] == role
    assert words in text_of(answer)
    assert "superuser: you may do everything here" in text_of(answer)


def test_the_link_of_an_invitation_is_shown_once(browser: Client, optics: Project) -> None:
    answer = browser.post("/projects/optics/invitations/", {"invitation-role": "viewer", "invitation-days": "7"})
    link = re.search(r"http://testserver(/invitation/[\w-]{20,}/)", answer.content.decode())
    assert link is not None
    assert link[1] not in browser.get("/projects/optics/").content.decode()
    invited = Client()
    invited.force_login(factories.person("ada"))
    invited.get(link[1])
    invited.post("/invitation/")
    assert roles(optics)["ada"] == "viewer"


@pytest.mark.parametrize(("role", "is_member"), [("viewer", True), ("maintainer", False)])
def test_an_invitation_of_a_member_gives_a_higher_role_or_none(
    optics: Project, mia: Any, role: str, is_member: bool
) -> None:
    ada = factories.person("ada")
    optics.set_role(ada, "submitter")
    _, key = Invitation.issue(optics, role, by=mia)
    client = Client()
    client.force_login(ada)
    invitation = client.get(f"/invitation/{key}/", follow=True)
    assert invitation.context["is_member"] == is_member
    assert (client.get("/").context["invitation"] is None) == is_member


def test_an_invitation_can_be_withdrawn(browser: Client, optics: Project, mia: Any) -> None:
    invitation, key = Invitation.issue(optics, "viewer", by=mia)
    browser.post(f"/projects/optics/invitations/{invitation.pk}/end/")
    assert Invitation.find(key) is None


def test_a_token_below_maintaining_gives_no_roles(optics: Project, mia: Any) -> None:
    factories.person("ada")
    api = client_of(mia, scope="submit")
    address = "/api/v1/projects/optics/members/ada/"
    assert api.put(address, {"role": "viewer"}, content_type="application/json").status_code == 403
    assert not Membership.objects.filter(user__username="ada").exists()


@pytest.mark.parametrize(
    ("address", "data", "links"),
    [
        ("/projects/optics/settings/", {"settings-name": "O", "settings-most_queued_trials": "x"},
         ["#id_settings-most_queued_trials"]),
        ("/projects/optics/members/", {"member-name": "ghost", "member-role": "viewer"}, ["#id_member-name"]),
        ("/people/", {"username": "a b", "email": "x"}, ["#id_username", "#id_email"]),
        ("/account/tokens/", {"name": ""}, ["#id_name"]),
        ("/clusters/testbed/facts/", {"cores_per_host": "many"}, ["#f-cores_per_host"]),
    ],
)  # fmt: skip
def test_a_refused_form_is_summed_up_with_links_to_its_fields(
    optics: Project, address: str, data: dict[str, str], links: list[str]
) -> None:
    browser = Client()
    browser.force_login(factories.person("root", "maintainer", is_superuser=True))
    answer = browser.post(address, data)
    assert answer.status_code == 422
    page = fromstring(answer.content.decode())
    (summary,) = page.xpath("//p[@data-refused]")
    assert set(links) <= set(summary.xpath(".//a/@href"))
    assert all(page.xpath(f"//*[@id='{link[1:]}']/@aria-invalid") for link in links)


def test_superusers_see_closed_accounts_among_members_and_reach_them(optics: Project, mia: Any) -> None:
    factories.person("gone", "viewer", optics, is_active=False)
    browser = Client()
    browser.force_login(factories.person("root", is_superuser=True))
    rows = fromstring(browser.get("/projects/optics/").content.decode()).xpath("//section[1]//tbody/tr/th")
    assert [("closed account" in row.text_content(), row.xpath("./a/@href")) for row in rows] == [
        (member.user.get_username() == "gone", [f"/people/{member.user.pk}/"])
        for member in optics.memberships.order_by("role")
    ]


def test_a_valid_token_has_a_name_of_its_own(browser: Client, mia: Any) -> None:
    ApiToken.issue(mia, "laptop")
    answer = browser.post("/account/tokens/", {"name": "laptop", "scope": "read", "days": 9})
    assert (answer.status_code, list(answer.context["form"].errors)) == (422, ["name"])
    mia.api_tokens.update(expires_at=mia.date_joined)
    assert browser.post("/account/tokens/", {"name": "laptop", "scope": "read", "days": 9}).status_code == 200
