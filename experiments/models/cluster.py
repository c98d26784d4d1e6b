"""Clusters, and the leases that keep their hosts exclusive."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, ClassVar

from django.conf import settings
from django.core.exceptions import ValidationError
from django.db import models, transaction

from analysis.numbers import duration, grouped, plural
from experiments import cluster_kinds
from experiments.cluster_kinds import ClusterKind
from experiments.cluster_kinds.base import LEAST_RANKS
from experiments.errors import ClusterInUse, FieldError, InvalidSpec
from experiments.models.deleted import Deleted
from experiments.specification import ExperimentSpec
from experiments.specification.placement import UNBOUND
from experiments.specification.transport import AS_CLUSTER


class Cluster(models.Model):
    """A cluster that runs trials; ``settings`` for its launcher, ``facts`` for users."""

    slug = models.SlugField(max_length=80, unique=True)
    name = models.CharField(max_length=120)
    kind = models.CharField(max_length=10, choices=cluster_kinds.choices())
    settings: models.JSONField[dict[str, Any], dict[str, Any]] = models.JSONField(default=dict, blank=True)
    facts: models.JSONField[dict[str, Any], dict[str, Any]] = models.JSONField(default=dict, blank=True)
    enabled = models.BooleanField(default=True)
    elsewhere = models.BooleanField(
        default=False, editable=False, help_text="Known by imported results alone: nothing runs on it from here."
    )
    created_at = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return self.name

    def describe(self, facts: Mapping[str, Any]) -> None:
        """Replace the stated facts (experiments.cluster_kinds.facts)."""
        self.facts = dict(facts)
        self.save(update_fields=["facts"])

    def clean(self) -> None:
        """Refuse settings that the kind does not accept."""
        if self.kind in dict(cluster_kinds.choices()) and (errors := self.settings_errors):
            raise ValidationError({"settings": [f"{error.path or 'settings'}: {error.message}" for error in errors]})

    def set_up(self, *, name: str, settings: Mapping[str, Any], enabled: bool) -> None:
        self.name, self.settings, self.enabled = name, dict(settings), enabled
        self.save(update_fields=["name", "settings", "enabled"])

    def switch(self, *, on: bool) -> None:
        """Enable or disable the cluster; running trials end, its queue waits."""
        self.enabled = on
        self.save(update_fields=["enabled"])

    def reason_to_keep(self, visible: Collection[Deleted] = ()) -> str:
        """Return why it cannot be deleted, with names of ``visible`` experiments, or ""."""
        if self.is_recreated:
            return "Each start of the server creates it."
        if self.elsewhere:
            return "Imported results name it."
        if count := self.experiments.count():
            return f"It has {plural(count, 'experiment')}."
        if count := self.trials.count():
            return f"It has {plural(count, 'trial')}."
        if deleted := Deleted.of_cluster(self.pk):
            names = [experiment.name for experiment in deleted if experiment in visible][:3]
            named = f", such as {', '.join(names)}" if names else ""
            return f"It has {plural(len(deleted), 'experiment')} in the trash{named}."
        return ""

    @property
    def is_recreated(self) -> bool:
        """Return whether each start of the server creates it, under the name of its kind."""
        return self.traits.exists_everywhere and self.slug == self.traits.name

    def remove(self) -> None:
        """Delete it with its test. Raise ClusterInUse if trials name it."""
        try:
            if reason := self.reason_to_keep():
                raise ClusterInUse(f"{self.name} cannot be deleted. {reason}")
            with transaction.atomic():
                self.delete()
        except models.ProtectedError:  # a trial was queued in the meantime
            raise ClusterInUse(f"{self.name} cannot be deleted. It has trials.") from None

    @property
    def settings_errors(self) -> list[FieldError]:
        """Return the errors of its settings."""
        return [] if self.elsewhere else self.traits.errors_in(self.settings)

    @property
    def traits(self) -> ClusterKind:
        """Return the properties of its kind."""
        return cluster_kinds.get(self.kind)

    @property
    def most_hosts(self) -> int | None:
        """Return the maximum hosts of a trial; None if only the scheduler knows."""
        return self.facts.get("hosts") if self.elsewhere else self.traits.most_hosts(self)

    @property
    def hosts_to_suggest(self) -> int | None:
        """Return the maximum hosts of a suggestion; None if unknown. May query."""
        return self.facts.get("hosts") if self.elsewhere else self.traits.hosts_to_suggest(self)

    @property
    def cores_to_suggest(self) -> int | None:
        """Return the maximum ranks per host of a suggestion; None if unknown. May query."""
        return self.traits.cores_to_suggest(self)

    def recorded_condition(self, condition: str, default: Any = None) -> Any:
        """Return a condition recorded by the latest trial here that has it."""
        trials = self.trials.filter(conditions__has_key=condition).order_by("-pk")
        conditions = trials.values_list("conditions", flat=True).first()
        return default if conditions is None else conditions[condition]

    def fill_in(self, facts: Mapping[str, Any]) -> None:
        """Add facts found on the hosts; stated and earlier facts stay."""
        with transaction.atomic():
            locked = type(self).objects.select_for_update().get(pk=self.pk)
            locked.facts = {**facts, **locked.facts}
            locked.save(update_fields=["facts"])
        self.facts = locked.facts

    @classmethod
    def require(cls, slug: str) -> Cluster:
        """Return the enabled cluster ``slug``. Raise InvalidSpec at ``cluster``."""
        of_here = cls.objects.filter(elsewhere=False)
        cluster = of_here.filter(slug=slug).first()
        if cluster is None or not cluster.enabled:
            slugs = ", ".join(of_here.filter(enabled=True).order_by("slug").values_list("slug", flat=True)) or "none"
            message = f"the cluster {slug!r} is {'switched off' if cluster else 'unknown'}; switched on: {slugs}"
            raise InvalidSpec([FieldError("cluster", message)])
        return cluster

    def require_settings(self) -> None:
        """Raise InvalidSpec at ``cluster`` if its settings are wrong."""
        if errors := self.settings_errors:
            errors_text = "; ".join(f"{error.path or 'settings'} {error.message}" for error in errors)
            raise InvalidSpec([FieldError("cluster", f"the settings of {self.name} are wrong: {errors_text}")])

    def require_hosts(self, hosts: int, field: str) -> None:
        """Raise InvalidSpec at ``field`` for more hosts than a trial can have."""
        if self.most_hosts is not None and hosts > self.most_hosts:
            has = plural(self.most_hosts, "host")
            raise InvalidSpec([FieldError(field, f"the cluster {self.name} has {has}, not {hosts}")])

    def require_ranks(self, hosts: int, ranks: int, field: str) -> None:
        """Raise InvalidSpec at ``field`` for more ranks than a trial may have."""
        if ranks <= hosts * LEAST_RANKS and not self.traits.on_this_machine:
            return  # without asking for the cores
        if ranks > (most := self.traits.most_ranks(self, hosts)):
            words = f"on {plural(hosts, 'host')} of {self.name} a trial may have {plural(most, 'rank')}, not {grouped(ranks)}"
            raise InvalidSpec([FieldError(field, words)])

    def require_time(self, time_limit_s: float) -> None:
        """Raise InvalidSpec at ``time_limit_s`` for a limit above the maximum."""
        most_s = settings.MAX_TRIAL_HOURS * 3600
        if time_limit_s > most_s:
            words = f"a trial here may hold the hosts for {duration(most_s)}, not {duration(time_limit_s)}"
            raise InvalidSpec([FieldError("time_limit_s", words)])

    def require_link(self, spec: ExperimentSpec) -> None:
        """Raise InvalidSpec at each link setting, or ideal network, that it cannot make."""
        refused = cluster_kinds.refused_settings(self.traits, spec.link, spec.sweep)
        if spec.ideal and (reason := cluster_kinds.refused_ideal_runs(self.traits)):
            refused["ideal"] = reason
        if refused:
            raise InvalidSpec(FieldError(field, message) for field, message in refused.items())

    def require_binding(self, spec: ExperimentSpec) -> None:
        """Raise InvalidSpec if hosts that share one machine's cores shall bind ranks."""
        values_by_field = {"bind": [spec.bind], "sweep.bind": spec.swept("bind") if "bind" in spec.sweep else []}
        fields = [field for field, values in values_by_field.items() if {*values} - {*UNBOUND, AS_CLUSTER}]
        if fields and self.traits.hosts_are_virtual:
            words = f"the hosts of {self.traits.noun} share the cores of one machine: their ranks are not bound"
            raise InvalidSpec([FieldError(fields[0], words)])

    def require_allocation(self, spec: ExperimentSpec) -> None:
        """Raise InvalidSpec at ``allocation`` without a scheduler."""
        if spec.allocation != "cluster" and not self.traits.allots:
            words = f"no scheduler allots the hosts of {self.name}: they are always available"
            raise InvalidSpec([FieldError("allocation", words)])

    def shares_jobs(self, spec: ExperimentSpec) -> bool:
        """Return whether all trials of an experiment share one job of the scheduler."""
        allocation = self.settings.get("allocation") if spec.allocation == "cluster" else spec.allocation
        return self.traits.allots and allocation == "per experiment"

    def resources(self) -> list[str]:
        """Return the resources that a trial needs exclusively, sorted against deadlocks."""
        return sorted(self.traits.resources(self))

    def competing(self, startable: models.QuerySet[Any]) -> list[int]:
        """Return other clusters of ``startable`` trials that share hosts, all free."""
        if self.traits.allots:  # the scheduler shares its hosts out
            return []
        needed = set(self.resources())
        others = type(self).objects.filter(pk__in=startable.values("cluster")).exclude(pk=self.pk)
        sharing = {
            other.pk: required
            for other in others
            if not other.traits.allots and needed & (required := set(other.resources()))
        }
        leased = set(Lease.objects.values_list("resource", flat=True)) if sharing else set()
        return [pk for pk, required in sharing.items() if not required & leased]


class Lease(models.Model):
    """One resource held by one running trial or cluster test, unique per resource."""

    resource = models.CharField(max_length=255, unique=True)
    trial = models.ForeignKey(
        "experiments.Trial", on_delete=models.CASCADE, related_name="leases", null=True, blank=True
    )
    test = models.ForeignKey(
        "experiments.ClusterTest", on_delete=models.CASCADE, related_name="leases", null=True, blank=True
    )
    acquired_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering: ClassVar = ["resource"]
        constraints: ClassVar = [
            models.CheckConstraint(
                condition=models.Q(trial__isnull=False, test__isnull=True)
                | models.Q(trial__isnull=True, test__isnull=False),
                name="lease_has_one_holder",
            )
        ]

    def __str__(self) -> str:
        return f"{self.resource} held by {f'trial {self.trial_id}' if self.trial_id else self.test}"
