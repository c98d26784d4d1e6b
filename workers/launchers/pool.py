"""Pool of open sessions: later trials often need the same hosts and link.

Fabrics of the test-bed stay open in parallel, so that interleaved trials find theirs with its certificate. A scheduler's job may
outlive its sessions: for all trials of an experiment, on its first nodes.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

import structlog

from workers.errors import AllocationEnded, ClusterUnavailable, HostsLost, TrialFailed
from workers.launchers.base import Link, Session, Tell, get, ignore_progress
from workers.launchers.schedulers.launcher import Allocation, SchedulerLauncher

TIME_FACTOR: Final = 1.5
"""A trial is started in a job that has so many times the time left which the longest one in it took."""

MOST_OPEN: Final = 12
"""Sessions that are open at once. A fabric is built in 0.1 s and certified in 4 to 11 s; idle, it takes 21 MB and no processor time."""
MOST_HOSTS: Final = 64
"""Of all open sessions, as each virtual host has a network of its own in the kernel; a single session may have more."""

log = structlog.get_logger()


@dataclass(frozen=True)
class SharedJob:
    """Job that a trial may share: its ``key``, most hosts, the time limit."""

    key: object
    host_count: int
    time_limit_s: float


@dataclass
class _Held:
    """Job that outlives sessions, and its history."""

    key: tuple[object, ...]
    launcher: SchedulerLauncher
    allocation: Allocation
    finished: int = 0
    longest_s: float = 0.0

    def suits(self, key: tuple[object, ...], host_count: int, time_limit_s: float) -> bool:
        """Return whether another trial may begin in it: alive, large, time left."""
        if key != self.key or host_count > len(self.allocation.nodes) or not self.allocation.alive():
            return False
        left_s = self.allocation.left_s()
        if left_s is None or not self.finished:  # a trial that does not fit a whole job would wait for ever
            return True
        return left_s >= min(time_limit_s, TIME_FACTOR * self.longest_s)


class SessionPool:
    """Open sessions, of which one runs a trial, and at most one job.

    For one worker process; not thread-safe, as trials are exclusive.
    """

    def __init__(self) -> None:
        self._sessions: dict[tuple[object, ...], Session] = {}
        """By what they are; the one used last is the last."""
        self._held: _Held | None = None

    @property
    def holds_a_job(self) -> bool:
        """Return whether a job waits for further trials of its experiment."""
        return self._held is not None

    @contextmanager
    def lease(
        self,
        kind: str,
        *,
        host_count: int,
        link: Link,
        settings: Mapping[str, Any] | None = None,
        tell: Tell = ignore_progress,
        shared_job: SharedJob | None = None,
    ) -> Iterator[Session]:
        """Yield the open session of equal kind, size and link, or a new one.

        ``shared_job``: the job to open it in. After an exception in the body the session is closed, as its state is unknown.
        Raises ClusterUnavailable.
        """
        key = (kind, repr(settings), host_count, link, shared_job and shared_job.key)
        if shared_job is not None:
            session = self._in_job(key, kind, settings, host_count, shared_job, tell)
        else:
            session = self._as_before(
                key, host_count, lambda: get(kind, settings).open(host_count=host_count, link=link, tell=tell)
            )
        begun = time.monotonic()
        try:
            yield session
        except BaseException as error:
            failure = (
                session.as_lost(error) if isinstance(error, TrialFailed) else error
            )  # before our own end of the job
            self._close_session(key)
            if self._held is not None and isinstance(failure, HostsLost):
                self._end_job(failure)
            if failure is error:
                raise
            raise failure from error
        if self._held is not None:
            self._held.finished += 1
            self._held.longest_s = max(self._held.longest_s, time.monotonic() - begun)

    def close(self) -> None:
        """Close all open sessions, and give the job back."""
        self._close_sessions()
        held, self._held = self._held, None
        if held is not None:
            held.allocation.close()
            log.info("allocation_returned", job=held.allocation.job, trials=held.finished)

    def _as_before(self, key: tuple[object, ...], host_count: int, open_session: Callable[[], Session]) -> Session:
        if self._held is not None:
            self.close()
        session = self._sessions.pop(key, None)
        if session is None or not session.alive():
            if session is not None:
                session.close()
            self._make_room(host_count)
            session = open_session()
        self._sessions[key] = session
        return session

    def _make_room(self, host_count: int) -> None:
        """Close excluding sessions, and the least recently used beyond the limits."""
        for key in [key for key, session in self._sessions.items() if not session.is_isolated]:
            self._close_session(key)
        while self._sessions and (
            len(self._sessions) >= MOST_OPEN
            or sum(len(session.hosts) for session in self._sessions.values()) + host_count > MOST_HOSTS
        ):
            self._close_session(next(iter(self._sessions)))

    def _in_job(
        self,
        key: tuple[object, ...],
        kind: str,
        settings: Mapping[str, Any] | None,
        host_count: int,
        shared_job: SharedJob,
        tell: Tell,
    ) -> Session:
        job_key = (kind, repr(settings), shared_job.key)
        if self._held is None or not self._held.suits(job_key, host_count, shared_job.time_limit_s):
            self.close()
            launcher = get(kind, settings)
            if not isinstance(launcher, SchedulerLauncher):
                raise ClusterUnavailable(f"No scheduler allots the hosts of {launcher.kind.noun}.")
            allocation = launcher.allocate(max(host_count, shared_job.host_count), tell, lasting=True)
            self._held = _Held(job_key, launcher, allocation)
        held = self._held
        session = self._sessions.get(key)
        if session is None or not session.alive():
            self._close_sessions()
            session = self._sessions[key] = self._open_on(held, host_count)
        session.facts["allocation"] = {
            "job": held.allocation.job, "hosts": len(held.allocation.nodes), "trial": held.finished + 1,
        }  # fmt: skip
        return session

    def _open_on(self, held: _Held, host_count: int) -> Session:
        """Open a session in the job; raise HostsLost if the job was taken away since."""
        try:
            return held.launcher.open_on(held.allocation, host_count)
        except ClusterUnavailable as error:
            lost = HostsLost(held.allocation.queue.why_ended(held.allocation.job, str(error)))
            if held.allocation.alive():
                raise
            self._end_job(lost)
            raise lost from error

    def _end_job(self, error: HostsLost) -> None:
        """End a job that lost hosts; raise AllocationEnded if the scheduler ended it.

        A job that ended under its first trial counts as that trial's loss: it may be too long for any job.
        """
        held = self._held
        # One that holds its nodes for many trials does not end by itself: one that is ending, for as long as an epilog takes, was ended.
        ended = held is not None and (
            held.allocation.queue.has_ended(held.allocation.job) or not held.allocation.alive()
        )
        self.close()
        if held is not None and ended and held.finished:
            raise AllocationEnded(str(error)) from error

    def _close_sessions(self) -> None:
        for key in list(self._sessions):
            self._close_session(key)

    def _close_session(self, key: tuple[object, ...]) -> None:
        session = self._sessions.pop(key, None)
        if session is not None:
            session.close()
