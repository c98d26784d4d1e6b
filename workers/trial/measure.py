"""Measuring: a ready session to raw results on disk, without analysis."""

from __future__ import annotations

import itertools
import math
import signal
import socket
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from django.conf import settings
from django.db.models import Max

from analysis.mpi.placement import Machine
from analysis.numbers import amount, plural
from experiments import workloads
from experiments.cluster_kinds.settings import MPIRUN
from experiments.models import Kind, Trial
from experiments.models.states import OVER_TIME
from experiments.specification import ExperimentSpec, restore
from experiments.specification.launch_plan import plan_launch
from experiments.specification.placement import DEFAULTS
from experiments.workloads.base import Mismatch
from workers.capture.dumpcap import QUIET_S, Capture
from workers.capture.ring import RingCapture
from workers.capture.stored_capture import Recorded, store_recordings
from workers.errors import CaptureUnavailable, ClusterUnavailable, TrialFailed
from workers.hosts.environment import different_hosts
from workers.hosts.sampling import Sample, memory_kills, shares
from workers.launchers import Job, Process, Session
from workers.launchers.base import MachineSession
from workers.launchers.job import job_of
from workers.launchers.limits import Limits
from workers.launchers.pool import SharedJob
from workers.testbed.kept_certificate import KEPT_FOR
from workers.trial.database_retry import patiently
from workers.trial.disturbances import disturbances, missing_cores
from workers.trial.failure import THIS_MACHINE, cause, out_of_memory, tail, with_output
from workers.trial.heartbeat import TrialHeartbeat
from workers.trial.inside_mpi import InsideMpi, Layout, absent, inside_mpi, profile_for
from workers.trial.limits import current_limits, thin_out
from workers.trial.live import LiveHistory, LiveTraffic
from workers.trial.mpi_family import World, why_singletons, world_of
from workers.trial.rank_usage import RankUsage, ranks_by_address, read_rank_usage

TERM_GRACE_S: Final = 5.0
FIRST_PAUSES_S: Final = (0.25, 0.25, 0.5)
"""Until the first samples, so that the cores of quick trials' ranks are seen too; then one a second."""
LOOK_S: Final = 0.1
"""Between looks at the free disk: a program makes several thousand files in this time."""
END_LIMIT_S: Final = 30.0
"""Open MPI takes three seconds to end a job of which a rank died, more on a busy machine; a time limit may be days."""


Started = dict[str | None, Capture]
Refused = dict[str | None, str]
"""Recordings, and reasons without one, by host."""


@dataclass(slots=True)
class Measured:
    """The raw results of a run that ended well."""

    elapsed_s: float
    usages: Sequence[RankUsage]
    samples: Sequence[Sample]
    environment: dict[str, Any]
    recorded: Recorded
    inputs: list[Path]
    host_ranks: Mapping[str, Sequence[int]]
    """Ranks at each IP address; empty if unknown."""
    known_ports: bool
    """True if ports identify the packets of MPI."""
    link_reasons: tuple[str, ...]
    """Differences between the link and what was requested, by its certificate or by the capture."""
    world: World
    disturbances: tuple[str, ...]
    inside: InsideMpi
    counted: Mapping[str, Any]
    """Reports of the counter sources by host and source."""


class TrialRun:
    """Plan of one trial, and its run: `measure` launches the plan in a session."""

    def __init__(self, trial: Trial, directory: Path, heartbeat: TrialHeartbeat) -> None:
        if trial.cluster is None:
            raise TrialFailed("The experiment has no cluster to run on.")
        self.trial = trial
        self.directory = directory
        self.heartbeat = heartbeat
        self.specification = trial.experiment.specification
        self.spec: ExperimentSpec = restore(self.specification)
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
    def shared_job(self) -> SharedJob | None:
        """The scheduler's job that all trials of the experiment share, or None."""
        if self.trial.cluster is None or not self.trial.cluster.shares_jobs(self.spec):
            return None
        waiting = self.trial.experiment.trials.unfinished().aggregate(most=Max("configuration__hosts"))
        return SharedJob(self.trial.experiment_id, waiting["most"] or self.plan.hosts, self.spec.time_limit_s)

    def tell(self, what: str) -> None:
        """Show progress before the hosts are ready. Raise Stopped or StaleTrial."""
        self.heartbeat.check()
        if what:
            self.heartbeat.show({"note": what})

    def measure(self, session: Session) -> Measured:
        """Launch the workload in ``session`` and watch it to its end.

        Raise TrialFailed, Stopped, WorkerEnds or StaleTrial.
        """
        bounds = current_limits()
        inputs, link_reasons = self._write_inputs(session, bounds), self._certify(session)
        profile, no_profile = profile_for(self.spec.profile, session)
        job = session.prepared(
            job_of(self.plan, hosts=session.hosts, directory=self.directory, limits=bounds, profile=profile)
        )
        if reasons := session.launcher.launch_refusals(job):
            raise TrialFailed(" ".join(reasons))
        chooses_mpi = hasattr(session.launcher.settings, "mpi")
        with ExitStack() as stack:
            started, without = self._start_captures(session, stack)
            environment = self._environment(session, job)
            singletons = why_singletons(environment, program=job.program[0], ranks=self.plan.ranks, setting=chooses_mpi)
            if singletons:
                raise TrialFailed(singletons)
            addresses = session.addresses_by_name if self.plan.hosts > 1 else {}
            machines = session.machines() if profile else ()
            command, conditions = session.argv(job), self._conditions(session, environment)
            patiently(lambda: self.trial.start_running(command=command, conditions=conditions, environment=environment))
            recordings, recorded = self._await_captures(session, started, without)
            capture = next(iter(recordings.values()), None)
            if capture is not None and session.blind_spot:
                link_reasons = (*link_reasons, session.blind_spot)
            traffic = stack.enter_context(_live(capture))
            session.begin_counters(settings.COUNTER_TREES)
            counted: dict[str, Any] = {}
            try:
                process = session.launch(job, stdout=self.stdout, stderr=self.stderr)
                try:
                    samples = self._watch(session, job, process, traffic)
                finally:
                    process.terminate(TERM_GRACE_S)
                for recording in recordings.values():
                    recording.look()
            finally:
                with suppress(ClusterUnavailable, OSError):
                    counted = session.end_counters()
            limit = session.exceeded(job)
            self._require_network(session, thorough=True)
            if recordings:
                recorded = self._keep_recordings(session, recordings, recorded.not_recorded)
        usages = read_rank_usage(job.report_dir)
        self._require_good_end(process, usages, limit or _limit_shown_by_end(session, job, process, usages, samples))
        world = world_of(usages, environment.get("mpi"), ranks=self.plan.ranks, setting=chooses_mpi)
        if world.problem:
            raise TrialFailed(world.problem)
        unseen = recorded.not_recorded if recorded.joined is None else ()
        disturbed, lacking_cores = self._disturbances(session, job, samples, usages)
        return Measured(
            process.elapsed_s,
            usages,
            samples,
            environment,
            recorded,
            inputs,
            host_ranks=ranks_by_address(usages, addresses, self.plan.ranks),
            known_ports=session.knows_ports,
            link_reasons=(*link_reasons, *recorded.reasons, *unseen, *lacking_cores),
            world=world,
            disturbances=disturbed,
            counted=counted,
            inside=inside_mpi(profile, job.report_dir, usages, self.plan.ranks, self._layout(session, job, machines))
            if profile
            else absent(no_profile),
        )

    def _environment(self, session: Session, job: Job) -> dict[str, Any]:
        """Return facts of hosts and program, and those of the cluster's settings."""
        environment = session.environment(Path(job.program[0]), job.program[1:], job.launch, job.limits)
        of_cluster = {"transport", *DEFAULTS}.intersection(type(session.launcher.settings).model_fields)
        chosen = {name: getattr(session.launcher.settings, name) for name in of_cluster if not getattr(job, name)}
        # Histories are split by the transport.
        environment |= {name: value for name, value in chosen.items() if value != DEFAULTS.get(name)}
        if job.launch is not None and job.launch.launcher != MPIRUN:
            environment["launcher"] = job.launch.launcher
        return environment

    def _certify(self, session: Session) -> tuple[str, ...]:
        """Measure and store the certificate; return differences. Raise TrialFailed."""
        if self.spec.certificate == "skip":
            return ()
        self.tell("measuring the link")
        certificate = session.certify(lambda made_on: patiently(lambda: Trial.kept_certificate(made_on, KEPT_FOR)))
        if certificate is None:
            return ()
        record = certificate.to_dict()
        patiently(lambda: self.trial.certify(record))
        if certificate.reasons and self.spec.certificate == "require":
            raise TrialFailed(f"The link is not as requested: {'; '.join(certificate.reasons)}.")
        return certificate.reasons

    def _conditions(self, session: Session, environment: Mapping[str, Any]) -> dict[str, Any]:
        """Return conditions for the page: link, threads on shared cores, unequal hosts."""
        shared = session.facts.get("oversubscription")
        if shared and self.plan.threads > 1:
            shared = f"{shared}, {plural(self.plan.ranks, 'rank')} with {self.plan.threads} threads each"
        link = session.launcher.kind.link_in_words(self.plan.link)
        transport = self.plan.launch.get("transport") or session.launcher.usual_transport
        different = different_hosts(environment)
        return {
            **session.facts,
            "oversubscription": shared,
            "link_asked": link,
            "transport": transport,
            **({"different_hosts": different} if different else {}),
        }

    def _layout(self, session: Session, job: Job, machines: Sequence[Machine]) -> Layout:
        return Layout(machines, self.plan.threads, by_hardware_threads=_binds_hardware_threads(session, job))

    def _disturbances(
        self, session: Session, job: Job, samples: Sequence[Sample], usages: Sequence[RankUsage]
    ) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return the disturbances of this trial, and hosts with fewer cores than threads.

        Hosts that share cores on purpose lack none: the conditions state it.
        """
        kind, shared = session.launcher.kind, getattr(session.launcher.settings, "shared_cores", False)
        disturbed = disturbances(
            samples,
            usages,
            foreign_share=1.0 if shared else settings.FOREIGN_CPU_PERCENT / 100,
            own_machines=not kind.on_this_machine,
        )
        if shared or kind.hosts_are_virtual:
            return disturbed, ()
        by_hardware_threads = _binds_hardware_threads(session, job)
        return disturbed, missing_cores(samples, usages, self.plan.threads, by_hardware_threads=by_hardware_threads)

    def _require_network(self, session: Session, *, thorough: bool = False) -> None:
        """Raise TrialFailed if the network is no longer the certified one."""
        if problems := session.network_problems(thorough=thorough):
            raise TrialFailed(f"{' '.join(problems)} The measurements are excluded.")

    def _write_inputs(self, session: Session, bounds: Limits) -> list[Path]:
        """Write the input files of the plan and of the first host. Raise TrialFailed."""
        missing = workloads.missing_packages(self.plan.workload)
        if missing and session.launcher.kind.on_this_machine:
            raise TrialFailed(
                f"{self.plan.workload.title} needs the package {' and '.join(missing)}, "
                f"which is not installed on {socket.gethostname()}."
            )
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

    def _start_captures(self, session: Session, stack: ExitStack) -> tuple[Started, Refused]:
        """Start the recordings by host, the analysed one first; return refusals too."""
        started: Started = {}
        refused: Refused = {}
        captures = self.spec.capture.enabled and self.trial.kind != Kind.CONTROL
        for host in session.recorded_hosts if captures else ():
            try:
                started[host] = session.capture(host, snap_length=self.spec.capture.snap_length)
                stack.callback(started[host].close)
            except CaptureUnavailable as error:
                refused[host] = str(error)
                if not session.addresses:  # no other host sees what is analysed
                    break
        return started, refused

    def _await_captures(self, session: Session, started: Started, refused: Refused) -> tuple[Started, Recorded]:
        """Return the recordings that have begun, and refused hosts."""
        if self.trial.kind == Kind.CONTROL:
            return {}, Recorded(absent="a control run without capture, to measure the capture overhead")
        if not self.spec.capture.enabled:
            return {}, Recorded(absent="the experiment captures no packets")
        recordings: Started = {}
        for host, recording in started.items():
            try:
                recording.await_start()
                recordings[host] = recording
            except CaptureUnavailable as error:
                refused[host] = str(error)
                if not session.addresses:
                    break
        if not recordings:
            return {}, Recorded(absent=next(iter(refused.values())))
        not_recorded = (f"host {host} was not recorded: {reason}" for host, reason in refused.items())
        return recordings, Recorded(not_recorded=tuple(not_recorded))

    def _keep_recordings(
        self, session: Session, recordings: Mapping[str | None, Capture], not_recorded: tuple[str, ...]
    ) -> Recorded:
        """End all recordings and store them; those of several hosts become one."""
        several = len(recordings) > 1 and bool(session.addresses)
        named = {
            host if host and (several or number) else "": capture
            for number, (host, capture) in enumerate(recordings.items())
        }
        # Nothing can be on its way if the wire was silent for two round trips.
        quiet_s = QUIET_S + 4 * (self.plan.link.delay_s + self.plan.link.jitter_s)
        recorded = store_recordings(
            named, self.directory, session.addresses, session.hosts, quiet_s=quiet_s, check=self.heartbeat.check
        )
        seen_from = next((host for host in recordings if host), "")
        return replace(recorded, seen_from=seen_from, not_recorded=not_recorded)

    def _watch(self, session: Session, job: Job, process: Process, traffic: LiveTraffic) -> list[Sample]:
        """Wait for the launch command: sample every second, show progress, enforce limits."""
        history, samples = LiveHistory(), [session.sample()]
        ranks_ended = math.inf
        pauses_s = itertools.chain(FIRST_PAUSES_S, itertools.repeat(1.0))
        deadline, next_sample = time.monotonic() + self.spec.time_limit_s, time.monotonic() + next(pauses_s)
        while process.wait(min(LOOK_S, max(0.01, min(next_sample, deadline) - time.monotonic()))) is None:
            self.heartbeat.check()
            now = time.monotonic()
            if now >= deadline:
                process.terminate(TERM_GRACE_S)
                limit = amount(self.spec.time_limit_s, "s")
                raise self._failed(f"{OVER_TIME} of {limit} and was stopped.")
            if session.fills_disk(job):
                self._require_within_limits(session, job, process)
            if now >= next_sample:
                next_sample = now + next(pauses_s)
                self._require_network(session)
                if self._ranks_are_over(usages := read_rank_usage(job.report_dir)):
                    ranks_ended = min(ranks_ended, now)
                if now - ranks_ended >= END_LIMIT_S:
                    raise self._hung(usages)
                self._require_within_limits(session, job, process)
                samples.append(session.sample())
                self.heartbeat.show(self._progress(process, samples, traffic, history))
        samples.append(session.sample())
        return samples

    def _ranks_are_over(self, usages: Sequence[RankUsage]) -> bool:
        """Return whether one rank failed, or all ended: the launch command should end."""
        return len(usages) >= self.plan.ranks or any(usage.failed for usage in usages)

    def _hung(self, usages: Sequence[RankUsage]) -> TrialFailed:
        """Return the failure of a launch command that hangs although its ranks ended."""
        title = self.plan.workload.title
        ended = any(usage.failed for usage in usages)
        reason = cause(title, 0, usages, self.plan.ranks) if ended else f"All ranks of {title} ended"
        limit = amount(END_LIMIT_S, "s")
        sentence = f"{reason}. The launch command did not end within {limit} of that and was stopped."
        return TrialFailed(with_output(sentence, stdout=self.stdout, stderr=self.stderr))

    def _failed(self, predicate: str) -> TrialFailed:
        sentence = f"{self.plan.workload.title} {predicate}"
        return TrialFailed(with_output(sentence, stdout=self.stdout, stderr=self.stderr))

    def _require_within_limits(self, session: Session, job: Job, process: Process) -> None:
        """Raise TrialFailed if the job exceeds the limits of a trial."""
        for printed in (self.stdout, self.stderr):
            if printed.exists():
                thin_out(printed, limit_bytes=settings.OUTPUT_LIMIT_BYTES)
        if limit := session.exceeded(job):
            process.terminate(0.0)
            raise self._failed(f"was stopped. {limit}")

    def _progress(
        self, process: Process, samples: list[Sample], traffic: LiveTraffic, history: LiveHistory
    ) -> dict[str, Any]:
        rows = shares(samples[-2:])
        rates = traffic.progress(rows)
        history.add(process.elapsed_s, rates, samples[-1].hosts)
        return {
            "elapsed_s": round(process.elapsed_s, 1),
            **rates,
            **history.columns(),
            "hosts": rows,
            "stdout_tail": tail(self.stdout, lines=20),
        }

    def _require_good_end(self, process: Process, usages: Sequence[RankUsage], limit: str) -> None:
        code, ranks = process.returncode, self.plan.ranks
        if code != 0 or any(usage.failed for usage in usages):
            reason = f"{cause(self.plan.workload.title, code or 0, usages, ranks)}."
            reason = with_output(reason, stdout=self.stdout, stderr=self.stderr)
            raise TrialFailed(f"{limit} {reason}" if limit else reason)
        if len(usages) < ranks:
            raise TrialFailed(f"Only {len(usages)} of {plural(ranks, 'rank')} reported their CPU time.")
        if len(usages) > ranks or usages[-1].rank >= ranks:
            others = f"{len(usages)} ranks" if len(usages) > ranks else f"Rank {usages[-1].rank}"
            raise TrialFailed(f"{others} reported their CPU time, and the trial has {plural(ranks, 'rank')}.")


def _limit_shown_by_end(
    session: Session, job: Job, process: Process, usages: Sequence[RankUsage], samples: Sequence[Sample]
) -> str:
    """Return the limit that the end of a program shows, as a sentence; empty for none."""
    code, killed_on = process.returncode or 0, list(memory_kills(samples))
    if killed_on and isinstance(session, MachineSession):
        killed_on = [THIS_MACHINE]  # virtual hosts share its memory
    if signal.SIGXFSZ in {-code, *(usage.signal for usage in usages)}:
        return job.limits.file_too_long()
    return out_of_memory(usages, code, limit_bytes=job.limits.most_memory_bytes, killed_on=killed_on)


def _binds_hardware_threads(session: Session, job: Job) -> bool:
    """Return whether the user chose hardware threads as the places of ranks."""
    return session.launcher.placement(job).bind == "hwthread"


def _live(capture: Capture | None) -> LiveTraffic:
    """Return the live traffic; recordings on other hosts show the interface counters."""
    if isinstance(capture, RingCapture):
        return LiveTraffic(tally=capture.tally)
    return LiveTraffic(capture.file if capture is not None and capture.grows_here else None)
