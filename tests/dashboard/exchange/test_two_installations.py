"""Two whole installations exchange experiments with captures."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import polars
import psycopg
import pytest
import zstandard
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client as Page
from rankwire_client import Client, Refused

from config.backup.dump import Programs
from config.services.lease import ROOT
from dashboard.background.tasks import do
from experiments.models import ApiToken, BackgroundTask, Experiment, TrialResult
from tests.analysis.capture_files import Frame, pcapng
from tests.analysis.frames import ethernet, ipv4, tcp
from tests.conftest import Services
from tests.experiments import factories
from tests.web_process import running_site

OF_AN_INSTALLATION = {"trial", "url", "configuration", "experiment", "project", "cluster"}
"""Columns that depend on the installation; all others are results."""


@dataclass(frozen=True)
class Installation:
    """One of the two: its variables, and a client of its web server."""

    variables: dict[str, str]
    client: Client

    def table(self, slug: str, place: Path) -> polars.DataFrame:
        rows = polars.read_parquet(self.client.table(place, form="parquet", experiment=slug, every=True))
        return rows.drop(OF_AN_INSTALLATION).sort("hash", "repetition")

    def files(self, slug: str, place: Path) -> dict[tuple[str, int, str], tuple[str, bytes]]:
        """Return hash and contents of the artifacts of an experiment."""
        place.mkdir()
        found = {}
        for row in self.client.result(slug)["trials"]:
            trial = self.client.trial(row["id"])
            for each in trial["artifacts"]:
                file = self.client.download(trial["id"], each["name"], place / "file")
                key = (str(trial["parameters"]), trial["repetition"], each["name"])
                found[key] = (each["sha256"], file.read_bytes())
        return found


def manage(variables: dict[str, str], *arguments: str) -> str:
    argv = [sys.executable, "manage.py", *arguments]
    environment = {**os.environ, **variables}
    done = subprocess.run(argv, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def copy(transactional_db: None, empty_redis: object, services: Services, tmp_path: Path) -> Iterator[str]:
    """Return an empty database with the schema of this one.

    It is gone at the end. Dumped and loaded: as a template this one would have to be without sessions, those of other
    tests' servers too.
    """
    with psycopg.connect(services.postgres.url, autocommit=True) as control:
        programs = Programs(connection.settings_dict, control.info.server_version // 10_000)
        programs.dump(tmp_path / "schema.dump")
        control.execute("DROP DATABASE IF EXISTS elsewhere WITH (FORCE)")
        control.execute("CREATE DATABASE elsewhere")
        programs.load(tmp_path / "schema.dump", "elsewhere")
        yield "elsewhere"
        control.execute("DROP DATABASE elsewhere WITH (FORCE)")


@pytest.fixture
def there(copy: str, services: Services, tmp_path: Path) -> Iterator[Installation]:
    """It has its projects and one member."""
    variables = _variables(services, copy, tmp_path / "var")
    Path(variables["RANKWIRE_VAR"]).mkdir()
    key = manage(variables, "shell", "--verbosity=0", "--command", _MEMBER).split()[-1]
    with running_site(services, **variables) as site, Client(f"http://127.0.0.1:{site.port}", key) as client:
        yield Installation(variables, client)


@pytest.fixture
def here(there: Installation, services: Services, person: User, session_directory: Path) -> Iterator[Installation]:
    _, key = ApiToken.issue(person, "exchange")
    with running_site(services) as site, Client(f"http://127.0.0.1:{site.port}", key) as client:
        yield Installation(_variables(services, connection.settings_dict["NAME"], session_directory), client)


_MEMBER = """
from experiments.models import ApiToken
from tests.experiments.factories import person
print(ApiToken.issue(person("grace", "maintainer"), "exchange")[1])
"""


def _variables(services: Services, database: str, var: Path) -> dict[str, str]:
    return {
        "DATABASE_URL": services.postgres.url.rpartition("/")[0] + f"/{database}",
        "REDIS_URL": services.redis.url,
        "RANKWIRE_VAR": str(var),
        "RANKWIRE_SECRET_KEY": "x" * 50,
        "DJANGO_SETTINGS_MODULE": "config.settings",
    }


def measured(person: User, name: str) -> Experiment:
    """Two configurations, two trials each; every trial with an output and a capture."""
    experiment = factories.experiment(owner=person, name=name)
    for number in range(experiment.trials.count()):
        trial = factories.analysing()
        frames = [Frame.whole(1000 + n, ethernet(ipv4(tcp(seq=n, payload=b"%d" % number)))) for n in range(5)]
        capture = zstandard.compress(pcapng(frames))
        files = [
            factories.stored_file(trial, content=b"%d\n" % number),
            factories.stored_file(trial, "capture.pcapng.zst", capture, "capture"),
        ]
        values = {"all": {"elapsed_s": 1.5 + number / 3, "packets": 5.0}, "mpi": {"packets": 4.0}}
        absent = {"rtt_mean_s": "no segment was acknowledged"}
        tables = {"Breakdown": [{"section": "Comm", "share": 0.25}]}
        trial.finish(
            TrialResult(
                values,
                absent,
                "degraded",
                ["2 packets were dropped"],
                {"kernel": "6.1"},
                artifacts=files,
                tables=tables,
            )
        )
    return experiment


def bundled_by_page(page: Page, here: Installation, experiment: Experiment, place: Path) -> None:
    page.post(f"/bundles/new/?of=e:{experiment.slug}", {"captures": "all"})
    task = BackgroundTask.claim_next()
    assert task is not None
    do(task)
    place.write_bytes(b"".join(page.get(f"/tasks/{task.pk}/file").streaming_content))  # type: ignore[attr-defined]


def bundled_by_command(page: Page, here: Installation, experiment: Experiment, place: Path) -> None:
    manage(here.variables, "bundle", experiment.slug, str(place))


def brought_by_command(there: Installation, place: Path) -> None:
    assert "4 trials with 8 files" in manage(there.variables, "import", str(place))


def brought_by_rest(there: Installation, place: Path) -> None:
    (arrival,) = there.client.import_(place)["arrivals"]
    assert (arrival["trials"], arrival["files"]) == (4, 8)


def changed(place: Path) -> Path:
    """The same bundle with one capture that is not what was measured."""
    other = place.with_name("changed.zip")
    with zipfile.ZipFile(place) as source, zipfile.ZipFile(other, "w") as target:
        name = next(each for each in source.namelist() if each.endswith("capture.pcapng.zst"))
        for each in source.namelist():
            target.writestr(each, source.read(each) if each != name else source.read(each)[:-1] + b"!")
    return other


@pytest.mark.timeout(180)  # three commands and two web servers, beside whatever else runs
def test_two_installations_exchange_experiments(
    there: Installation, here: Installation, page: Page, person: User, tmp_path: Path
) -> None:
    ways: list[tuple[Callable[..., None], Callable[..., None]]] = [
        (bundled_by_page, brought_by_command),
        (bundled_by_command, brought_by_rest),
    ]
    for number, (bundled, brought) in enumerate(ways):
        experiment, place = measured(person, f"Water {number}"), tmp_path / f"water-{number}.zip"
        bundled(page, here, experiment, place)
        with pytest.raises(Refused, match="capture"):
            there.client.import_(changed(place))
        (would,) = there.client.import_(place, dry_run=True)["arrivals"]
        assert (would["trials"], would["files"], list(there.client.experiments(text=experiment.name))) == (4, 8, [])
        brought(there, place)
        (arrival,) = there.client.import_(place)["arrivals"]
        assert (arrival["trials"], "here already" in arrival["note"]) == (0, True)
        assert [each["slug"] for each in there.client.experiments(text=experiment.name)] == [experiment.slug]
        same(here, there, experiment, tmp_path / str(number))


def measurements(installation: Installation, experiment: Experiment) -> list[list[object]]:
    names = ("metrics", "mpi_metrics", "not_available", "trust_reasons", "environment", "tables")
    return [[trial[name] for name in names] for trial in installation.client.result(experiment.slug)["trials"]]


def same(here: Installation, there: Installation, experiment: Experiment, place: Path) -> None:
    """Assert that both installations have the same experiment."""
    place.mkdir()
    theirs = there.client.experiment(experiment.slug)
    assert theirs["origin"]["installation"], "where it was measured"
    assert theirs["specification"] == here.client.experiment(experiment.slug)["specification"]
    assert measurements(there, experiment) == measurements(here, experiment)
    files = here.files(experiment.slug, place / "here")
    assert len(files) == 8
    assert all(hashlib.sha256(content).hexdigest() == digest for digest, content in files.values())
    assert there.files(experiment.slug, place / "there") == files
    tables = [each.table(experiment.slug, place / "table") for each in (here, there)]
    assert tables[0].height == 4
    assert tables[0].equals(tables[1]), tables
