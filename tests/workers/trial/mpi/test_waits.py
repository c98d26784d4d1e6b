"""Waits of real programs on the test-bed, whose causes are known by construction."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from analysis.mpi import wait_tables
from analysis.mpi import waits as mpi_waits
from analysis.mpi.calls import Calls
from analysis.mpi.wait_sums import CAUSES
from experiments.files import read_mpi_calls, read_mpi_profile, trial_directory
from experiments.models import State, Trial
from workers.trial.waits import wire_of

RunAll = Callable[..., list[Trial]]

LATE_AND_FULL = """\
from mpi4py import MPI
import time
world = MPI.COMM_WORLD
small, large = bytearray(1000), bytearray(200_000)
MPI.Pcontrol(0)
world.Barrier()
MPI.Pcontrol(1)
for _ in range(4):
    if world.rank == 0:
        time.sleep(0.2)
        world.Send(small, 2)
        world.Send(small, 1)
    elif world.rank < 3:
        world.Recv(small, 0)
for _ in range(6):
    if world.rank == 2:
        world.Send(large, 0)
    elif world.rank == 0:
        world.Recv(large, 2)
for _ in range(4):
    if world.rank == 3:
        time.sleep(0.2)
    world.Barrier()
if world.rank == 0:
    print("answer 1")
"""
"""Ranks 0 and 1 are on one host, 2 and 3 on the other, and connected before anything counts.

Waits are long against the turns that ranks take on few cores.
"""

STREAM_UNTIL_TWO_LONG_WAITS = """\
from mpi4py import MPI
import time
world = MPI.COMM_WORLD
message, told = bytearray(1000), bytearray(1)
if world.rank == 0:
    for number in range(20_000):
        world.Send(message, 1)
        if number % 20 == 0 and world.Iprobe(1):
            break
    message[0] = 1
    world.Send(message, 1)
    world.Recv(told, 1)
    print("answer 1")
else:
    world.Recv(message, 0)
    long_waits = 0
    while not message[0]:
        began = time.monotonic()
        world.Recv(message, 0)
        if time.monotonic() - began > 0.15:
            long_waits += 1
            if long_waits == 2:
                world.Send(told, 0)
    if long_waits < 2:
        world.Send(told, 0)
"""
LONG_NS = 100_000_000
"""Nothing but a retransmission timer keeps a stream of small messages waiting for so long."""


def ran(run_all: RunAll, script: str, link: Mapping[str, str], ranks_per_host: int = 1) -> Trial:
    parameters = {"script": script, "hosts": 2, "ranks_per_host": ranks_per_host}
    (trial,) = run_all(workload="script", parameters=parameters, link=link, profile="trace", certificate="skip")
    assert trial.state == State.FINISHED, trial.message + trial.traceback
    return trial


def seconds(trial: Trial) -> dict[tuple[int, int], dict[str, float]]:
    kept = read_mpi_profile(trial)
    assert kept is not None
    waits = kept["waits"]
    return {(row[0], row[1]): dict(zip(waits["causes"], row[3:], strict=True)) for row in waits["pairs"]}


def test_it_finds_late_ranks_on_each_host_and_in_collectives_the_full_link_and_lost_packets(
    run_all: RunAll, script_workload: object
) -> None:
    """What the receiver's core takes is left out: how busy this machine is belongs to no construction."""
    trial = ran(run_all, LATE_AND_FULL, {"bandwidth": "10 Mbit/s"}, ranks_per_host=2)
    pairs = seconds(trial)
    late, full = pairs[0, 2], pairs[2, 0]
    assert late["late_sender"] > 0.9 * (sum(late.values()) - late["receiver"])
    assert full["line_rate"] > 0.9 * (sum(full.values()) - full["receiver"])
    through_memory, in_collectives = pairs[0, 1], pairs[3, 2]
    assert through_memory["late_sender"] > 0.9 * sum(through_memory.values())
    assert in_collectives["late_sender"] > 0.5
    measured = {*trial.measurements.filter(scope="all").values_list("metric", flat=True)}
    assert {*wait_tables.METRICS} - {*trial.not_available} <= measured
    assert measured >= {"mpi_wait_share", "mpi_waiting_rank"}

    trial = ran(run_all, STREAM_UNTIL_TWO_LONG_WAITS, {"loss": "5 %"})
    calls = read_mpi_calls(trial)
    assert calls is not None
    assert calls.left_out == {0: 0, 1: 0}
    first = calls.rows["rank"].searchsorted(
        1
    )  # while it waits, rank 0 starts and connects: that it is late then is true
    streaming = Calls(np.delete(calls.rows, first), calls.left_out)
    wire = wire_of(trial_directory(trial) / "capture.pcapng.zst")
    pairs = {(pair.sender, pair.receiver): pair for pair in mpi_waits.explained(streaming, wire, long_ns=LONG_NS).pairs}
    pair = pairs[0, 1]
    lossy = dict(zip(CAUSES, pair.seconds, strict=True))
    assert lossy["retransmission"] > 0.9 * (pair.whole_s - lossy["receiver"])
