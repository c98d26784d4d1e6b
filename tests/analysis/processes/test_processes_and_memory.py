"""Forked workers, threads, bounded memory, and kernels whose reads are checked."""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
import time
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import analysis
from analysis.capture.stream import CaptureReader
from analysis.traffic import reading
from analysis.traffic.reading import DEPTH, Reading
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
    """Celery's prefork pool: the parent used the kernels before it forks."""
    command = [sys.executable, "-c", FORKING, str(mpi_capture)]
    subprocess.run(command, check=True, timeout=150)


COLD = """
import os, sys
import numpy as np
from analysis.kernels import gaps
histogram, signs, squares = np.zeros(gaps.BINS, np.int64), np.zeros(3, np.int64), np.zeros(1)
sys.stdin.readline()
children = [os.fork() for _ in range(2)]
gaps.add_gaps(np.arange(1, 100), histogram, signs, squares)
assert histogram.sum() == 99
if all(children):
    assert [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children] == [0, 0]
"""


def test_processes_compile_the_same_kernel_concurrently(tmp_path: Path) -> None:
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    processes = [
        subprocess.Popen([sys.executable, "-c", COLD], env=environment, stdin=subprocess.PIPE, stderr=subprocess.PIPE)
        for _ in range(2)
    ]
    for process in processes:
        _, errors = process.communicate(b"go\n", timeout=150)
        assert (process.returncode, errors) == (0, b"")


def as_json(path: Path) -> str:
    return json.dumps(analysis.analyse(path).to_dict(), sort_keys=True)


class AtOnce(Executor):
    """Runs calls when they are submitted, in the thread that submits them."""

    def __init__(self, threads: int) -> None:
        assert threads == 1

    def submit(self, call: Any, /, *arguments: Any, **options: Any) -> Future[Any]:
        done: Future[Any] = Future()
        done.set_result(call(*arguments, **options))
        return done


def test_threads_change_no_digit(mpi_capture: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables of all hostile captures, and of MPI, with and without a thread."""
    paths = [mpi_capture]
    for name, content in hostile.captures(2000):
        paths.append(tmp_path / f"{name}.pcap")
        paths[-1].write_bytes(content)
    monkeypatch.setattr(CaptureReader.__init__, "__kwdefaults__", {"buffer_bytes": 1 << 14, "most_rows": 300})
    in_threads = [as_json(path) for path in paths]
    assert max(json.loads(answer)["metrics"]["packets"] for answer in in_threads) > 10 * 300
    monkeypatch.setattr(reading, "ThreadPoolExecutor", AtOnce)
    assert [as_json(path) for path in paths] == in_threads


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


def test_a_failure_of_the_second_thread_is_raised(mpi_capture: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise KeyError("from the second thread")

    before = running()
    monkeypatch.setattr(Reading, "_follow", fail)
    with pytest.raises(KeyError, match="from the second thread"):
        analysis.analyse(mpi_capture)
    wait_until_ended(running() - before)


def test_no_more_tables_wait_than_memory_has_room_for(mpi_capture: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CaptureReader.__init__, "__kwdefaults__", {"buffer_bytes": 1 << 14, "most_rows": 300})
    ahead: list[int] = []
    done: list[None] = []
    follow = Reading._follow

    class Counting(ThreadPoolExecutor):
        def submit(self, call: Any, /, *arguments: Any, **options: Any) -> Future[Any]:
            ahead.append(len(ahead) - len(done))
            return super().submit(call, *arguments, **options)

    def slowly(*given: Any) -> None:
        time.sleep(0.002)
        follow(*given)
        done.append(None)

    monkeypatch.setattr(reading, "ThreadPoolExecutor", Counting)
    monkeypatch.setattr(Reading, "_follow", slowly)
    analysis.analyse(mpi_capture)
    assert len(done) > 10
    assert max(ahead) <= DEPTH


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
    """A file of 260 MB adds stamps of two scopes and samples of TCP only."""
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
def test_bounds_checks_catch_a_read_behind_the_captured_bytes(checked_kernels: dict[str, str]) -> None:
    done = subprocess.run(
        [sys.executable, "-c", BEYOND], env=checked_kernels, capture_output=True, text=True, timeout=150
    )
    assert done.stdout == "checked\n", done.stderr
