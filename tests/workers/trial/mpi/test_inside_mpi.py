"""Time inside MPI of a real trial: metrics, tables, reasons."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import IO

import pytest

from analysis.catalogue import METRICS
from analysis.mpi.layout import RING
from experiments.common import plain_files
from experiments.files import read_mpi_profile
from experiments.models import Kind, State, Trial
from experiments.selectors.study import study_of
from tests.analysis.mpi.pages import NS, PLACES, page_of
from tests.workers.trial.mpi.trees import tree_of
from workers.launchers import Profile
from workers.trial import inside_mpi
from workers.trial.inside_mpi import left_behind
from workers.trial.rank_usage import RankUsage

WATER = {"workload": "water", "parameters": {"molecules": 64, "steps": 20}, "sweep": {"hosts": [2]}}


def values(trial: Trial) -> dict[str, float]:
    assert trial.state == State.FINISHED, trial.message + trial.traceback
    return dict(trial.measurements.filter(scope="all", metric__startswith="mpi_").values_list("metric", "value"))


def test_it_reports_where_the_time_of_every_rank_went(run_all: Callable[..., list[Trial]]) -> None:
    (trial,) = run_all(**WATER)
    measured = values(trial)
    assert not {m.id for m in METRICS.values() if m.section == "mpi"} - {*measured, *trial.not_available}
    tree_of(trial)
    assert "ideal" in trial.not_available["mpi_transfer_efficiency"]
    stored = read_mpi_profile(trial)
    assert stored is not None
    assert [(row["rank"], row["host"]) for row in stored["ranks"]] == [(0, "n1"), (1, "n2")]
    assert sum(row["calls"] for row in stored["functions"]) == measured["mpi_calls"] > 100


def test_a_ping_pong_spends_its_known_time_and_messages_inside(run_all: Callable[..., list[Trial]]) -> None:
    parameters = {"message_bytes": 200_000, "repetitions": 6, "warmups": 1, "hosts": 2}
    (trial,) = run_all(workload="pingpong", parameters=parameters, link={"bandwidth": "20 Mbit/s"}, certificate="skip")
    measured = tree_of(trial)
    assert (measured["mpi_messages"], measured["mpi_sent_bytes"]) == (14, 14 * 200_000)
    inside_s = measured["mpi_window_s"] - measured["mpi_useful_max_rank_s"]
    assert inside_s > 0.95 * 12 * measured["pingpong.transfer_time_s"] > 0.5


@pytest.mark.nightly  # hpcc runs all of its tests whatever it is asked for: half a minute
@pytest.mark.timeout(240)
def test_hpl_has_its_tree(run_all: Callable[..., list[Trial]]) -> None:
    (trial,) = run_all(workload="hpl", parameters={"hosts": 2, "ns": 64, "nb": 32}, certificate="skip")
    assert tree_of(trial)["mpi_messages"] > 10


def test_a_trial_that_wants_no_profile_runs_as_before(run_all: Callable[..., list[Trial]]) -> None:
    (trial,) = run_all(**WATER, profile="none")
    assert not values(trial)
    assert "profile: none" in trial.not_available["mpi_load_balance"]
    assert not any(word.startswith("--mpi-profile") for word in trial.command)


HANG = """\
from mpi4py import MPI
import os, signal, time
world = MPI.COMM_WORLD
world.Barrier()
if world.rank:
    time.sleep(0.5)
    os.kill(os.getpid(), signal.SIGKILL)
world.recv(source=1)
"""


def test_it_keeps_the_call_in_which_a_rank_of_a_failed_trial_was(
    run_all: Callable[..., list[Trial]], script_workload: object
) -> None:
    (trial,) = run_all(workload="script", parameters={"script": HANG, "hosts": 2}, capture={"enabled": False})
    assert trial.state == State.FAILED
    stored = read_mpi_profile(trial)
    assert stored is not None
    assert {row["rank"]: (row["end"], row["inside"]) for row in stored["ranks"]} == {
        0: ("killed", "Mprobe"),
        1: ("killed", ""),
    }


def test_a_twin_runs_on_an_unlimited_link_and_tells_what_the_network_costs(run_all: Callable[..., list[Trial]]) -> None:
    slow = {"link": {"bandwidth": "20 Mbit/s", "delay": "2 ms"}, "certificate": "skip", "ideal": True}
    trial, twin = run_all(**WATER, **slow)
    assert (trial.kind, twin.kind) == (Kind.MEASURED, Kind.IDEAL)
    assert values(twin)["mpi_window_s"] < values(trial)["mpi_window_s"]
    (point,) = study_of(trial.experiment, with_traffic=False).points
    transfer, serialisation = (point.median(f"mpi_{name}_efficiency") for name in ("transfer", "serialisation"))
    assert transfer is not None
    assert serialisation is not None
    measured = values(trial)
    assert transfer * serialisation == pytest.approx(measured["mpi_communication_efficiency"])
    assert (measured["mpi_transfer_efficiency"], measured["mpi_serialisation_efficiency"]) == (transfer, serialisation)
    assert transfer < 0.9


def test_profiles_of_no_rank_of_a_failed_run_are_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program wrote 100 000 links to one file of 64 MiB, and the worker read all."""
    read: list[str] = []
    opened = plain_files.opened

    def note(file: Path) -> AbstractContextManager[IO[bytes]]:
        read.append(file.name)
        return opened(file)

    monkeypatch.setattr(plain_files, "opened", note)
    for rank in range(50):
        (tmp_path / f"rank-{rank}.mpi").write_bytes(b"x" * 100)
    assert left_behind(tmp_path, 2) is None
    assert read == ["rank-0.mpi", "rank-1.mpi"]


def usages_of(count: int) -> list[RankUsage]:
    return [RankUsage(rank, "n1", 1.0, 0.0, 1000, 10, 1, 0, None, 0, 1, 0.0) for rank in range(count)]


def test_traces_of_many_ranks_take_the_memory_of_the_calls_that_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each rank leaves up to 200 000 calls, 14 MB."""
    monkeypatch.setattr(inside_mpi, "MOST_CALLS", 10_000, raising=False)
    trace = [(NS, NS, PLACES["Send"], 1, 8)]
    for rank in range(10):
        page = page_of(rank, 10, window_s=1.0, calls=[("Send", 1, 0.5, 8)], trace=trace, events=RING)
        (tmp_path / f"rank-{rank}.mpi").write_bytes(page)
    tracemalloc.start()
    inside = inside_mpi.inside_mpi(Profile("trace", tmp_path), tmp_path, usages_of(10), 10)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert inside.calls is not None
    assert len(inside.calls.rows) == 10_000
    assert set(inside.calls.left_out.values()) == {RING - 1000}
    assert peak < 80 << 20


def test_reports_of_transport_have_a_limit_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for rank in range(3):
        (tmp_path / f"rank-{rank}.mpi.ways").write_text("x" * 400)
    assert inside_mpi.read_observed_transport(tmp_path, usages_of(3)) is not None
    monkeypatch.setattr(inside_mpi, "TRANSPORTS_LIMIT_BYTES", 1000, raising=False)
    assert inside_mpi.read_observed_transport(tmp_path, usages_of(3)) is None
