"""Supervision of programs: started, restarted and stopped together.

The application is imported once, by `load`, while PostgreSQL and Redis start; programs are forks of the process that
imported it, and share its memory.
"""

from __future__ import annotations

import gc
import importlib
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType

from config.environment import Environment
from config.services.children import Fork, fork, start, stop
from config.services.errors import ServiceError
from config.services.lease import ROOT, Installation, Lock, State, host_runs, join_or_start
from workers import account

POLL_S = 0.2
STEADY_S = 10.0
MAX_QUICK_DEATHS = 3
LONGEST_PAUSE_S = 30.0
MOST_LOG_BYTES = 32 << 20
ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1"}
"""Models solve thousands of tiny systems, and more threads would take cores from a trial's ranks."""


class Interrupted(BaseException):
    """A stop signal; context managers stop their programs on the way out."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.exit_status = 128 + number


def interrupt_on_stop_signals() -> None:
    """Raise `Interrupted` at the first stop signal and ignore later ones."""
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

    def interrupt(number: int, _frame: FrameType | None) -> None:
        for stop_signal in numbers:
            signal.signal(stop_signal, lambda *_: None)
        raise Interrupted(number)

    for number in numbers:
        signal.signal(number, interrupt)


def child_environment(installation: Installation, state: State) -> dict[str, str]:
    """Return the environment of a program, with the addresses of the services."""
    environment = {**ONE_THREAD, **os.environ, "DJANGO_SETTINGS_MODULE": "config.settings"}
    return {**environment, **_addresses(installation, state)}


def _addresses(installation: Installation, state: State) -> dict[str, str]:
    return {
        "DATABASE_URL": installation.database_url or state.database_url,
        "REDIS_URL": installation.redis_url or state.redis_url,
    }


WORKER = ("celery.apps.worker", "celery.apps.beat", "workers.tasks", "dashboard.background.tasks")

KERNELS = ("analysis.capture.join",)
"""The decoder with numba, 55 MB. A single run loads it after its first program."""

_loaded: dict[str, str] = {}
"""Environment in which this process imported the application."""


def load_libraries() -> None:
    """Import modules without settings, in the time in which the services start."""
    os.environ.update({**ONE_THREAD, **os.environ})
    _import("config.celery_commands", "django.db.models.sql", "analysis.conclusions", "experiments.specification")


def load(environment: Mapping[str, str], *modules: str) -> None:
    """Import the application and `modules` for the programs of an environment.

    Another environment than before has no effect: Django reads its settings once.
    """
    if not _loaded:
        _loaded.update(environment)
        os.environ.update(environment)
        import django

        with _without_collector():
            django.setup()
    if _loaded == environment:
        _import(*modules)


def _import(*modules: str) -> None:
    with _without_collector():
        for module in modules:
            importlib.import_module(module)


@contextmanager
def _without_collector() -> Iterator[None]:
    """Exempt imported modules from collections, which copy their memory in each fork."""
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


def launch(
    module: Sequence[str],
    environment: Mapping[str, str],
    *,
    name: str,
    log: Path | None = None,
    death_signal: signal.Signals = signal.SIGKILL,
    cwd: Path = ROOT,
    pass_fds: Sequence[int] = (),
) -> subprocess.Popen[bytes] | Fork:
    """Start `python -m module`: as a fork if this environment's application is loaded."""
    if _loaded == environment:
        return fork(
            module,
            title=f"rankwire: {name}",
            log=log,
            death_signal=death_signal,
            cwd=cwd,
            pass_fds=pass_fds,
        )
    return start(
        [sys.executable, "-m", *module],
        log=log,
        death_signal=death_signal,
        cwd=cwd,
        environment=environment,
        pass_fds=pass_fds,
    )


def manage(*arguments: str) -> list[str]:
    return [sys.executable, str(ROOT / "manage.py"), *arguments]


def set_up(environment: Mapping[str, str], *options: str, meanwhile: Sequence[str] = ()) -> None:
    """Migrate the database and load the library, and import modules meanwhile.

    Raise ServiceError if it fails; the command prints the reason.
    """
    process = launch(["manage", "set_up", *options], environment, name="set_up")
    try:
        if meanwhile:
            load(environment, *meanwhile)
        status = process.wait()
    finally:
        stop(process, [(signal.SIGTERM, 5.0)])
    if status != 0:
        raise ServiceError("manage.py set_up failed")


@dataclass
class Program:
    """A Python module as a program; its stop signals have grace periods in seconds."""

    name: str
    module: Sequence[str]
    log: Path
    stop_ladder: Sequence[tuple[signal.Signals, float]]
    pass_fds: Sequence[int] = ()
    niceness: int = 0
    process: subprocess.Popen[bytes] | Fork | None = field(default=None, init=False)
    started: float = field(default=0.0, init=False)
    quick_deaths: int = field(default=0, init=False)
    was_steady: bool = field(default=False, init=False)
    due: float = field(default=0.0, init=False)
    """Time of the next start, on the monotonic clock."""

    def note_end(self) -> None:
        """Schedule the restart, with a growing pause if the program ended early."""
        now = time.monotonic()
        steady = now - self.started > STEADY_S
        self.was_steady |= steady
        self.quick_deaths = 0 if steady else self.quick_deaths + 1
        self.due = now + (min(2.0**self.quick_deaths, LONGEST_PAUSE_S) if self.quick_deaths > 1 else 0.0)
        self.process = None

    @property
    def is_hopeless(self) -> bool:
        """True if it never ran for long: probably a wrong setting, not an outage."""
        return self.quick_deaths >= MAX_QUICK_DEATHS and not self.was_steady


class Supervisor:
    """Restarts programs that end; as a context manager it stops them at the exit."""

    def __init__(self, installation: Installation, environment: Mapping[str, str]) -> None:
        self.installation = installation
        self.environment = environment
        self.programs: list[Program] = []
        self._worker_lock: Lock | None = None
        self._services_pause_s = 0.0

    def __enter__(self) -> Supervisor:
        return self

    def __exit__(self, *_: object) -> None:
        for program in reversed(self.programs):
            if program.process is not None:
                stop(program.process, program.stop_ladder)
        if self._worker_lock is not None:
            self._worker_lock.release()

    def start(self, program: Program) -> None:
        self.programs.append(program)
        self._launch(program)

    def ensure_worker(self) -> None:
        """Start the Celery worker and beat unless another program runs them."""
        if self._worker_lock is None:
            lock = Lock(self.installation.var, "worker")
            if lock.try_to_take():
                self._worker_lock = lock
                load(self.environment, *WORKER)
                self.start(_worker(self.installation.var))
                self.start(_beat(self.installation.var))
            else:
                lock.release()

    def watch(self, done: Callable[[], bool]) -> None:
        """Restart programs and services until `done`; take over a free worker."""
        while not done():
            time.sleep(POLL_S)
            self._ensure_services()
            self.ensure_worker()
            bound_logs(self.installation.var / "log")
            for program in self.programs:
                if program.process is None or program.process.poll() is not None:
                    self._launch_again(program)

    def _ensure_services(self) -> None:
        """Restart the embedded services if their host ended."""
        if not self.installation.embedded or host_runs(self.installation.var):
            return
        if self._services_pause_s:
            time.sleep(self._services_pause_s)  # the programs wait for the services meanwhile
        else:
            _report("the embedded services ended; restarting them")
        try:
            state = join_or_start(self.installation).state
        except ServiceError as error:
            if not self._services_pause_s:
                _report(f"{error}; trying again")
            self._services_pause_s = min(2 * self._services_pause_s + 1.0, LONGEST_PAUSE_S)
            return
        self._services_pause_s = 0.0
        environment = {**self.environment, **_addresses(self.installation, state)}
        if environment != self.environment:
            self.environment = environment
            for program in self.programs:
                if program.process is not None:
                    stop(program.process, program.stop_ladder)

    def _launch(self, program: Program) -> None:
        program.started = time.monotonic()
        program.log.parent.mkdir(parents=True, exist_ok=True)
        program.log.parent.chmod(0o750)  # logs contain requests of users
        program.process = launch(
            program.module, self.environment, name=program.name, log=program.log, pass_fds=program.pass_fds
        )
        if program.niceness:
            inherited = os.getpriority(os.PRIO_PROCESS, 0)
            os.setpriority(os.PRIO_PROCESS, program.process.pid, min(19, inherited + program.niceness))

    def _launch_again(self, program: Program) -> None:
        if program.process is not None:
            program.note_end()
            if program.is_hopeless:
                raise ServiceError(f"the {program.name} process ended repeatedly; see {program.log}")
            if program.quick_deaths <= MAX_QUICK_DEATHS:
                _report(f"the {program.name} process ended; restarting it")
        if time.monotonic() >= program.due:
            try:
                self._launch(program)
            except OSError as error:  # a full disk, no memory
                program.due = time.monotonic() + LONGEST_PAUSE_S
                _report(f"the {program.name} process cannot be started: {error.strerror}; trying again")


def bound_logs(directory: Path) -> None:
    """Move the text of large logs to FILE.1: visitors can write 240 kB a request.

    Writers append, and keep the file open. On a full disk the text is dropped.
    """
    for log in directory.glob("*.log"):
        with suppress(FileNotFoundError):  # an administrator removed it meanwhile
            if log.stat().st_size > MOST_LOG_BYTES:
                with suppress(OSError):
                    shutil.copy(log, f"{log}.1")
                os.truncate(log, 0)


def _report(sentence: str) -> None:
    print(f"rankwire: {sentence}", file=sys.stderr, flush=True)


def background_worker(var: Path) -> Program:
    """Return the worker of background tasks, with a lower priority than trials."""
    module = _celery("worker", "--pool=solo", "--queues=background", "--hostname=background@%h")
    # The next worker resumes an interrupted task.
    ladder = [(signal.SIGTERM, 3.0), (signal.SIGQUIT, 2.0)]
    return Program(
        name="background", module=module, log=var / "log" / "background.log", stop_ladder=ladder, niceness=10
    )


def _worker(var: Path) -> Program:
    # A warm shutdown first: the worker requeues its trial. After SIGQUIT the trial is detected as lost and queued again.
    seconds = Environment.load(ROOT / ".env").RANKWIRE_STOP_SECONDS
    ladder = [(signal.SIGTERM, seconds + 10.0), (signal.SIGQUIT, 5.0)]
    module = _celery("worker", f"--hostname={account.user()}@%h")
    return Program(name="worker", module=module, log=var / "log" / "worker.log", stop_ladder=ladder)


def _beat(var: Path) -> Program:
    module = _celery("beat", "--pidfile=")
    return Program(name="beat", module=module, log=var / "log" / "beat.log", stop_ladder=[(signal.SIGTERM, 5.0)])


def _celery(program: str, *options: str) -> list[str]:
    quiet = ["--without-mingle", "--without-gossip"] if program == "worker" else []
    return ["config.celery_commands", program, "--loglevel=INFO", *quiet, *options]
