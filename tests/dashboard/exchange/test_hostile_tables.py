"""Pages and REST of imported trials whose tables no program wrote."""

from __future__ import annotations

import json
from typing import Any

import pytest
import zstandard
from django.contrib.auth.models import User
from django.test import Client

from experiments import files
from experiments.models import Artifact, Experiment, TrialResult
from tests.dashboard.api.clients import client_of
from tests.experiments import factories

pytestmark = [pytest.mark.usefixtures("empty_redis", "session_directory"), pytest.mark.timeout(240)]

SPOILED: tuple[Any, ...] = (1, "x", [1], {"x": 1}, [{"x": 1}], [["x"]], 1e300)
ANALYSIS = ("series", "size_histogram", "interarrival", "trust", "flows", "matrices", "roce", "mpi", "legacy_2011")
PROFILE = ("ranks", "functions", "pairs", "pairs_left_out", "waits", "efficiencies", "messages", "steps")
ORIGIN = {"kind": "measured", "file": "runs.yaml", "imported_at": "2026-11-27", "imported_by": "okafor"}
PARTS = ("", "hosts/", "ranks/", "packets/", "output/")
REST = ("", "wire/", "series/", "histograms/", "flows/", "matrices/", "profile/", "charts/", "series/?of=hosts")


def stored(trial: Any, name: str, kind: str, content: bytes) -> None:
    """Store a file of a trial in the place of one of this name."""
    trial.artifacts.filter(name=name).delete()
    file = files.trial_directory(trial) / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content)
    Artifact.describe(trial.pk, kind, file).save()


@pytest.fixture
def trial(person: User) -> Any:
    """A finished trial of an imported experiment of the user's project."""
    experiment = factories.experiment()
    trial = factories.analysing()
    trial.finish(TrialResult({"all": {"elapsed_s": 1.5}}, {}, "good"))
    Experiment.objects.filter(pk=experiment.pk).update(origin=ORIGIN)
    return type(trial).objects.get(pk=trial.pk)


def statuses(page: Client, trial: Any, rest: Client) -> dict[str, int]:
    pages = [f"/trials/{trial.pk}/{part}" for part in PARTS] + [f"/experiments/{trial.experiment.slug}/"]
    answers = {path: page.get(path) for path in pages}
    answers |= {path: rest.get(path) for path in (f"/api/v1/trials/{trial.pk}/{part}" for part in REST)}
    return {path: answer.status_code for path, answer in answers.items()}


@pytest.mark.parametrize(
    ("name", "kind", "parts"),
    [(files.ANALYSIS_NAME, "analysis", ANALYSIS), (files.MPI_PROFILE_NAME, "other", PROFILE)],
    ids=["analysis", "profile"],
)
def test_tables_that_no_program_writes_are_left_out(
    person: User, trial: Any, name: str, kind: str, parts: tuple[str, ...]
) -> None:
    page, rest = Client(), client_of(person)
    page.force_login(person)
    page.raise_request_exception = rest.raise_request_exception = False
    for value in SPOILED:
        for table in (dict.fromkeys(parts, value), {"series": {"wire_bytes": value, "bin_s": value}, "flows": value}):
            stored(trial, name, kind, zstandard.compress(json.dumps(table).encode()))
            wrong = {path: status for path, status in statuses(page, trial, rest).items() if status >= 500}
            assert not wrong, (value, wrong)


def test_samples_that_no_program_writes_are_left_out(person: User, trial: Any) -> None:
    page, rest = Client(), client_of(person)
    page.force_login(person)
    page.raise_request_exception = rest.raise_request_exception = False
    for row in ({}, {"t_s": "x", "host": 1}, {"t_s": 1, "host": "h", "cpu_share": "x"}, {"t_s": 1e308, "host": "h"}):
        stored(trial, "samples.json", "samples", json.dumps([row, row, row]).encode())
        assert all(status < 500 for status in statuses(page, trial, rest).values())


def test_own_tables_that_cannot_be_shown_stay_errors(person: User, trial: Any) -> None:
    Experiment.objects.filter(pk=trial.experiment_id).update(origin={})
    page = Client()
    page.force_login(person)
    page.raise_request_exception = False
    stored(trial, files.ANALYSIS_NAME, "analysis", zstandard.compress(b'{"series": 1}'))
    assert page.get(f"/trials/{trial.pk}/").status_code == 500


def test_page_without_tables_names_the_reason(person: User, trial: Any) -> None:
    page = Client()
    page.force_login(person)
    stored(trial, files.ANALYSIS_NAME, "analysis", zstandard.compress(b'{"series": 1}'))
    assert "Tables of imported trials are left out here" in page.get(f"/trials/{trial.pk}/").content.decode()
