"""Time inside MPI on a trial's page."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from django.test import Client

from dashboard.panels.trial.rank_files import rank_files
from experiments.models import Trial
from tests.dashboard.panels.trial.profiles import with_profile
from tests.dashboard.texts import plain_text, text_of
from tests.experiments.factories import RESULT, experiment, finished

RECORDED = json.loads(Path("tests/data/mpi-profile-imbalance.json").read_text())["profile"]


@pytest.fixture
def trial(library: object) -> Trial:
    experiment()
    return finished()


def test_it_shows_functions_and_ranks(page: Client, trial: Trial) -> None:
    words = plain_text(text_of(page.get(with_profile(trial, RECORDED).get_absolute_url())))
    assert "Inside MPI, rank by rank" in words
    assert "MPI_Send 439.1 ms 23.9 % 20 21.96 ms 38.01 ms 20 kB 1" in words
    assert "2 ranks, total" in words


def test_it_shows_files_of_ranks_the_most_first(page: Client, trial: Trial) -> None:
    io = [{"rchar": 10, "wchar": 0, "read_bytes": 0, "write_bytes": 0}, {"rchar": 3_000_000, "wait_ms": 250}]
    ranks = [{**rank, "io": of_rank} for rank, of_rank in zip(RECORDED["ranks"], io, strict=True)]
    address = with_profile(trial, {**RECORDED, "ranks": ranks}).get_absolute_url()
    rows = page.get(address).context["inside"]["files"]["rows"]
    assert [(row["rank"], plain_text(row["values"][0]), plain_text(row["values"][4])) for row in rows] == [
        ("1", "3 MB", "250 ms"),
        ("0", "10 B", "–"),
    ]
    assert rank_files(RECORDED["ranks"]) is None


def test_the_last_line_is_the_total_of_all_functions(page: Client, trial: Trial) -> None:
    address = with_profile(trial, RECORDED).get_absolute_url()
    total = page.get(address).context["inside"]["total"]
    functions = RECORDED["functions"]
    exact = {name: float(total[name].exact.split()[0]) for name in ("time", "calls", "longest")}
    assert exact["time"] == pytest.approx(sum(row["seconds"] for row in functions))
    assert exact["calls"] == sum(row["calls"] for row in functions)
    assert exact["longest"] == max(row["longest_s"] for row in functions)


def test_the_programs_own_figures_are_the_first_tiles(page: Client, library: object) -> None:
    experiment(workload="pingpong", parameters={"hosts": 2}, sweep={"message_bytes": [1024]})
    result = replace(RESULT, measurements={"all": {"elapsed_s": 1.5, "pingpong.transfer_time_s": 0.25}})
    tiles = page.get(finished(result).get_absolute_url()).context["tiles"]
    assert [tile.metric for tile in tiles][:3] == ["pingpong.transfer_time_s", "cpu_mean_rank_s", "elapsed_s"]
    assert (tiles[0].value, len(tiles)) == (0.25, 6)
