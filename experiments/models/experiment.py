"""Experiments: a versioned specification and its trials."""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar, Final

from django.conf import settings
from django.contrib.postgres.functions import RandomUUID
from django.db import IntegrityError, connection, models, transaction
from django.db.models.functions import Now
from django.urls import reverse
from django.utils import timezone
from django.utils.text import slugify

from analysis.numbers import plural
from experiments import workloads
from experiments.common.stored_mappings import mapping_at
from experiments.errors import FieldError, InvalidSpec, ReadOnly, StaleTrial
from experiments.models.changes import note
from experiments.models.cluster import Cluster
from experiments.models.deleted import Deleted
from experiments.models.ordered_json import OrderedJSONField
from experiments.models.people.event import Event
from experiments.models.people.project import DEFAULT_PROJECT, OfProject, Project
from experiments.models.program import Program
from experiments.models.states import BLOCKING, FAILED, NOT_REQUESTED, UNFINISHED, Hold, Kind, Priority, State
from experiments.specification import ExperimentSpec, design, parse, restore

RESERVED_SLUGS: Final = frozenset({"new"})
"""Slugs that are paths of other pages."""
LONGEST_TAG: Final = 40
"""The specification's limit."""
MOST_IDENTICAL: Final = 3
"""Failures in succession with the same message that put the remaining trials on hold."""
_SLUG_ATTEMPTS: Final = 20
_LONGEST_SLUG: Final = 90
"""Without the number of a slug that is taken."""


def specification_hash(spec: ExperimentSpec) -> str:
    """Return the SHA-256 (hex) of a specification's canonical JSON."""
    return hashlib.sha256(json.dumps(spec.to_dict(), sort_keys=True).encode()).hexdigest()


def cluster_for(spec: ExperimentSpec, plan: design.Design) -> Cluster:
    """Return the cluster of a specification that expands to ``plan``.

    Raise InvalidSpec if it is unknown, disabled or misconfigured, or cannot provide the hosts, ranks, time or link.
    """
    cluster = Cluster.require(spec.cluster)
    cluster.require_settings()
    cluster.require_hosts(*design.most_hosts(spec, plan))
    cluster.require_ranks(*design.most_ranks(spec, plan))
    cluster.require_time(spec.time_limit_s)
    cluster.require_link(spec)
    cluster.require_binding(spec)
    cluster.require_allocation(spec)
    return cluster


def require_offered(spec: ExperimentSpec) -> None:
    """Raise InvalidSpec if the workload is a retired program."""
    workload = workloads.find(spec.workload)
    if workload is not None and workload.retired:
        reason = f"{workload.title} is retired: restore it on its page, or choose another workload"
        raise InvalidSpec([FieldError("workload", reason)])


class Experiment(OfProject, models.Model):
    """An experiment; ``specification`` is current, earlier ones are in ``versions``."""

    project = models.ForeignKey(Project, on_delete=models.PROTECT, related_name="experiments")
    slug = models.SlugField(max_length=100, unique=True)
    name = models.CharField(max_length=120)
    workload = models.CharField(max_length=80, db_index=True)
    cluster = models.ForeignKey(Cluster, on_delete=models.PROTECT, related_name="experiments", null=True, blank=True)
    version = models.PositiveIntegerField(default=1)
    specification: models.JSONField[dict[str, Any], dict[str, Any]] = OrderedJSONField(default=dict)
    specification_hash = models.CharField(max_length=64, db_index=True)
    tags: models.JSONField[list[str], list[str]] = models.JSONField(default=list, blank=True)
    hold = models.CharField(max_length=8, choices=Hold, default=Hold.NONE, blank=True)
    priority = models.SmallIntegerField(choices=Priority, default=Priority.NORMAL)
    published = models.BooleanField(default=False, help_text="Results of a publication: cited, never changed.")
    source: models.JSONField[dict[str, Any], dict[str, Any]] = models.JSONField(
        default=dict, blank=True, help_text="Published results: title, authors, year, notes."
    )
    uid = models.UUIDField(
        db_default=RandomUUID(), unique=True, editable=False, help_text="Its identity in every installation."
    )
    origin: models.JSONField[dict[str, Any], dict[str, Any]] = models.JSONField(
        default=dict, blank=True, editable=False, help_text="Imported results: from where, when, by whom."
    )
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, blank=True, related_name="experiments"
    )
    cloned_from = models.ForeignKey(
        "self", on_delete=models.SET_NULL, null=True, blank=True, editable=False, related_name="clones"
    )
    created_at = models.DateTimeField(auto_now_add=True, db_index=True)
    archived_at = models.DateTimeField(
        null=True, blank=True, editable=False, help_text="Time since which no list has it."
    )

    class Meta:
        ordering: ClassVar = ["-created_at", "-pk"]

    def __str__(self) -> str:
        return self.name

    def get_absolute_url(self) -> str:
        return reverse("experiment", args=[self.slug])

    @property
    def spec(self) -> ExperimentSpec:
        """Return the checked current specification. Published experiments have none."""
        return restore(self.specification)

    @property
    def searches(self) -> bool:
        """Return whether its goal is the best settings."""
        return bool(mapping_at(self.specification, "goal").get("optimise"))

    @classmethod
    def submit(
        cls,
        spec: ExperimentSpec,
        *,
        project: Project,
        owner: Any = None,
        slug: str | None = None,
        cloned_from: Experiment | None = None,
    ) -> Experiment:
        """Store a specification with its configurations and queued trials.

        ``slug`` is normalised, and numbered if taken. One transaction. Raise InvalidSpec.
        """
        spec = design.pinned(spec)
        require_offered(spec)
        plan = design.expand(spec)
        cluster = cluster_for(spec, plan)
        experiment = cls(
            project=project,
            name=spec.name,
            workload=spec.workload,
            cluster=cluster,
            specification=spec.to_dict(),
            specification_hash=specification_hash(spec),
            tags=list(spec.tags),
            owner=owner,
            cloned_from=cloned_from,
        )
        with transaction.atomic():
            Program.lock(spec.workload)
            experiment._save_under_free_slug(slugify(slug or "") or slugify(spec.name) or "experiment")
            experiment._store_version(owner)
            queued = experiment.add_design(plan)
            experiment._open_round(spec, f"Round 1 runs the design: {plural(queued, 'trial')}.", queued)
        return experiment

    def _store_version(self, author: Any) -> None:
        current = {"specification": self.specification, "hash": self.specification_hash}
        self.versions.create(number=self.version, author=author, **current)

    def _save_under_free_slug(self, slug: str) -> None:
        """Insert the row; retry with the next slug if another user took it."""
        for attempt in range(1, _SLUG_ATTEMPTS + 1):
            self.slug = free_slug(slug, self.project)
            try:
                with transaction.atomic():
                    self.save(force_insert=True)
                return
            except IntegrityError:
                if attempt == _SLUG_ATTEMPTS:
                    raise

    def revise(self, spec: ExperimentSpec, *, author: Any = None) -> int:
        """Make ``spec`` the current version and queue its new trials; return their count.

        Results stay: removed points leave the design, and a changed cluster or capture supersedes earlier trials. Waiting trials are
        replaced in the new order. Raise InvalidSpec.
        """
        self.require_editable()
        spec = design.pinned(spec)
        if spec.workload != self.workload:
            require_offered(spec)
        plan = self.plan_of(spec)
        cluster = cluster_for(spec, plan)
        with transaction.atomic():
            # No key: workers store events, which refer to this row.
            locked = type(self).objects.select_for_update(no_key=True).filter(pk=self.pk).first()
            if locked is None:
                raise StaleTrial(f"{self.name} was deleted in the meantime.")
            old = locked.spec
            if specification_hash(spec) == locked.specification_hash:
                return 0
            self.version = locked.version + 1
            self.name, self.workload, self.cluster, self.tags = spec.name, spec.workload, cluster, list(spec.tags)
            self.specification, self.specification_hash = spec.to_dict(), specification_hash(spec)
            stays_paused = locked.hold == Hold.PAUSED and spec.goal is not None
            self.hold = Hold.PAUSED if stays_paused else Hold.NONE
            if locked.workload != spec.workload:
                Program.lock(spec.workload)
            self.save()
            self._store_version(author)
            # Locked first: a trial that a worker claims meanwhile stays.
            waiting = list(
                self.trials.filter(state=State.QUEUED).select_for_update().values_list("pk", flat=True).order_by()
            )
            extra_repetitions = self._waiting_beyond(repetitions_of_design(old, spec))
            self.trials.filter(pk__in=waiting).delete()
            if (spec.cluster, spec.capture) != (old.cluster, old.capture):
                self.trials.update(superseded=True)
            queued = self.add_design(plan) + self.queue_repetitions(extra_repetitions)
            if spec.goal is None:
                self._end_open_round("The goal was removed.")
            else:
                self._open_round(spec, f"Version {self.version} of the specification.", queued)
            if not queued:
                self.note_end()
            return queued

    def plan_of(self, spec: ExperimentSpec) -> design.Design:
        """Return the design of a specification with the points that rounds chose."""
        return design.expand(spec, self.configurations.filter(in_design=True).values_list("parameters", flat=True))

    def add_points(self, points: Iterable[Mapping[str, Any]]) -> None:
        """Add configurations that a round chose to the design."""
        last = self.configurations.aggregate(last=models.Max("position"))["last"] or 0
        for number, parameters in enumerate(points, start=1):
            digest = design.configuration_hash(self.workload, parameters)
            new = {"parameters": dict(parameters), "hosts": int(parameters["hosts"]), "position": last + number}
            new["ranks"] = design.ranks_of(parameters)
            row, is_new = self.configurations.get_or_create(hash=digest, defaults={**new, "in_design": True})
            if not is_new and not row.in_design:
                self.configurations.filter(pk=row.pk).update(in_design=True)

    def _open_round(self, spec: ExperimentSpec, why: str, queued: int, phase: str | None = None) -> None:
        """Store a round of the goal unless one is open, in the caller's transaction."""
        rounds = self.rounds
        if spec.goal is not None and not rounds.filter(outcome="").exists():
            usual = "search" if spec.optimised else ""
            rounds.model.open(self, why=why, queued=queued, phase=usual if phase is None else phase)

    def _end_open_round(self, reason: str) -> bool:
        """Stop open rounds in the caller's transaction; return whether one was open."""
        return any(last.decide(last.Outcome.STOPPED, reason) for last in self.rounds.filter(outcome=""))

    def pause_rounds(self) -> bool:
        """Start and decide nothing until ``resume_rounds``; running trials end."""
        return self._change_hold((Hold.NONE, Hold.RELEASED), Hold.PAUSED)

    def resume_rounds(self) -> bool:
        return self._change_hold((Hold.PAUSED,), Hold.NONE)

    def _change_hold(self, before: Sequence[Hold], after: Hold) -> bool:
        self.require_editable()
        rows = type(self).objects.filter(pk=self.pk, hold__in=before, rounds__outcome="")
        changed = type(self).objects.filter(pk__in=rows.values("pk")).update(hold=after)
        if changed:
            self.hold = after
            note(self, "paused rounds" if after == Hold.PAUSED else "resumed rounds", "")
        return bool(changed)

    @property
    def repeats_disturbed(self) -> bool:
        return bool(self.specification.get("disturbed", "repeat") == "repeat")

    def allows_another_trial(self) -> bool:
        """Return whether the budget of the goal has room for a trial that none requested."""
        most = mapping_at(self.specification, "goal", "budget").get("trials")
        used = models.Q(preparing_at__isnull=False) | models.Q(state__in=UNFINISHED)
        return not isinstance(most, int) or self.trials.filter(used).count() < most

    def _waiting_beyond(self, repetitions: int) -> dict[str, int]:
        """Return waiting further repetitions by configuration hash."""
        waiting = self.trials.filter(state=State.QUEUED, kind=Kind.MEASURED, repetition__gt=repetitions)
        rows = waiting.values("configuration__hash").annotate(count=models.Count("pk")).order_by()
        return dict(rows.values_list("configuration__hash", "count"))

    def queue_repetitions(
        self, repetitions: Mapping[str, int], *, seed: int | None = None, kind: Kind = Kind.MEASURED
    ) -> int:
        """Queue further repetitions by configuration hash; return the count.

        With a ``seed`` each repetition has an order of its own if the design is randomised. Raise InvalidSpec if the cluster has too
        few hosts.
        """
        last = self.trials.aggregate(last=models.Max("position"))["last"] or 0
        rows = self.configurations.filter(hash__in=list(repetitions), in_design=True)
        of_kind = models.Q(trials__kind=kind)
        configurations = list(rows.annotate(last=models.Max("trials__repetition", filter=of_kind)).order_by("position"))
        for configuration in configurations:
            if self.cluster is not None:
                self.cluster.require_hosts(configuration.hosts, "hosts")
        queued = 0
        is_shuffled = seed is not None and self.specification.get("order") == "randomised"
        shuffle = random.Random(seed).shuffle  # noqa: S311 (a stored seed makes the order repeatable; nothing secret)
        for number in range(1, max(repetitions.values(), default=0) + 1):
            # Alternating directions: compared configurations run under the same conditions.
            ordered = configurations[:: 1 if number % 2 else -1]
            if is_shuffled:
                shuffle(ordered)
            for configuration in ordered:
                if number > repetitions[configuration.hash]:
                    continue
                queued += 1
                self.trials.create(
                    configuration=configuration,
                    cluster_id=self.cluster_id,
                    kind=kind,
                    repetition=(configuration.last or 0) + number,
                    version=self.version,
                    position=last + queued,
                )
        return queued

    def add_repetitions(self, count: int, *, author: Any = None) -> int:
        """Add ``count`` repetitions of every configuration; return the queued trials."""
        with transaction.atomic():
            self.wait_for_others()
            repetitions = self.spec.repetitions
            if self.spec.goal is not None or not isinstance(repetitions, int):
                raise InvalidSpec([FieldError("repetitions", "the goal adds repetitions: run one more round instead")])
            specification = {**self.specification, "repetitions": repetitions + count}
            return self.revise(parse(specification, max_trials=settings.MAX_TRIALS), author=author)

    def wait_for_others(self) -> None:
        """Lock and reload the row in a transaction. Raise StaleTrial if it is gone."""
        # No key: workers store new attempts, which refer to this row.
        try:
            self.refresh_from_db(from_queryset=type(self).objects.select_for_update(no_key=True))
        except type(self).DoesNotExist:
            raise StaleTrial(f"{self.name} was deleted in the meantime.") from None

    def rerun_failed(self) -> int:
        """Queue a new attempt of every trial without a result; return the count.

        Raise StaleTrial if another user did so in the meantime.
        """
        self.require_editable()
        with transaction.atomic():
            self.wait_for_others()
            self.release_hold()
            queued = self.trials.without_result().order_by("position").queue_attempts()
            note(self, "trials run again", str(queued))
            return queued

    def repeat_disturbed(self) -> int:
        """Queue a repeat of each counted trial that other load slowed; return the count.

        The disturbed trials stay. Return 0 while trials are unfinished: their own repeats may follow.
        """
        self.require_editable()
        with transaction.atomic():
            self.wait_for_others()
            if self.trials.filter(state__in=UNFINISHED).exists():
                return 0
            last = self.trials.aggregate(last=models.Max("position"))["last"] or 0
            repeats = [trial.next_attempt() for trial in self.trials.disturbed_points()]
            for position, repeat in enumerate(sorted(repeats, key=lambda trial: trial.position), start=last + 1):
                repeat.position = position
            self.trials.bulk_create(repeats, batch_size=2000)
            note(self, "trials run again", str(len(repeats)))
            return len(repeats)

    def reopen_rounds(self, queued: int) -> None:
        """Store a round of trials that a user runs again, in the caller's transaction."""
        if queued and mapping_at(self.specification, "goal"):
            spec, last = self.spec, self.rounds.last()
            phase = last.phase if spec.optimised and last is not None else None
            self._open_round(spec, f"{plural(queued, 'trial')} run again by a user.", queued, phase)

    def prioritise(self, priority: Priority) -> None:
        self.require_editable()
        type(self).objects.filter(pk=self.pk).update(priority=priority)
        self.priority = priority

    def hold_remaining(self, trial: Any) -> None:
        """Hold the waiting trials after a failure that is likely to repeat.

        That is: no trial of the program has finished, or the last ones failed with one message. Part of the caller's transaction.
        """
        if not self.trials.filter(state=State.QUEUED).exists():
            return
        if self._runs_new_program(trial) or self._fails_repeatedly():
            type(self).objects.filter(pk=self.pk, hold=Hold.NONE).update(hold=Hold.HELD)

    def _runs_new_program(self, trial: Any) -> bool:
        """Return whether a trial runs a user's program of which no trial has finished."""
        parameters = trial.configuration.parameters
        workload = workloads.find(self.workload, parameters)
        if workload is None or not workload.brought:
            return False
        same = {f"configuration__parameters__{name}": parameters.get(name) for name in workload.brought}
        finished = type(trial).objects.filter(experiment__workload=self.workload, state=State.FINISHED, **same)
        return not finished.exists()

    def _fails_repeatedly(self) -> bool:
        """Return whether the last trials failed with one message, whatever configuration.

        That is: their program did not start, they had several configurations, or no trial of the experiment has finished.
        """
        over = self.trials.exclude(state__in=(*UNFINISHED, State.CANCELLED)).order_by("-ended_at", "-pk")
        last = list(over.values_list("state", "message", "running_at", "configuration_id")[:MOST_IDENTICAL])
        if len(last) < MOST_IDENTICAL:
            return False
        states, messages, starts, configurations = zip(*last, strict=True)
        if not set(states) <= set(FAILED) or len({message.partition("\n")[0] for message in messages}) > 1:
            return False
        return not any(starts) or len(set(configurations)) > 1 or not self.trials.filter(state=State.FINISHED).exists()

    def release_hold(self) -> None:
        """Let held trials start; the next failure may hold them again."""
        type(self).objects.filter(pk=self.pk, hold=Hold.HELD).update(hold=Hold.NONE)

    def go_on(self) -> int:
        """Let the waiting trials start despite failures; return their count."""
        self.require_editable()
        type(self).objects.filter(pk=self.pk).update(hold=Hold.RELEASED)
        self.hold = Hold.RELEASED
        return int(self.trials.filter(state=State.QUEUED).count())

    @property
    def why_held(self) -> str:
        """Return the message of the failed trial that holds the others; empty if none."""
        if self.hold != Hold.HELD:
            return ""
        failed = self.trials.filter(state__in=FAILED).order_by("-ended_at").first()
        return failed.message if failed is not None else "Its first trial failed."

    def cancel_all_but_first(self) -> int:
        """Cancel all waiting trials but the first measured one; return the count."""
        self.require_editable()
        first = self.trials.filter(kind=Kind.MEASURED, state=State.QUEUED).order_by("position").values("pk")[:1]
        waiting = self.trials.filter(state=State.QUEUED).exclude(pk__in=first)
        return waiting.update(state=State.CANCELLED, ended_at=Now(), message=NOT_REQUESTED)

    def add_design(self, plan: design.Design) -> int:
        """Apply ``plan`` to configurations and trials; return the queued trials."""
        self.require_editable()
        from_hash = self._add_configurations(plan)
        trials = self._queued_trials(plan, from_hash)
        self.trials.model.objects.bulk_create(trials, batch_size=2000)
        return len(trials)

    def _add_configurations(self, plan: design.Design) -> dict[str, int]:
        model = self.configurations.model
        points: dict[str, dict[str, Any]] = {
            point.hash: {
                "parameters": dict(point.parameters), "hosts": point.hosts, "ranks": point.ranks, "position": position
            }
            for position, point in enumerate(plan.configurations)
        }  # fmt: skip
        stored = {row.hash: row for row in self.configurations.all()}
        for digest, row in stored.items():
            point = points.get(digest, {})
            row.in_design, row.position = bool(point), point.get("position", row.position)
        model.objects.bulk_update(stored.values(), ["in_design", "position"], batch_size=2000)
        # Equal hashes, other parameters: the new version parses the same output differently.
        other = [row for row in stored.values() if row.in_design and row.parameters != points[row.hash]["parameters"]]
        for row in other:
            row.parameters = points[row.hash]["parameters"]
        model.objects.bulk_update(other, ["parameters"], batch_size=2000)
        new = [model(experiment=self, hash=digest, **point) for digest, point in points.items() if digest not in stored]
        model.objects.bulk_create(new, batch_size=2000)
        return dict(self.configurations.values_list("hash", "pk"))

    def _queued_trials(self, plan: design.Design, from_hash: dict[str, int]) -> list[Any]:
        key = ("configuration_id", "kind", "repetition")
        current = set(self.trials.filter(superseded=False).values_list(*key))
        rows = self.trials.values_list(*key).annotate(last=models.Max("attempt")).order_by()
        attempts = {tuple(row): attempt for *row, attempt in rows}
        last = self.trials.aggregate(last=models.Max("position"))["last"] or 0
        # One value of the database's clock instead of the column's default: Django inserts rows
        # without expressions as arrays, three times as fast.
        now = type(self).objects.filter(pk=self.pk).values_list(Now(), flat=True).get()
        return [
            self.trials.model(
                experiment=self,
                configuration_id=repetition[0],
                cluster_id=self.cluster_id,
                kind=trial.kind,
                repetition=trial.repetition,
                version=self.version,
                attempt=attempts.get(repetition, 0) + 1,
                position=last + number,
                queued_at=now,
            )
            for number, trial in enumerate(plan.trials, start=1)
            if (repetition := (from_hash[plan.configurations[trial.configuration].hash], trial.kind, trial.repetition))
            not in current
        ]

    @property
    def is_imported(self) -> bool:
        """Return whether it was imported: its trials did not run here."""
        return bool(self.origin)

    def require_editable(self) -> None:
        """Raise ReadOnly for published and imported results."""
        if self.published:
            raise ReadOnly(f"{self.name} holds published results; clone it to run your own")
        if self.is_imported:
            raise ReadOnly(f"{self.name} was measured elsewhere and imported; clone it to run your own")

    @contextmanager
    def while_idle(self, advice: str) -> Iterator[None]:
        """Change an idle experiment in a transaction. Raise ReadOnly, StaleTrial."""
        if self.published:
            raise ReadOnly(f"{self.name} holds published results: they cannot be moved, archived or deleted")
        with transaction.atomic():
            self.wait_for_others()
            if self.trials.unfinished().exists() or self.rounds.filter(outcome="").exists():
                raise StaleTrial(f"Trials of {self.name} are queued or running: {advice}.")
            yield

    def move_to(self, project: Project) -> None:
        """Move to another project. Raise StaleTrial while trials are unfinished.

        The quotas of the current project admitted them.
        """
        with self.while_idle("it can be moved when they are over"):
            self.project = project
            self.save(update_fields=["project"])

    def archive(self) -> None:
        """Hide the experiment from lists. Raise ReadOnly, StaleTrial."""
        with self.while_idle("it can be archived when they are over"):
            self.archived_at = timezone.now()
            self.save(update_fields=["archived_at"])

    def unarchive(self) -> None:
        self.archived_at = None
        self.save(update_fields=["archived_at"])

    def retag(self, add: Sequence[str] = (), remove: Sequence[str] = (), *, author: Any = None) -> bool:
        """Change tags as a new version; return whether any changed. Raise ReadOnly."""
        self.require_editable()
        with transaction.atomic():
            self.wait_for_others()
            remaining = [tag for tag in self.tags if tag not in remove]
            tags = list(dict.fromkeys([*remaining, *add]))
            if tags == self.tags:
                return False
            spec = self.spec.model_copy(update={"tags": tuple(tags)})
            self.tags, self.version = tags, self.version + 1
            self.specification = {**self.specification, "tags": tags}
            self.specification_hash = specification_hash(spec)
            self.save(update_fields=["tags", "version", "specification", "specification_hash"])
            self._store_version(author)
            return True

    def cancel(self) -> int:
        """Cancel all unfinished trials, running ones within seconds; return the count.

        Rounds of a goal end without a decision.
        """
        self.require_editable()
        with transaction.atomic():
            self.wait_for_others()
            type(self).objects.filter(pk=self.pk, hold__in=BLOCKING).update(hold=Hold.NONE)
            stopped = self._end_open_round("A user cancelled its trials.")
            cancelled = int(self.trials.unfinished().cancel())
            if cancelled or stopped:
                self.note_end()
        note(self, "cancelled trials", str(cancelled))
        return cancelled

    def note_end(self) -> None:
        """Store the end event, as the last statement of a transaction that ended trials.

        Trials that run later end it again. An experiment of cancelled trials alone stores no event.
        """
        # The last two trials may end in concurrent transactions: the second waits here, and then sees the first.
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 18))", [f"end:{self.pk}"])
        if self.trials.filter(state__in=UNFINISHED).exists() or self.rounds.filter(outcome="").exists():
            return
        ended = self.trials.filter(superseded=False, state__in=(State.FINISHED, *FAILED))
        newest = ended.aggregate(pk=models.Max("pk"))["pk"]
        if newest is not None:
            Event.note(Event.Kind.ENDED, f"{self.pk}:{newest}", experiment=self)

    def note_imported(self) -> None:
        """Store the event of an import."""
        newest = self.trials.aggregate(pk=models.Max("pk"))["pk"]
        Event.note(Event.Kind.IMPORTED, f"{self.pk}:{newest}", experiment=self)


def repetitions_of_design(old: ExperimentSpec, new: ExperimentSpec) -> int:
    """Return the repetitions of a design; a new version queues further ones again.

    Versions of a search have none: rounds queue those of its candidates.
    """
    return 0 if old.optimised and new.optimised else old.at_least


def free_slug(stem: str, project: Project) -> str:
    """Return ``wanted``, or the first free of ``wanted-2``, ``wanted-3`` ...

    Outside the default project the project's name precedes it with two hyphens, so that a number reveals no experiment of another
    project.
    """
    if project.slug != DEFAULT_PROJECT:
        stem = f"{project.slug}--{stem}"
    stem = stem[:_LONGEST_SLUG].strip("-")
    taken = {*RESERVED_SLUGS}
    for kind in (Experiment, Deleted):  # a deleted experiment may be restored
        taken |= {*kind.objects.filter(slug__startswith=stem).values_list("slug", flat=True)}
    number = 1
    while (slug := stem if number == 1 else f"{stem}-{number}") in taken:
        number += 1
    return slug
