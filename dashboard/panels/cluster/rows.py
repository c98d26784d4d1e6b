"""Clusters in lists and on pages: state, hosts, facts, counts of their trials."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from django.db.models import Count, Max, Q, QuerySet

from analysis import numbers
from experiments.cluster_kinds import facts as cluster_facts
from experiments.cluster_kinds.facts import facts_of
from experiments.models import ACTIVE, Cluster, State


@dataclass(frozen=True, slots=True)
class ClusterRow:
    """One cluster with its trials."""

    cluster: Cluster
    active: int
    queued: int
    finished: int = 0
    last_end: object = None

    @property
    def state(self) -> str:
        if self.cluster.elsewhere:
            return "elsewhere"
        if self.cluster.settings_errors:
            return "wrong"
        if not self.cluster.enabled:
            return "off"
        if self.active:
            return "busy"
        test = getattr(self.cluster, "test", None)
        return "check-failed" if test is not None and test.has_failed else "ready"

    @property
    def words(self) -> str:
        return f"Busy, {numbers.plural(self.active, 'trial')}" if self.state == "busy" else ""

    @property
    def hosts(self) -> str:
        """Return the number of hosts in words."""
        if self.state == "elsewhere":
            return str(self.cluster.most_hosts or "?")
        return self.cluster.traits.hosts_in_words(self.cluster) if self.state != "wrong" else "?"

    @property
    def facts(self) -> list[tuple[str, str, str]]:
        """Return (name, value, meaning) of the facts, with the peak."""
        return facts_in_words(self.cluster.facts)


_PEAK: Final = "Clock x cores of all hosts x operations per cycle: no program can compute faster."


def facts_in_words(facts: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    """Return (name, value, meaning) of every fact, the peak first, unknown names last."""
    fields = cluster_facts.fields()
    names = [*(name for name in fields if name in facts), *(name for name in facts if name not in fields)]
    labels = {name: (info.title or name, info.description or "") for name, info in fields.items()}
    words = [
        (*labels.get(name, (name.replace("_", " "), "")), cluster_facts.written(name, facts[name])) for name in names
    ]
    rows = [(name, value, meaning) for name, meaning, value in words]
    peak = facts_of(facts).peak_flops
    return rows if peak is None else [("Theoretical peak", numbers.amount(peak / 1e9, "GFLOP/s"), _PEAK), *rows]


def cluster_rows(among: QuerySet[Cluster]) -> list[ClusterRow]:
    """Return clusters with counts of their trials in one query."""
    rows = (
        among.select_related("test")
        .order_by("-enabled", "slug")
        .annotate(
            active=Count("trials", filter=Q(trials__state__in=ACTIVE)),
            queued=Count("trials", filter=Q(trials__state=State.QUEUED)),
            finished=Count("trials", filter=Q(trials__state=State.FINISHED)),
            last_end=Max("trials__ended_at"),
        )
    )
    return [ClusterRow(c, c.active, c.queued, c.finished, c.last_end) for c in rows]
