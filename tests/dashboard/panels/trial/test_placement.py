"""Placement of ranks on a trial's page: pictures of machines, and a table."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from analysis.mpi.placement import Core, Machine, stored
from dashboard.panels.trial.placement import placement
from experiments.models import Trial
from tests.dashboard.panels.trial.profiles import with_profile
from tests.dashboard.texts import plain_text, text_of
from tests.experiments.factories import experiment, finished

RECORDED = json.loads(Path("tests/data/mpi-profile-imbalance.json").read_text())["profile"]
CORES = tuple(Core(number // 2, number // 2, (number, number + 4)) for number in range(4))


def profile(hosts: int) -> dict[str, Any]:
    """A profile of two ranks on each host, the last of which has both on one core."""
    machines = [Machine((f"n{number:02}",), CORES, frozenset({0, 1, 2, 4, 5, 6})) for number in range(hosts)]
    rows = []
    for rank in range(2 * hosts):
        cpu = 4 if rank == 2 * hosts - 1 else 2 * (rank % 2)
        position = {"cpus": [cpu], "cpu": cpu, "socket": cpu // 2 % 2, "numa": 0, "core": cpu % 2, "allowed": "0-2,4-6"}
        rows.append({**RECORDED["ranks"][0], **position, "rank": rank, "host": f"n{rank // 2:02}"})
    return {**RECORDED, "ranks": rows, "machines": stored(machines)}


@pytest.fixture
def trial(library: object) -> Trial:
    experiment()
    return finished()


def test_placement_shows_equal_hosts_once_with_their_cores_and_hardware_threads() -> None:
    panel = placement(profile(64), {})
    other, same = panel["pictures"]
    assert (same["name"], same["others"], other["name"], other["others"]) == ("n00", "and 62 equal hosts", "n63", "")
    cores = [core for socket in same["sockets"] for node in socket["nodes"] for core in node["cores"]]
    assert [(core["state"], core["words"]) for core in cores] == [
        ("used", "0"),
        ("free", ""),
        ("used", "1"),
        ("outside", ""),
    ]
    assert cores[0]["threads"] == [True, False]
    assert other["sockets"][0]["nodes"][0]["cores"][0] == {
        "state": "shared",
        "words": "126 127",
        "title": "CPU 0, 4: rank 126, 127",
        "threads": [True, True],
    }
    assert (other["shared"], other["facts"]) == ("1 shared core", "ranks 126-127, 3 of 4 cores allowed")
    assert (same["shared"], same["facts"]) == ("", "2 ranks each, 3 of 4 cores allowed")
    assert (panel["is_filtered"], panel["is_small"]) == (True, False)
    assert (len(panel["rows"]), panel["rows_left_out"]) == (128, 0)


def test_placement_is_small_on_many_different_hosts_and_names_what_did_not_happen() -> None:
    many = profile(6)
    many["machines"] = stored([Machine((f"n{number:02}",), CORES, frozenset(range(3 + number))) for number in range(6)])
    assert placement(many, {"placement": "12 ranks"})["is_small"]
    for findings, headline in (({}, "no rank moved between sockets"), ({"migrated_rank": "rank 0"}, "")):
        assert placement(profile(1), {"placement_findings": findings})["headline"] == headline
    assert not placement(profile(1), {})["is_filtered"], "all hosts have shared cores"


def test_trial_shows_the_placement_with_a_table_and_its_findings(page: Client, trial: Trial) -> None:
    trial.conditions = {
        "placement": "4 ranks ended on 3 cores",
        "placement_findings": {"shared_core": "ranks 2-3 share 1 core"},
    }
    trial.save()
    words = plain_text(text_of(page.get(with_profile(trial, profile(2)).get_absolute_url())))
    assert "Ranks on one core" in words
    assert "ranks 2-3 share 1 core." in words
    assert "0 n00 0 0 0 0 0-2,4-6" in words
    assert "4 ranks ended on 3 cores" in words


def test_trials_of_older_versions_have_a_table_or_nothing(page: Client, trial: Trial) -> None:
    older = {**profile(1), "machines": []}
    for row in older["ranks"]:
        del row["cpu"]
    assert placement(older, {})["pictures"] == []
    assert placement(RECORDED, {})["rows"] == []
    assert page.get(with_profile(trial, RECORDED).get_absolute_url()).status_code == 200
