"""How rented hosts would run jobs."""

from __future__ import annotations

from tests.new_kinds.cloud import Cloud, CloudSettings
from workers.errors import ClusterUnavailable
from workers.launchers import Job, Launcher, Link, Recording, Session
from workers.launchers.base import Tell, ignore_progress


class CloudLauncher(Launcher):
    kind = Cloud()
    settings: CloudSettings

    def probe(self) -> list[str]:
        return []

    def host_names(self, host_count: int) -> tuple[str, ...]:
        return tuple(f"{self.settings.region}-{number}" for number in range(1, host_count + 1))

    def argv(self, job: Job) -> list[str]:
        return ["cloudrun", "--hosts", ",".join(job.hosts), *job.wrapped_program()]

    def recording(self, job: Job) -> Recording:
        return Recording("the gateway")

    def open(self, *, host_count: int, link: Link, tell: Tell = ignore_progress) -> Session:
        raise ClusterUnavailable(" ".join(self.refusals(link)) or "No host can be rented.")
