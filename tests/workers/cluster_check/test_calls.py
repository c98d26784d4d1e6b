"""Check of the profile library, and of recordings if MPI bypasses the kernel."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import pytest

from analysis.mpi.transports import ObservedTransport
from workers.capture.dumpcap import CaptureReport
from workers.cluster_check import world
from workers.cluster_check.world import HelloResult
from workers.launchers import Session

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
    assert step.seen == "No packet was seen on all hosts: no message of the MPI hello went over the network."


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
