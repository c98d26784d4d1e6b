"""A worker with real services, faults, and what must be true afterwards."""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

import psutil
from django.conf import settings
from django.db import DatabaseError, close_old_connections, connections
from kombu.exceptions import OperationalError
from redis.exceptions import RedisError

from config.celery import app as celery_app
from experiments.files import trial_directory
from experiments.models import Experiment, Lease, Measurement, State, Trial
from tests.conftest import Services
from tests.s3_server import S3Server
from tests.worker_process import CeleryWorker
from tests.workers.faults import scene
from tests.workers.faults.cables import Cables, database_of
from tests.workers.faults.stepped_clock import STEPS, SteppedClock, reap_with_clock
from workers import queue, reaper

DEADLINE_S = 60.0
BACKUP_S = 240.0
"""A backup is on disk when all that others on the machine wrote before it is, too."""
LONGEST_HOLD_S = 1.5
LONGEST_PARTITION_S = 5.0
SMALL_STEPS = (timedelta(minutes=10), timedelta(minutes=-10))
"""Of a worker's clock: a bucket refuses requests signed 15 minutes off its own time, and then the trial waits for it."""
OVER = (State.FINISHED, State.FAILED, State.ERRORED, State.LOST, State.CANCELLED)


@dataclass
class Laboratory:
    """One worker at a time, as the supervisor has it: a dead one is replaced."""

    services: Services
    store: S3Server
    start_worker: Callable[..., CeleryWorker]
    clock: SteppedClock
    """The workers'; it stays where a fault has set it until the next one sets it."""
    random: random.Random
    cables: Cables
    """Between the worker and what it reaches over the network."""
    backups: Path
    worker: CeleryWorker = field(init=False)
    done: list[str] = field(default_factory=list)
    """The faults so far, with the seconds since the first worker's start."""

    def __post_init__(self) -> None:
        self.replace_worker()
        self.began = time.monotonic()
        self.faults: dict[str, Callable[[], bool]] = {
            "worker": self.kill_worker,
            "terminated worker": self.end_worker,
            "second worker": self.relieve_worker,
            "mpirun": lambda: self.kill_program("mpirun"),
            "rank": lambda: self.kill_program("lmp"),
            "recorder": lambda: self.kill_program("recorder"),
            "agent": lambda: self.kill_program("unshare"),
            "full disk": self.fill_disk,
            "closed directory": self.close_directory,
            "worker's clock": self.step_worker_clock,
            "reaper's clock": self.reap_with_stepped_clock,
            "redis": lambda: self.restart(self.services.redis),
            "postgres": lambda: self.restart(self.services.postgres),
            "store": self.take_store_away,
            "partition": self.cut_off,
            "restore": self.put_backup_back,
        }

    def replace_worker(self) -> None:
        variables = {
            **self.clock.variables,
            **scene.DUMPS_ITS_STACK,
            **self.store.variables,
            **self.cables.variables,
            "RANKWIRE_VAR": str(settings.VAR),
        }
        self.worker = self.start_worker(concurrency=2, variables=variables)

    def tick(self, experiment: Experiment) -> None:
        """Do what beat does every five seconds."""
        with contextlib.suppress(DatabaseError):
            reaper.reap()
            queue.wake_workers(experiment.cluster_id)
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
        """Stop a worker, as every update does: it requeues its trial."""
        if not Trial.objects.active().exists():
            return False
        self.worker.process.terminate()
        self.worker.process.wait(DEADLINE_S)
        self.worker.kill()
        self.replace_worker()
        return True

    def relieve_worker(self) -> bool:
        """Kill the first of two workers of one cluster in the middle of a trial."""
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
        """Fill the trials' disk for a moment in the life of a trial."""
        if not self.directories():
            return False
        filler = settings.VAR / "filler"
        with filler.open("wb") as stream, contextlib.suppress(OSError):
            while True:
                stream.write(bytes(1 << 20))
        self.hold()
        filler.unlink()
        return True

    def close_directory(self) -> bool:
        """Make a trial's directory unwritable for a moment."""
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
        """Set the worker's clock in the middle of a trial, which continues."""
        if not Trial.objects.active().exists():
            return False
        self.clock.set(self.random.choice([step for step in SMALL_STEPS if step != self.clock.off]))
        return True

    def reap_with_stepped_clock(self) -> bool:
        """A reaper whose clock was set looks at the running trials."""
        if not Trial.objects.active().exists():
            return False
        clock = SteppedClock(self.backups.with_name("reaper_clock"), self.random.choice(STEPS))
        reap_with_clock(clock, self.services)
        return True

    def take_store_away(self) -> bool:
        """Kill the server of the bucket or let it hang, then bring it back."""
        if not Trial.objects.active().exists():
            return False
        if self.random.random() < 0.5:
            self.store.kill()
            self.hold()
            self.store.start()
        else:
            self.store.pause()
            self.hold()
            self.store.go_on()
        return True

    def cut_off(self) -> bool:
        """Cut the worker off from database, broker and store for long."""
        if not Trial.objects.active().exists():
            return False
        self.cables.cut()
        end = time.monotonic() + self.random.uniform(0.0, LONGEST_PARTITION_S)
        while time.monotonic() < end:
            time.sleep(0.5)  # the rounds of the reaper go on
            reaper.reap()
        self.cables.mend()
        return True

    def put_backup_back(self) -> bool:
        """Back up while a trial runs, kill the worker, restore, and start it."""
        if not Trial.objects.active().exists():
            return False
        self._manage("backup", str(self.backups))
        refused = self._manage("restore", str(self.backups), "--replace", may_fail=True)
        assert "a worker runs" in refused, refused
        self.worker.kill()
        deadline = time.monotonic() + DEADLINE_S
        while "the backup was put back" not in (said := self._put_back()):
            assert "others use the database" in said, said  # the server has not noticed yet that the worker is dead
            assert time.monotonic() < deadline, said
        shutil.rmtree(self.backups)
        self.replace_worker()
        return True

    def _put_back(self) -> str:
        connections.close_all()
        return self._manage("restore", str(self.backups), "--replace", may_fail=True)

    def _manage(self, *arguments: str, may_fail: bool = False) -> str:
        environment = {name: value for name, value in os.environ.items() if not name.startswith("RANKWIRE_")}
        environment |= self.store.variables
        environment |= {
            "DATABASE_URL": database_of(self.services),
            "REDIS_URL": self.services.redis.url,
            "RANKWIRE_VAR": str(settings.VAR),
            "RANKWIRE_SECRET_KEY": settings.SECRET_KEY,
            "DJANGO_SETTINGS_MODULE": "config.settings",
        }
        argv = [sys.executable, str(settings.BASE_DIR / "manage.py"), *arguments]
        done = subprocess.run(argv, env=environment, capture_output=True, text=True, timeout=BACKUP_S, check=False)
        said = done.stdout + done.stderr
        assert may_fail or done.returncode == 0, said
        return said

    def directories(self) -> list[Path]:
        """Return the directories of the running trials."""
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
        """Require that trials are over, repetitions count once, nothing is left."""
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
            for artifact in trial.artifacts.filter(removed_at=None):
                assert artifact.content() is not None  # which compares it with its hash
        assert not Lease.objects.exists()
        self.wait_until(lambda: not self.strays(), f"nothing is left running: {self.strays()}", experiment)

    def strays(self) -> list[str]:
        """Return programs of trials and agents that are still there."""
        alive = [process for process in self.family() if process.is_running()]
        words = [" ".join(self._command(process)) for process in alive]
        remaining = [command for command in words if "workers.testbed.agent" in command]
        mark = str(settings.VAR / "trials")
        return remaining + [command for command in map(self._command_of, psutil.pids()) if mark in command]

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
        """Describe the trials and the worker's processes and files; end its pool."""
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
