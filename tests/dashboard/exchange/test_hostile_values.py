"""Values that no program writes, at every field that can be imported."""

from __future__ import annotations

import hashlib
import json
import zipfile
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from random import Random
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection, transaction
from django.test import Client

from experiments.exchange.archive import MANIFEST
from experiments.exchange.bundle import write_bundle
from experiments.exchange.choice import select_experiments
from experiments.exchange.exporting import BundleOptions
from experiments.models import Experiment, TrialResult
from tests.dashboard.api.clients import client_of
from tests.experiments import factories
from tests.experiments.exchange import reports
from tests.experiments.exchange.archives import contents, packed

pytestmark = [pytest.mark.usefixtures("empty_redis", "session_directory"), pytest.mark.timeout(240)]

MARK = "\u2742"
VALUES = (
    *("1" + "0" * 399, "-" + "9" * 25, "1e999", "-1e999", "NaN", "-0", "0.5", "null", "true", '""', "[]", "{}", "-1"),
    *(
        '"\\ud800"',
        '"a\\u0000b"',
        '"1e999"',
        '"' + "x" * 70_000 + '"',
        "[" * 60 + "]" * 60,
        '{"a":' * 60 + "1" + "}" * 60,
    ),
    *('"0001-01-01T00:00:00+14:00"', '"9999-12-31T23:59:59-14:00"', '"../../escaped"', "9223372036854775807"),
)
"""JSON texts."""


def leaves(data: Any, path: str = "") -> Iterator[tuple[Any, Any, str]]:
    """Each (container, key, path) of plain data; items of a list share a path."""
    for key, value in list(data.items() if isinstance(data, dict) else enumerate(data)):
        below = f"{path}/{key if isinstance(data, dict) else ''}"
        yield data, key, below
        if isinstance(value, dict | list):
            yield from leaves(value, below)


def spoiled(data: Any, most: int = 25) -> list[tuple[str, str]]:
    """JSON texts of data with one value replaced, with the names of the changes.

    The value at each path is replaced by an integer of 400 digits, and some of all other pairs are tried, always the same.
    """
    targets = list({path: (container, key) for container, key, path in leaves(data)}.values())
    pairs = [(*target, value) for target in targets for value in VALUES[1:]]
    others = Random(38).sample(pairs, min(most, len(pairs)))
    changes = []
    for container, key, value in [*((*target, VALUES[0]) for target in targets), *others]:
        before, container[key] = container[key], MARK
        text = json.dumps(data, ensure_ascii=False)
        container[key] = before
        changes.append((text.replace(f'"{MARK}"', value), f"{key}={value[:30]}"))
    return changes


@pytest.fixture
def bundle(person: User) -> dict[str, bytes]:
    """The files of a bundle with one trial of an experiment that is here no longer."""
    experiment = factories.experiment()
    trial = factories.analysing()
    files = [factories.stored_file(trial)]
    trial.finish(TrialResult({"all": {"elapsed_s": 1.5}}, {}, "good", environment={"k": 1}, artifacts=files))
    stream = BytesIO()
    write_bundle(stream, select_experiments([experiment.slug]), BundleOptions(by="okafor"))
    Experiment.objects.filter(pk=experiment.pk).delete()
    return contents(stream)


@pytest.mark.parametrize("value", [1e101, -1e308])
def test_import_refuses_numbers_that_cannot_be_added_up(person: User, bundle: dict[str, bytes], value: float) -> None:
    """One of them ended home, Explore and exports of all members of the project."""
    api = client_of(person)
    name = next(name for name in bundle if name.endswith("/trial.json"))
    trial = json.loads(bundle[name])
    row = {"quantity": "delay", "source": "a", "target": "b", "unit": "s", "achieved": value}
    changes = [{"measurements": {"all": {"elapsed_s": value}}}, {"certificate": {"kept": True, "rows": [row, row]}}]
    for change in changes:
        body = packed({**bundle, name: json.dumps(trial | change).encode()})
        assert send(api, body, "zip", str(change)) == 400


def test_values_that_no_program_measured_end_no_list(person: User) -> None:
    experiment = factories.experiment()
    for _ in range(experiment.trials.count()):
        factories.analysing().finish(TrialResult({"all": {"elapsed_s": 1e308}}, {}, "good"))
    row = {"quantity": "delay", "source": "a", "target": "b", "unit": "s", "asked": 1.0, "achieved": 1e308}
    experiment.trials.update(certificate={"kept": True, "rows": [row, row]})
    api, page = client_of(person), Client()
    page.force_login(person)
    api.raise_request_exception = page.raise_request_exception = False
    assert [page.get(path).status_code for path in ("/", "/experiments/")] == [200, 200]
    assert [api.get(f"/api/v1/explore/?x={x}").status_code for x in ("hosts", "workload", "elapsed_s")] == [200] * 3


def send(api: Client, body: bytes, kind: str, change: str) -> int:
    """The status of an import of which nothing stays."""
    with transaction.atomic():
        answer = api.post("/api/v1/imports/", body, content_type=f"application/{kind}")
        if answer.status_code < 400:
            connection.check_constraints()
            look_at(api)
        transaction.set_rollback(True)
    assert answer.status_code in (200, 201, 400), (change, answer.content[:500])
    if answer.status_code == 400:
        assert answer.json()["errors"][0]["message"], change
    return int(answer.status_code)


def look_at(api: Client) -> None:
    """Imported values must not break what shows them."""
    for experiment in Experiment.objects.exclude(origin={}):
        assert api.get(f"/api/v1/experiments/{experiment.slug}/").status_code == 200
        assert api.get(f"/api/v1/experiments/{experiment.slug}/result/").status_code == 200
    assert api.get("/api/v1/trials/").status_code == 200


@pytest.mark.parametrize("end", ["rankwire.json", "experiment.json", "trial.json", "environments/"])
def test_import_of_a_bundle_answers_any_value(person: User, bundle: dict[str, bytes], end: str) -> None:
    api = client_of(person)
    api.raise_request_exception = False
    name = next(name for name in bundle if name.endswith(end) or name.startswith(end))
    statuses = [
        send(api, packed({**bundle, name: text.encode()}), "zip", change)
        for text, change in spoiled(json.loads(bundle[name]))
    ]
    assert 400 in statuses


@pytest.mark.parametrize(
    "data", [reports.reframe(), reports.talp(), reports.ramble()], ids=["reframe", "talp", "ramble"]
)
def test_import_of_a_report_answers_any_value(person: User, data: Any) -> None:
    api = client_of(person)
    api.raise_request_exception = False
    assert send(api, json.dumps(data).encode(), "json", "") == 201
    for text, change in spoiled(json.loads(json.dumps(data))):
        send(api, text.encode(), "json", change)


def test_import_of_a_description_answers_any_value(person: User) -> None:
    """YAML reads JSON; its numbers without quotes have more forms."""
    data = {
        "name": "Weather",
        "workload": "wrf",
        "cluster": "Hawk",
        "source": "s",
        "licence": "l",
        "tags": ["t"],
        "parameters": {"size": 3},
        "trials": [
            {"parameters": {"hosts": 2, "x": 1.5}, "figures": {"elapsed_s": 2}, "ended_at": "2024-01-01T00:00:00Z"}
        ],
    }
    api = client_of(person)
    api.raise_request_exception = False
    assert send(api, json.dumps(data).encode(), "yaml", "") == 201
    for text, change in spoiled(data):
        send(api, text.encode(), "yaml", change)
    for number in (
        ".inf",
        "-.INF",
        ".nan",
        "1.e+999",
        "0x" + "f" * 400,
        ":".join(["59"] * 20_000),
        "0b_",
        "1:1.5" * 99,
    ):
        send(api, json.dumps(data).replace("1.5", number).encode(), "yaml", number[:30])


@pytest.mark.parametrize("cell", ["1" * 400, "1e999", "nan", "-0", "0x1f", "\ud800", "a\0b", "x" * 70_000, '"'])
def test_import_of_a_table_answers_any_value(person: User, cell: str) -> None:
    api = client_of(person)
    api.raise_request_exception = False
    for heading in ("parameters.x", "hosts", "elapsed_s", "ended_at", "output"):
        stream = BytesIO()
        with zipfile.ZipFile(stream, "w") as made:
            made.writestr("runs.yaml", "name: Weather\nworkload: wrf\ncluster: Hawk\n")
            table = f"{heading},figures.packets\n{cell},1\n".encode(errors="surrogatepass")
            made.writestr("runs.csv", table)
        send(api, stream.getvalue(), "zip", heading)


@pytest.mark.parametrize("kind", ["bundle", "description"])
@pytest.mark.parametrize(
    "names",
    [
        pytest.param(["a", "a/b"], id="a file that is a directory"),
        pytest.param(["a/b", "a"], id="a directory that is a file"),
        pytest.param(["\u00e9" * 200], id="a name longer than a file system takes"),
        pytest.param(["/".join("x" * 40)], id="40 directories"),
        pytest.param([f"m{number}" for number in range(60_000)], id="60 000 members"),
    ],
)
def test_import_refuses_impossible_members_at_once(person: User, kind: str, names: list[str], tmp_path: Path) -> None:
    api = client_of(person)
    api.raise_request_exception = False
    stream = BytesIO()
    with zipfile.ZipFile(stream, "w") as made:
        for name in names:
            made.writestr(zipfile.ZipInfo(name), b"")
        listed = "".join(f"{hashlib.sha256().hexdigest()}  {name}\n" for name in names)
        made.writestr(*((MANIFEST, listed) if kind == "bundle" else ("a.yaml", "name: x")))
    answer = api.post("/api/v1/imports/", stream.getvalue(), content_type="application/zip")
    assert answer.status_code == 400
    message = answer.json()["errors"][0]["message"]
    assert any(words in message for words in ("a file and a directory", "is no name", "More than 20000 files"))
