"""Forked workers, threads, bounded memory, and kernels whose reads are checked."""

from __future__ import annotations

import functools
import gc
import itertools
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import analysis
from analysis.capture.stream import CaptureReader
from analysis.traffic import concurrency, reading
from analysis.traffic.concurrency import DEPTH, Crew
from tests.analysis import capture_files as files
from tests.analysis.capture import hostile
from tests.analysis.capture_files import Frame
from tests.analysis.frames import ethernet, ipv4, tcp
from tests.config.processes import wait_for

FORKING = """
import multiprocessing, sys
import analysis

def packets_of(path):
    return analysis.analyse(path).metrics["packets"]

expected = packets_of(sys.argv[1])
with multiprocessing.get_context("fork").Pool(3) as pool:
    assert pool.map(packets_of, [sys.argv[1]] * 6) == [expected] * 6
"""
"""A process of its own, as a worker is: that of the tests has threads of servers and browsers, which no worker forks."""


def packets_of(path: Path) -> float:
    return analysis.analyse(path).metrics["packets"]


def test_forked_workers_analyse_side_by_side(mpi_capture: Path) -> None:
    """Celery's prefork pool: the parent has compiled and used the kernels before it forks."""
    command = [sys.executable, "-c", FORKING, str(mpi_capture)]
    subprocess.run(command, check=True, timeout=150)


COLD = """
import os, sys
import numpy as np
from analysis.kernels import gaps
histogram, signs, squares = np.zeros(gaps.BINS, np.int64), np.zeros(3, np.int64), np.zeros(1)
sys.stdin.readline()
children = [os.fork() for _ in range(2)]
gaps.add_gaps(np.arange(1, 100), 0, histogram, signs, squares, np.empty(0, np.int32), np.empty(0, np.int64))
assert histogram.sum() == 99
if all(children):
    assert [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children] == [0, 0]
"""


def test_processes_that_compile_the_same_kernel_at_once_do_not_disturb_each_other(tmp_path: Path) -> None:
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    processes = [
        subprocess.Popen([sys.executable, "-c", COLD], env=environment, stdin=subprocess.PIPE, stderr=subprocess.PIPE)
        for _ in range(2)
    ]
    for process in processes:
        _, errors = process.communicate(b"go\n", timeout=150)
        assert (process.returncode, errors) == (0, b"")


def test_threads_of_one_process_analyse_side_by_side(mpi_capture: Path) -> None:
    counts: list[float] = []
    threads = [threading.Thread(target=lambda: counts.append(packets_of(mpi_capture))) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert len(counts) == 3
    assert len(set(counts)) == 1


def as_json(path: Path) -> str:
    return json.dumps(analysis.analyse(path).to_dict(), sort_keys=True)


def test_threads_change_no_digit(mpi_capture: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Several tables of everything that the generator of hostile captures makes, and of MPI, with and without threads."""
    paths = [mpi_capture]
    for name, content in hostile.captures(2000):
        paths.append(tmp_path / f"{name}.pcap")
        paths[-1].write_bytes(content)
    monkeypatch.setattr(CaptureReader.__init__, "__kwdefaults__", {"buffer_bytes": 1 << 14, "most_rows": 300})
    beside = [as_json(path) for path in paths]
    assert max(json.loads(answer)["metrics"]["packets"] for answer in beside) > 10 * 300
    for threads in (1, 4):
        monkeypatch.setattr(reading, "Crew", functools.partial(Crew, threads))
        assert [as_json(path) for path in paths] == beside


def test_no_thread_is_left_after_success_or_failure(mpi_capture: Path, tmp_path: Path) -> None:
    before = running()
    analysis.analyse(mpi_capture)
    wait_until_ended(running() - before)
    bad = tmp_path / "bad"
    bad.write_bytes(b"not a capture, but longer than a header")
    with pytest.raises(analysis.UnreadableCapture):
        analysis.analyse(bad)
    wait_until_ended(running() - before)


def running() -> set[str]:
    """As the system sees them."""
    return {place.name for place in Path("/proc/self/task").iterdir()}


def wait_until_ended(those: set[str]) -> None:
    """The last steps of a thread that is done are the system's."""
    wait_for(lambda: not those & running(), timeout_s=2)


def test_a_lane_keeps_its_order_lanes_run_side_by_side_and_a_source_waits_for_them() -> None:
    before = running()
    crew = Crew()
    one, other = crew.lane(), crew.lane()
    met = threading.Barrier(2, timeout=20)
    done: list[str] = []
    drawn: list[int] = []

    def take(item: int) -> None:
        assert len(drawn) - item <= DEPTH + 2, "no more waits than memory has room for"
        done.append(f"one {item}")
        if item == 0:
            other.submit(met.wait)
            met.wait()
        other.submit(lambda: done.append(f"other {item}"))

    def produce() -> Iterator[int]:
        for number in range(20):
            drawn.append(number)
            yield number

    crew.draw(produce(), one, take, lambda: done.append("one behind"))
    later = other.result_of(lambda: len(drawn))
    crew.run()
    assert later() <= 20
    assert [text for text in done if text.startswith("one")] == [*(f"one {n}" for n in range(20)), "one behind"]
    assert [text for text in done if text.startswith("other")] == [f"other {n}" for n in range(20)]
    wait_until_ended(running() - before)


@pytest.mark.parametrize("free", [True, False])
def test_threads_have_cores_of_their_own_while_they_work(free: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    before = os.sched_getaffinity(0)
    monkeypatch.setattr(concurrency, "_free_cores", lambda threads: sorted(before) if free else [])
    crew = Crew()
    met = threading.Barrier(2, timeout=20)
    cores: list[set[int]] = []

    def note() -> None:
        met.wait()
        cores.append(os.sched_getaffinity(0))

    crew.lane().submit(note)
    crew.lane().submit(note)
    crew.run()
    one, other = cores
    assert (one | other, one & other) == ((before, set()) if free and len(before) > 1 else (before, before))
    assert os.sched_getaffinity(0) == before


def test_cores_are_free_where_few_run() -> None:
    assert concurrency._free_cores(len(os.sched_getaffinity(0)) + 1) == []
    assert concurrency._free_cores(-100) == sorted(os.sched_getaffinity(0)), "fewer than there are run beside them"


@pytest.mark.parametrize("threads", [1, 2, 4])
def test_a_failure_is_raised_where_the_crew_is_asked_to_run(threads: int) -> None:
    def produce() -> Iterator[int]:
        yield 1
        raise KeyError("from the source")

    before = running()
    crew = Crew(threads)
    crew.draw(produce(), crew.lane(), str, str)
    with pytest.raises(KeyError, match="from the source"):
        crew.run()

    def fail(item: int) -> None:
        raise KeyError(f"from item {item}")

    crew = Crew(threads)
    crew.draw(itertools.count(), crew.lane(), fail, str)
    with pytest.raises(KeyError, match="from item 0"):
        crew.run()
    wait_until_ended(running() - before)


def test_the_table_takes_at_most_120_bytes_per_packet(mpi_capture: Path) -> None:
    table = analysis.read_capture(mpi_capture)
    columns = sum(getattr(table, name).nbytes for name in table.columns())
    assert columns / len(table) <= 60
    assert table.nbytes / len(table) <= 120


LARGE = """
import resource, sys
import analysis
small, large = sys.argv[1:]
analysis.analyse(small)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
packets = analysis.analyse(large).metrics["packets"]
print(packets, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024)
"""


def test_memory_does_not_grow_with_the_file(tmp_path: Path) -> None:
    """A file of 260 MB adds what is kept per packet: stamps of two scopes, samples of TCP; never the file itself."""
    segment = ethernet(ipv4(tcp(payload=b"b" * 1000)))
    one = files.pcap([Frame.whole(0, segment, 128)])[24:]
    rows = 1_800_000
    records = np.frombuffer(one * rows, np.uint8).reshape(rows, len(one)).copy()
    times_us = np.arange(rows, dtype=np.uint64) * 10
    header = records[:, :8].view(np.uint32)
    header[:, 0], header[:, 1] = times_us // 10**6, times_us % 10**6 * 1000
    records[:, 16 + 38 : 16 + 42] = (
        (np.arange(rows, dtype=np.uint32) * 1000).astype(">u4").view(np.uint8).reshape(rows, 4)
    )
    small, large = tmp_path / "small.pcap", tmp_path / "large.pcap"
    small.write_bytes(files.pcap([Frame.whole(k, segment, 128) for k in range(100)]))
    with large.open("wb") as file:
        file.write(files.pcap([]))
        file.write(records.data)
    del records, header
    gc.collect()
    argv = [sys.executable, "-c", LARGE, str(small), str(large)]
    done = subprocess.run(argv, capture_output=True, text=True, check=True, timeout=150)
    packets, grown_bytes = map(int, done.stdout.split())
    large.unlink()
    assert packets == rows
    assert grown_bytes < 120_000_000


BEYOND = """
import numpy as np
import numba
from analysis.kernels.raw import u32

@numba.njit
def read(at, end):
    return u32(at, end)

data = np.arange(8, dtype=np.uint8)
address = data.ctypes.data
assert read(address + 4, address + 8) == 0x04050607
try:
    read(address + 5, address + 8)
except IndexError:
    print("checked")
"""


@pytest.mark.timeout(320)  # the first test that needs checked kernels compiles them
@pytest.mark.timeout(320)  # the first test that needs checked kernels compiles them
def test_bounds_checks_catch_a_read_behind_the_captured_bytes(checked_kernels: dict[str, str]) -> None:
    done = subprocess.run(
        [sys.executable, "-c", BEYOND], env=checked_kernels, capture_output=True, text=True, timeout=150
    )
    assert done.stdout == "checked\n", done.stderr
