"""The measuring part of a trial: from a ready session to raw results on disk. No analysis happens here."""

from __future__ import annotations

import signal
import socket
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from django.conf import settings
from django.db.models import Max

from analysis.capture.join import Joined
from analysis.numbers import plural
from experiments import workloads
from experiments.models import Kind, Trial
from experiments.specification import ExperimentSpec, restore
from experiments.specification.launch_plan import plan_launch
from experiments.specification.parameters import Capture as CaptureSettings
from experiments.workloads.base import Mismatch
from workers.capture.dumpcap import QUIET_S, Capture, CaptureReport
from workers.capture.ring import RingCapture
from workers.capture.stored_capture import Recorded, keep
from workers.errors import CaptureUnavailable, TrialFailed
from workers.hosts.sampling import Sample, memory_kills, shares
from workers.launchers import Job, Process, Session
from workers.launchers.base import MachineSession
from workers.launchers.limits import Confinement
from workers.launchers.pool import Wanted
from workers.trial.database_retry import patiently
from workers.trial.disturbances import disturbances, missing_cores
from workers.trial.failure import THIS_MACHINE, did_not_end, out_of_memory, tail, timed_out, why_failed, with_output
from workers.trial.heartbeat import Heart
from workers.trial.inside_mpi import InsideMpi, absent, inside_mpi, profile_for
from workers.trial.job import job_for
from workers.trial.launch_end import END_LIMIT_S, LaunchEnd
from workers.trial.limits import confinement, thin_out
from workers.trial.live_history import LiveHistory
from workers.trial.live_traffic import LiveTraffic
from workers.trial.mpi_family import World, why_singletons, world_of
from workers.trial.rank_usage import RankUsage, ranks_by_address, read_rank_usage

TERM_GRACE_S: Final = 5.0


@dataclass(slots=True)
class Measured:
    """The raw results of a run that ended well."""

    elapsed_s: float
    usages: Sequence[RankUsage]
    samples: Sequence[Sample]
    environment: dict[str, Any]
    capture: CaptureReport | None
    capture_file: Path | None
    no_capture: str = ""
    """Why there is no capture; empty when there is one."""
    inputs: list[Path] = field(default_factory=list)
    joined: Joined | None = None
    """What was made of the recordings of several hosts; None where there is one recording."""
    seen_from: str = ""
    """The host whose recording is analysed alone, where hosts are recorded one by one."""
    not_recorded: tuple[str, ...] = ()
    """Hosts that could not be recorded, though others see all that they say to those."""
    host_ranks: Mapping[str, Sequence[int]] = field(default_factory=dict)
    """Which ranks ran at each IP address, where that is known."""
    known_ports: bool = True
    """Whether packets of MPI can be told by their ports."""
    link_reasons: tuple[str, ...] = ()
    """What of the link was not as asked for, by its certificate, or not seen by the capture."""
    world: World = field(default_factory=World)
    disturbances: tuple[str, ...] = ()
    """What other programs and the machine itself did to the run."""
    inside: InsideMpi = field(default_factory=InsideMpi)


class TrialRun:
    """One trial's specification made concrete: what to launch, where, and for how long."""

    def __init__(self, trial: Trial, directory: Path, heart: Heart) -> None:
        if trial.cluster is None:
            raise TrialFailed("The experiment has no cluster to run on.")
        self.trial = trial
        self.directory = directory
        self.heart = heart
        self.spec: ExperimentSpec = restore(trial.experiment.specification)
        try:
            self.plan = plan_launch(
                *(self.spec.workload, trial.configuration.parameters, trial.cluster.slug),
                is_ideal=trial.kind == Kind.IDEAL,
            )
        except Mismatch as error:
            raise TrialFailed(f"{error}.") from None
        self.launcher_kind: str = trial.cluster.kind
        self.cluster_settings: dict[str, Any] = trial.cluster.settings
        self.stdout, self.stderr = directory / "stdout.txt", directory / "stderr.txt"

    @property
    def wanted(self) -> Wanted | None:
        """The job of a scheduler that all trials of the experiment share; None where each row of equal trials has its own."""
        if self.trial.cluster is None or not self.trial.cluster.shares_jobs(self.spec):
            return None
        waiting = self.trial.experiment.trials.unfinished().aggregate(most=Max("configuration__hosts"))
        return Wanted(self.trial.experiment_id, waiting["most"] or self.plan.hosts, self.spec.time_limit_s)

    def tell(self, what: str) -> None:
        """Show what is being waited for before the hosts are ready. Raise Stopped or StaleTrial to end the waiting."""
        self.heart.check()
        if what:
            self.heart.show({"note": what})

    def measure(self, session: Session) -> Measured:
        """Launch the workload in ``session`` and watch it to its end. Raise TrialFailed, Stopped, WorkerEnds or StaleTrial."""
        missing = workloads.missing_packages(self.plan.workload)
        if missing and session.launcher.kind.on_this_machine:
            raise TrialFailed(
                f"{self.plan.workload.title} needs the package {' and '.join(missing)}, "
                f"which is not installed on {socket.gethostname()}."
            )
        bounds = confinement()
        inputs = self._write_inputs(session, bounds)
        link_reasons = self._certify(session)
        profile, no_profile = profile_for(self.spec.profile, session)
        asked = job_for(self.plan, hosts=session.hosts, directory=self.directory, confinement=bounds, profile=profile)
        job = session.prepared(asked)
        environment = session.environment(Path(job.program[0]), job.program[1:], job.launch)
        self._require_one_world(session, environment, job.program[0])
        addresses = session.addresses_by_name if self.plan.hosts > 1 else {}
        with ExitStack() as stack:
            recordings, no_capture, unseen = self._start_captures(session, stack)
            capture = next(iter(recordings.values()), None)
            if capture is not None and session.blind_spot:
                link_reasons = (*link_reasons, session.blind_spot)
            conditions = self._conditions(session, job.threads)
            patiently(
                lambda: self.trial.start_running(
                    command=session.argv(job), conditions=conditions, environment=environment
                )
            )
            traffic = stack.enter_context(_live(capture))
            process = session.launch(job, stdout=self.stdout, stderr=self.stderr)
            try:
                samples = self._watch(session, job, process, traffic)
            finally:
                process.terminate(TERM_GRACE_S)
            limit = session.exceeded(job)
            killed_on = list(memory_kills(samples))
            if killed_on and isinstance(session, MachineSession):
                killed_on = [THIS_MACHINE]  # virtual hosts share its memory
            self._require_network(session, thorough=True)
            recorded = self._keep_recordings(session, recordings)
        usages = read_rank_usage(job.report_dir)
        self._require_good_end(process, usages, limit or _limit_shown_by_end(job, process, usages, killed_on))
        world = self._require_world_as_asked(session, environment, usages)
        return Measured(
            process.elapsed_s,
            usages,
            samples,
            environment,
            recorded.report,
            recorded.file,
            no_capture=no_capture,
            inputs=inputs,
            joined=recorded.joined,
            seen_from=next((host for host in recordings if host), ""),
            not_recorded=unseen,
            host_ranks=ranks_by_address(usages, addresses, self.plan.ranks),
            known_ports=session.knows_ports,
            link_reasons=(
                *link_reasons,
                *recorded.reasons,
                *(unseen if recorded.joined is None else ()),
                *self._missing_cores(session, samples, usages, job.threads),
            ),
            world=world,
            disturbances=self._disturbances(session, samples, usages),
            inside=inside_mpi(profile, job.report_dir, usages, self.plan.ranks) if profile else absent(no_profile),
        )

    def _certify(self, session: Session) -> tuple[str, ...]:
        """Measure the link unless it is known; keep what was found; return what is not as asked. Raise TrialFailed."""
        if self.spec.certificate == "skip":
            return ()
        self.tell("measuring the link")
        certificate = session.certify()
        if certificate is None:
            return ()
        record = certificate.to_dict()
        patiently(lambda: self.trial.certify(record))
        reasons = tuple(certificate.reasons)
        if reasons and self.spec.certificate == "require":
            raise TrialFailed(f"The link is not what was asked for: {'; '.join(reasons)}.")
        return reasons

    def _conditions(self, session: Session, threads: int) -> dict[str, Any]:
        """What a page must say beside the times: the link, and how many threads share the cores of virtual hosts."""
        shared = session.facts.get("oversubscription")
        if shared and threads > 1:
            shared = f"{shared}, {plural(self.plan.ranks, 'rank')} with {threads} threads each"
        told = {"oversubscription": shared, "link_asked": session.launcher.kind.link_in_words(self.plan.link)}
        return {**session.facts, **told}

    def _require_one_world(self, session: Session, environment: Mapping[str, Any], program: str) -> None:
        """Raise TrialFailed for a program whose ranks would not find each other: each would run alone, and end well."""
        chosen = hasattr(session.launcher.settings, "mpi")
        if reason := why_singletons(environment, program=program, ranks=self.plan.ranks, setting=chosen):
            raise TrialFailed(reason)

    def _require_world_as_asked(
        self, session: Session, environment: Mapping[str, Any], usages: Sequence[RankUsage]
    ) -> World:
        """Return what was seen of the world that the ranks ran in. Raise TrialFailed when it is not the one that was asked for."""
        chosen = hasattr(session.launcher.settings, "mpi")
        world = world_of(usages, environment.get("mpi"), ranks=self.plan.ranks, setting=chosen)
        if world.problem:
            raise TrialFailed(world.problem)
        return world

    def _disturbances(
        self, session: Session, samples: Sequence[Sample], usages: Sequence[RankUsage]
    ) -> tuple[str, ...]:
        """Return what slowed this trial and may not slow the next one of the same configuration."""
        strangers = not getattr(session.launcher.settings, "shared_cores", False)
        return disturbances(
            samples,
            usages,
            foreign_share=settings.FOREIGN_CPU_PERCENT / 100 if strangers else 1.0,
            own_machines=not session.launcher.kind.on_this_machine,
        )

    def _missing_cores(
        self, session: Session, samples: Sequence[Sample], usages: Sequence[RankUsage], threads: int
    ) -> tuple[str, ...]:
        """Return nothing if hosts share cores on purpose: the conditions of the trial state it."""
        shared = getattr(session.launcher.settings, "shared_cores", False)
        return () if shared or session.launcher.kind.hosts_are_virtual else missing_cores(samples, usages, threads)

    def _require_network(self, session: Session, *, thorough: bool = False) -> None:
        """Raise TrialFailed when the network is no longer the one that was certified: nothing measured on it counts."""
        if problems := session.network_problems(thorough=thorough):
            raise TrialFailed(f"{' '.join(problems)} What was measured does not count.")

    def _write_inputs(self, session: Session, bounds: Confinement) -> list[Path]:
        """The texts of the specification, and those that lie on the first host. Raise TrialFailed."""
        work = self.directory / "work"
        work.mkdir()
        written = []
        decks = {name: session.read_text(path, bounds) for name, path in self.plan.decks.items()}
        try:
            texts = self.plan.inputs(decks)
        except Mismatch as error:
            raise TrialFailed(f"{error}.") from None
        for name, text in texts.items():
            (work / name).write_text(text)
            written.append(work / name)
        return written

    def _start_captures(
        self, session: Session, stack: ExitStack
    ) -> tuple[dict[str | None, Capture], str, tuple[str, ...]]:
        """(recordings by host, why there is none, why hosts are not recorded though others are).

        The one that is analysed comes first. Where a host cannot be recorded the trial runs, and says so.
        """
        wanted: CaptureSettings = self.spec.capture
        if self.trial.kind == Kind.CONTROL:
            return {}, "a control run, made without capture to measure the observer effect", ()
        if not wanted.enabled:
            return {}, "the experiment captures no packets", ()
        recordings: dict[str | None, Capture] = {}
        refused: dict[str | None, str] = {}
        for host in session.recorded_hosts:
            try:
                recordings[host] = stack.enter_context(session.capture(host, snap_length=wanted.snap_length))
            except CaptureUnavailable as error:
                refused[host] = str(error)
                if not session.addresses:  # nobody else sees what is analysed
                    break
        if not recordings:
            return {}, next(iter(refused.values())), ()
        return recordings, "", tuple(f"host {host} was not recorded: {reason}" for host, reason in refused.items())

    def _quiet_s(self) -> float:
        """How long a wire must be silent until nothing can be on its way: two round trips of the link."""
        return QUIET_S + 4 * (self.plan.link.delay_s + self.plan.link.jitter_s)

    def _keep_recordings(self, session: Session, recordings: Mapping[str | None, Capture]) -> Recorded:
        """End all recordings and keep them; those of hosts with addresses of their own become one."""
        if not recordings:
            return Recorded()
        several = len(recordings) > 1 and bool(session.addresses)
        named = {
            host if host and (several or number) else "": each for number, (host, each) in enumerate(recordings.items())
        }
        return keep(
            named, self.directory, session.addresses, session.hosts, quiet_s=self._quiet_s(), check=self.heart.check
        )

    def _watch(self, session: Session, job: Job, process: Process, traffic: LiveTraffic) -> list[Sample]:
        """Wait for the end of the launch command: sample once a second, show progress, obey cancel and all limits."""
        launch_end, history = LaunchEnd(job.report_dir, self.plan.ranks), LiveHistory()
        samples = [session.sample()]
        deadline = time.monotonic() + self.spec.time_limit_s
        next_sample = time.monotonic() + 1.0
        while process.wait(max(0.01, min(next_sample, deadline) - time.monotonic())) is None:
            self.heart.check()
            now = time.monotonic()
            if now >= deadline:
                process.terminate(TERM_GRACE_S)
                sentence = timed_out(self.plan.workload.title, self.spec.time_limit_s)
                raise TrialFailed(with_output(sentence, stdout=self.stdout, stderr=self.stderr))
            if now >= next_sample:
                next_sample = now + 1.0
                self._require_network(session)
                self._require_end_in_time(launch_end)
                self._require_within_limits(session, job, process)
                samples.append(session.sample())
                self.heart.show(self._progress(process, samples, traffic, history))
        samples.append(session.sample())
        return samples

    def _require_within_limits(self, session: Session, job: Job, process: Process) -> None:
        """Raise TrialFailed for a job that takes more of this machine than a trial may."""
        for printed in (self.stdout, self.stderr):
            if printed.exists():
                thin_out(printed, limit_bytes=settings.OUTPUT_LIMIT_BYTES)
        if limit := session.exceeded(job):
            process.terminate(0.0)
            sentence = f"{self.plan.workload.title} was stopped. {limit}"
            raise TrialFailed(with_output(sentence, stdout=self.stdout, stderr=self.stderr))

    def _require_end_in_time(self, launch_end: LaunchEnd) -> None:
        """Raise TrialFailed for a launch command that hangs although its ranks are gone: the time limit may be days away."""
        if usages := launch_end.overdue():
            raise TrialFailed(
                did_not_end(
                    self.plan.workload.title,
                    usages,
                    END_LIMIT_S,
                    ranks=self.plan.ranks,
                    stdout=self.stdout,
                    stderr=self.stderr,
                )
            )

    def _progress(
        self, process: Process, samples: list[Sample], traffic: LiveTraffic, history: LiveHistory
    ) -> dict[str, Any]:
        rows = shares(samples[-2:])
        rates = traffic.progress(rows)
        history.add(process.elapsed_s, rates, samples[-1].hosts)
        return {
            "elapsed_s": round(process.elapsed_s, 1),
            **rates,
            **history.shown(),
            "hosts": rows,
            "stdout_tail": tail(self.stdout, lines=20),
        }

    def _require_good_end(self, process: Process, usages: Sequence[RankUsage], limit: str) -> None:
        code = process.returncode
        if code is None or code != 0 or any(u.failed for u in usages):
            reason = why_failed(
                self.plan.workload.title,
                code or 0,
                usages,
                ranks=self.plan.ranks,
                stdout=self.stdout,
                stderr=self.stderr,
            )
            raise TrialFailed(f"{limit} {reason}" if limit else reason)
        if (reported := len(usages)) < self.plan.ranks:
            raise TrialFailed(f"Only {reported} of {plural(self.plan.ranks, 'rank')} reported their CPU time.")


def _limit_shown_by_end(job: Job, process: Process, usages: Sequence[RankUsage], killed_on: Sequence[str]) -> str:
    """Return which limit the end of a program shows to be reached, as a sentence; empty for none."""
    code = process.returncode or 0
    if signal.SIGXFSZ in {-code, *(usage.signal for usage in usages)}:
        return job.confinement.file_too_long()
    return out_of_memory(usages, code, limit_bytes=job.confinement.most_memory_bytes, killed_on=killed_on)


def _live(capture: Capture | None) -> LiveTraffic:
    """What the page shows of the traffic; of packets that are recorded elsewhere it cannot be the packets."""
    if isinstance(capture, RingCapture):
        return LiveTraffic(tally=capture.tally)
    return LiveTraffic(capture.file if capture is not None and capture.grows_here else None)
