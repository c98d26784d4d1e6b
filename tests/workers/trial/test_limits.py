"""Programs that take all they can get are stopped at their limit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from analysis.numbers import size
from experiments.files import trial_directory
from experiments.models import State, Trial
from workers.launchers import limits
from workers.trial import measure
from workers.trial.limits import current_limits

GOOD = "print('answer 42', flush=True)"


@pytest.fixture(params=["testbed", "local"])
def ended(
    request: pytest.FixtureRequest, run_all: Callable[..., list[Trial]], script_workload: object
) -> Callable[..., Trial]:
    """Runs one rank of a script to its end, on one cluster after the other."""

    def run(script: str, **fields: int) -> Trial:
        parameters = {"script": script, "hosts": 1, **fields}
        (trial,) = run_all(
            workload="script", cluster=request.param, parameters=parameters, certificate="skip", time_limit_s=60
        )
        return trial

    return run


def test_a_fork_bomb_ends_at_the_limit_of_processes(ended: Callable[..., Trial], settings: Any) -> None:
    settings.TRIAL_PROCESSES = 300
    trial = ended("""
import os, time
while True:
    try:
        os.fork()
    except OSError:
        time.sleep(0.1)
""")
    assert trial.state == State.FAILED, trial.traceback
    assert "It started all of the 300 processes that a trial may have at once." in trial.message
    assert ended(GOOD).state == State.FINISHED


ENDED_FIRST_THREAD = """
def take():
    kept.append(os.urandom(1 << 20) * 150)
    time.sleep(40)
import ctypes, threading
kept = []
threading.Thread(target=take).start()
ctypes.CDLL(None).pthread_exit(None)
"""


@pytest.mark.parametrize("takes", ["kept = os.urandom(1 << 20) * 150\ntime.sleep(40)", ENDED_FIRST_THREAD])
def test_programs_that_take_memory_together_end_at_its_limit(
    ended: Callable[..., Trial], settings: Any, takes: str
) -> None:
    settings.TRIAL_MEMORY_BYTES = 400 << 20
    trial = ended(f"import os, time\n[os.fork() for _ in range(2)]\n{takes}")
    assert trial.state == State.FAILED, trial.traceback
    assert (
        f"It took more than the {size(400 << 20)} of memory that a trial may have: RANKWIRE_TRIAL_MEMORY_MIB"
        in trial.message
    )


def test_shared_memory_counts_once_for_all_its_processes(ended: Callable[..., Trial], settings: Any) -> None:
    settings.TRIAL_MEMORY_BYTES = 400 << 20
    shared = """
import mmap, os, time
memory = mmap.mmap(-1, {mib} << 20)
[os.fork() for _ in range(2)]
for at in range(0, len(memory), 4096): memory[at] = 1
time.sleep({wait_s})
"""
    trial = ended(f"{shared.format(mib=200, wait_s=3)}\n{GOOD}")
    assert trial.state == State.FINISHED, trial.message + trial.traceback
    trial = ended(shared.format(mib=500, wait_s=40))
    assert trial.state == State.FAILED, trial.traceback
    assert f"It took more than the {size(400 << 20)} of memory that a trial may have" in trial.message


def test_temporary_files_and_segments_have_limits_of_their_own(
    ended: Callable[..., Trial], settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "SCRATCH_BYTES", 64 << 20)
    settings.TRIAL_FILES = 1000
    trial = ended(f"""
import ctypes, errno, os
refused = []
try:
    with open("/dev/shm/large", "wb") as stream:
        for _ in range(65): stream.write(bytes(1 << 20))
except OSError as error:
    refused.append(error.errno)
os.remove("/dev/shm/large")
try:
    for number in range(2000): os.mkdir(f"/tmp/{{number}}")
except OSError as error:
    refused.append(error.errno)
assert refused == [errno.ENOSPC] * 2, refused
try:
    raise SystemExit(os.memfd_create("unlimited"))
except OSError as error:
    assert error.errno == errno.ENOSYS
libc = ctypes.CDLL(None, use_errno=True)
segments = [libc.shmget(0, ctypes.c_size_t(24 << 20), 0o600) for _ in range(8)]
assert segments.count(-1) == 6, segments
{GOOD}
""")
    assert trial.state == State.FINISHED, trial.message + trial.traceback


def test_ranks_share_a_window_of_mpi(ended: Callable[..., Trial]) -> None:
    trial = ended(
        f"""
from mpi4py import MPI
world = MPI.COMM_WORLD
window = MPI.Win.Allocate_shared((32 << 20) if world.rank == 0 else 0, 1, comm=world)
memory, _ = window.Shared_query(0)
if world.rank == 0: memory[1 << 20] = 7
world.Barrier()
assert world.size == 2 and memory[1 << 20] in (7, b"\\7")
world.Barrier()
{GOOD}
""",
        ranks_per_host=2,
    )
    assert trial.state == State.FINISHED, trial.message + trial.traceback


def test_files_that_fill_shared_memory_count_as_memory(ended: Callable[..., Trial], settings: Any) -> None:
    settings.TRIAL_MEMORY_BYTES = 400 << 20
    trial = ended("""
import time
for name in ("/dev/shm/a", "/tmp/b"):
    with open(name, "wb") as stream:
        for _ in range(300): stream.write(bytes(1 << 20))
time.sleep(40)
""")
    assert trial.state == State.FAILED, trial.traceback
    assert f"It took more than the {size(400 << 20)} of memory that a trial may have" in trial.message


def test_many_files_and_directories_end_at_their_limit(ended: Callable[..., Trial], settings: Any) -> None:
    settings.TRIAL_FILES = 3000
    trial = ended("""
import os, time
for number in range(4000):
    os.mkdir(f"{number}")
    os.chmod(f"{number}", 0)
time.sleep(40)
""")
    assert trial.state == State.FAILED, trial.traceback
    assert (
        "It made more than the 3000 files and directories that a trial may have: RANKWIRE_TRIAL_FILES" in trial.message
    )
    assert not (trial_directory(trial) / "work").exists()


@pytest.fixture
def without_samples(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only looks at the free disk can end a trial."""
    monkeypatch.setattr(measure, "FIRST_PAUSES_S", (3600.0,))


def test_files_that_are_made_faster_than_counted_end_the_trial(
    ended: Callable[..., Trial], settings: Any, without_samples: None
) -> None:
    settings.TRIAL_FILES = 3000
    trial = ended("""
import os
for directory in range(30):
    os.mkdir(f"{directory}")
    for number in range(10_000):
        os.close(os.open(f"{directory}/{number}", os.O_CREAT | os.O_WRONLY))
""")
    assert trial.state == State.FAILED, trial.traceback
    assert "It made more than the 3000 files and directories that a trial may have" in trial.message
    assert not (trial_directory(trial) / "work").exists()


def test_100_gib_of_files_end_the_trial(ended: Callable[..., Trial], settings: Any, without_samples: None) -> None:
    settings.TRIAL_DISK_BYTES = 64 << 20
    trial = ended("""
for number in range(3200):
    with open(f"{number}", "wb") as stream:
        for _ in range(32): stream.write(bytes(1 << 20))
""")
    assert trial.state == State.FAILED, trial.traceback
    assert f"It wrote more than the {size(64 << 20)} that a trial may have on disk." in trial.message


def test_disk_is_not_allocated_without_writing(ended: Callable[..., Trial], settings: Any) -> None:
    settings.TRIAL_DISK_BYTES = 8 << 20
    trial = ended(f"""
import ctypes, errno, os
file = os.open("a", os.O_CREAT | os.O_RDWR)
libc = ctypes.CDLL(None, use_errno=True)
assert libc.fallocate(file, 0, ctypes.c_long(0), ctypes.c_long(1 << 20)) == -1
assert ctypes.get_errno() == errno.EOPNOTSUPP
os.posix_fallocate(file, 0, 1 << 20)
assert os.stat("a").st_size == 1 << 20
for allocate in (os.posix_fallocate, lambda file, _, length: os.truncate("a", length)):
    try:
        raise SystemExit(allocate(file, 0, 100 << 30))
    except OSError as error:
        assert error.errno == errno.EFBIG, error
{GOOD}
""")
    assert trial.state == State.FINISHED, trial.message + trial.traceback


def test_directories_of_any_depth_are_removed_with_their_trial(ended: Callable[..., Trial]) -> None:
    trial = ended(f"""
import os
for _ in range(3000):
    os.mkdir("d" * 20)
    os.chdir("d" * 20)
{GOOD}
""")
    assert trial.state == State.FINISHED, trial.message + trial.traceback
    assert not (trial_directory(trial) / "work").exists()


def test_a_disk_that_becomes_full_ends_the_trial(ended: Callable[..., Trial], monkeypatch: pytest.MonkeyPatch) -> None:
    """Files without a name are seen in no directory."""
    monkeypatch.setattr(measure, "current_limits", lambda: replace(current_limits(), least_free_bytes=1 << 60))
    trial = ended("import time; time.sleep(40)")
    assert trial.state == State.FAILED, trial.traceback
    assert "of the disk were free while it ran" in trial.message


def test_open_files_of_all_programs_have_a_limit(ended: Callable[..., Trial], monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel has one table of open files for the machine."""
    monkeypatch.setattr("workers.trial.limits.MOST_OPEN", 40_000)
    trial = ended("""
import os, time
for _ in range(8):
    if os.fork() == 0:
        kept = [os.open("/dev/null", os.O_RDONLY) for _ in range(9000)]
        time.sleep(40)
time.sleep(40)
""")
    assert trial.state == State.FAILED, trial.traceback
    assert "files were open on this machine" in trial.message


def test_one_program_is_refused_more_memory_than_a_trial_may_have(ended: Callable[..., Trial], settings: Any) -> None:
    settings.TRIAL_MEMORY_BYTES = 400 << 20
    trial = ended("kept = b'x' * (1 << 30)")
    assert trial.state == State.FAILED, trial.traceback
    assert "MemoryError" in trial.message


def test_a_program_that_ends_at_the_limit_of_its_memory_fails_for_lack_of_memory(
    ended: Callable[..., Trial], settings: Any
) -> None:
    settings.TRIAL_MEMORY_BYTES = 400 << 20
    trial = ended("""
import os
kept = []
try:
    while True:
        kept.append(b"x" * (4 << 20))
except MemoryError:
    os.abort()
""")
    assert trial.state == State.FAILED, trial.traceback
    assert "Memory ran out" in trial.message
    assert "RANKWIRE_TRIAL_MEMORY_MIB" in trial.message


def test_many_files_end_at_the_limit_of_the_disk(ended: Callable[..., Trial], settings: Any) -> None:
    settings.TRIAL_DISK_BYTES = 8 << 20
    trial = ended("""
import os, time
os.makedirs("a/b")
for number in range(8):
    open(f"a/b/{number}", "wb").write(os.urandom(4 << 20))
time.sleep(40)
""")
    assert trial.state == State.FAILED, trial.traceback
    assert f"It wrote more than the {size(8 << 20)} that a trial may have on disk." in trial.message


def test_one_file_ends_at_the_limit_of_the_disk(ended: Callable[..., Trial], settings: Any) -> None:
    settings.TRIAL_DISK_BYTES = 8 << 20
    trial = ended(
        "import signal; signal.signal(signal.SIGXFSZ, signal.SIG_DFL); open('a', 'wb').write(bytes(16 << 20))"
    )
    assert trial.state == State.FAILED, trial.traceback
    assert f"It wrote a file of more than the {size(8 << 20)} that a trial may have on disk." in trial.message


def test_the_middle_of_an_endless_output_takes_no_disk(
    ended: Callable[..., Trial], settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.OUTPUT_LIMIT_BYTES = 1 << 20
    taken = []

    def look(file: Any, **options: Any) -> None:
        thin_out(file, **options)
        taken.append(file.stat().st_blocks * 512)

    thin_out = measure.thin_out
    monkeypatch.setattr(measure, "thin_out", look)
    trial = ended(f"{GOOD}\nimport time\nfor _ in range(60): print('x' * (1 << 20), flush=True)\ntime.sleep(2)")
    assert trial.state == State.FINISHED, trial.message + trial.traceback
    assert taken[-2] < 8 << 20
    stored = trial.artifacts.get(name="stdout.txt").file
    assert stored.stat().st_size < 2 << 20
    assert stored.read_text().startswith("answer 42")
