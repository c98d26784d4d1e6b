"""Hosts that may be lost in the middle, and a launch command on one, which has ended once everything that it left is here."""

from __future__ import annotations

from typing import TYPE_CHECKING

from workers.errors import ClusterUnavailable, HostsLost, TrialFailed
from workers.hosts.processes import Process
from workers.launchers.base import Session
from workers.launchers.job import Job

if TYPE_CHECKING:
    from workers.launchers.remote import RemoteSession


class ConnectedSession(Session):
    """A session whose hosts may go away while a trial runs on them."""

    def why_lost(self, error: TrialFailed) -> str:
        """What to tell when a connection ended in the middle of a job."""
        return str(error)

    def as_lost(self, error: TrialFailed) -> TrialFailed:
        """A connection may end at any question, not only at the one whether the launch command has ended."""
        if isinstance(error, ClusterUnavailable) and not isinstance(error, HostsLost):
            return HostsLost(self.why_lost(error))
        return error


class RemoteJob(Process):
    """A launch command on the first host of a session."""

    def __init__(self, session: RemoteSession, process: Process, job: Job, there: Job) -> None:
        super().__init__(session.first, process.pid, process.started_ns)
        self._session = session
        self._jobs = (job, there)
        self._collected = False

    def wait(self, timeout_s: float | None = None) -> int | None:
        """As any process. Raises HostsLost when a host is gone in the middle."""
        try:
            status = super().wait(timeout_s)
            if status is not None and not self._collected:
                self._collected = True
                self._session.collect(*self._jobs)
        except ClusterUnavailable as error:
            raise HostsLost(self._session.why_lost(error)) from error
        except OSError as error:
            raise HostsLost(f"The results cannot be fetched from the hosts: {error.strerror}.") from error
        return status
