"""Saved views: save, share, rename, delete and restore."""

from __future__ import annotations

import re
from secrets import token_hex

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from dashboard.pages.lists.views import MOST_OF_USER
from experiments.models import SavedView
from tests.dashboard.texts import text_of
from tests.experiments import factories

ASKED = {
    "explore": "x=ranks&where=hosts%3E1",
    "experiments": "state=over&ordering=name",
    "trials": "state=failed&columns=elapsed_s&sort=-elapsed_s",
    "histories": "workload=water",
}


def keep(page: Client, which: str, name: str = "Mine", query: str | None = None, **more: str) -> SavedView:
    """Save a view as the form of the page does."""
    page.post(
        reverse("view-save"), {"page": which, "name": name, "query": ASKED[which] if query is None else query, **more}
    )
    return SavedView.objects.get(page=which, name=name)


def test_a_user_has_a_limited_number_of_views(page: Client, person: User) -> None:
    """Shared views are sorted for every user of a list."""
    SavedView.objects.bulk_create(SavedView(name=f"{n}", owner=person, shared=True) for n in range(MOST_OF_USER))
    answer = page.post(reverse("view-save"), {"page": "trials", "name": "more", "query": ""}, follow=True)
    assert "Delete one first" in answer.text
    assert not SavedView.objects.filter(name="more").exists()
    keep(page, "explore", "0", ASKED["explore"])
    assert SavedView.objects.count() == MOST_OF_USER


@pytest.mark.parametrize("which", ASKED)
def test_view_is_shown_above_its_page(which: str, page: Client) -> None:
    here = f"{reverse(which)}?{ASKED[which]}"
    form = page.get(here).content.decode()
    assert f'name="query" value="{ASKED[which].replace("&", "&amp;")}"' in form
    assert f'name="page" value="{which}"' in form
    view = keep(page, which)
    assert page.get(view.get_absolute_url()).url == here
    assert re.search(rf'href="{view.get_absolute_url()}"\s+aria-current="true"', page.get(here).content.decode())
    assert "aria-current" not in page.get(reverse(which)).content.decode().split("Mine</a>")[0].rsplit("<a", 1)[1]
    others = [other for other in ASKED if other != which]
    assert not any("Mine" in text_of(page.get(reverse(other))) for other in others)


def test_filter_change_updates_bar_and_form(page: Client) -> None:
    view = keep(page, "trials")
    part = page.get(f"/trials/?{ASKED['trials']}", headers={"HX-Request": "true"}).content.decode()
    assert part.count('hx-swap-oob="true"') == 2
    assert re.search(rf'href="{view.get_absolute_url()}"\s+aria-current="true"', part)
    assert f'action="{reverse("view-forget", args=[view.pk])}"' in part


def test_where_one_is_in_a_list_is_no_part_of_a_view(page: Client) -> None:
    assert page.get("/experiments/?page=2&state=finished").context["views"].query == "state=finished"
    assert page.get("/explore/?page=2&after=2026-01-01").context["views"].query == "after=2026-01-01"


def test_view_is_shared_only_by_its_owner(page: Client, client: Client) -> None:
    private, shared = keep(page, "trials"), keep(page, "trials", "Ours", shared="on")
    client.force_login(factories.person("bell"))
    assert client.get(private.get_absolute_url()).status_code == 404
    assert client.get(shared.get_absolute_url()).status_code == 302
    text = text_of(client.get(f"/trials/?{ASKED['trials']}"))
    assert "Ours" in text
    assert "Forget" not in text
    for which in ("view-forget", "view-rename"):
        assert client.post(reverse(which, args=[shared.pk]), {"name": "Theirs"}).status_code == 404
    assert SavedView.objects.filter(name="Ours").exists()


def test_a_view_is_renamed_and_keeps_its_address(page: Client) -> None:
    view, other = keep(page, "trials"), keep(page, "trials", "Other")
    page.post(reverse("view-rename", args=[view.pk]), {"name": "Failed ones", "shared": "on"})
    view.refresh_from_db()
    assert (view.name, view.shared, view.query) == ("Failed ones", True, ASKED["trials"])
    for name, why in (("Other", "Another view of yours has the name"), (" ", "needs a name"), ("n" * 81, "at most 80")):
        answer = page.post(reverse("view-rename", args=[view.pk]), {"name": name})
        assert why in text_of(page.get(page.get(answer.url).url))
        view.refresh_from_db()
        assert view.name == "Failed ones"
    assert SavedView.objects.filter(pk=other.pk, name="Other").exists()


def test_deleted_view_is_restored(page: Client, person: User) -> None:
    view = keep(page, "trials", "A <b>bold</b> one", shared="on")
    answer = page.post(reverse("view-forget", args=[view.pk]), follow=True)
    assert not SavedView.objects.exists()
    data = answer.content.decode()
    assert "View A &lt;b&gt;bold&lt;/b&gt; one deleted" in re.sub(r"\s+", " ", data)
    note = data.split("one deleted.")[1].split("</form>")[0]
    sent = dict(re.findall(r'name="(page|name|query|shared)" value="([^"]*)"', note))
    assert sent["name"] == "A &lt;b&gt;bold&lt;/b&gt; one"
    page.post(reverse("view-save"), sent | {"name": "A <b>bold</b> one", "query": sent["query"].replace("&amp;", "&")})
    back = SavedView.objects.get()
    assert (back.owner, back.page, back.query, back.shared) == (person, "trials", ASKED["trials"], True)


@pytest.mark.parametrize(
    ("sent", "why"),
    [
        ({"name": " "}, "A view needs a name"),
        ({"name": "n" * 81}, "at most 80 characters"),
        ({"query": "text=" + "x" * 4000}, "at most 4000 characters"),
        ({"query": "where=hosts%3E%3E"}, "hosts"),
        ({"page": "experiments", "query": "created_after=yesterday"}, "Enter a date"),
        ({"page": "explore", "query": "y=nothing"}, "nothing"),
    ],
)
def test_invalid_views_are_refused(sent: dict[str, str], why: str, page: Client) -> None:
    answer = page.post(reverse("view-save"), {"page": "trials", "name": "Mine", "query": "", **sent}, follow=True)
    assert why in text_of(answer)
    assert not SavedView.objects.exists()


def test_messages_that_no_page_shows_do_not_grow_the_session(page: Client) -> None:
    lengths = []
    for _ in range(30):
        page.post(reverse("view-save"), {"page": "trials", "name": "x", "query": f"state={token_hex(1900)}"})
        lengths.append(len(page.session.get("_messages", "")))
    assert lengths[-1] == lengths[14] > 0
