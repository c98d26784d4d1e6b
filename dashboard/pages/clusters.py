"""Clusters: where trials run, and whether they do now."""

from __future__ import annotations

from dataclasses import dataclass

from django.db.models import Count, Max, Q
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from experiments.models import ACTIVE, Cluster, State


@dataclass(frozen=True, slots=True)
class ClusterRow:
    """One cluster with its trials."""

    cluster: Cluster
    active: int
    queued: int
    finished: int
    last_end: object

    @property
    def state(self) -> str:
        if not self.cluster.enabled:
            return "off"
        return "busy" if self.active else "ready"

    @property
    def words(self) -> str:
        return f"Busy, {self.active} trial{'s' if self.active > 1 else ''}" if self.active else ""

    @property
    def hosts(self) -> str:
        """Named hosts of real clusters; the virtual ones are made for each trial."""
        listed = self.cluster.settings.get("hosts", [])
        return str(len(listed)) if listed else "as asked" if self.cluster.kind == Cluster.Kind.TESTBED else "1"

    @property
    def facts(self) -> str:
        return ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in self.cluster.facts.items())


def cluster_rows() -> list[ClusterRow]:
    """All clusters with counts of their trials; one query."""
    rows = Cluster.objects.order_by("-enabled", "slug").annotate(
        active=Count("trials", filter=Q(trials__state__in=ACTIVE)),
        queued=Count("trials", filter=Q(trials__state=State.QUEUED)),
        finished=Count("trials", filter=Q(trials__state=State.FINISHED)),
        last_end=Max("trials__ended_at"),
    )
    return [ClusterRow(c, c.active, c.queued, c.finished, c.last_end) for c in rows]


@require_GET
def clusters(request: HttpRequest) -> HttpResponse:
    """The list of clusters."""
    return render(request, "clusters.html", {"place": "clusters", "rows": cluster_rows()})
