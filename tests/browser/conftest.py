"""A real browser on a live server."""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Callable, Iterator

import pytest
from django.conf import settings
from django.contrib.auth.models import User
from playwright.sync_api import Browser, ConsoleMessage, Page, Route, expect

from experiments.library import load_defaults
from experiments.models import Cluster, Experiment, Project, Trial, TrialResult
from experiments.models.people.project import DEFAULT_PROJECT
from experiments.specification import parse
from tests.browser.chromium import chromium
from tests.kept_rows import PUBLISHED_STUDIES

# Playwright's loop runs in this thread, and Django would refuse the database beside any loop. Nothing here is async.
os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "true"


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    with chromium() as launched:
        yield launched


@pytest.fixture
def person(transactional_db: None) -> User:
    """Signed in with every right, in a laboratory with its library."""
    PUBLISHED_STUDIES.restore()
    load_defaults()
    return User.objects.create_superuser("okafor", password="correct horse")


@pytest.fixture
def finished(person: User) -> Experiment:
    """An experiment of two hosts and two repetitions, through the methods of a worker."""
    spec = parse({"name": "Two hosts", "workload": "water", "sweep": {"hosts": [1, 2]}, "repetitions": 2})
    experiment = Experiment.submit(spec, project=Project.objects.get(slug=DEFAULT_PROJECT), owner=person)
    while trial := Trial.claim_next(Cluster.objects.get(slug="testbed"), "tests:1:1"):
        trial.start_running(command=["mpirun", "-np", "2", "lmp"], conditions={"cores": 2})
        trial.start_analysing()
        values = {
            "elapsed_s": 2.0 + 0.1 * trial.repetition,
            "cpu_mean_rank_s": 1.5,
            "packets": 1000.0 * trial.configuration.hosts,
        }
        trial.finish(TrialResult({"all": values}, {}, "good"))
    return experiment


@pytest.fixture
def page_errors() -> list[str]:
    """Errors of the browser's console; a test asserts that there are none."""
    return []


@pytest.fixture
def page(browser: Browser, live_server, person: User, client, page_errors: list[str]) -> Iterator[Page]:
    """A page of a signed-in browser, 1440 wide."""
    client.force_login(person)
    context = browser.new_context(
        base_url=live_server.url, viewport={"width": 1440, "height": 900}, color_scheme="light"
    )
    cookie = client.cookies[settings.SESSION_COOKIE_NAME]
    context.add_cookies([{"name": cookie.key, "value": cookie.value, "url": live_server.url}])
    page = context.new_page()
    page.set_default_timeout(30_000)
    expect.set_options(timeout=30_000)  # as patient as the actions: machines that build are busy

    def note(message: ConsoleMessage) -> None:
        is_abort = message.text.startswith(("htmx:afterRequest", "htmx:sendAbort"))  # by a newer request (hx-sync)
        if message.type in ("error", "warning") and not is_abort:
            page_errors.append(message.text)

    page.on("console", note)
    page.on("pageerror", lambda error: page_errors.append(str(error)))
    yield page
    context.close()
    for thread in threading.enumerate():  # the database is emptied next, which a request would hold up
        if "process_request_thread" in thread.name:
            thread.join(timeout=5)


OpenEarly = Callable[[str], Callable[[], None]]


@pytest.fixture
def opened_early(page: Page) -> OpenEarly:
    """Open a page without its deferred scripts, and return a function that loads them."""

    def open_page(address: str) -> Callable[[], None]:
        held: list[Route] = []
        has_come = False

        def hold(route: Route) -> None:
            # The theme's script comes first and delays the page itself.
            if has_come or "/theme." in route.request.url:
                route.continue_()
            else:
                held.append(route)

        def release() -> None:
            nonlocal has_come
            has_come = True
            for route in held:
                route.continue_()

        page.route(re.compile(r"/static/.*\.js"), hold)
        page.goto(address, wait_until="commit")
        expect(page.locator("main")).to_be_visible()
        return release

    return open_page
