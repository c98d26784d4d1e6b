"""A laboratory below a path of a site, behind real proxies that speak TLS."""

from __future__ import annotations

import json
import re
import ssl
from collections.abc import Iterator
from http.client import HTTPSConnection
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings as django_settings
from django.contrib.auth.hashers import make_password
from django.contrib.auth.models import User
from playwright.sync_api import Browser, expect

from experiments.models import ApiToken, Experiment
from tests.browser.proxies import caddy, nginx
from tests.conftest import Services
from tests.dashboard.people.directory_server import make_certificate
from tests.web_process import Site, running_site

pytestmark = pytest.mark.timeout(900)
_PATIENCE_MS = 120_000
SPEC = {"name": "Under a path", "workload": "ring", "parameters": {"hosts": 2}, "cluster": "testbed"}
VARIABLES = {"RANKWIRE_PREFIX": "/rankwire", "RANKWIRE_BEHIND_TLS": "1"}


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("proxies")
    make_certificate(directory)
    return directory


@pytest.fixture(scope="module")
def site(services: Services, django_db_setup: None) -> Iterator[Site]:
    # As the proxies ask: their own check of the health speaks plain HTTP, below the path and without it.
    with running_site(services, RANKWIRE_SECRET_KEY=django_settings.SECRET_KEY, **VARIABLES) as running:
        yield running


@pytest.fixture(scope="module")
def behind_nginx(directory: Path, site: Site) -> Iterator[int]:
    with nginx(directory, site.port) as port:
        yield port


@pytest.fixture(scope="module")
def behind_caddy(directory: Path, site: Site) -> Iterator[int]:
    with caddy(directory, site.port) as port:
        yield port


class Client:
    """Asks over TLS, and believes the proxy's certificate alone."""

    def __init__(self, directory: Path, port: int) -> None:
        self.directory, self.port = directory, port
        self.trust = ssl.create_default_context(cafile=str(directory / "certificate.pem"))

    def ask(
        self, path: str, *, method: str = "GET", body: Any = None, key: str = ""
    ) -> tuple[int, dict[str, str], str]:
        connection = HTTPSConnection("localhost", self.port, timeout=60, context=self.trust)
        headers = {"Authorization": f"Bearer {key}"} if key else {"Accept": "text/html"}
        if body is not None:
            headers["Content-Type"] = "application/json"
        try:
            connection.request(method, path, None if body is None else json.dumps(body), headers)
            answer = connection.getresponse()
            return answer.status, dict(answer.getheaders()), answer.read().decode()
        finally:
            connection.close()


@pytest.fixture(params=["behind_nginx", "behind_caddy"])
def client_outside(request: pytest.FixtureRequest, directory: Path) -> Client:
    return Client(directory, request.getfixturevalue(request.param))


def test_pages_files_and_redirects_lie_below_the_path(client_outside: Client, person: User) -> None:
    status, headers, _ = client_outside.ask("/rankwire/experiments/?state=all")
    assert (status, headers["Location"]) == (302, "/rankwire/sign-in/?next=/rankwire/experiments/%3Fstate%3Dall")
    status, headers, text = client_outside.ask("/rankwire/sign-in/")
    assert status == 200
    addresses = set(re.findall(r'(?:href|src|action|hx-get|hx-post)="(/[^"]*)"', text))
    assert addresses, text
    assert all(address.startswith("/rankwire/") for address in addresses), addresses
    for address in {address.partition("#")[0] for address in addresses}:
        if address.startswith("/rankwire/static/"):
            assert client_outside.ask(address)[0] == 200, address
    cookie = headers["Set-Cookie"]
    assert "Path=/rankwire;" in cookie
    assert "Secure" in cookie
    assert client_outside.ask("/rankwire/healthz")[0] == 200
    assert client_outside.ask("/sign-in/")[0] in (200, 404)  # the site's own business, and nothing of ours
    assert "Rankwire" not in client_outside.ask("/sign-in/")[2]


def test_rest_names_addresses_that_can_be_asked(client_outside: Client, person: User) -> None:
    _, key = ApiToken.issue(person, "outside", scope=ApiToken.Scope.SUBMIT)
    status, _, text = client_outside.ask("/rankwire/api/v1/experiments/?limit=1", key=key)
    answer = json.loads(text)
    assert (status, answer["count"] > 1) == (200, True)
    assert answer["next"].startswith(f"https://localhost:{client_outside.port}/rankwire/api/v1/experiments/?")
    following = answer["next"].partition(str(client_outside.port))[2]
    assert client_outside.ask(following, key=key)[0] == 200
    schema = json.loads(client_outside.ask("/rankwire/api/v1/schema/?format=json", key=key)[2])
    described = next(path for path in schema["paths"] if path.endswith("/clusters/"))
    assert client_outside.ask(schema["servers"][0]["url"] + described, key=key)[0] == 200
    status, _, text = client_outside.ask("/rankwire/api/v1/nothing/", key=key)
    assert (status, "errors" in json.loads(text)) == (404, True)


def test_the_health_check_is_reachable_from_the_machine_over_plain_http(site: Site) -> None:
    assert [site.answer("GET", path)[0] for path in ("/healthz", "/rankwire/healthz", "/rankwire/")] == [200, 200, 301]


@pytest.mark.parametrize("proxy", ["behind_nginx", "behind_caddy"])
def test_a_person_walks_through_it(
    proxy: str,
    request: pytest.FixtureRequest,
    browser: Browser,
    directory: Path,
    person: User,
    settings: Any,
    page_errors: list[str],
) -> None:
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.PBKDF2PasswordHasher"]  # as the server knows them
    person.password = make_password("correct horse")
    person.save()
    port = request.getfixturevalue(proxy)
    _, key = ApiToken.issue(person, "outside", scope=ApiToken.Scope.SUBMIT)
    context = browser.new_context(base_url=f"https://localhost:{port}", ignore_https_errors=True)
    page = context.new_page()
    page.set_default_timeout(_PATIENCE_MS)
    expect.set_options(timeout=_PATIENCE_MS)
    ours = (f"https://localhost:{port}/rankwire", "data:", "blob:")
    page.on("console", lambda m: page_errors.extend([m.text] if m.type in ("error", "warning") else []))
    page.on("pageerror", lambda error: page_errors.append(str(error)))
    page.on("response", lambda a: page_errors.extend([f"{a.status} {a.url}"] if a.status >= 400 else []))
    page.on("request", lambda sent: page_errors.extend([] if sent.url.startswith(ours) else [sent.url]))
    try:
        page.goto("/rankwire/experiments/new/")
        page.locator("#id_username").fill("okafor")
        page.locator("#id_password").fill("correct horse")
        page.get_by_role("button", name="Sign in", exact=True).click()
        page.wait_for_url(re.compile(r"/rankwire/experiments/new/$"))  # loaded, with its scripts
        page.locator("[name=sweep_values]").fill("1, 2")
        expect(page.locator("#startbar")).to_contain_text("Start round 1: 6 trials")
        page.locator("[name=sweep_values]").fill("0, 2")
        expect(page.locator("#startbar")).to_contain_text("Correct the marked fields")
        page.wait_for_load_state("networkidle")
        page.goto("/rankwire/")
        expect(page.get_by_role("heading", level=1)).to_be_visible()
        page.goto("/rankwire/help/first-experiment/")
        expect(page.locator("article img")).not_to_have_count(0)
        page.wait_for_function(
            "() => [...document.querySelectorAll('article img')].every(e => e.complete && e.naturalWidth > 300)"
        )
        study = Experiment.objects.filter(published=True).order_by("pk").first()
        page.goto(f"/rankwire/experiments/{study.slug}/")
        expect(page.locator(".js-plotly-plot .main-svg").first).to_be_visible()
        page.wait_for_load_state("networkidle")
        assert page.locator("a[href^='/']:not([href^='/rankwire/'])").count() == 0
        page.get_by_role("link", name="Experiments", exact=True).first.click()
        page.wait_for_url(re.compile(r"/rankwire/experiments/$"))
        status, headers, text = Client(directory, port).ask(
            "/rankwire/api/v1/experiments/", method="POST", body=SPEC, key=key
        )
        assert (status, headers["Location"]) == (201, json.loads(text)["url"]), text
        assert headers["Location"].startswith(f"https://localhost:{port}/rankwire/api/v1/experiments/")
        page.goto(headers["Location"].replace("/api/v1", ""))
        expect(page.get_by_role("heading", level=1)).to_contain_text("Under a path")
        assert [cookie["path"] for cookie in context.cookies() if cookie["name"] == "rankwire_session"] == ["/rankwire"]
    finally:
        context.close()
    assert page_errors == []
