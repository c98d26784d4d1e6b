"""Table of answers by address and kind of user; every address has a row."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection, transaction
from django.test import Client

from dashboard.background.tasks import do
from dashboard.exchange.client import wheel_name
from experiments.models import (
    ApiToken,
    Artifact,
    BackgroundTask,
    Experiment,
    Program,
    Report,
    SavedView,
    ShareLink,
    Trial,
)
from tests.analysis.capture_files import Frame, pcapng
from tests.analysis.frames import ethernet, ipv4, tcp
from tests.dashboard.people.addresses import addresses, filled, methods, outcome
from tests.dashboard.people.table import KINDS, TABLE
from tests.experiments import factories

pytestmark = pytest.mark.usefixtures("registered_programs", "empty_redis")


@pytest.fixture
def experiment(submit: Callable[..., Experiment], run: Callable[..., None], person: User) -> Experiment:
    experiment = submit()
    run(most=2)
    connection.check_constraints()  # as a commit does: what a history is made of is written
    trial = experiment.trials.filter(state="finished").latest("pk")
    frame = Frame.whole(1_700_000_000_000_000_000, ethernet(ipv4(tcp(seq=1, flags=0x10))))
    factories.stored_file(trial).save()
    factories.stored_file(trial, "capture.pcapng", pcapng([frame]), Artifact.Kind.CAPTURE).save()
    return experiment


@pytest.fixture
def things(experiment: Experiment, person: User) -> dict[str, dict[str, object]]:
    trial = Trial.objects.filter(experiment=experiment, state="finished").latest("pk")
    Program.register({"name": "solver", "program": ["/opt/solver"]})
    prediction = factories.prediction(experiment)
    view = SavedView.objects.create(name="mine", owner=person)
    token, _ = ApiToken.issue(person, "laptop")
    task = BackgroundTask.ask(person, BackgroundTask.Kind.EXPORT, {"query": "", "form": "csv"}, title="Table")
    do(BackgroundTask.claim_next() or task)
    member = person.memberships.get()
    link, _ = ShareLink.issue([experiment], by=person, days=7)
    report = Report.write(experiment.project, "Water", f"{{{{ answer {experiment.slug} }}}}", {}, by=person)
    return {
        "experiments/": {"slug": experiment.slug, "name": "time"},
        "trials/": {"pk": trial.pk, "number": 1, "name": "stdout.txt"},
        "trials/<pk>/charts/<name>/": {"name": "hosts"},
        "configurations/": {"pk": trial.configuration_id},
        "trials/chosen/": {"change": "again"},
        "explore/export.": {"form": "csv"},
        "explore/export/": {"form": "csv"},
        "explore/views/": {"pk": view.pk},
        "views/": {"pk": view.pk},
        "history/": {"configuration": trial.configuration.hash, "cluster": "testbed"},
        "network/": {"slug": experiment.slug},
        "network/predictions/": {"pk": prediction.pk},
        "predictions/": {"pk": prediction.pk},
        "studies/": {"stem": "water-quick"},
        "clusters/": {"slug": "testbed"},
        "workloads/": {"name": "solver", "slug": "water"},
        "programs/": {"slug": "solver"},
        "published/": {"slug": "guster-2007-water"},
        "client/": {"name": wheel_name()},
        "help/": {"name": "metrics"},
        "account/tokens/": {"pk": token.pk},
        "tokens/": {"pk": token.pk},
        "tasks/": {"pk": task.pk},
        "shared/": {"key": "wrong"},
        "shares/": {"pk": link.pk},
        "reports/": {"pk": report.pk, "number": 1},
        "people/": {"pk": person.pk, "change": "close", "name": "okafor"},
        "projects/": {"slug": "default", "pk": member.pk, "name": "okafor"},
        "account/password/reset/": {"uidb36": "1", "key": "wrong"},
        "account/second-factor/webauthn/keys/": {"pk": 1},
        "account/oidc/": {"provider_id": "oidc"},
        "invitation/": {"key": "wrong"},
    }


@pytest.fixture
def clients(person: User, experiment: Experiment) -> dict[str, Client]:
    """Return a client for each kind of user; the owner is a submitter."""
    people = {
        "stranger": factories.person("eve"),
        "viewer": factories.person("vera", "viewer"),
        "submitter": factories.person("sam", "submitter"),
        "owner": person,
        "maintainer": factories.person("mia", "maintainer"),
        "superuser": factories.person("root", is_superuser=True, is_staff=True),
    }
    clients = {kind: Client(raise_request_exception=False) for kind in KINDS}
    for kind, user in people.items():
        clients[kind].force_login(user)
    _, key = ShareLink.issue([experiment], by=person, days=7)
    clients["visitor"].get(f"/shared/{key}/")
    return clients


def test_addresses_of_forms_alone_lead_by_get_to_a_page(
    clients: dict[str, Client], things: dict[str, dict[str, object]]
) -> None:
    forms = []
    for address in addresses():
        path = filled(address, things)
        if not address.startswith("api/") and clients["owner"].get(path).status_code == 303:
            forms.append(address)
            # The owner sees no page of accounts, the superuser no task of the owner.
            pages = [clients[kind].get(path, follow=True) for kind in ("owner", "superuser")]
            assert all(path.startswith(page.redirect_chain[0][0]) for page in pages), address
            assert 200 in [page.status_code for page in pages], address
    assert {"projects/<slug>/webhooks/", "people/<pk>/password/", "account/tokens/", "sign-out/"} <= set(forms)


@pytest.mark.timeout(240)
def test_every_address_answers_every_kind_of_person_as_the_table_says(
    clients: dict[str, Client], things: dict[str, dict[str, object]]
) -> None:
    answers: dict[str, str] = {}
    mark = f"metric=elapsed_s&trial={things['trials/']['pk']}"  # without these there is nothing to be judged
    for address in addresses():
        path = filled(address, things)
        for method in methods(address):
            body = mark if path.endswith("/mark/") else ""
            if answer := _answer(clients["superuser"], method, path, body):
                others = (kind for kind in KINDS if kind != "superuser")
                of = {kind: _answer(clients[kind], method, path, body) for kind in others} | {"superuser": answer}
                answers[f"{method} {address}"] = "".join(of[kind] for kind in KINDS)
    assert {row: letters for row, letters in answers.items() if TABLE.get(row) != letters} == {}
    assert set(TABLE) <= set(answers), "rows of addresses that are gone"


def _answer(client: Client, method: str, path: str, body: str) -> str:
    """Send a request, roll back its changes, return the outcome."""
    cookies = client.cookies.copy()
    with transaction.atomic():
        response: Any = client.generic(method, path, body, "application/x-www-form-urlencoded")
        if response.streaming:
            b"".join(response.streaming_content)  # which closes the file
        transaction.set_rollback(True)
    client.cookies = cookies
    assert response.status_code < 500, f"{method} {path}: {response.status_code}"
    return outcome(response)
