"""An invitation waits until it is accepted."""

from __future__ import annotations

from playwright.sync_api import Page, expect

from experiments.models import Invitation, Membership, Project
from experiments.models.people.project import DEFAULT_PROJECT
from tests.experiments import factories


def test_invitation_waits_through_sign_in_and_other_pages(page: Page, page_errors: list[str]) -> None:
    guest = factories.person("guest")
    guest.set_password("correct horse")
    guest.save()
    project = Project.objects.get(slug=DEFAULT_PROJECT)
    _, key = Invitation.issue(project, "submitter", by=factories.person("boss", is_superuser=True))
    page.context.clear_cookies()
    page.goto(f"/invitation/{key}/")
    page.get_by_role("link", name="Sign in").last.click()
    page.locator("#id_username").fill("guest")
    page.locator("#id_password").fill("correct horse")
    page.get_by_role("button", name="Sign in", exact=True).click()
    expect(page.get_by_role("button", name="Join as guest")).to_be_visible()
    page.goto("/workloads/")
    page.get_by_role("link", name="Home", exact=True).click()
    page.get_by_role("link", name="Open the invitation").click()
    page.get_by_role("button", name="Join as guest").click()
    expect(page.locator("#notices")).to_contain_text(f"submitter of {project.name}")
    assert Membership.objects.get(user=guest, project=project).role == "submitter"
    assert page_errors == []
