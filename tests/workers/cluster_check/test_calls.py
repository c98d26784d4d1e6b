"""Check of the profile library, and of recordings if MPI bypasses the kernel."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from analysis.mpi.transports import ObservedTransport
from workers.capture.dumpcap import CaptureReport
from workers.cluster_check import world
from workers.cluster_check.step import Step
from workers.cluster_check.world import HelloResult
from workers.launchers import Job, Session
from workers.launchers.job import Launch

TCP = ObservedTransport(1000, (), (), "ob1")
FABRIC = ObservedTransport(0, (), ("InfiniBand or RoCE (uverbs0)",), "ucx")
ENDED: list[dict[str, Any]] = [{"rank": 0}, {"rank": 1}]


@pytest.mark.parametrize(
    ("refusal", "result", "state"),
    [
        ("", HelloResult(0, ENDED, "", 1.0, TCP), "ok"),
        ("", HelloResult(0, ENDED, "", 1.0, None), "warning"),
        ("", HelloResult(1, [], "", 1.0, None), "skipped"),
        ("", None, "skipped"),
        ("there is no profile for hosts of the architecture riscv64", HelloResult(0, ENDED, "", 1.0, None), "warning"),
    ],
)
def test_calls_are_counted_if_every_rank_left_a_report(
    refusal: str, result: HelloResult | None, state: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(world, "profile_for", lambda level, session: (None, refusal))
    step = world.calls(cast(Session, None), result)
    assert (step.name, step.state) == ("MPI calls", state)
    assert bool(step.remedy) == (state == "warning")


class Recording:
    """A recording that saw no packet."""

    def __enter__(self) -> Recording:
        return self

    def __exit__(self, *_: object) -> None: ...

    def stop(self) -> CaptureReport:
        return CaptureReport(0, 0, 0, died=False, limit_reached=False)


class TwoHosts:
    """A session of hosts whose fabric is not here."""

    hosts = recorded_hosts = ("n1", "n2")

    def capture(self, host: str) -> Recording:
        return Recording()


@pytest.mark.parametrize(
    ("transport", "state", "value"), [(TCP, "warning", "Nothing on n1, n2"), (FABRIC, "ok", "Not for MPI")]
)
def test_recorded_is_well_without_packets_if_mpi_bypasses_the_kernel(
    transport: ObservedTransport, state: str, value: str
) -> None:
    results: list[HelloResult] = []

    def run() -> list[world.Step]:
        results.append(HelloResult(0, ENDED, "", 1.0, transport))
        return [world.ok("MPI hello across two hosts", "2 ranks")]

    step = cast(Callable[..., list[world.Step]], world.recorded)(TwoHosts(), run, results)[-1]
    assert (step.name, step.state, step.value) == ("Capture permission", state, value)


def test_a_recording_without_packets_on_one_host_is_permitted_and_counts_none() -> None:
    class OneHost(TwoHosts):
        hosts = ("n1",)
        recorded_hosts = ("",)

    (step,) = world.recorded(cast(Session, OneHost()), list)
    assert (step.name, step.state, step.value) == ("Capture permission", "ok", "Permitted")
    assert step.seen == "Recording works. One host: nothing goes over a wire."


def test_counts_stay_if_one_host_alone_recorded_no_packet() -> None:
    class OneSilent(TwoHosts):
        def capture(self, host: str) -> Recording:
            recording = Recording()
            if host == "n1":
                recording.stop = lambda: CaptureReport(12, 12, 0, died=False, limit_reached=False)  # type: ignore[method-assign]
            return recording

    def run() -> list[world.Step]:
        return [world.warning("MPI hello across two hosts", "Slow", "", "")]

    step = world.recorded(cast(Session, OneSilent()), run)[-1]
    assert (step.state, step.value) == ("ok", "2 recordings")
    assert step.seen == "Packets of the MPI hello were recorded: n1 12 packets, n2 0 packets."


class Printing:
    """A session of two hosts whose hello prints this."""

    usual_launch = Launch()

    def __init__(self, text: str, hole_bytes: int = 0) -> None:
        self.text, self.hole_bytes = text, hole_bytes

    def launch(self, job: Job, *, stdout: Path, stderr: Path) -> Any:
        for file in (stdout, stderr):
            file.write_text(self.text)
            if self.hole_bytes:
                os.truncate(file, self.hole_bytes)
        return SimpleNamespace(wait=lambda limit_s: 0, terminate=lambda grace_s: 0, elapsed_s=1.0)


def hello(session: Printing, monkeypatch: pytest.MonkeyPatch) -> HelloResult:
    monkeypatch.setattr(world, "profile_for", lambda level, session: (None, ""))
    return world.run_hello(cast(Session, session), ("n1", "n2"), "python3")


RANK = {"rank": 0, "size": 2, "sum": 2, "host": "n1", "library": "Open MPI"}


def test_terabytes_that_a_host_states_are_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    result = hello(Printing(json.dumps(RANK) + "\n", hole_bytes=1 << 43), monkeypatch)
    assert result.ranks == [RANK]
    assert len(result.stderr) < 10_000


@pytest.mark.parametrize(
    "field",
    [
        {"host": ["n1"]}, {"size": []}, {"library": {}}, {"library": "x" * 10_000}, {"sum": None}, {"small_s": 1.0},
        {"large_s": 0.0, "small_s": 1.0},
        {"large_s": 5e-324, "small_s": 1e308}, {"rank": "[" * 100_000},
    ],
)  # fmt: skip
def test_ranks_of_a_hostile_host_have_a_form(field: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    forged = json.dumps({**RANK, **field}) + "\n" + '{"rank": ' + "[" * 100_000 + "\n"
    result = hello(Printing(json.dumps(RANK) + "\n" + forged), monkeypatch)
    assert result.ranks == [RANK]
    assert world.judge("hello", result, ("n1", "n2"), "mpirun").value == "1 of 2 ranks"


def test_texts_of_a_step_are_bounded() -> None:
    stored = Step("a", "ok", "b" * 100_000, "c" * 100_000, "d" * 100_000).to_dict()
    assert {len(stored[name]) for name in ("value", "seen", "remedy")} == {10_000}
