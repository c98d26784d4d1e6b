"""Memory of the TCP pass is bounded for any capture, and dropped data are counted."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from analysis.traffic.tcp import TcpAccumulator
from tests.analysis.segments import ACK, FIN, RST, SYN, Segment, slices, table_of


def test_unacknowledged_segments_beyond_the_limit_are_forgotten_and_counted() -> None:
    accumulator = TcpAccumulator(max_outstanding=8)
    sent = [Segment(k, 0, 10 * k, 5, ACK, 10) for k in range(20)]
    accumulator.update(table_of([*sent, Segment(100, 1, 5, 200, ACK)]))
    flows = accumulator.result()
    assert flows.limits.segments_forgotten == 12
    assert flows.metrics()[0]["rtt_min_s"] == pytest.approx(81e-9)  # the newest byte is still known


def test_gaps_beyond_the_limit_are_forgotten_and_counted() -> None:
    accumulator = TcpAccumulator(max_gaps=4)
    accumulator.update(table_of([Segment(k, 0, 100 * k, 5, ACK, 10) for k in range(10)]))
    flows = accumulator.result()
    assert flows.limits.gaps_forgotten == 6
    assert flows.metrics()[0]["goodput_bytes"] == 100


def test_with_every_list_entry_taken_the_pass_goes_on() -> None:
    accumulator = TcpAccumulator(max_nodes=16, max_gaps=8)
    accumulator.update(table_of([Segment(k, 0, 100 * k, 5, ACK, 10) for k in range(200)]))
    flows = accumulator.result()
    assert flows.metrics()[0]["goodput_bytes"] == 2000
    assert flows.limits.gaps_forgotten + flows.limits.segments_forgotten > 0


def test_connections_beyond_the_capacity_are_counted() -> None:
    endpoints = [(0, 1000 + k, 1, 20000) for k in range(5)]
    accumulator = TcpAccumulator(max_connections=3)
    connection_of = accumulator.update(
        table_of([Segment(k, 0, 7, 0, SYN, flow=k) for k in range(5)], endpoints=endpoints)
    )
    flows = accumulator.result()
    assert (len(flows), flows.limits.untracked_packets) == (3, 2)
    assert connection_of.tolist() == [0, 1, 2, 2**32 - 1, 2**32 - 1]


def test_a_full_sample_store_keeps_an_even_share_whatever_the_chunks() -> None:
    segments = []
    for k in range(5000):
        segments += [Segment(1000 * k, 0, 10 * k, 5, ACK, 10), Segment(1000 * k + k % 500, 1, 5, 10 * k + 10, ACK)]
    table = table_of(segments)
    results = []
    for cuts in ((), (1, 777, 5000, 9000)):
        accumulator = TcpAccumulator(max_samples=1000)
        for piece in slices(table, cuts):
            accumulator.update(piece)
        results.append(accumulator.result())
    metrics, _ = results[0].metrics()
    assert results[0].limits.sampled_share == results[1].limits.sampled_share == 1 / 16
    assert metrics == results[1].metrics()[0]
    assert (metrics["rtt_samples"], metrics["rtt_min_s"]) == (5000, 0)
    assert metrics["rtt_median_s"] == pytest.approx(249.5e-9, rel=0.02)
    assert metrics["rtt_p95_s"] == pytest.approx(474e-9, rel=0.02)


RANDOM_PACKETS = """
import numpy as np
from analysis.addresses import Addresses
from analysis.packets import ENDS, IPV4, REVERSE, TCP, PacketTable
from analysis.traffic.tcp import TcpAccumulator
from tests.analysis.segments import slices

random = np.random.default_rng(11)
for _ in range(30):
    count = 3000
    limits = {"max_gaps": 3, "max_outstanding": 5, "max_nodes": 40, "max_connections": 6, "max_samples": 50}
    columns = {}
    for name in PacketTable.columns():
        dtype = getattr(PacketTable.empty({}), name).dtype
        columns[name] = random.integers(0, np.iinfo(dtype).max, count, dtype, endpoint=True)
    near = random.integers(0, 5000, count).astype(np.uint32)
    if random.random() < 0.8:
        columns["seq"], columns["ack"], columns["payload"] = near, near[::-1].copy(), near % 300
    columns["kind"] = (columns["kind"] | np.uint8(IPV4 | TCP)).astype(np.uint8)
    columns["flow"] = columns["flow"] % np.uint32(5)
    table = PacketTable(**columns, hosts=Addresses.of(["10.0.0.1"]), flow_endpoints=np.zeros(5, ENDS))
    accumulator = TcpAccumulator(**limits)
    for piece in slices(table, sorted(random.integers(0, count, 3).tolist())):
        accumulator.update(piece)
    flows = accumulator.result()
    flows.metrics()
    followed = int(flows.records["packets_ab"].sum() + flows.records["packets_ba"].sum())
    assert followed <= count
print("ok")
"""


@pytest.mark.timeout(320)  # the first test that needs checked kernels compiles them
def test_random_packets_stay_within_bounds_with_every_index_checked(checked_kernels: dict[str, str]) -> None:
    """In a process of its own: numba decides about bounds checks when it compiles."""
    command = [sys.executable, "-c", RANDOM_PACKETS]
    done = subprocess.run(command, env=checked_kernels, capture_output=True, text=True, timeout=150)
    assert done.stdout == "ok\n", done.stderr[-2000:]


def test_an_empty_table_is_no_connection() -> None:
    accumulator = TcpAccumulator()
    assert accumulator.update(table_of([])).shape == (0,)
    assert len(accumulator.result()) == 0
    assert accumulator.result().metrics()[0] == {"connections": 0}


@pytest.mark.parametrize("seed", range(6))
def test_random_packets_of_many_flows_give_the_same_in_any_chunks_at_every_limit(seed: int) -> None:
    random = np.random.default_rng(seed)
    flags = random.choice([ACK, ACK, ACK, ACK, SYN, SYN | ACK, FIN | ACK, RST], 4000)
    flow, side, window = random.integers(0, 9, 4000), random.integers(0, 2, 4000), random.integers(0, 3, 4000)
    seq, ack, payload = random.integers(0, 4000, 4000), random.integers(0, 4000, 4000), random.integers(0, 300, 4000)
    time_ns = random.integers(0, 50, 4000).cumsum()
    columns = (time_ns, side, seq, ack, flags, payload, window)
    segments = [Segment(*row[:-1], flow=row[-1]) for row in zip(*(c.tolist() for c in (*columns, flow)), strict=True)]
    table = table_of(segments, endpoints=[(0, 1000 + k, 1, 20000) for k in range(9)])
    limits = {"max_gaps": 6, "max_outstanding": 9, "max_nodes": 90, "max_connections": 900, "max_samples": 300}
    results = []
    for cuts in ((), sorted(random.integers(0, 4000, 5).tolist()), (1, 2, 3999)):
        accumulator = TcpAccumulator(**limits)
        connection_of = np.concatenate([accumulator.update(piece) for piece in slices(table, cuts)])
        flows = accumulator.result()
        results.append((flows.records.tobytes(), flows.limits, flows.metrics(), connection_of.tobytes()))
    assert results[0] == results[1] == results[2]
    assert results[0][1].segments_forgotten > 0
    assert results[0][1].sampled_share < 1
