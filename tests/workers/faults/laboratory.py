"""A worker with real services, harm that can be done to it, and what must be true afterwards."""

from __future__ import annotations

import contextlib
import random
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import psutil
from django.conf import settings
from django.db import DatabaseError, close_old_connections
from kombu.exceptions import OperationalError
from redis.exceptions import RedisError

from config.celery import app as celery_app
from experiments.files import trial_directory
from experiments.models import Experiment, Lease, Measurement, State, Trial
from tests.conftest import Services
from tests.worker_process import CeleryWorker
from tests.workers.faults import scene
from tests.workers.faults.stepped_clock import STEPS, SteppedClock, reap_with_clock
from workers import queue, reaper

DEADLINE_S = 60.0
LONGEST_HOLD_S = 1.5
OVER = (State.FINISHED, State.FAILED, State.ERRORED, State.LOST, State.CANCELLED)


@dataclass
class Laboratory:
    """One worker at a time, as the supervisor has it: a dead one is replaced."""

    services: Services
    start_worker: Callable[..., CeleryWorker]
    clock: SteppedClock
    """The workers'; it stays where a fault has set it until the next one sets it."""
    random: random.Random
    place: Path
    """Where the trials' directories are, on a small file system of their own."""
    worker: CeleryWorker = field(init=False)
    done: list[str] = field(default_factory=list)
    """The faults so far, with the seconds since the first worker's start."""

    def __post_init__(self) -> None:
        self.replace_worker()
        self.began = time.monotonic()
        self.faults: dict[str, Callable[[], bool]] = {
            "worker": self.kill_worker,
            "told to end": self.end_worker,
            "second worker": self.relieve_worker,
            "mpirun": lambda: self.kill_program("mpirun"),
            "rank": lambda: self.kill_program("lmp"),
            "recorder": lambda: self.kill_program("recorder"),
            "keeper": lambda: self.kill_program("unshare"),
            "full disk": self.fill_disk,
            "closed directory": self.close_directory,
            "worker's clock": self.step_worker_clock,
            "reaper's clock": self.reap_with_stepped_clock,
            "redis": lambda: self.restart(self.services.redis),
            "postgres": lambda: self.restart(self.services.postgres),
        }

    def replace_worker(self) -> None:
        variables = {**self.clock.variables, **scene.DUMPS_ITS_STACK}
        self.worker = self.start_worker(concurrency=2, variables=variables)

    def tick(self, experiment: Experiment) -> None:
        """What beat does every five seconds, as often as it is called."""
        with contextlib.suppress(DatabaseError):
            reaper.reap()
            queue.ring(experiment.cluster_id)
        close_old_connections()

    def wait_until(self, condition: Callable[[], object], what: str, experiment: Experiment) -> None:
        deadline = time.monotonic() + DEADLINE_S
        next_tick = 0.0
        while not self.ask(condition):
            now = time.monotonic()
            assert now < deadline, f"waited {DEADLINE_S:g} s in vain until {what}:\n{self.describe(experiment)}"
            if now >= next_tick:
                next_tick = now + 0.5
                self.tick(experiment)
            time.sleep(0.02)

    def ask(self, condition: Callable[[], object]) -> object:
        """A question to the database that may be away just now."""
        try:
            return condition()
        except DatabaseError:
            close_old_connections()
            return None

    def family(self) -> list[psutil.Process]:
        """Everything the worker has started, at any remove."""
        try:
            return psutil.Process(self.worker.pid).children(recursive=True)
        except psutil.NoSuchProcess:
            return []

    # Faults: each returns whether there was something to harm.

    def harm(self, kind: str) -> bool:
        if not self.faults[kind]():
            return False
        self.done.append(f"{kind} at {time.monotonic() - self.began:.1f} s")
        return True

    def kill_worker(self) -> bool:
        self.worker.kill()  # which asserts that its family dies with it
        self.replace_worker()
        return True

    def end_worker(self) -> bool:
        """A worker that is told to end, as at every update, hands its trial back."""
        if not Trial.objects.active().exists():
            return False
        self.worker.process.terminate()
        self.worker.process.wait(DEADLINE_S)
        self.worker.kill()
        self.replace_worker()
        return True

    def relieve_worker(self) -> bool:
        """Two workers on one cluster, of which the first is killed in the middle of a trial, perhaps while the second one claims."""
        if not Trial.objects.active().exists():
            return False
        first = self.worker
        self.replace_worker()
        self.hold()
        first.kill()
        return True

    def kill_program(self, name: str) -> bool:
        victims = []
        for process in self.family():
            with contextlib.suppress(psutil.NoSuchProcess):
                if process.name() == name:
                    victims.append(process)
        if not victims:
            return False
        with contextlib.suppress(psutil.NoSuchProcess):
            self.random.choice(victims).kill()
        return True

    def fill_disk(self) -> bool:
        """No room where trials are kept, for a moment in the life of a trial."""
        if not self.directories():
            return False
        filler = self.place / "filler"
        with filler.open("wb") as stream, contextlib.suppress(OSError):
            while True:
                stream.write(bytes(1 << 20))
        self.hold()
        filler.unlink()
        return True

    def close_directory(self) -> bool:
        """Nothing can be written to a trial's directory for a moment: root may write anywhere, but not to what is immutable."""
        directories = self.directories()
        if not directories:
            return False
        chosen = str(self.random.choice(directories))
        if subprocess.run(["chattr", "+i", chosen], capture_output=True, timeout=10, check=False).returncode:
            return False  # it was just removed
        self.hold()
        subprocess.run(["chattr", "-i", chosen], check=True, timeout=10)
        return True

    def step_worker_clock(self) -> bool:
        """The clock of the worker is set in the middle of a trial, and it goes on with it."""
        if not Trial.objects.active().exists():
            return False
        self.clock.set(self.random.choice([step for step in STEPS if step != self.clock.off]))
        return True

    def reap_with_stepped_clock(self) -> bool:
        """A reaper whose clock was set looks at the running trials."""
        if not Trial.objects.active().exists():
            return False
        clock = SteppedClock(self.place.with_name("reaper_clock"), self.random.choice(STEPS))
        reap_with_clock(clock, self.services)
        return True

    def directories(self) -> list[Path]:
        """Where the running trials write."""
        directories = [trial_directory(trial) for trial in Trial.objects.active()]
        return [directory for directory in directories if directory.is_dir()]

    def hold(self) -> None:
        time.sleep(self.random.uniform(0.0, LONGEST_HOLD_S))  # the length of a fault is part of it

    def restart(self, service: object) -> bool:
        service.stop()
        time.sleep(self.random.uniform(0.0, 1.0))  # how long it is away
        service.start()
        while not self._reached():  # this process' own connections to Redis, over which workers are asked, broke too
            continue
        return True

    def _reached(self) -> bool:
        try:
            celery_app.control.ping(timeout=0.1)
        except (OperationalError, RedisError):
            return False
        return True

    # What must be true

    def require_truth(self, experiment: Experiment, points: int) -> None:
        """All trials are over, each repetition has exactly one that stands for it, nothing is doubled or left behind."""
        trials = list(experiment.trials.all())
        assert all(trial.state in OVER for trial in trials), self.describe(experiment)
        standing = [trial for trial in trials if not trial.superseded]
        assert len(standing) == points, f"lost or doubled:\n{self.describe(experiment)}"
        assert len({(t.configuration_id, t.kind, t.repetition) for t in standing}) == points
        for trial in trials:
            rows = list(Measurement.objects.filter(trial=trial).values_list("scope", "metric"))
            assert len(rows) == len(set(rows))
            assert bool(rows) == (trial.state == State.FINISHED), f"{trial} is {trial.state} with {len(rows)} rows"
            if trial.state in (State.FAILED, State.LOST):
                assert trial.message, f"{trial} does not say why"
        assert not Lease.objects.exists()
        self.wait_until(lambda: not self.strays(), f"nothing is left running: {self.strays()}", experiment)

    def strays(self) -> list[str]:
        """Programs of trials (their command lines name the trial's directory) and keepers that are still there."""
        alive = [process for process in self.family() if process.is_running()]
        words = [" ".join(self._command(process)) for process in alive]
        left = [command for command in words if "workers.testbed.keeper" in command]
        mark = str(settings.VAR / "trials")
        return left + [command for command in map(self._command_of, psutil.pids()) if mark in command]

    def _command_of(self, pid: int) -> str:
        try:
            return " ".join(psutil.Process(pid).cmdline())
        except psutil.Error:
            return ""

    def _command(self, process: psutil.Process) -> list[str]:
        try:
            return process.cmdline()
        except psutil.Error:
            return []

    def _files(self) -> list[str]:
        with contextlib.suppress(DatabaseError):
            return scene.directories(self.directories())
        return ["the database does not answer"]

    def describe(self, experiment: Experiment) -> str:
        """The trials, what the worker's family is doing and has on disk. Ends the worker's pool: for a test that has failed."""
        rows = self.ask(lambda: list(experiment.trials.order_by("position", "attempt"))) or []
        lines = [
            f"{t.pk} rep {t.repetition} attempt {t.attempt} {t.state} beats={t.beats} silent rounds={t.reaper_rounds} "
            f"superseded={t.superseded} progress={t.progress} {t.message[:200]}"
            for t in rows
            if isinstance(t, Trial)
        ]
        lines += [f"faults so far: {', '.join(self.done) or 'none'}"]
        lines += ["", "the worker's family:", *scene.processes(self.family())]
        lines += ["", "directories of running trials:", *self._files()]
        with contextlib.suppress(psutil.NoSuchProcess):
            scene.print_stacks(psutil.Process(self.worker.pid).children())
        return "\n".join([*lines, "", "the worker's last words:", self.worker.output()[-8000:]])
