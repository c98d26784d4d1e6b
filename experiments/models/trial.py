"""Trials: the state machine of one run. Every transition is a conditional UPDATE."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, ClassVar, Final

from django.db import IntegrityError, models, transaction
from django.db.models import Exists, F, OuterRef, Q, Subquery
from django.db.models.functions import Now
from django.urls import reverse
from django.utils import timezone

from analysis.trust_level import FLAGGED
from experiments.common.storable import storable
from experiments.errors import StaleTrial
from experiments.models.artifact import Artifact
from experiments.models.cluster import Cluster, Lease
from experiments.models.cluster_check import ClusterTest
from experiments.models.configuration import Configuration
from experiments.models.environment import Environment
from experiments.models.experiment import Experiment
from experiments.models.measurement import Measurement
from experiments.models.people.event import Event
from experiments.models.states import (
    ACTIVE,
    BLOCKING,
    DISTURBANCES,
    NO_ROOM,
    OVER_TIME,
    UNFINISHED,
    WITHOUT_RESULT,
    Kind,
    State,
    counted,
    disturbed,
    excluded_as_disturbed,
    measured,
)
from experiments.models.usage import Usage, fair_share_order

MISSED_ROUNDS_UNTIL_LOST: Final = 4
_REPETITION: Final = ("configuration_id", "kind", "repetition")
_REPEATED: Final = (*_REPETITION, "experiment_id", "cluster_id", "position")
_OF_THE_RUN: Final = (
    *("state", "beats", "running_at", "analysing_at", "command", "conditions", "environment"),
    *("cancel_requested_at", "superseded", "progress", "message", "worker"),
)
_FROM: Final[dict[State, tuple[State, ...]]] = {
    State.RUNNING: (State.PREPARING,),
    State.ANALYSING: (State.RUNNING,),
    State.FINISHED: (State.ANALYSING,),
    State.FAILED: ACTIVE,
    State.ERRORED: ACTIVE,
    State.CANCELLED: ACTIVE,
    State.LOST: ACTIVE,
}


@dataclass(frozen=True, slots=True)
class TrialResult:
    """The result of a finished trial; ``measurements``: scope -> metric id -> value."""

    measurements: Mapping[str, Mapping[str, float]]
    not_available: Mapping[str, str]
    trust: str
    trust_reasons: Sequence[str] = ()
    environment: Mapping[str, Any] = field(default_factory=dict)
    conditions: Mapping[str, Any] = field(default_factory=dict)
    """Conditions known only at the end, added to those of the start."""
    artifacts: Sequence[Artifact] = ()
    tables: Mapping[str, Any] = field(default_factory=dict)


class TrialQuerySet(models.QuerySet["Trial"]):
    def unfinished(self) -> TrialQuerySet:
        return self.filter(state__in=UNFINISHED)

    def active(self) -> TrialQuerySet:
        return self.filter(state__in=ACTIVE)

    def startable(self) -> TrialQuerySet:
        """Return the waiting trials that are not on hold."""
        return self.filter(state=State.QUEUED, cluster__enabled=True).exclude(experiment__hold__in=BLOCKING)

    def current(self) -> TrialQuerySet:
        """Return the trials of the current design, without replaced attempts."""
        return self.filter(superseded=False, configuration__in_design=True)

    def counted(self) -> TrialQuerySet:
        """Return the trials in statistics."""
        return self.filter(counted() & ~excluded_as_disturbed())

    def repeats(self) -> TrialQuerySet:
        """Return the trials that repeat a disturbed one, which is not replaced."""
        same = {name: OuterRef(name) for name in _REPETITION}
        earlier = Trial.objects.filter(**same, superseded=False, attempt__lt=OuterRef("attempt"))
        return self.filter(Exists(earlier), attempt__gt=1)

    def disturbed_points(self) -> TrialQuerySet:
        """Return one counted, disturbed trial of each repetition: the newest."""
        newest = self.counted().filter(disturbed()).order_by(*_REPETITION, "-attempt")
        return newest.distinct(*_REPETITION)

    def flagged(self) -> TrialQuerySet:
        """Return the counted trials whose traffic is not in statistics."""
        return self.counted().filter(trust__in=FLAGGED)

    def without_result(self) -> TrialQuerySet:
        """Return the trials that ended without a result."""
        return self.current().filter(state__in=WITHOUT_RESULT)

    def next_waiting(self, cluster_id: int, rather: int | None = None, competing: Collection[int] = ()) -> Trial | None:
        """Lock and return the next unlocked trial of a cluster, or None.

        The experiment with the key ``rather`` comes first: hosts are allocated to it. None as well if the next one is on
        a ``competing`` cluster (key), which shares hosts and has room for it.
        """
        startable = self.startable().filter(cluster=cluster_id)
        of_others = self.startable().filter(cluster__in=competing)
        for experiment_id in sorted(
            fair_share_order([cluster_id, *competing], self.held_machine_s()), key=lambda turn: turn != rather
        ):
            locked = startable.select_for_update(skip_locked=True, of=("self",)).filter(experiment_id=experiment_id)
            if (trial := locked.order_by("position").first()) is not None:
                return trial
            other = of_others.filter(experiment_id=experiment_id).order_by("position").first() if competing else None
            if other is not None and not other.message.startswith(NO_ROOM):
                return None
            if other is not None:  # its cluster can start nothing before it
                of_others = of_others.exclude(cluster=other.cluster_id)
        return None

    def held_machine_s(self) -> Iterator[tuple[int, float]]:
        """Yield the project (key) and held machine-seconds of each active trial."""
        now = timezone.now()
        for trial in self.active().select_related("experiment", "cluster", "configuration"):
            if trial.preparing_at is not None:
                # At least a second: of two unused projects, the one without running trials is first.
                held_s = max((now - trial.preparing_at).total_seconds(), 1.0)
                yield trial.experiment.project_id, trial.machines * held_s

    def queue_attempts(self) -> int:
        """Queue new attempts in this transaction; return the count. Raise StaleTrial."""
        same = Trial.objects.filter(**{name: OuterRef(name) for name in _REPETITION}).order_by("-attempt")
        newest = {"last": Subquery(same.values("attempt")[:1]), "current_version": F("experiment__version")}
        ended = list(self.order_by("attempt").values(*_REPEATED, "pk", **newest))
        over = Trial.objects.filter(pk__in=[row["pk"] for row in ended], superseded=False)
        if over.exclude(state__in=UNFINISHED).update(superseded=True) != len(ended):
            raise StaleTrial("Some of these trials were started again in the meantime")
        last: dict[tuple[Any, ...], int] = {}
        attempts = []
        # A disturbed trial and its repeat are two attempts, and can be queued again together.
        for row in ended:
            key = tuple(row[name] for name in _REPETITION)
            last[key] = last.get(key, row["last"]) + 1
            columns = {name: row[name] for name in _REPEATED}
            attempts.append(Trial(**columns, version=row["current_version"], attempt=last[key]))
        Trial.objects.bulk_create(attempts, batch_size=2000)
        return len(ended)

    def cancel(self, why: str = "Cancelled before it started.") -> int:
        """Cancel waiting trials, request the stop of active ones; return the count."""
        waiting = self.filter(state=State.QUEUED).update(state=State.CANCELLED, ended_at=Now(), message=why)
        return waiting + self.filter(state__in=ACTIVE, cancel_requested_at=None).update(cancel_requested_at=Now())


class Trial(models.Model):
    """One run of one configuration."""

    experiment = models.ForeignKey(Experiment, on_delete=models.CASCADE, related_name="trials")
    configuration = models.ForeignKey(Configuration, on_delete=models.CASCADE, related_name="trials")
    cluster = models.ForeignKey(Cluster, on_delete=models.PROTECT, related_name="trials", null=True, blank=True)
    kind = models.CharField(max_length=8, choices=Kind, default=Kind.MEASURED)
    repetition = models.PositiveIntegerField(default=1)
    attempt = models.PositiveIntegerField(default=1)
    position = models.PositiveIntegerField(default=0, help_text="Place in the order of the experiment.")
    version = models.PositiveIntegerField(default=1, help_text="Version of the specification that requested it.")
    superseded = models.BooleanField(default=False, help_text="A newer attempt replaced this one.")
    state = models.CharField(max_length=10, choices=State, default=State.QUEUED)

    queued_at = models.DateTimeField(db_default=Now())
    preparing_at = models.DateTimeField(null=True, blank=True)
    running_at = models.DateTimeField(null=True, blank=True)
    analysing_at = models.DateTimeField(null=True, blank=True)
    ended_at = models.DateTimeField(null=True, blank=True, db_index=True)
    cancel_requested_at = models.DateTimeField(null=True, blank=True)

    worker = models.CharField(
        max_length=200, blank=True, help_text="Worker that claimed it: host:pid:start of the process."
    )
    beats = models.PositiveIntegerField(default=0, help_text="Grows while its worker lives.")
    reaper_beats = models.PositiveIntegerField(default=0)
    reaper_rounds = models.PositiveIntegerField(default=0, help_text="Rounds of the reaper without a new heartbeat.")
    progress: models.JSONField[dict[str, Any], dict[str, Any]] = models.JSONField(default=dict, blank=True)

    message = models.TextField(blank=True, help_text="Why it did not finish.")
    traceback = models.TextField(blank=True)
    command: models.JSONField[list[str], list[str]] = models.JSONField(default=list, blank=True)
    conditions: models.JSONField[dict[str, Any], dict[str, Any]] = models.JSONField(default=dict, blank=True)
    certificate: models.JSONField[Any, Any] = models.JSONField(null=True, blank=True)
    trust = models.CharField(max_length=10, blank=True)
    trust_reasons: models.JSONField[list[str], list[str]] = models.JSONField(default=list, blank=True)
    not_available: models.JSONField[dict[str, str], dict[str, str]] = models.JSONField(default=dict, blank=True)
    tables: models.JSONField[dict[str, Any], dict[str, Any]] = models.JSONField(default=dict, blank=True)
    environment = models.ForeignKey(
        Environment, on_delete=models.SET_NULL, null=True, blank=True, related_name="trials"
    )

    objects = TrialQuerySet.as_manager()

    class Meta:
        ordering: ClassVar = ["experiment_id", "position", "attempt"]
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["configuration", "kind", "repetition", "attempt"], name="one_trial_per_repetition_and_attempt"
            )
        ]
        indexes: ClassVar = [
            # The queue of claim_next: partial, without finished trials.
            models.Index(fields=["cluster", "experiment", "position"], name="trial_queue", condition=Q(state="queued")),
            models.Index(
                fields=["state", "beats"],
                name="trial_active",
                condition=Q(state__in=["preparing", "running", "analysing"]),
            ),
            models.Index(fields=["experiment", "state"], name="trial_by_experiment_state"),
            # Usually few; the explorer counts them.
            models.Index(
                fields=["configuration"],
                name="trial_flagged",
                condition=Q(trust__in=["degraded", "unusable"], state="finished", kind="measured", superseded=False),
            ),
        ]

    def __str__(self) -> str:
        return f"trial {self.pk}"

    def get_absolute_url(self) -> str:
        return reverse("trial", args=[self.pk])

    @property
    def is_over(self) -> bool:
        return self.state not in UNFINISHED

    @property
    def met_time_limit(self) -> bool:
        return self.state == State.FAILED and OVER_TIME in self.message

    @property
    def machines(self) -> int:
        """Return the number of machines it holds; virtual hosts are one machine."""
        is_virtual = self.cluster is not None and self.cluster.traits.on_this_machine
        return 1 if is_virtual else self.configuration.hosts

    @classmethod
    def repeats_among(cls, trials: Sequence[Trial]) -> set[int]:
        """Return the keys of trials that repeat a disturbed attempt.

        One query; none if all are first attempts.
        """
        later = [trial for trial in trials if trial.attempt > 1]
        if not later:
            return set()
        earlier = cls.objects.filter(measured() & disturbed(), configuration__in={t.configuration_id for t in later})
        rows = earlier.order_by("-attempt").values_list(*_REPETITION, "attempt")
        first = {tuple(key): attempt for *key, attempt in rows}
        return {t.pk for t in later if first.get((t.configuration_id, t.kind, t.repetition), t.attempt) < t.attempt}

    @classmethod
    def claim_next(
        cls, cluster: Cluster, worker: str, *, rather: int | None = None, keeps_turn: bool = False
    ) -> Trial | None:
        """Claim the next waiting trial of a cluster by fair share, with its hosts.

        Return None if no trial waits, the hosts are taken or a check waits for them, the cluster is disabled, or it is the
        turn of another cluster with these hosts and not ``keeps_turn``.
        """
        resources = cluster.resources()
        usable = Cluster.objects.filter(pk=cluster.pk, enabled=True)
        # Cheap check; the unique key stops concurrent claims.
        if not usable.exists() or Lease.objects.filter(resource__in=resources).exists():
            return None
        if ClusterTest.waits_for(resources):
            return None
        # Looks up names of hosts, which takes long if no server answers: before rows are locked.
        competing = [] if keeps_turn else cluster.competing(cls.objects.startable())
        with transaction.atomic():
            trial = cls.objects.next_waiting(cluster.pk, rather, competing)
            if trial is None or not trial._take(resources):
                return None
            changed = cls.objects.filter(pk=trial.pk, state=State.QUEUED).update(
                state=State.PREPARING, worker=worker, preparing_at=Now(), beats=F("beats") + 1, message=""
            )
            if not changed:
                raise StaleTrial(f"{trial} was taken while its row was locked")
        trial.refresh_from_db()
        return trial

    def _take(self, resources: Sequence[str]) -> bool:
        try:
            with transaction.atomic():
                Lease.objects.bulk_create(Lease(resource=resource, trial=self) for resource in resources)
        except IntegrityError:
            return False
        return True

    def certify(self, certificate: Mapping[str, Any]) -> None:
        """Store the link certificate, also if the trial is refused for it."""
        mine = type(self).objects.filter(pk=self.pk, worker=self.worker, state=State.PREPARING)
        if not mine.update(certificate=storable(certificate)):
            raise StaleTrial(f"{self} cannot be certified: it is no longer run by {self.worker or 'this worker'}")
        self.certificate = storable(certificate)

    @classmethod
    def kept_certificate(cls, made_on: str, within: timedelta) -> Mapping[str, Any] | None:
        """Return the newest certificate of a link on an equal network, as requested.

        Of trials that a worker ran: certificates of imported ones may be forged.
        """
        lately = cls.objects.filter(ended_at__gte=timezone.now() - within).exclude(worker="")
        equal = lately.filter(certificate__made_on=made_on, certificate__kept=True)
        return equal.order_by("-ended_at").values_list("certificate", flat=True).first()

    def start_running(
        self, *, command: Sequence[str], conditions: Mapping[str, Any], environment: Mapping[str, Any] | None = None
    ) -> None:
        """Record the launch; a trial that fails keeps its ``environment``."""
        stored = Environment.store(storable(environment)) if environment else None
        self._move(
            State.RUNNING, running_at=Now(), command=list(command), conditions=dict(conditions), environment=stored
        )

    def start_analysing(self) -> None:
        """Record that the launch command ended well."""
        self._move(State.ANALYSING, analysing_at=Now())

    def finish(self, result: TrialResult, *, may_repeat: bool = False) -> Trial | None:
        """Store the result in one transaction.

        If ``may_repeat``, queue one repeat of a disturbed trial and return it; otherwise return None.
        """
        repeats = may_repeat and bool(result.conditions.get(DISTURBANCES))
        with transaction.atomic():
            if repeats:
                # Cancelling and revising take the same lock: they see the repeat, or it is not queued.
                self.experiment.wait_for_others()
            rows, fields = self._columns(result)
            self._end(State.FINISHED, **fields)
            Measurement.objects.bulk_create(rows)
            Artifact.objects.bulk_create(result.artifacts)
            repeat = self._queue_repeat() if repeats else None
            self.experiment.note_end()
        return repeat

    def finish_after_all(self, result: TrialResult) -> None:
        """Finish a failed trial whose output can be parsed now."""
        with transaction.atomic():
            rows, fields = self._columns(result)
            failed = type(self).objects.filter(pk=self.pk, state=State.FAILED)
            message = f"Its output was parsed later; at first: {self.message}"
            if not failed.update(state=State.FINISHED, message=message, **fields):
                raise StaleTrial(f"{self} did not fail, or was finished by another process")
            Measurement.objects.bulk_create(rows)
        self.refresh_from_db()

    def _columns(self, result: TrialResult) -> tuple[list[Measurement], dict[str, Any]]:
        """Return the measurements and the fields that store a result."""
        rows, not_finite = Measurement.rows(self.pk, result.measurements)
        return rows, {
            "trust": result.trust,
            "trust_reasons": list(result.trust_reasons),
            "not_available": {**result.not_available, **not_finite},
            "tables": storable(dict(result.tables)),
            "environment": Environment.store(storable(result.environment)) if result.environment else self.environment,
            "conditions": storable({**self.conditions, **result.conditions}),
        }

    def fail_after_all(self, message: str, measured: Artifact) -> None:
        """Fail a finished trial whose output newer patterns or limits reject.

        ``measured`` stores the deleted results for a later parser.
        """
        with transaction.atomic():
            finished = type(self).objects.filter(pk=self.pk, state=State.FINISHED)
            if not finished.update(state=State.FAILED, message=storable(message), tables={}):
                raise StaleTrial(f"{self} is not finished")
            self.measurements.all().delete()
            self.artifacts.filter(name=measured.name).delete()
            measured.save(force_insert=True)
            self._note_failure()
        self.refresh_from_db()

    def fail(self, message: str, artifacts: Sequence[Artifact] = ()) -> None:
        """Fail with a message for users."""
        self._end_without_result(State.FAILED, artifacts, message=message)

    def error(self, message: str, traceback: str, artifacts: Sequence[Artifact] = ()) -> None:
        """Fail with an unexpected error and its traceback."""
        self._end_without_result(State.ERRORED, artifacts, message=message, traceback=traceback)

    def end_cancelled(self, artifacts: Sequence[Artifact] = ()) -> None:
        """Record that the worker stopped the trial as requested."""
        self._end_without_result(State.CANCELLED, artifacts, message="Cancelled while it ran.")

    def _end_without_result(self, state: State, artifacts: Sequence[Artifact], **fields: Any) -> None:
        with transaction.atomic():
            self._end(state, **fields)
            Artifact.objects.bulk_create(artifacts)
            if state != State.CANCELLED:
                self.experiment.hold_remaining(self)
                self._note_failure()
            self.experiment.note_end()

    def cancel(self) -> int:
        """Cancel at once, or within seconds while it runs. Return 1 if it was unfinished."""
        with transaction.atomic():
            cancelled = type(self).objects.filter(pk=self.pk).cancel()
            if cancelled:
                self.experiment.note_end()
        return cancelled

    def beat(self, progress: Mapping[str, Any] | None = None) -> bool:
        """Store a heartbeat; return whether a stop is requested. Raise StaleTrial."""
        fields: dict[str, Any] = {} if progress is None else {"progress": storable(progress)}
        mine = type(self).objects.filter(pk=self.pk, worker=self.worker, state__in=ACTIVE)
        if not mine.update(beats=F("beats") + 1, **fields):
            raise StaleTrial(f"{self} is no longer run by {self.worker}")
        return mine.filter(cancel_requested_at__isnull=False).exists()

    def record_missed_heartbeat(self, patience: int = MISSED_ROUNDS_UNTIL_LOST) -> bool:
        """Count a reaper round without heartbeat; return whether it is the last allowed.

        Rounds are counted, not timed: a step of the clock loses no trial.
        """
        mine = type(self).objects.filter(pk=self.pk, state__in=ACTIVE)
        if mine.exclude(reaper_beats=F("beats")).update(reaper_beats=F("beats"), reaper_rounds=0):
            return False
        mine.update(reaper_rounds=F("reaper_rounds") + 1)
        return mine.filter(reaper_rounds__gte=patience).exists()

    def mark_lost(self, message: str, artifacts: Sequence[Artifact] = ()) -> Trial | None:
        """End a trial of a dead worker; return its new attempt, if one is allowed."""
        with transaction.atomic():
            # Two lost trials must not both take the last one of a budget.
            self.experiment.wait_for_others()
            self._end(State.LOST, message=message)
            Artifact.objects.bulk_create(artifacts)
            if self._deserves_another_attempt():
                return self.queue_attempt()
            self._note_failure()
            self.experiment.note_end()
            return None

    def requeue(self, reason: str = "") -> bool:
        """Queue an active trial again without counting an attempt.

        Its worker or hosts end, and the trial is not at fault. ``reason`` is its message until the next claim. Return False if it is
        over, claimed by another worker, or to be cancelled.
        """
        fresh: dict[str, Any] = {
            **dict.fromkeys(("preparing_at", "running_at", "analysing_at", "certificate", "environment")),
            "command": [],
            "conditions": {},
            "progress": {},
            "message": storable(reason),
            "worker": "",
            "reaper_rounds": 0,
        }
        with transaction.atomic():
            mine = type(self).objects.filter(pk=self.pk, worker=self.worker, state__in=ACTIVE, cancel_requested_at=None)
            if not mine.update(state=State.QUEUED, beats=F("beats") + 1, **fresh):
                return False
            self.leases.all().delete()
        self.refresh_from_db()
        return True

    def _note_failure(self) -> None:
        Event.note(Event.Kind.FAILED, str(self.experiment_id), experiment_id=self.experiment_id, trial=self)

    def _deserves_another_attempt(self) -> bool:
        if self.cancel_requested_at is not None or self.superseded or not self.configuration.in_design:
            return False
        lost = self._same_repetition().filter(cluster=self.cluster_id, state=State.LOST).count()
        is_allowed = lost <= int(self.experiment.specification.get("retries", 1))
        return is_allowed and self.experiment.allows_another_trial()

    def next_attempt(self) -> Trial:
        """Return an unsaved new attempt."""
        last = self._same_repetition().aggregate(last=models.Max("attempt"))["last"] or self.attempt
        same = {name: getattr(self, name) for name in _REPEATED}
        return type(self)(**same, version=self.experiment.version, attempt=last + 1)

    def _same_repetition(self) -> TrialQuerySet:
        return type(self).objects.filter(**{name: getattr(self, name) for name in _REPETITION})

    def queue_attempt(self) -> Trial:
        """Queue a new attempt, which replaces this one. Raise StaleTrial."""
        self.experiment.require_editable()
        with transaction.atomic():
            current = type(self).objects.filter(pk=self.pk, superseded=False)
            if not current.exclude(state__in=UNFINISHED).update(superseded=True):
                raise StaleTrial(f"{self} is not over, or has a newer attempt")
            attempt = self.next_attempt()
            try:
                attempt.save(force_insert=True)
            except IntegrityError:
                raise StaleTrial(f"{self} got a newer attempt in the meantime") from None
            self.experiment.release_hold()
            return attempt

    def _queue_repeat(self) -> Trial | None:
        """Queue a repeat of a disturbed trial, last in order, when it ends.

        The disturbed trial stays. Return None if the specification wants no repeat, the trial was cancelled or left the design, its
        repetition has another trial, or the budget has no room. The caller holds the lock of the experiment.
        """
        is_outdated = self.superseded or self.cancel_requested_at is not None or not self.configuration.in_design
        if self.kind != Kind.MEASURED or not self.experiment.repeats_disturbed or is_outdated:
            return None
        trials = self.experiment.trials
        if self._same_repetition().filter(superseded=False).exclude(pk=self.pk).exists():
            return None
        if not self.experiment.allows_another_trial():
            return None
        repeat = self.next_attempt()
        repeat.position = 1 + (trials.aggregate(last=models.Max("position"))["last"] or 0)
        repeat.save(force_insert=True)
        return repeat

    def _move(self, to: State, **fields: Any) -> None:
        # A message that PostgreSQL refuses would leave the trial unfinished.
        fields = {name: storable(value) for name, value in fields.items()}
        mine = type(self).objects.filter(pk=self.pk, worker=self.worker, state__in=_FROM[to])
        if not mine.update(state=to, beats=F("beats") + 1, **fields):
            raise StaleTrial(
                f"{self} cannot become {to.label.lower()}: it is no longer run by {self.worker or 'this worker'}"
            )
        # Related rows are read again at the end alone: they may have changed while the trial ran.
        self.refresh_from_db(fields=_OF_THE_RUN if to in ACTIVE else None)

    def _end(self, to: State, **fields: Any) -> None:
        """Move to a final state and release the hosts, in the caller's transaction."""
        project_id, machines = self.experiment.project_id, self.machines
        self._move(to, ended_at=Now(), progress={}, **fields)
        self.leases.all().delete()
        self._charge(project_id, machines)

    def _charge(self, project_id: int, machines: int) -> None:
        if self.preparing_at is None or self.ended_at is None:
            return
        # If the clock was set back, the time is zero.
        held_s = max((self.ended_at - self.preparing_at).total_seconds(), 0.0)
        Usage.charge(project_id, self.ended_at.date(), machines * held_s)
