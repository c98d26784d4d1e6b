"""Programs that run together and end together."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType

from config.environment import Environment
from config.services.children import start, stop
from config.services.errors import ServiceError
from config.services.lease import ROOT, Installation, Lease, Lock, keeper_runs

POLL_S = 0.2
STEADY_S = 10.0
MAX_QUICK_DEATHS = 3


class Interrupted(BaseException):
    """A signal asked this program to end; the blocks it leaves stop what they started."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.exit_status = 128 + number


def interrupt_on_stop_signals() -> None:
    """Raise `Interrupted` at the first stop signal and ignore the later ones: the end is bounded in time anyway."""
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

    def interrupt(number: int, _frame: FrameType | None) -> None:
        for each in numbers:
            signal.signal(each, lambda *_: None)
        raise Interrupted(number)

    for number in numbers:
        signal.signal(number, interrupt)


def child_environment(installation: Installation, lease: Lease) -> dict[str, str]:
    """Our environment with the addresses of the services that this program holds.

    Models solve thousands of tiny systems: threads of BLAS double their time, and would take the cores of a trial's ranks.
    """
    return {
        "OPENBLAS_NUM_THREADS": "1",
        **os.environ,
        "DJANGO_SETTINGS_MODULE": "config.settings",
        "DATABASE_URL": installation.database_url or lease.state.database_url,
        "REDIS_URL": installation.redis_url or lease.state.redis_url,
    }


def manage(*arguments: str) -> list[str]:
    """The command line of one of Django's commands."""
    return [sys.executable, str(ROOT / "manage.py"), *arguments]


def run_to_end(argv: Sequence[str], environment: Mapping[str, str]) -> None:
    """Run a program that must succeed; it says itself why it did not."""
    process = start(argv, log=None, death_signal=signal.SIGKILL, cwd=ROOT, environment=environment)
    try:
        status = process.wait()
    finally:
        stop(process, [(signal.SIGTERM, 5.0)])
    if status != 0:
        raise ServiceError(f"{' '.join(argv[1:3])} failed")


@dataclass
class Program:
    """What to run, and how to end it: signals with their grace in seconds."""

    name: str
    argv: Sequence[str]
    log: Path
    stop_ladder: Sequence[tuple[signal.Signals, float]]
    pass_fds: Sequence[int] = ()
    process: subprocess.Popen[bytes] | None = field(default=None, init=False)
    started: float = field(default=0.0, init=False)
    quick_deaths: int = field(default=0, init=False)


class Supervisor:
    """Keeps programs running until told to end; used as a context manager, it ends them on leaving."""

    def __init__(self, installation: Installation, environment: Mapping[str, str]) -> None:
        self.installation = installation
        self.environment = environment
        self.programs: list[Program] = []
        self._worker_seat: Lock | None = None

    def __enter__(self) -> Supervisor:
        return self

    def __exit__(self, *_: object) -> None:
        for program in reversed(self.programs):
            if program.process is not None:
                stop(program.process, program.stop_ladder)
        if self._worker_seat is not None:
            self._worker_seat.release()

    def start(self, program: Program) -> None:
        self.programs.append(program)
        self._launch(program)

    def ensure_worker(self) -> None:
        """Start the Celery worker unless another program of this var directory runs it; ask again to take over."""
        if self._worker_seat is None:
            seat = Lock(self.installation.var, "worker")
            if seat.try_to_take():
                self._worker_seat = seat
                self.start(_worker(self.installation.var))
            else:
                seat.release()

    def watch(self, done: Callable[[], bool]) -> None:
        """Until `done`: start again what dies, take the worker's seat when it falls free, end when the services do."""
        while not done():
            time.sleep(POLL_S)
            if self.installation.embedded and not keeper_runs(self.installation.var):
                raise ServiceError(f"the embedded services ended; see {self.installation.var}/log/services.log")
            self.ensure_worker()
            for program in self.programs:
                if program.process is not None and program.process.poll() is not None:
                    self._launch_again(program)

    def _launch(self, program: Program) -> None:
        program.started = time.monotonic()
        program.log.parent.mkdir(parents=True, exist_ok=True)
        program.log.parent.chmod(0o750)  # who asked what is nobody else's business
        program.process = start(
            program.argv,
            log=program.log,
            death_signal=signal.SIGKILL,
            cwd=ROOT,
            environment=self.environment,
            pass_fds=program.pass_fds,
        )

    def _launch_again(self, program: Program) -> None:
        steady = time.monotonic() - program.started > STEADY_S
        program.quick_deaths = 0 if steady else program.quick_deaths + 1
        if program.quick_deaths >= MAX_QUICK_DEATHS:
            raise ServiceError(f"the {program.name} process ends again and again; see {program.log}")
        print(f"rankwire: the {program.name} process ended; starting it again", file=sys.stderr, flush=True)
        self._launch(program)


def background_worker(var: Path) -> Program:
    """The worker of what people wait for, exports and changes of many trials: one process, which gives way to trials."""
    argv = [
        "nice",
        "-n",
        "10",
        sys.executable,
        "-m",
        "celery",
        "-A",
        "config",
        "worker",
        "--pool=solo",
        "--loglevel=INFO",
    ]
    argv += ["--queues=background", "--without-mingle", "--without-gossip", "--hostname=background@%h"]
    # What it leaves undone is taken up again by the next one.
    ladder = [(signal.SIGTERM, 3.0), (signal.SIGQUIT, 2.0)]
    return Program(name="background", argv=argv, log=var / "log" / "background.log", stop_ladder=ladder)


def _worker(var: Path) -> Program:
    argv = [sys.executable, "-m", "celery", "-A", "config", "worker", "--beat", "--loglevel=INFO"]
    argv += ["--without-mingle", "--without-gossip", "--hostname=rankwire@%h"]
    # Warm first: it takes no more work, and hands its trial back. One that cannot be ended in time is found lost and queued again.
    seconds = Environment.load(ROOT / ".env").integer("RANKWIRE_STOP_SECONDS", 2)
    ladder = [(signal.SIGTERM, seconds + 10.0), (signal.SIGQUIT, 5.0)]
    return Program(name="worker", argv=argv, log=var / "log" / "worker.log", stop_ladder=ladder)
