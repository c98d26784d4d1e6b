"""No process, namespace or file stays after a kill at any moment."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil
import pytest
import zstandard

import workers
from tests.workers.clusters.trials import PlainLink, output_of
from tests.workers.testbed import confined, worker_program
from workers import launchers
from workers.errors import ClusterUnavailable
from workers.launchers import Session

ROOT = Path(workers.__file__).parent.parent
PROFILE = ROOT / "config" / "containers" / "worker-seccomp.json"
NOBODY = 65534
GONE = 0
KINDS = ["testbed", "local"]
RECORDERS = {"testbed": "recorder", "local": "recorder"}


class Worker:
    """A running worker program and everything it has started."""

    def __init__(self, process: subprocess.Popen[str], agent: int) -> None:
        self.process = process
        self.agent = psutil.Process(agent)
        self.family = psutil.Process(process.pid).children(recursive=True)
        self.networks = {network(member.pid) for member in self.family} - {network(os.getpid()), GONE}

    def names(self) -> set[str]:
        """Of those still there: while a launch begins, short helpers come and go."""
        names = set()
        for member in self.family:
            with suppress(psutil.NoSuchProcess):
                names.add(member.name())
        return names

    def only(self, name: str) -> psutil.Process:
        (process,) = [member for member in self.family if lives(member) and member.name() == name]
        return process

    def survivors(self) -> list[psutil.Process]:
        return [member for member in self.family if lives(member)]


def lives(process: psutil.Process) -> bool:
    """Return whether it runs; a zombie does not."""
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def network(pid: int) -> int:
    """The network namespace of a process; GONE when it is."""
    try:
        return Path(f"/proc/{pid}/ns/net").stat().st_ino
    except OSError:
        return GONE


def namespaces_in_use() -> set[int]:
    return {network(pid) for pid in psutil.pids()}


def _hear_ctrl_c() -> None:
    """Reset SIGINT, which a shell ignores in its background processes."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@contextmanager
def running_worker(
    kind: str, directory: Path, prefix: tuple[str, ...] = (), python: str = sys.executable
) -> Iterator[Worker]:
    """Start it in a session of its own, wait until all its ranks are up."""
    temporary = directory / "temporary"
    temporary.mkdir()
    temporary.chmod(0o777)
    root = Path(directory, "copy") if prefix else ROOT
    program = root / Path(worker_program.__file__).relative_to(ROOT)
    environment = {**os.environ, "TMPDIR": str(temporary), "PYTHONPATH": str(root)}
    process = subprocess.Popen(
        [*prefix, python, str(program), kind, str(directory)],
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
        start_new_session=True,
        preexec_fn=_hear_ctrl_c,
    )
    try:
        assert process.stdout is not None
        words = process.stdout.readline().split(maxsplit=3)
        assert words[:1] == ["ready"], words
        yield Worker(process, int(words[2]))
    finally:
        process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()


def assert_nothing_is_left(worker: Worker, directory: Path, eventually: Callable[..., object]) -> None:
    eventually(lambda: not worker.survivors(), explain=worker.survivors)
    eventually(lambda: not worker.networks & namespaces_in_use())
    assert list((directory / "temporary").iterdir()) == []
    # The fifth field is where it is mounted; the directory that is the root of this system may have any name.
    mounted = [line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()]
    assert [path for path in mounted if "rankwire" in path] == []


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM])
def test_after_a_signal_to_the_worker(
    kind: str, number: signal.Signals, tmp_path: Path, eventually: Callable[..., object]
) -> None:
    with running_worker(kind, tmp_path) as worker:
        eventually(lambda: {"mpirun", RECORDERS[kind], "sleep"} <= worker.names(), explain=worker.names)
        assert len(worker.networks) == (5 if kind == "testbed" else 1)
        worker.process.send_signal(number)
        worker.process.wait(20)
        assert_nothing_is_left(worker, tmp_path, eventually)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("victim", ["agent", "mpirun"])
def test_nothing_is_left_after_a_sigkill_of_the_agent_or_of_mpirun(
    kind: str, victim: str, tmp_path: Path, eventually: Callable[..., object]
) -> None:
    with running_worker(kind, tmp_path) as worker:
        if victim == "agent":  # on the test-bed this is `unshare`; its child, PID 1, is killed below
            worker.agent.kill()
        else:
            worker.only(victim).kill()
        worker.process.wait(20)  # mpirun gone: the job ends; agent gone: the worker is notified
        assert_nothing_is_left(worker, tmp_path, eventually)


def test_after_a_sigkill_of_the_first_process_of_the_namespace(
    tmp_path: Path, eventually: Callable[..., object]
) -> None:
    with running_worker("testbed", tmp_path) as worker:
        (first,) = worker.agent.children()
        first.kill()
        assert worker.process.wait(20) != 0
        assert_nothing_is_left(worker, tmp_path, eventually)


def test_a_worker_that_dies_while_the_fabric_is_built(eventually: Callable[..., object], tmp_path: Path) -> None:
    program = (
        "import threading, os, time; from tests.workers.clusters.trials import PlainLink; from workers import launchers;"
        "threading.Thread(target=lambda: (time.sleep({delay}), os.kill(os.getpid(), 9)), daemon=True).start();"
        "launchers.get('testbed').open(host_count=12, link=PlainLink()); time.sleep(60)"
    )
    marker = f"RANKWIRE_TEST_MARKER={tmp_path}"
    for delay in (0.005, 0.02, 0.05, 0.1):
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "RANKWIRE_TEST_MARKER": str(tmp_path)}
        status = subprocess.run(
            [sys.executable, "-c", program.format(delay=delay)], env=environment, timeout=90, check=False
        )
        assert status.returncode == -signal.SIGKILL
        eventually(lambda: not marked(marker))


def marked(marker: str) -> list[int]:
    """Processes with this variable in their environment."""
    pids = []
    for pid in psutil.pids():
        try:
            if marker.encode() in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0"):
                pids.append(pid)
        except OSError:
            continue
    return pids


def test_closing_a_session_ends_everything_before_it_returns(testbed: Session) -> None:
    with launchers.get("testbed").open(host_count=2, link=PlainLink()) as session:
        family = psutil.Process(session.agent.pid).children(recursive=True)
    assert not any(member.is_running() for member in family)
    assert not session.alive()
    assert testbed.alive()  # the neighbour is untouched
    session.close()


def test_a_session_outlives_the_thread_that_opened_it() -> None:
    opened: list[Session] = []
    thread = threading.Thread(
        target=lambda: opened.append(launchers.get("testbed").open(host_count=1, link=PlainLink()))
    )
    thread.start()
    thread.join()
    with opened[0] as session:
        assert output_of(session, "hostname", host="n1").strip() == "n1"


def test_dead_agent_is_reported_in_a_sentence(eventually: Callable[..., str]) -> None:
    def complaint() -> str:
        try:
            session.sample()
        except ClusterUnavailable as error:
            return str(error)
        return ""  # it may answer with its last breath

    with launchers.get("testbed").open(host_count=1, link=PlainLink()) as session:
        psutil.Process(session.agent.pid).kill()
        assert eventually(complaint) == "The agent of the cluster was killed by signal 9."
        assert not session.alive()
        assert complaint()


@pytest.fixture
def open_directory() -> Iterator[Path]:
    """Return a directory that anyone may write, during tests too."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o777)
        yield Path(name)


LIBRARIES = (
    "annotated_types", "numpy", "numpy.libs", "psutil", "pydantic", "pydantic_core", "re2", "scipy", "scipy.libs",
    "structlog", "typing_inspection", "yaml", "zstandard",
)  # fmt: skip
"""Imports of the launchers: another user cannot be expected to read the .venv of this checkout."""


@pytest.mark.skipif(os.geteuid() != 0, reason="an ordinary user runs all the other tests as one")
def test_an_ordinary_user_has_the_same_test_bed_in_the_container(
    open_directory: Path, eventually: Callable[..., object]
) -> None:
    copy = open_directory / "copy"
    for room in ("workers", "experiments", "analysis"):  # launchers pair with the kinds of cluster
        shutil.copytree(ROOT / room, copy / room, ignore=shutil.ignore_patterns("__pycache__"))
    packages = Path(zstandard.__file__).parent.parent
    for name in LIBRARIES:
        shutil.copytree(packages / name, copy / name)
    shutil.copy(packages / "typing_extensions.py", copy)
    target = copy / Path(worker_program.__file__).relative_to(ROOT)
    target.parent.mkdir(parents=True)
    shutil.copy(worker_program.__file__, target)
    for file in (Path(confined.__file__), PROFILE):
        shutil.copy(file, open_directory)
    # As the published container of the worker has it.
    prefix = ("setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "--bounding-set=-all")
    prefix += ("/usr/bin/python3", str(open_directory / "confined.py"), str(open_directory / PROFILE.name))
    with running_worker("testbed", open_directory, prefix, "/usr/bin/python3") as worker:
        assert {"mpirun", "recorder", "sleep"} <= worker.names()
        assert {member.uids().real for member in worker.family if lives(member)} == {NOBODY}
        assert {"NoNewPrivs:\t1", "Seccomp:\t2"} <= set(
            Path(f"/proc/{worker.process.pid}/status").read_text().splitlines()
        )
        worker.process.kill()
        assert_nothing_is_left(worker, open_directory, eventually)
